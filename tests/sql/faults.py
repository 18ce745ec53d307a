"""Faults as they shipped elsewhere, planted in ours one at a time: the examination of questions must find each."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import PropertyMock, patch

from tests.sql.examination import Check

import discreet.session.sql_question
from discreet.core.errors import DiscreetError
from discreet.core.events import Pure
from discreet.core.units import Row, User
from discreet.mechanisms import SparseVector
from discreet.noise import Entropy
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.sql.bounding.clipping_norms import Caps
from discreet.sql.bounding.sums import Statistic, Sums
from discreet.sql.functions.ranges import Interval, hull
from discreet.sql.measuring import planner
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.run import Run
from discreet.sql.parsing import joins as joining
from discreet.sql.parsing import scope
from discreet.sql.plan import Relation
from discreet.sql.relations import names_in
from discreet.sql.statement import builder as statement
from discreet.sql.statement.results import Bucketed
from discreet.sql.statement.selection import Selection

Fault = Callable[[], Any]


def movement_halved() -> Any:
    original = Caps.movement
    return patch.object(Caps, "movement", lambda self, bound, cut: original(self, bound, cut) // 2)


def weights_ignored() -> Any:
    original = Bucketed.clipped
    return patch.object(Bucketed, "clipped", lambda self, index, weight, cut, *how: original(self, index, 0, 99, *how))


def _rewritten(change: Callable[[str], str]) -> Any:
    original = discreet.session.sql_question.statement
    return patch.object(discreet.session.sql_question, "statement", lambda *given: change(original(*given)))


def norm_forgets_groups() -> Any:
    """The largest group stands for all of a unit's groups."""
    return _rewritten(lambda text: text.replace("SUM(CAST(group_rows AS DOUBLE)", "MAX(CAST(group_rows AS DOUBLE)"))


def values_not_clipped() -> Any:
    def steps(self: Statistic, value: str, *_: Any) -> str:
        shifted = f"({value} - {float(self.middle)!r})"
        power = f"{shifted} * {shifted}" if self.kind == "squares" else shifted
        steps = f"FLOOR({power} * {float(self.fineness / self.grid.step)!r} + 0.5)"
        return f"CAST(LEAST(GREATEST({steps}, -1e9), 1e9) AS BIGINT)"

    return patch.object(Statistic, "steps", steps)


def _behind_rows(change: str) -> Any:
    class Changed(Selection):
        def select(self, relation: Relation, used: frozenset[str] | None = None) -> str:
            return f"SELECT * FROM ({Selection(self.dialect).select(relation, used)}) AS subquery {change}"

    return patch.object(statement, "Selection", Changed)


def filter_sees_everybody() -> Any:
    return _behind_rows("WHERE (SELECT COUNT(*) FROM visits) % 2 = 0")


def rows_in_order_of_arrival() -> Any:
    return _behind_rows("LIMIT 20")


def people_meet() -> Any:
    return patch.object(joining, "_is_unit", lambda expression, rows: True)


def weights_ignored_in_totals() -> Any:
    return weights_ignored()


def values_not_clipped_in_totals() -> Any:
    return values_not_clipped()


def bounds_outlive_their_column() -> Any:
    original = scope.interval

    def interval(expression: Any, columns: dict[str, Interval]) -> Interval:
        used = [columns[name] for name in names_in(expression) if name in columns]
        known = [reach for reach in used if reach.bounds() is not None]
        return hull(*known) if known else original(expression, columns)

    return patch.object(scope, "interval", interval)


def exchange_counted_once() -> Any:
    return _both(*(patch.object(kind, "changes", PropertyMock(return_value=1)) for kind in (User, Row)))


def threshold_too_low() -> Any:
    original = Measurement.threshold
    return patch.object(Measurement, "threshold", lambda self, cut: original(self, cut) * 0.5)


def noise_of_one_share() -> Any:
    """Every statistic has the noise it would have alone."""
    return patch.object(Measurement, "_factor", lambda self, statistic: Fraction(1))


def search_told_half() -> Any:
    original = SparseVector.for_epsilon

    def for_epsilon(*given: Any, sensitivity: int, **more: Any) -> SparseVector:
        return original(*given, sensitivity=sensitivity // 2, **more)

    return patch.object(SparseVector, "for_epsilon", for_epsilon)


def error_on_a_value() -> Any:
    return _rewritten(lambda text: text.replace("TRY_CAST(", "CAST("))


def empty_groups_hidden() -> Any:
    original = Run.release

    def release(self: Run) -> Any:
        shown = None if self.listed is None else [key for key in self.listed if key in self.groups.keys]
        return original(replace(self, listed=shown))

    return patch.object(Run, "release", release)


def sums_a_little_off() -> Any:
    original = Sums.answer
    return patch.object(Sums, "answer", lambda self, index, values: original(self, index, values) * 1.01)


def run_before_charge() -> Any:
    original = Session.sql

    def sql(self: Session, text: str, **given: Any) -> Any:
        self._engine.run(SQL(text, given["epsilon"]).bind(self._context).plan().statement)
        return original(self, text, **given)

    return patch.object(Session, "sql", sql)


def nothing_charged() -> Any:
    def sql(self: Session, text: str, *, epsilon: Any, test_entropy: Entropy) -> Any:
        plan = SQL(text, epsilon).bind(self._context).plan()
        return plan.read(plan.run(test_entropy, lambda share: None))

    return patch.object(Session, "sql", sql)


def refusals_charged() -> Any:
    original = Session.sql

    def sql(self: Session, text: str, **given: Any) -> Any:
        try:
            return original(self, text, **given)
        except DiscreetError:
            self._ledger.charge(self._account, [Pure(Fraction(1, 1000))], f"refused {text}")
            raise

    return patch.object(Session, "sql", sql)


def cheaper_than_quoted() -> Any:
    original = Session.price

    def price(self: Session, text: str, **given: Any) -> Any:
        return replace(original(self, text, **given), events=(Pure(Fraction(1)),))

    return patch.object(Session, "price", price)


FAULTS: dict[Fault, tuple[Check, set[str]]] = {
    movement_halved: ("movement", {"movement"}),
    weights_ignored: ("movement", {"movement"}),
    norm_forgets_groups: ("movement", {"movement"}),
    values_not_clipped: ("movement", {"movement"}),
    filter_sees_everybody: ("movement", {"movement"}),
    rows_in_order_of_arrival: ("movement", {"movement"}),
    exchange_counted_once: ("movement", {"movement"}),
    threshold_too_low: ("movement", {"movement"}),
    noise_of_one_share: ("movement", {"movement"}),
    search_told_half: ("movement", {"movement"}),
    weights_ignored_in_totals: ("totals", {"result"}),
    values_not_clipped_in_totals: ("totals", {"result"}),
    bounds_outlive_their_column: ("totals", {"result"}),
    people_meet: ("plan", {"refusal"}),
    error_on_a_value: ("movement", {"shape"}),
    empty_groups_hidden: ("session", {"shape"}),
    sums_a_little_off: ("session", {"result"}),
    run_before_charge: ("session", {"charge"}),
    nothing_charged: ("session", {"charge"}),
    refusals_charged: ("session", {"charge"}),
    cheaper_than_quoted: ("session", {"charge"}),
}
"""Each fault, the check that is to find it, and what it says."""


@contextmanager
def _both(*patches: Any) -> Iterator[None]:
    first, *others = patches
    with first:
        if others:
            with _both(*others):
                yield
        else:
            yield


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Ours with the fault in it; what was planned meanwhile is forgotten."""
    planner.plan.cache_clear()
    try:
        with fault():
            yield
    finally:
        planner.plan.cache_clear()
