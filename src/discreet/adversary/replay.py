"""A question put to made-up neighbours with frozen noise: what may not depend on the data is compared.

- plan: statement, words, price and events follow from what is declared alone;
- books: the charge, exactly the one quoted, is durable before the engine runs, and nothing is answered without one;
- shape: status, columns, types, listed groups and their order are the same on both.

Each check raises a `CheckFailed` where it fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from discreet.adversary.movement import CheckFailed
from discreet.adversary.twins import Data, arrow
from discreet.asked import Asked
from discreet.core.errors import AnswerFailed, DiscreetError
from discreet.core.events import Event
from discreet.core.units import Unit
from discreet.engines.duckdb import DuckDB
from discreet.ledger.notation import events_to_plain
from discreet.noise.entropy import Entropy
from discreet.session import Session
from discreet.sql.answer import Answer
from discreet.sql.catalog import Catalog

__all__ = ["alike", "answered", "opened", "same_plan"]

NAMED = {"integer": {"int"}, "real": {"float", "int"}, "boolean": {"bool"}, "text": {"str"}, "date": {"date"}}
NAMED |= {"timestamp": {"datetime"}}
"""How values of each type come to Python."""
DECIDED = ("statement", "question", "words", "listed", "query", "loss", "errors")
"""What is decided before the data is touched."""


def opened(catalog: Catalog, unit: Unit, budget: Any, data: Data) -> Session:
    """A session on made-up tables, with everything declared as in the catalog and books of its own."""
    engine = DuckDB(threads=1)
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


@contextmanager
def _watched(engine: Any, note: Any) -> Iterator[None]:
    """Calls `note` whenever the engine is about to run a statement."""
    original = engine.run

    def run(statement: str) -> Any:
        note()
        return original(statement)

    engine.run = run
    try:
        yield
    finally:
        engine.run = original


def answered(
    session: Session, text: str, epsilon: Any, entropy: Entropy, events: Sequence[Event] | None, known: bool = False
) -> Answer | DiscreetError:
    """The answer or refusal, once it is sure that the books had the charge before the engine ran, and nothing else.

    `events` are those of the quote, None where there is none; `known` questions are asked again.
    """
    ledger = session._ledger
    head = ledger.head().sequence
    stood: list[list[dict[str, Any]]] = []
    outcome: Answer | DiscreetError
    with _watched(session._engine, lambda: stood.append([entry.content for entry in ledger.entries(head)])):
        try:
            outcome = session.sql(text, epsilon=epsilon, test_entropy=entropy)
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
