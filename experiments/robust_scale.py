"""Stable answers: how often Scale and A_dist answer, beside what is proven.

    python experiments/robust_scale.py [--quick]

Proposition 7.2: if data is (ln(1/δ) + ln(1/β))/ε records from instability, A_dist answers with probability 1 − β at
least; its privacy, and that of Scale (theorem 7.1), needs that data which is not stable passes with probability δ at
most. All of these are chances to pass a test at a known distance, drawn at that distance and held against the bound.

Then whole releases of the interquartile range of samples: how often no answer comes out, or one off by more than a
factor of 2, at ε = 1 and δ = 10⁻⁶ in all, of the book's algorithm and of the one without noise. For the latter the
chance is computed from the two distances of each sample, and what is drawn must agree with it.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np

from discreet import Bounds
from discreet.noise import system
from discreet.robust import Scale, StabilityTest, Unstable
from discreet.robust.scale import distance_to_leave, quartiles
from discreet.robust.statistics import Sample
from harness import ALARM, COLOURS, Experiment, Row, points

BEST, BOOK = "bin, no noise", "book's algorithm 12"
BOUNDS, STEP, FACTOR = Bounds(-1000, 1000), Fraction(1, 1 << 14), 2.0
DELTA = Fraction(1, 10**6)
LAWS = {
    "normal": lambda rng, n: rng.normal(0, 1, n),
    "log-normal": lambda rng, n: rng.lognormal(0, 1, n),
}


def measure(quick: bool) -> list[Row]:
    """The tests at distances that the propositions name, then whole releases over n."""
    runs = 400 if quick else 20_000
    rows = [row for rule in ("optimal", "book") for epsilon in (0.25, 1.0) for row in _tests(rule, epsilon, runs)]
    sizes = (300, 1000, 10_000) if quick else (100, 200, 300, 500, 1000, 2000, 5000, 10_000, 30_000)
    return rows + [row for law in LAWS for n in sizes for row in _scales(law, n, 60 if quick else 400)]


def _tests(rule: Any, epsilon: float, runs: int) -> list[Row]:
    """Chances of failing where the proposition says 1 − β, and of passing where it says δ."""
    delta = Fraction(1, 20)
    test = StabilityTest(Fraction(str(epsilon)), delta, rule)
    setting = {"what": "test", "by": rule, "law": "", "n": "", "ε": epsilon}
    rows = []
    for beta in (0.1, 0.02):
        distance = math.ceil((math.log(1 / delta) + math.log(1 / beta)) / epsilon)
        failed = sum(not test.passes(distance, system()) for _ in range(runs)) / runs
        rows.append(Row(setting | {"what": f"no answer, β = {beta:g}"}, beta, failed, _doubt(beta, runs)))
    passed = sum(test.passes(0, system()) for _ in range(runs)) / runs
    rows.append(Row(setting | {"what": "passes, unstable"}, float(delta), passed, _doubt(float(delta), runs)))
    return rows


def _scales(law: str, n: int, runs: int) -> list[Row]:
    """Whole releases; every run has a sample of its own."""
    rng = np.random.default_rng(n)
    best = Scale(1, DELTA, BOUNDS, STEP)
    book = Scale.book(Fraction(1, 4), DELTA, BOUNDS, STEP)
    missed, chance = {BEST: 0, BOOK: 0}, 0.0
    for _ in range(runs):
        data = LAWS[law](rng, n)
        truth = _range(data)
        chance += _chance_of_no_answer(best, data) / runs
        for name, mechanism in ((BEST, best), (BOOK, book)):
            missed[name] += _misses(mechanism.release(data).values, truth)
    setting = {"what": "off by more than 2, or ⊥", "law": law, "n": n, "ε": 1.0}
    return [
        Row(setting | {"by": BEST}, chance, missed[BEST] / runs, _doubt(chance, runs), "equal"),
        Row(setting | {"by": BOOK}, 1.0, missed[BOOK] / runs, 0.0, "none"),
    ]


def _range(data: Any) -> float:
    ordered = np.sort(data)
    first, last = math.ceil(len(data) / 4), math.ceil(3 * len(data) / 4)
    return float(ordered[last - 1] - ordered[first - 1])


def _misses(value: Any, truth: float) -> bool:
    return isinstance(value, Unstable) or not truth / FACTOR <= value <= truth * FACTOR


def _chance_of_no_answer(scale: Scale, data: Any) -> float:
    """Both tests fail; an answer is never off by more than √2."""
    held = Sample.of(scale.line.places(data), scale.line.size - 1)
    first, last = quartiles(held)
    spread = int((held.at(last, last) - held.at(first, first))[0])
    chance = 1.0
    for shifted in (False, True):
        far = distance_to_leave(held, scale.bin_of(spread, shifted), scale.test.enough + 1) - 1
        chance *= 1 - float(scale.test.chance(far))
    return chance


def _doubt(chance: float, runs: int) -> float:
    """Bernstein's inequality for the mean of independent coins of that mean chance."""
    exponent = math.log(2 / ALARM)
    return math.sqrt(2 * chance * exponent / runs) + exponent / (3 * runs)


def draw(rows: list[Row]) -> Any:
    """Left the tests, right the releases over n."""
    tests = [row for row in rows if row.setting["law"] == ""]
    names = [f"{rule}, ε = {epsilon:g}" for rule in ("optimal", "book") for epsilon in (0.25, 1.0)]
    data = points(tests, series=lambda row: f"{row.setting['by']}, ε = {row.setting['ε']:g}")
    colour = alt.Color(
        "series:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=list(COLOURS[:4])),
        legend=alt.Legend(orient="bottom", columns=2),
    )
    base = alt.Chart(data).encode(y=alt.Y("what:N", title=None, axis=alt.Axis(labelLimit=200)))
    left = base.mark_tick(thickness=3, size=30, color="black").encode(
        x=alt.X("bound:Q", title="chance: bound (tick) and measured (dots)", scale=alt.Scale(domain=[0, 0.12]))
    ) + base.mark_point(filled=True, size=70, opacity=1).encode(x="measured:Q", color=colour)
    wholes = [row for row in rows if row.setting["law"]]
    lines = [f"{by}, {law}" for by in (BEST, BOOK) for law in LAWS]
    shown = points(wholes, series=lambda row: f"{row.setting['by']}, {row.setting['law']}")
    hue = alt.Color(
        "series:N",
        title=None,
        sort=lines,
        scale=alt.Scale(domain=lines, range=list(COLOURS[:4])),
        legend=alt.Legend(orient="bottom", columns=2),
    )
    right = (
        alt.Chart(shown)
        .mark_line(point=True)
        .encode(
            x=alt.X("n:Q", scale=alt.Scale(type="log"), title="records n", axis=alt.Axis(format="~s")),
            y=alt.Y("measured:Q", title="releases without an answer within a factor of 2"),
            color=hue,
        )
    )
    size = {"width": 340, "height": 300}
    return alt.hconcat(left.properties(**size), right.properties(**size)).resolve_scale(color="independent")


EXPERIMENT = Experiment(
    "robust_scale",
    "Stable answers come out as often as is proven, and the range needs no noise",
    "Tests fail with probability β at most, pass where data is unstable with δ at most; ranges at ε = 1, δ = 1e-6",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
