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
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

from discreet.charging import remaining as allowance
from discreet.charging.purchase import FAILED, Bought, Counter, Listener, Purchase
from discreet.charging.question import Bound, Context, LongPlan, Plan, Question, Shown, Step
from discreet.charging.quote import Quote
from discreet.charging.signing_keys import Custody
from discreet.charging.steps import BoundStep
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable
from discreet.core.forks import Home, folder
from discreet.core.losses import Budget, Loss
from discreet.core.units import Unit
from discreet.engines.engine import Engine
from discreet.ledger import Ledger, Standing
from discreet.ledger import Step as LedgerStep
from discreet.noise.entropy import Entropy, for_release
from discreet.session.books import files_apart, opened_account
from discreet.session.sql import SQL
from discreet.sql.answers.answer import Answer
from discreet.sql.answers.html import session_html
from discreet.sql.catalog import Catalog
from discreet.sql.decimals import Decimals
from discreet.sql.functions.registry import cast
from discreet.sql.plan import Named, Project, Ref, Relation, Scan
from discreet.sql.relations import tables_in
from discreet.sql.statement.naming import renamed
from discreet.sql.statement.selection import Selection

if TYPE_CHECKING:
    from discreet.estimation.request import Ends
    from discreet.estimation.result import Estimation
    from discreet.robust.sandbox.workers import Form, Limits
    from discreet.session.mechanism_run import MechanismRelease
    from discreet.synthesis.columns import Bins
    from discreet.synthesis.request import Wanted
    from discreet.synthesis.result import Synthesis

Result = TypeVar("Result", bound=Shown)

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

    def price(
        self,
        question: str | Question[Any],
        *,
        epsilon: Exactable | None = None,
        error: Exactable | None = None,
        rho: Exactable | None = None,
    ) -> Quote:
        """The cost of a question, nothing if it is stored, and how good its answer will be; nothing is spent.

        A text is SQL, for `epsilon`, or for `rho` under a `ZCDP` budget; instead of these, `error` names the mean
        absolute error that no count or sum shall exceed. Other questions, as `SyntheticRows`, have all that in them.
        """
        if isinstance(question, str):
            question = SQL(question, epsilon, error, rho)
        elif epsilon is not None or error is not None or rho is not None:
            remedy = f"write {type(question).__name__}(…, epsilon=…)"
            raise InvalidArgument("epsilon, error, rho", (epsilon, error, rho), "part of the question", remedy)
        bound = self._bind(question)
        plan = bound.plan()
        plan.check()
        covered = isinstance(bound, BoundStep)
        fits = covered or self._ledger.fits(self._account, plan.events)
        former = (identity for identity, _ in bound.formers(plan))
        known = self._counter.stored(bound.key) or self._counter.stored(*former)
        price = (plan.epsilon, plan.loss, plan.events, plan.words, plan.errors, fits)
        dialect = self._engine.dialect.name
        quote = Quote(*price, plan.statement, plan.columns, plan.notes(), covered=covered, dialect=dialect)
        if covered and known is not None:
            return replace(quote, stored=known.payload != FAILED, failed=known.payload == FAILED)
        return quote if known is None else quote.settled(known.events, self._budget, known.payload == FAILED)

    def ask(
        self,
        question: Question[Result],
        *,
        progress: Callable[[float], None] | None = None,
        test_entropy: Entropy | None = None,
    ) -> Result:
        """What is released for a question of any kind, charged before the data is touched; what is stored is free.

        `progress` is told how much is done, in the same steps whatever the data.
        """
        source, listener = for_release(test_entropy), Listener(progress)
        bound = self._bind(question)
        key, plan = bound.key, None
        if isinstance(bound, BoundStep) and not source.private:
            raise InvalidArgument(
                "test_entropy", "a test seed", "left out for steps", "ask the question itself with it"
            )
        bought = self._counter.recalled(key) if source.private else None
        if bought is None:
            key, plan, bought = self._planned(bound, source.private)
        shown: Callable[[bytes], Result] | None = None if plan is None else cache(plan.read)
        if bought is None:
            assert plan is not None
            assert shown is not None
            plan.check()
            purchase = _purchase(key, plan, source.private)
            with plan.ready() as run:
                measure = partial(listener.during, partial(run, source, listener))
                bought = self._counter.charge_and_run(purchase, measure, shown)
            plan = plan if bought.charge.own else None
        if plan is None or shown is None:  # read as it was released, perhaps by another version
            plan = bound.recalled(bought.payload, bought.charge.events)
            shown = plan.read
        listener.heard()
        release = shown(bought.payload)
        if not source.private:
            return release
        certificate = self._counter.certificate(_purchase(key, plan), bought, release)
        return replace(release, certificate=certificate)

    def _planned(self, bound: Bound[Result], private: bool) -> tuple[str | LedgerStep, Plan[Result], Bought | None]:
        """A question that is not stored as it is known now: its plan, or what earlier versions stored of it."""
        plan = bound.plan()
        for identity, former in bound.formers(plan) if private else ():
            bought = self._counter.recalled(identity)
            if bought is not None:
                return identity, former, bought
        return bound.key, plan, None

    def sql(
        self,
        text: str,
        *,
        epsilon: Exactable | None = None,
        error: Exactable | None = None,
        rho: Exactable | None = None,
        test_entropy: Entropy | None = None,
    ) -> Answer:
        """The answer to a question, charged before the data is touched; asked again it is free.

        Instead of `epsilon`, `error` names the mean absolute error that no count or sum shall exceed, and `rho`, under
        a `ZCDP` budget, what it may cost there: Gaussian noise throughout.
        """
        return self.ask(SQL(text, epsilon, error, rho), test_entropy=test_entropy)

    def synthesize(
        self,
        what: str | Sequence[str],
        *,
        epsilon: Exactable | None = None,
        rho: Exactable | None = None,
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
        by default about as many as there are; `progress` is told how much is done. Instead of `epsilon`, `rho` is what
        they may cost under a `ZCDP` budget: counts are then measured with Gaussian noise.
        """
        from discreet.synthesis.question import SyntheticRows

        question = SyntheticRows(what, epsilon, workload, method, bins, max_rows, check, rows, rho)
        return self.ask(question, progress=progress, test_entropy=test_entropy)

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
    ) -> Estimation:
        """What any function gives on private rows, nearly: run on disjoint blocks of units, its answers aggregated.

        `what` lists columns of the first table, or is the name of a table, or a SELECT that lists columns; the function
        gets the rows of one block (`form`: a pandas DataFrame, an Arrow table, a dict of numpy arrays), in a process of
        its own, and gives a number within `bounds` (a vector, where there are several), one of `values`, or without
        both any label. A block where it fails counts as `default`. It is charged before the data is touched, and each
        time it is asked.
        """
        from discreet.estimation.question import Estimate

        asked = (bounds, values, blocks, rounds, method, default, form, limits)
        question = Estimate(function, what, epsilon, *asked)
        return self.ask(question, progress=progress, test_entropy=test_entropy)

    def release(
        self,
        mechanism: Any,
        data: Any,
        *,
        about: str = "",
        test_entropy: Entropy | None = None,
    ) -> MechanismRelease:
        """What a mechanism with noise or a choice releases, charged through the session, each time it is asked.

        `data` is what the mechanism takes, computed by the caller, who vouches that it moves between neighbours by no
        more than the mechanism's sensitivity; `about` says for the books what it is. Or it is a question in SQL that
        counts rows of listed groups, where every row is a unit: then the sensitivity is checked.
        """
        from discreet.session.mechanism_run import RunMechanism

        return self.ask(RunMechanism(mechanism, data, about), test_entropy=test_entropy)

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

    def close(self) -> None:
        """Let go of the engine and the books."""
        self._closed = True
        with ExitStack() as closing:
            if self._clear is not None:
                closing.callback(self._clear)
            closing.callback(self._ledger.close)
            closing.callback(self._engine.close)

    def _bind(self, question: Question[Result]) -> Bound[Result]:
        """A question about the tables of this session."""
        self._check_open()
        if not isinstance(question, Question):
            remedy = "write dc.SQL(…), dc.SyntheticRows(…) or dc.Estimate(…)"
            raise InvalidArgument("question", type(question).__name__, "a Question", remedy)
        bound = question.bind(self._context)
        return BoundStep.of(self._counter, bound, question.number) if isinstance(question, Step) else bound

    @property
    def _context(self) -> Context:
        """What questions are lent."""
        lent = (self._catalog, self._unit, self._budget, self._engine, self._sources, self._files)
        return Context(*lent)

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


def _purchase(key: str | LedgerStep, plan: Plan[Any], private: bool = True) -> Purchase:
    said = plan.text, plan.words, plan.events, plan.loss
    if isinstance(key, LedgerStep):
        return Purchase(str(key), *said, step=key)
    purchase = Purchase(key, *said, steps=plan.steps if isinstance(plan, LongPlan) else 0)
    return purchase if private else purchase.seeded()
