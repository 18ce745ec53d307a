"""Where everything meets: a steward's table, its budget, and an analyst's questions.

>>> import numpy as np
>>> from discreet import ApproxDP, User, connect
>>> visits = {"who": np.array([1, 1, 2, 3]), "city": np.array(["a", "b", "a", "a"])}
>>> cities = {"city": ["a", "b"]}
>>> session = connect(visits, unit=User("who"), budget=ApproxDP(1, "1e-6"), table="visits", values=cities)
>>> quote = session.price("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon="0.5")
>>> float(quote.loss.epsilon) <= 0.5
True
>>> answer = session.sql("SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon="0.5")
>>> [name for name in answer.names], len(answer.rows)
(['city', 'n'], 2)
>>> session.sql("select city, count(*) n from visits group by 1", epsilon="0.5").rows == answer.rows     # free
True
>>> session.close()

The life of an answer: parse, look for the same question in the books, plan, price, charge durably, run one statement,
add noise, store, show. What is shown is what the ledger stored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

from discreet.charging import remaining as allowance
from discreet.charging.purchase import FAILED, Counter, Listener, Purchase
from discreet.charging.quote import Quote
from discreet.charging.signing_keys import Custody
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, positive
from discreet.core.forks import Home, folder
from discreet.core.losses import Loss
from discreet.core.units import Unit
from discreet.engines.engine import Engine
from discreet.ledger import Charge, Ledger, Standing
from discreet.noise.entropy import Entropy, for_release, system
from discreet.session.books import files_apart, opened_account
from discreet.session.sql_question import Asked, Question, Reading, spendable
from discreet.sql.answers.answer import Answer, pack, plan_of
from discreet.sql.answers.html import session_html
from discreet.sql.catalog import Catalog
from discreet.sql.decimals import Decimals
from discreet.sql.functions.registry import cast
from discreet.sql.measuring.planner import Budget, loss_of
from discreet.sql.parsing.select import parse
from discreet.sql.plan import Named, Project, Ref, Relation, Scan
from discreet.sql.relations import tables_in
from discreet.sql.statement.naming import renamed
from discreet.sql.statement.results import Groups
from discreet.sql.statement.selection import Selection

if TYPE_CHECKING:
    from discreet.estimation.request import Ends
    from discreet.estimation.request import Request as Function
    from discreet.estimation.result import Estimate
    from discreet.robust.sandbox.workers import Form, Limits
    from discreet.synthesis.columns import Bins
    from discreet.synthesis.request import Request, Wanted
    from discreet.synthesis.result import Synthesis

__all__ = ["Quote", "Session"]


class Session:
    """An open table with its books. Use `connect`."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        unit: Unit,
        budget: Budget,
        ledger: str | Path | None,
        dataset: str,
        sources: Sequence[str],
        study: str | None,
        analyst: str | None,
        key: str | os.PathLike[str] | None = None,
        new: bool = False,
        own: Sequence[str] = (),
    ) -> None:
        self._closed = False
        self._engine = engine
        self._catalog = catalog
        self._unit = unit
        self._budget = budget
        self._home = Home()
        self._clear = None
        place = ledger
        if place is None:
            temporary, remove = folder()
            place, self._clear = Path(temporary) / "ledger.db", finalize(self, remove)
        self._ledger = Ledger.at(place)
        try:
            self._custody = Custody.of(self._ledger, place, key)
            below = [name for name in (study, analyst) if name is not None]
            self._account = opened_account(self._ledger, dataset, budget, unit, sources, below, new)
            self._files_apart = files_apart(self._ledger, self._account[0], own)
            self._counter = Counter(self._ledger, self._account, budget, unit, self._custody, ledger is not None)
        except BaseException:
            self._ledger.close()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        left = "closed" if self._closed else f"remaining={self.remaining}"
        return f"Session({self._account[0]!r}, {self._unit}, {self._budget}, {left})"

    def _repr_html_(self) -> str | None:
        if self._closed:
            return None
        unit = {"kind": type(self._unit).__name__.lower(), **vars(self._unit)}
        standings = self._ledger.standing(self._account)
        used = {" / ".join(standing.account): standing.used for standing in standings if standing.budget is not None}
        return session_html(self._catalog, unit, self._budget, self.spent, self.remaining, used)

    @property
    def account(self) -> tuple[str, ...]:
        """Where the books are charged: the data set, and the study and analyst within it."""
        return self._account

    @property
    def sources(self) -> dict[str, str]:
        """All sources that the books know, with the data sets they belong to."""
        return self._ledger.sources()

    @property
    def standing(self) -> tuple[Standing, ...]:
        """How the account and all above it stand in the books."""
        return self._ledger.standing(self._account)

    def running(self) -> bool:
        """Whether a statement is being run, for other threads to ask. How far it is depends on the data, and is not
        told."""
        return self._engine.running()

    def cancel(self) -> None:
        """Stop the running statement, from another thread: its `sql` raises KeyboardInterrupt; its charge stands."""
        self._engine.cancel()

    @property
    def spent(self) -> Loss:
        """What was charged so far, all composed."""
        return allowance.spent(self._ledger, self._account, self._budget)

    @property
    def remaining(self) -> Loss:
        """The most that one more question may cost; several smaller ones may cost more together."""
        return allowance.remaining(self._ledger, self._account, self._budget)

    def price(self, text: str, *, epsilon: Exactable | None = None, error: Exactable | None = None) -> Quote:
        """The cost of a question, nothing if it is stored, and how good its answer will be; nothing is spent.

        Instead of `epsilon`, `error` names the mean absolute error that no count or sum shall exceed.
        """
        question = self._question(text, epsilon, error)
        asked = question.planned().prepared()
        asked.check(self._engine.prepare)
        fits = self._ledger.fits(self._account, asked.measurement.events)
        known = self._counter.stored(question.identity)
        known = known or (question.former(asked, self._counter.stored) or (None, None))[1]
        told = (asked.words, asked.errors, fits, asked.statement)
        return self._quoted(Quote(asked.epsilon, asked.loss, asked.measurement.events, *told), known)

    def _quoted(self, quote: Quote, known: Charge | None) -> Quote:
        """The quote, or if an outcome is stored already, what that is and what was paid for it."""
        return quote if known is None else quote.settled(known.events, self._budget, known.payload == FAILED)

    def sql(
        self,
        text: str,
        *,
        epsilon: Exactable | None = None,
        error: Exactable | None = None,
        test_entropy: Entropy | None = None,
    ) -> Answer:
        """The answer to a question, charged before the data is touched; asked again it is free.

        Instead of `epsilon`, `error` names the mean absolute error that no count or sum shall exceed.
        """
        question, source = self._question(text, epsilon, error), for_release(test_entropy)
        shown: Callable[[bytes], Answer] = cache(lambda payload: reading.answer(query, payload, purchase.loss))
        bought = self._counter.recalled(question.identity) if source.private else None
        query, identity, former = question.query, question.identity, None
        if bought is None:
            asked = question.planned().prepared()
            former = question.former(asked, self._counter.recalled) if source.private else None
            if former is not None:
                asked, bought = former
                query, identity = asked.query, asked.former_identity
            reading = asked.reading
            purchase = Purchase(identity, text, asked.words, asked.measurement.events, asked.loss)
        if bought is None:
            asked.check(self._engine.prepare)
            wanted = purchase if source.private else purchase.seeded()
            bought = self._counter.bought(wanted, lambda: self._run(asked, source), shown)
        if former is None and not bought.charge.own:  # read as it was released, perhaps by another version
            reading, events = Reading.of(query, plan_of(bought.payload)), bought.charge.events
            purchase = Purchase(identity, text, reading.words, events, loss_of(events, self._budget))
        answer = shown(bought.payload)
        if not source.private:
            return answer
        return replace(answer, certificate=self._counter.certificate(purchase, bought, answer))

    def synthesize(
        self,
        what: str | Sequence[str],
        *,
        epsilon: Exactable,
        workload: Wanted = None,
        method: str | None = None,
        bins: Bins = None,
        max_rows: int | None = None,
        check: Exactable = "0.1",
        rows: int | None = None,
        progress: Callable[[float], None] | None = None,
        test_entropy: Entropy | None = None,
    ) -> Synthesis:
        """Synthetic rows of some columns, charged before the data is touched; asked again they are free.

        `what` lists columns of the first table, or is the name of a table (all columns whose values or bounds are
        declared), or a SELECT that lists columns. `workload` is what the rows should be good for: a number of columns,
        for the marginals of all so many and fewer; or a list of texts (SELECT …, COUNT(*) … GROUP BY …) and of lists of
        columns. `method` is a name; `bins` are for numbers, {"age": 10} or {"age": [0, 18, 65, 120]}; `max_rows` is
        what a unit weighs at most; `check` the part of ε that finds out how far off the rows are. `rows` is how many,
        by default about as many as there are; `progress` is told how much is done.
        """
        from discreet.synthesis.result import assembled, checked, plan_of, released

        request = self._requested(what, epsilon, workload, method, bins, max_rows, check)
        source = for_release(test_entropy)
        wanted, listener = checked(rows), Listener(progress)
        sources = self._sources(request.rows.relation)
        identity = request.identity(sources)
        shown = cache(lambda payload: assembled(request, payload, wanted))
        bought, former = self._counter.recalled(identity) if source.private else None, None
        if bought is None and source.private:
            bought = former = self._counter.recalled(request.former_identity(sources))
            identity = identity if former is None else request.former_identity(sources)
        purchase = request.purchase(identity)
        if bought is None:
            bought = self._counter.bought(
                purchase if source.private else purchase.seeded(),
                lambda: listener.during(lambda: released(request, self._engine, source, listener)),
                shown,
            )
        if former is None and not bought.charge.own:  # read as it was released, perhaps by another version
            request = request.recalled(plan_of(bought.payload), bought.charge.events)
            purchase = request.purchase(identity)
        listener.heard()
        found = shown(bought.payload)
        if not source.private:
            return found
        return replace(found, certificate=self._counter.certificate(purchase, bought, found))

    def price_synthesis(
        self,
        what: str | Sequence[str],
        *,
        epsilon: Exactable,
        workload: Wanted = None,
        method: str | None = None,
        bins: Bins = None,
        max_rows: int | None = None,
        check: Exactable = "0.1",
    ) -> Quote:
        """What `synthesize` would cost and do, from declared facts alone; nothing is spent."""
        made = self._requested(what, epsilon, workload, method, bins, max_rows, check)
        fits = self._ledger.fits(self._account, made.events)
        price, sources = (made.loss, made.events, made.words, made.errors), self._sources(made.rows.relation)
        known = self._counter.stored(made.identity(sources), made.former_identity(sources))
        return self._quoted(Quote(made.epsilon, *price, fits, made.statement, made.domain.names), known)

    def estimate(
        self,
        function: Callable[[Any], Any],
        what: str | Sequence[str],
        *,
        epsilon: Exactable,
        bounds: Ends = None,
        values: Sequence[Any] | None = None,
        blocks: int | None = None,
        rounds: int = 1,
        method: str | None = None,
        default: Any = None,
        form: Form = "pandas",
        limits: Limits | None = None,
        progress: Callable[[float], None] | None = None,
        test_entropy: Entropy | None = None,
    ) -> Estimate:
        """What any function gives on private rows, nearly: run on disjoint blocks of units, its answers aggregated.

        `what` lists columns of the first table, or is the name of a table, or a SELECT that lists columns; the function
        gets the rows of one block (`form`: a pandas DataFrame, an Arrow table, a dict of numpy arrays), in a process of
        its own, and gives a number within `bounds` (a vector, where there are several), one of `values`, or without
        both any label. A block where it fails counts as `default`. It is charged before the data is touched, and each
        time it is asked.
        """
        from discreet.estimation.result import assembled, released

        request = self._function(function, what, epsilon, bounds, values, blocks, rounds, method, default, form, limits)
        source, listener = for_release(test_entropy), Listener(progress)
        sources, shown = self._sources(request.rows.relation), cache(lambda payload: assembled(request, payload))
        with request.workers(self._files()) as workers:
            purchase = request.purchase(sources, f"{system().bits(128):032x}")
            bought = self._counter.bought(
                purchase if source.private else purchase.seeded(),
                lambda: listener.during(lambda: released(request, self._engine, workers, source, listener)),
                shown,
            )
        listener.heard()
        found = shown(bought.payload)
        if not source.private:
            return found
        return replace(found, certificate=self._counter.certificate(purchase, bought, found))

    def price_estimate(
        self,
        function: Callable[[Any], Any],
        what: str | Sequence[str],
        *,
        epsilon: Exactable,
        bounds: Ends = None,
        values: Sequence[Any] | None = None,
        blocks: int | None = None,
        rounds: int = 1,
        method: str | None = None,
        default: Any = None,
        form: Form = "pandas",
        limits: Limits | None = None,
    ) -> Quote:
        """What `estimate` would cost and do, from declared facts alone; nothing is spent. The function is run once, on
        made-up rows: `notes` tell what it did there, and whether blocks are too few."""
        from discreet.estimation.trial import tried

        made = self._function(function, what, epsilon, bounds, values, blocks, rounds, method, default, form, limits)
        fits = self._ledger.fits(self._account, made.events)
        price, notes = (made.loss, made.events, made.words, made.errors), (*made.notes, *tried(made, self._files()))
        return Quote(made.epsilon, *price, fits, made.statement, made.names, notes)

    def public_columns(self, table: str, names: Sequence[str]) -> dict[str, list[Any]]:
        """Columns of a table that protects nobody, as they are."""
        known = self._catalog.table(table)
        if known.private:
            raise InvalidArgument("table", table, "a public table", "people's rows are never shown")
        columns = [known.column(name) for name in names]
        refs = [Ref(column.name, column.type) for column in columns]
        kept = [cast(ref, "real") if isinstance(ref.type, Decimals) else ref for ref in refs]
        shown = tuple(Named(f"c{place}", expression) for place, expression in enumerate(kept))
        relation, _ = renamed(Project(Scan(known), shown))
        rows = self._engine.run(Selection(self._engine.dialect).select(relation))
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}

    def _files(self) -> list[Path]:
        """Where people's rows, the books and the key lie, as far as that is in files."""
        private = [table.name for table in self._catalog.tables if table.private]
        rows = [path for name in private for path in self._engine.paths(name)]
        return [*rows, *self._custody.files(self._ledger)]

    def _requested(self, what: str | Sequence[str], epsilon: Exactable, *asked: Any) -> Request:
        from discreet.synthesis.request import Facts, Request

        self._check_open()
        facts = Facts(self._catalog, self._unit.changes, self._budget, self._engine.dialect)
        request = Request.of(facts, what, spendable(epsilon), *asked)
        self._engine.prepare(request.statement)  # what the engine cannot run is refused before anything is charged
        return request

    def _function(
        self, function: Callable[[Any], Any], what: str | Sequence[str], epsilon: Exactable, *asked: Any
    ) -> Function:
        from discreet.estimation.request import Request

        self._check_open()
        engine = self._engine.dialect
        request = Request.of(self._catalog, self._budget, engine, function, what, spendable(epsilon), *asked)
        self._engine.prepare(request.statement)  # what the engine cannot run is refused before anything is charged
        return request

    def _run(self, asked: Asked, source: Entropy) -> bytes:
        """The noisy sums, packed."""
        noisy = asked.measurement.release(self._measured(asked), asked.listed, source)
        return pack(noisy, source.private, asked.record)

    def _measured(self, asked: Asked) -> Groups:
        """What the engine gives, before any noise."""
        groups = self._groups(asked, asked.statement)
        # How many rows a group may have before all are read again does not depend on the question.
        return groups if groups.exact or asked.is_wide else self._groups(asked, asked.written(wide=True))

    def _groups(self, asked: Asked, statement: str) -> Groups:
        measurement = asked.measurement
        keys, owned = len(asked.query.aggregate.keys), measurement.weights is not None
        found, ranked = self._engine.run(statement), len(asked.ranked)
        return Groups.read(found, keys, measurement.statistics, owned, ranked, asked.valued)

    def close(self) -> None:
        """Let go of the engine and the books."""
        self._closed = True
        with ExitStack() as closing:
            if self._clear is not None:
                closing.callback(self._clear)
            closing.callback(self._ledger.close)
            closing.callback(self._engine.close)

    def _ask(self, text: str, epsilon: Exactable | None, error: Exactable | None) -> Asked:
        return self._question(text, epsilon, error).planned().prepared()

    def _question(self, text: str, epsilon: Exactable | None, error: Exactable | None) -> Question:
        self._check_open()
        if (epsilon is None) == (error is None):
            remedy = "give epsilon=0.5, what it may cost, or error=20, how far counts and sums may be off"
            raise InvalidArgument("epsilon, error", (epsilon, error), "exactly one of the two", remedy)
        query = parse(text, self._catalog)
        given = spendable(epsilon) if error is None else None
        wanted = None if error is None else positive("error", error)
        sources, terms = self._sources(query.aggregate.input), (self._unit.changes, self._budget, self._engine.dialect)
        return Question(query, sources, given, wanted, *terms, lambda: parse(text, self._catalog, doubles=True))

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgument("session", "closed", "open", "connect again: the books continue")
        if self._home.left:
            raise InvalidArgument("session", "opened before a fork", "of the process that asks", "connect again in it")

    def _sources(self, relation: Relation) -> dict[str, str]:
        """Where the tables of rows are; the first one is the data set itself, wherever it is kept, but where a data set
        has several it is also which, and as a view what it says."""
        first, used = self._catalog.tables[0].name, sorted(tables_in(relation))
        said = {name: self._engine.definition(name) for name in used}
        which = self._files_apart + said.pop(first) if first in said else ""
        others = {name: self._engine.identity(name) for name in said}
        return {**others, **({first: which} if which else {})}
