"""Privacy by audit: what an attacker learns from stable answers, on data next to an instability.

    python experiments/stable_privacy.py [--quick]

Theorem 7.1 (Scale), proposition 7.2 (A_dist), theorem 7.3 (A_samp) and propose-test-release state (ε, δ). Each of them
is run many times on two neighbours as far from instability as leaves the test undecided, as the book has it and in its
best form here; the auditor gives an ε below which no guarantee can be true. It must not pass the stated one. Where it
comes near, the stated ε is what the pair really costs, and nothing was given away.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np

from discreet import Bounds
from discreet.adversary import audit
from discreet.robust import (
    OnLine,
    OrderStatistic,
    ProposeTestRelease,
    RawData,
    Scale,
    SignificantFeatures,
    Slope,
    SubsampledRelease,
    Unstable,
    mode,
)
from discreet.robust.scale import distance_to_leave
from discreet.robust.statistics import Sample
from harness import ALARM, COLOURS, Experiment, Row, points

DELTA = Fraction(1, 20)
LINE = Bounds(0, 64)
BEST, BOOK = "best", "book"
BLOCKS = 30

Made = Callable[[Fraction], Any]
Pair = Callable[[Any, int], tuple[Any, Any]]


def _subsamples(rule: Any) -> Made:
    """Few blocks of many rows: one record is seen by each of them that holds it."""
    return lambda epsilon: SubsampledRelease(_any, epsilon, DELTA / 2, 30, Fraction(1, 60), 2, "add_remove", rule)


def _growing(rows: Callable[[int], Any]) -> Pair:
    """The first of a row of data sets that is so far from instability, and the same with a record less."""

    def pair(mechanism: Any, distance: int) -> tuple[Any, Any]:
        sizes = (size for size in range(1, 200) if _far(mechanism, rows(size)) == distance + 1)
        found = np.array(rows(next(sizes)))
        return found, found[1:]

    return pair


def _far(mechanism: Any, rows: Any) -> int:
    if isinstance(mechanism, Scale):
        held = Sample.of(np.array(rows), mechanism.line.size - 1)
        return min(distance_to_leave(held, mechanism.bin_of(4, shifted), 99) for shifted in (False, True)) - 1
    return int(mechanism.oracle.propose(rows, mechanism.bound, 99, "add_remove").distance)


def _votes(mechanism: Any, distance: int) -> tuple[Any, Any]:
    """The first value leads by as much as the distance takes, and by one more."""
    return [0] * (distance + 5) + [1] * 4, [0] * (distance + 6) + [1] * 4


def _choices(mechanism: Any, distance: int) -> tuple[Any, Any]:
    d, d_prime = BLOCKS // 2 + distance + 1, BLOCKS // 2 + distance + 2
    return [0] * d + [1] * (BLOCKS - d), [0] * d_prime + [1] * (BLOCKS - d_prime)


def _features(mechanism: Any, distance: int) -> tuple[Any, Any]:
    d, d_prime = _choices(mechanism, distance)
    return [[[], ["a"]][1 - choice] for choice in d], [[[], ["a"]][1 - choice] for choice in d_prime]


def _seen(mechanism: Any, distance: int) -> tuple[Any, Any]:
    """So many that a third of the blocks see one, and one more."""
    return [1] * 25, [1] * 26


def _any(rows: Any) -> int:
    return max(rows, default=0)


def _median(epsilon: Fraction) -> Any:
    return ProposeTestRelease(OnLine(OrderStatistic(), LINE, 1), 1, epsilon, DELTA)


def _slope(epsilon: Fraction) -> Any:
    return ProposeTestRelease(Slope(Bounds(0, 4), Bounds(0, 1)), "0.15", epsilon, DELTA)


CASES: list[tuple[str, str, Made, Pair]] = [
    (
        "Scale (Thm 7.1)",
        BEST,
        lambda epsilon: Scale(epsilon, DELTA, LINE, 1),
        _growing(lambda size: [0] * size + [4] * size),
    ),
    (
        "Scale (Thm 7.1)",
        BOOK,
        lambda epsilon: Scale.book(epsilon / 4, DELTA, LINE, 1),
        _growing(lambda size: [0] * size + [4] * size),
    ),
    ("A_dist, the mode (Prop. 7.2)", BEST, lambda epsilon: mode(epsilon, DELTA), _votes),
    ("A_dist, the mode (Prop. 7.2)", BOOK, lambda epsilon: mode(epsilon, DELTA, rule="book"), _votes),
    ("A_samp (Thm 7.3)", BEST, _subsamples("optimal"), _seen),
    ("A_samp (Thm 7.3)", BOOK, _subsamples("book"), _seen),
    ("choices of blocks (Ex. 7.3)", BEST, lambda epsilon: RawData(BLOCKS, epsilon, DELTA), _choices),
    ("features of blocks (Ex. 7.2)", BEST, lambda epsilon: SignificantFeatures(BLOCKS, epsilon, DELTA), _features),
    ("median, bound proposed", BEST, _median, _growing(lambda size: [0] * 13 + [1] * size + [60] * 13)),
    ("slope, bound proposed", BEST, _slope, _growing(lambda size: [[0, 0]] * size + [[4, 1]] * size)),
]


def measure(quick: bool) -> list[Row]:
    """Each mechanism at a few ε."""
    samples, epsilons = (
        (100, (Fraction(1, 2), Fraction(3))) if quick else (8000, (Fraction(1, 2), Fraction(1), Fraction(3)))
    )
    return [_audited(*case, epsilon, samples) for case in CASES for epsilon in epsilons]


def _audited(name: str, by: str, made: Made, pair: Pair, epsilon: Fraction, samples: int) -> Row:
    mechanism = made(epsilon)
    # Where the test is undecided its outcome tells most.
    d, d_prime = pair(mechanism, max(0, mechanism.test.needed("0.5") - 1))

    def run(rows: Any) -> Any:
        value = mechanism.release(rows).values
        if isinstance(value, Unstable):
            return -1000.0
        return float(value) if isinstance(value, int | float | np.number) else float(len(value))

    found = audit(run, d, d_prime, samples=samples, delta=mechanism.loss.delta, confidence=1 - ALARM)
    return Row({"mechanism": name, "as": by, "stated ε": float(epsilon)}, float(epsilon), found.epsilon)


def draw(rows: list[Row]) -> Any:
    """Audited over stated ε, a panel for each mechanism."""
    names = list(dict.fromkeys(str(row.setting["mechanism"]) for row in rows))
    data = points(rows)
    colour = alt.Color(
        "as:N",
        title=None,
        scale=alt.Scale(domain=[BEST, BOOK], range=list(COLOURS[:2])),
        legend=alt.Legend(orient="top"),
    )
    base = alt.Chart(data).encode(y=alt.Y("stated ε:O", title="stated ε", sort="descending"))
    ticks = base.mark_tick(thickness=3, size=16, color="black").encode(
        x=alt.X("bound:Q", title="ε: stated (tick) and the least that an audit leaves (dot)")
    )
    dots = base.mark_point(filled=True, size=80, opacity=0.9).encode(x="measured:Q", color=colour)
    panels = [
        alt.layer(ticks, dots)
        .transform_filter(alt.FieldEqualPredicate(field="mechanism", equal=name))
        .properties(width=300, height=80, title=name)
        for name in names
    ]
    return alt.concat(*panels, columns=2)


EXPERIMENT = Experiment(
    "stable_privacy",
    "No audit of stable answers proves more than their stated ε",
    "On neighbours next to an instability, at δ = 0.05; the auditor errs with probability 1e-12",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
