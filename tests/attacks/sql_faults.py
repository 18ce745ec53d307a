"""Faults planted in questions and books, one at a time, as they shipped elsewhere; more are in tests/sql/faults.py."""

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.attacks.faults import together

import discreet.session
from discreet import connection
from discreet.core.errors import AnswerFailed
from discreet.ledger import Ledger
from discreet.ledger import ledger as ledgers
from discreet.ledger.records import Charge
from discreet.noise import Entropy
from discreet.purchase import FAILED, Bought, Counter, Purchase
from discreet.session import Session
from discreet.sql import functions, measurement, selection, vocabulary
from discreet.sql.caps import Caps, G, H
from discreet.sql.dialect import Dialect
from discreet.sql.groups import Bucketed, Groups
from discreet.sql.intervals import Interval
from discreet.sql.measurement import Measurement, Noisy
from discreet.sql.selection import Selection
from discreet.sql.statistics import Statistic, Sums


def doubles_added_as_they_come() -> Any:
    return together(
        patch.object(Statistic, "steps", lambda self, value, *_: f"LEAST(GREATEST({value}, -1e16), 1e16)"),
        patch.object(Dialect, "divided", lambda self, value, parts: value),
    )


def values_rounded_to_floats() -> Any:
    original = Statistic.steps
    return patch.object(
        Statistic, "steps", lambda self, value, *how: original(self, f"CAST(CAST({value} AS FLOAT) AS DOUBLE)", *how)
    )


def totals_of_32_bits() -> Any:
    original = Bucketed.clipped

    def clipped(self: Bucketed, *given: Any) -> list[int]:
        return [(total + (1 << 31)) % (1 << 32) - (1 << 31) for total in original(self, *given)]

    return patch.object(Bucketed, "clipped", clipped)


def infinity_held() -> Any:
    """Ends that overflowed are the largest that bounds can have."""
    original = Interval.bounds

    def bounds(self: Interval) -> Any:
        ends = (max(min(end, 1e280), -1e280) for end in (self.lower, self.upper))
        return original(Interval(*map(Fraction, ends)))

    return patch.object(Interval, "bounds", bounds)


def columns_as_they_are() -> Any:
    return patch.object(selection, "_admitted", lambda name, kind, dialect: dialect.identifier(name))


def no_number_is_the_largest() -> Any:
    """As the engine sorts NaN: above all numbers."""

    def steps(self: Statistic, value: str, *_: Any) -> str:
        assert self.bounds is not None
        held = f"LEAST(GREATEST({value}, {float(self.bounds.lower)!r}), {float(self.bounds.upper)!r})"
        shifted = f"({held} - {float(self.middle)!r})"
        return f"CAST(FLOOR({shifted} * {float(self.fineness / self.grid.step)!r} + 0.5) AS INTEGER)"

    return together(columns_as_they_are(), patch.object(Statistic, "steps", steps))


def cuts_off_towards_minus_infinity() -> Any:
    floor = functions.FUNCTIONS["floor"]
    return patch.dict(functions.FUNCTIONS, trunc=replace(functions.FUNCTIONS["trunc"], render=floor.render))


def text_cast_as_the_engine_does() -> Any:
    return patch.object(Dialect, "text", lambda self, node: node.sql(dialect="duckdb").replace("TRY_CAST", "CAST"))


def a_counter_is_a_function_of_the_row() -> Any:
    return patch.dict(vocabulary.NAMED, nextval="length")


def every_unit_in_the_first_bucket() -> Any:
    return patch.object(Caps, "bucket", lambda self, norm, **_: "0")


def only_twenty_rows() -> Any:
    original = Selection._scan
    return patch.object(Selection, "_scan", lambda *given: f"SELECT * FROM ({original(*given)}) AS l LIMIT 20")


def number_of_rows_taken_as_known() -> Any:
    """No noise for the count under an average."""
    original = Measurement.deviation

    def deviation(self: Measurement, index: int, cut: int) -> Fraction:
        return original(self, index, cut) / (1 << 40 if self.statistics[index].kind == "present" else 1)

    return patch.object(Measurement, "deviation", deviation)


def _released(change: Callable[[Measurement, Groups, Noisy], Noisy]) -> Any:
    original = Measurement.release

    def release(self: Measurement, groups: Groups, listed: Sequence[Any] | None, entropy: Entropy) -> Noisy:
        return change(self, groups, original(self, groups, listed, entropy))

    return patch.object(Measurement, "release", release)


def divided_by_the_rows_there_are() -> Any:
    def change(own: Measurement, groups: Groups, noisy: Noisy) -> Noisy:
        sums = noisy.sums.copy()
        for place, statistic in enumerate(own.statistics):
            if statistic.kind == "present":
                sums[:, place] = np.array(own.totals(groups, noisy.keys, (0, 0, 0))[place]) / (G * H)
        return replace(noisy, sums=sums)

    return _released(change)


def averages_of_any_size() -> Any:
    def answer(self: Sums, index: int, values: Any) -> Any:
        total, number = (np.asarray(values[self.statistics[place]]) for place in self.places(index)[-2:])
        return total / number

    return patch.object(Sums, "answer", answer)


def largest_groups_first() -> Any:
    def change(own: Measurement, groups: Groups, noisy: Noisy) -> Noisy:
        exact = own.totals(groups, noisy.keys, (0, 0, 0))[0]
        order = sorted(range(len(exact)), key=lambda place: -exact[place])
        return replace(noisy, keys=tuple(noisy.keys[place] for place in order), sums=noisy.sums[order])

    return _released(change)


def noise_in_whole_steps() -> Any:
    coarse = G * H

    def whole(scale: Fraction, size: int, *, entropy: Entropy) -> Any:
        return np.round(np.array([random.Random(7).gauss(0, 1)] * size) * float(scale) / coarse).astype(int) * coarse

    return together(*(patch.object(measurement, f"discrete_{law}", whole) for law in ("laplace", "gaussian")))


def threshold_forgets_the_noise() -> Any:
    return patch.object(Measurement, "_quantile", lambda self, tail: 0.0)


def limits_read_off_the_rows() -> Any:
    original = Session._asked

    def asked(self: Session, query: Any, *given: Any, **more: Any) -> Any:
        [(most,)] = self._engine.run('SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM "t" GROUP BY "who")')
        return original(self, replace(query, aggregate=replace(query.aggregate, max_rows=most)), *given, **more)

    return patch.object(Session, "_asked", asked)


def large_tables_read_twice() -> Any:
    original = Session._measured

    def measured(self: Session, asked: Any) -> Groups:
        groups = original(self, asked)
        many = sum(groups.by_groups.values()) + sum(groups.by_rows.values()) > 6
        return original(self, asked) if many else groups

    return patch.object(Session, "_measured", measured)


def refunded() -> Any:
    """Run first; what fails is not charged."""
    original = Counter.bought

    def bought(self: Counter, purchase: Purchase, run: Callable[[], bytes]) -> Bought:
        found = run()
        if found == FAILED:
            raise AnswerFailed()
        return original(self, purchase, lambda: found)

    return patch.object(Counter, "bought", bought)


def failures_not_stored() -> Any:
    def guarded(run: Callable[[], bytes]) -> bytes:
        try:
            return run()
        except Exception:
            raise AnswerFailed() from None

    return patch.object(discreet.session, "guarded", guarded)


def failures_that_quote() -> Any:
    def guarded(run: Callable[[], bytes]) -> bytes:
        try:
            return run()
        except Exception as error:
            failed = AnswerFailed()
            failed.args = (f"the engine says: {error}",)
            raise failed from error

    return patch.object(discreet.session, "guarded", guarded)


def a_full_budget_for_each_analyst() -> Any:
    def admit(filters: Any, unit: Any, event: Any) -> None:
        filters[max(filters, key=len)].charge(event)

    return patch.object(ledgers, "admit", admit)


def books_by_the_name_given() -> Any:
    def books(source: Any, ledger: Any, paths: Any) -> Any:
        return ledger or Path(f"{os.path.abspath(source)}{connection.BESIDE}")

    return patch.object(connection, "_books", books)


def sums_remembered() -> Any:
    """What the books said once is believed for ever."""
    original, known = ledgers.lineage, dict[Any, Any]()

    def lineage(books: Any, path: Any) -> Any:
        return known.setdefault(path, original(books, path)) if len(path) == 1 else original(books, path)

    return patch.object(ledgers, "lineage", lineage)


def charges_written_at_the_end() -> Any:
    """Kept until the books are closed."""
    original = Ledger.charge
    kept: list[Any] = []

    def charge(self: Ledger, account: Any, events: Any, question: str, **more: Any) -> Charge:
        kept.append((account, events, question, more))
        return Charge(self.id, 0, "", account, question, "", "", True, None)

    def close(self: Ledger, closing: Any = Ledger.close) -> None:
        for account, events, question, more in kept:
            original(self, account, events, question, **more)
        closing(self)

    return together(patch.object(Ledger, "charge", charge), patch.object(Ledger, "close", close))
