"""A question put to made-up neighbours with frozen noise: what may not depend on the data is compared.

- plan: statement, words, price and events follow from what is declared alone;
- books: the charge, exactly the one quoted, is durable before the engine runs, and nothing is answered without one;
- shape: status, columns, types, listed groups and their order are the same on both;
- record: what is stored beside an answer is what was decided before.

Each check raises a `CheckFailed` where it fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from discreet.adversary.session_audit.neighbouring_tables import Data, arrow
from discreet.adversary.session_audit.sensitivity import CheckFailed
from discreet.core.errors import AnswerFailed, DiscreetError, EngineUnavailable
from discreet.core.events import Event
from discreet.core.units import Unit
from discreet.engines.duckdb.engine import DuckDB
from discreet.ledger.encoding import events_to_plain
from discreet.noise.entropy import Entropy
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.session.sql_question import Asked
from discreet.sql.answers.answer import Answer, plan_of
from discreet.sql.catalog import Catalog

__all__ = ["alike", "answered", "check_record", "opened", "put", "same_plan"]

NAMED = {"integer": {"int"}, "real": {"float", "int"}, "boolean": {"bool"}, "text": {"str"}, "date": {"date"}}
NAMED |= {"timestamp": {"datetime"}}
"""How values of each type come to Python; decimals of an answer are reals."""
DECIDED = ("statement", "sources", "epsilon", "record", "words", "listed", "query", "loss", "errors")
"""What is decided before the data is touched."""


class WatchedDuckDB(DuckDB):
    """An engine of the audit's own: it tells before it runs a statement, and fails or changes when asked to."""

    def __init__(self, lasting: bool = False) -> None:
        super().__init__(threads=1, lasting=lasting)
        self.statements: list[str] = []
        self._listeners: list[Callable[[], None]] = []
        self._failure: str | None = None
        self._replaced = False

    @contextmanager
    def watched(self, listener: Callable[[], None]) -> Iterator[None]:
        """Calls `listener` before each statement that is run meanwhile."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    @contextmanager
    def failing(self, words: str) -> Iterator[None]:
        """Every statement is run and then fails, with these words and what it gave."""
        self._failure = words
        try:
            yield
        finally:
            self._failure = None

    @contextmanager
    def changed(self) -> Iterator[None]:
        """No table is what it was when it was added."""
        self._replaced = True
        try:
            yield
        finally:
            self._replaced = False

    def definition(self, table: str) -> str:
        """As of DuckDB, unless tables have changed."""
        if self._replaced:
            raise EngineUnavailable(f"{table} is not what it was")
        return super().definition(table)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of one SELECT."""
        self.statements.append(statement)
        for listener in self._listeners:
            listener()
        rows = super().run(statement)
        if self._failure is not None:
            raise RuntimeError(f"{self._failure}: {rows}")
        return rows

    def profile(self, statement: str) -> Any:
        """What DuckDB counts while it runs a statement."""
        [[_, measured]] = self._opened().execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}").fetchall()
        return json.loads(measured)


def opened(catalog: Catalog, unit: Unit, budget: Any, data: Data) -> Session:
    """A session on made-up tables, with everything declared as in the catalog and books of its own."""
    engine = WatchedDuckDB()
    try:
        links = {(t.link.table.lower(), t.link.key) for t in catalog.tables if t.link is not None}
        for table in catalog.tables:
            own = {table.link.column} if table.link is not None else set()
            keys = own | {key for name, key in links if name == table.name.lower()}
            rows = arrow(table, data[table.name])
            engine.add(table.name, rows, unit=table.unit, links=keys, private=table.private)
        engine.seal()
        first = catalog.tables[0].name
        return Session(engine, catalog, unit, budget, None, first, [engine.identity(first)], None, None)
    except BaseException:
        engine.close()
        raise


def same_plan(planned: Asked, theirs: Asked) -> None:
    """Plan, price and statement are those of a neighbour."""
    for name in DECIDED:
        if getattr(theirs, name) != getattr(planned, name):
            raise CheckFailed("plan", f"neighbours differ in {name}")
    if theirs.measurement.events != planned.measurement.events:
        raise CheckFailed("plan", "neighbours differ in their events")


def put(session: Session, question: SQL, entropy: Entropy | None = None) -> Answer:
    """The answer to a question, as analysts ask it."""
    price: dict[str, Any] = {"epsilon": question.epsilon} if question.rho is None else {"rho": question.rho}
    return session.sql(question.text, **price, test_entropy=entropy)


def answered(
    session: Session, question: SQL, entropy: Entropy, events: Sequence[Event] | None, known: bool = False
) -> Answer | DiscreetError:
    """The answer or refusal, once it is sure that the books had the charge before the engine ran, and nothing else.

    `events` are those of the quote, None where there is none; `known` questions are asked again.
    """
    ledger = session._ledger
    head = ledger.head().sequence
    stood: list[list[dict[str, Any]]] = []
    outcome: Answer | DiscreetError
    engine = session._engine
    assert isinstance(engine, WatchedDuckDB)
    with engine.watched(lambda: stood.append([entry.content for entry in ledger.entries(head)])):
        try:
            outcome = put(session, question, entropy)
        except AnswerFailed:
            raise CheckFailed("shape", "the engine failed") from None
        except DiscreetError as error:
            outcome = error
    written = [entry.content for entry in ledger.entries(head)]
    if isinstance(outcome, DiscreetError) or known:
        if written or stood:
            raise CheckFailed("charge", f"nothing is due, but {len(written)} entries and {len(stood)} runs were made")
        return outcome
    if [entry["kind"] for entry in written] != ["charge", "release"]:
        raise CheckFailed("charge", f"the books got {[entry['kind'] for entry in written]}")
    if not stood or any(seen != written[:1] for seen in stood):
        raise CheckFailed("charge", f"when the engine ran, the books had {stood}")
    if events is None or written[0]["events"] != events_to_plain(tuple(events)):
        raise CheckFailed("charge", f"charged {written[0]['events']}, quoted {events}")
    return outcome


def check_record(session: Session, planned: Asked, question: SQL) -> None:
    """What the books have beside an answer from a test seed follows from the plan alone: certificates tell its hash."""
    identity = question.bind(session._context).parsed.identity
    charge = session._ledger.stored(session.account, f"not private {identity}")
    if charge is None or charge.payload is None:
        raise CheckFailed("record", "an answer is shown that is not stored")
    if plan_of(charge.payload) != json.loads(json.dumps(planned.record)):
        raise CheckFailed("record", "what is stored beside an answer is not what was decided before")


def alike(planned: Asked, mine: Answer, theirs: Answer) -> None:
    """Answers on neighbours have the same columns and types, and the listed groups, in the same order."""
    if mine.names != theirs.names or mine.types != theirs.types:
        raise CheckFailed("shape", f"{mine.names} {mine.types} here, {theirs.names} {theirs.types} on a neighbour")
    for answer in (mine, theirs):
        for place, kind in enumerate(answer.types):
            kinds = {type(row[place]).__name__ for row in answer.rows} - {"NoneType", "Unstable"}
            if not kinds <= NAMED[kind]:
                raise CheckFailed("shape", f"column {answer.names[place]} of type {kind} holds {kinds}")
        if planned.listed is not None and list(answer.spans.noisy.keys) != planned.listed:
            raise CheckFailed("shape", "the listed groups are not those released")
    query = planned.query
    shown_whole = planned.listed is not None and query.having is None and query.limit is None
    if shown_whole and (len(mine.rows) != len(theirs.rows) or (not query.order and mine.places != theirs.places)):
        shown = f"{len(mine.rows)} groups here, {len(theirs.rows)} on a neighbour, or in another order"
        raise CheckFailed("shape", shown)
