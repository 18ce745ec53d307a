"""Noise on the shells of a neighbour set against staircase noise: seven sets, heat maps over δ and ε, three densities.

    python experiments/neighbour_set.py [--quick]

One record adds a value from V, and V has gaps. Wu, Xia and He (2018) put noise of density ∝ e^(−iε) on the shell R_i of
what takes i steps ±v, v ∈ V, from the ball of radius δ round 0, and compare its mean with that of staircase noise,
Δ·e^{ε/2}/(e^ε − 1), which knows only the largest value Δ: the rate is the one by the other. This redraws their figures.

- Their V1 … V4 have the same Δ and an ever larger measure, V5 … V7 the same measure and an ever larger Δ.
- The maps are over δ and ε as theirs. Shells are followed to where they weigh e^−64; how many it takes until nothing is
  missing is in the table.
- Reals are on a grid of 256 steps to 1.

What is claimed: the best rates are ordered V1 < V2 < V3 < V4 and V7 < V6 < V5; no set is worse than the staircase with
the best δ; no step of V raises the shell by more than one; and draws have the mean that was computed.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np

from discreet.mechanisms import Laplace
from discreet.noise import optimal_inner
from discreet.noise.neighbour_sets.line import Line
from discreet.noise.neighbour_sets.sampler import Choice, ShellLaw, best, mean_errors
from harness import COLOURS, Experiment, Row, deviation

SETS = {
    "V1 = [0,1], [1000,1001]": ((0, 1), (1000, 1001)),
    "V2 = [0,100], [1000,1001]": ((0, 100), (1000, 1001)),
    "V3 = [0,500], [1000,1001]": ((0, 500), (1000, 1001)),
    "V4 = [0,1001]": ((0, 1001),),
    "V5 = [0,1], [100,101]": ((0, 1), (100, 101)),
    "V6 = [0,1], [1000,1001]": ((0, 1), (1000, 1001)),
    "V7 = [0,1], [2000,2001]": ((0, 1), (2000, 2001)),
}
NAMES = tuple(SETS)
ORDERED = ((0, 1), (1, 2), (2, 3), (6, 5), (5, 4))
"""Which set has the smaller rate."""
STEPS = 256
EPSILONS = np.geomspace(0.1, 10, 20)
ROUNDING = 0.001
"""A range of k steps holds k + 1 points, and the staircase is that of reals: rates move by less than this."""
SHOWN, AT = ((0, 1), (10, 11)), 2.0
"""The densities are drawn for a small set, since of V1 nothing could be seen."""


@lru_cache(maxsize=32)
def _line(ranges: tuple[tuple[int, int], ...], levels: int) -> Line:
    return Line.of([(low * STEPS, high * STEPS) for low, high in ranges], levels)


def _best(ranges: tuple[tuple[int, int], ...], epsilon: float) -> tuple[Line, Choice]:
    line = _line(ranges, math.ceil(64 / epsilon))
    return line, best(line, epsilon, 1)


def _staircase(ranges: tuple[tuple[int, int], ...], epsilons: Any) -> Any:
    return ranges[-1][1] * np.exp(np.asarray(epsilons) / 2) / np.expm1(epsilons)


@lru_cache(maxsize=16)
def _rates(ranges: tuple[tuple[int, int], ...], radii: int) -> tuple[Any, Any]:
    """Radii δ, and the rate at each of them (rows) and each ε (columns), with all shells followed."""
    line, largest = _line(ranges, math.ceil(64 / EPSILONS[0])), ranges[-1][1]
    deltas = np.unique(np.geomspace(STEPS / 32, largest * STEPS / 2, radii).astype(int))
    means = np.array([mean_errors(line.profile(int(delta), 1), EPSILONS)[:, -1] for delta in deltas]) / STEPS
    return deltas / STEPS, means / _staircase(ranges, EPSILONS)


def _best_rates(ranges: tuple[tuple[int, int], ...], epsilons: Any) -> list[tuple[float, float]]:
    """The best rate at each ε, and the δ that has it."""
    found = [_best(ranges, float(epsilon))[1] for epsilon in epsilons]
    bases = _staircase(ranges, epsilons)
    return [(choice.error / STEPS / base, choice.delta / STEPS) for choice, base in zip(found, bases, strict=True)]


def measure(quick: bool) -> list[Row]:
    """Best rates against the staircase and against each other, the steepest step, and means of draws."""
    epsilons = EPSILONS[[0, 10, 19]] if quick else EPSILONS[[0, 4, 8, 10, 12, 14, 16, 18, 19]]
    rows, least = [], {}
    for name, ranges in SETS.items():
        found = _best_rates(ranges, epsilons)
        least[name] = min(rate for rate, _ in found)
        for epsilon, (rate, delta) in zip(epsilons.tolist(), found, strict=True):
            setting = {"claim": "rate ≤ 1", "V": name, "ε": round(epsilon, 3), "δ": round(delta, 3)}
            rows.append(Row(setting, 1.0, rate, ROUNDING))
        if not quick or name != NAMES[6]:
            line = _line(ranges, 200 if quick else 3000)
            shells = line.shells(int(found[-1][1] * STEPS), line.levels)
            much = f"{line.levels} levels, {'none' if line.filled else 'some'} missing"
            setting = {"claim": f"steepest step, {much}", "V": name}
            rows.append(Row(setting, 1.0, float(shells.steepest()), 0.0, "equal"))
    for smaller, larger in ORDERED:
        setting = {"claim": f"best rate: {NAMES[smaller][:2]} < {NAMES[larger][:2]}", "V": NAMES[smaller]}
        rows.append(Row(setting, least[NAMES[larger]], least[NAMES[smaller]]))
    return rows + _drawn(10_000 if quick else 10**6)


def _drawn(size: int) -> list[Row]:
    """E|noise| of draws against what was computed, for V1."""
    rows, ranges = [], SETS[NAMES[0]]
    for epsilon in (1.0, 4.0, 10.0):
        line, choice = _best(ranges, epsilon)
        noise = ShellLaw(line.shells(choice.delta, choice.closing), epsilon).draw(size) / STEPS
        second = mean_errors(line.profile(choice.delta, 2), [epsilon])[0][choice.closing] / STEPS**2
        # |noise| is at most δ and Δ for each level; levels hold ever more points, so they fall off like a sum of two
        # geometric numbers: E[X^q] ≤ (q + 1)!·scale^q, which twice the scale of one of them covers.
        doubt = deviation(float(second), 2 * ranges[-1][1] * (1 + 1 / epsilon) + choice.delta / STEPS, size)
        setting = {"claim": f"E|noise| of {size:,} draws", "V": NAMES[0], "ε": epsilon, "δ": choice.delta / STEPS}
        rows.append(Row(setting, choice.error / STEPS, float(np.abs(noise).mean()), doubt, "equal"))
    return rows


def draw(rows: list[Row]) -> Any:
    """Figures 1 and 2 as maps, then best rates, then Figure 3."""
    first = alt.hconcat(*(_map(name) for name in NAMES[:4])).resolve_scale(color="shared")
    second = alt.hconcat(*(_map(name) for name in NAMES[4:]), _curves()).resolve_scale(color="independent")
    return alt.vconcat(first, second, _densities(), spacing=24)


def _map(name: str) -> Any:
    deltas, rates = _rates(SETS[name], 20)
    records = [
        {"δ": f"{delta:.3g}", "ε": f"{epsilon:.3g}", "rate": float(min(rates[i, j], 1.35))}
        for i, delta in enumerate(deltas)
        for j, epsilon in enumerate(EPSILONS)
    ]
    scale = alt.Scale(domain=[0, 1, 1.35], range=["#0072b2", "#ffffff", "#d55e00"], interpolate="rgb")
    chosen = [f"{delta:.3g}" for delta in deltas]
    budgets = [f"{epsilon:.3g}" for epsilon in EPSILONS]
    return (
        alt.Chart(alt.Data(values=records))
        .mark_rect()
        .encode(
            x=alt.X("δ:O", sort=chosen, title="radius δ", axis=alt.Axis(values=chosen[::4], labelAngle=0)),
            y=alt.Y("ε:O", sort=budgets[::-1], title="budget ε", axis=alt.Axis(values=budgets[::3])),
            color=alt.Color("rate:Q", scale=scale, title="rate", legend=alt.Legend(values=[0, 0.5, 1, 1.3])),
        )
        .properties(width=210, height=210, title=f"{name}: least {rates.min():.3f}")
    )


def _curves() -> Any:
    records = []
    for name in NAMES:
        _, rates = _rates(SETS[name], 20)
        least = zip(EPSILONS.tolist(), rates.min(axis=0).tolist(), strict=True)
        records += [{"V": name[:2], "ε": epsilon, "rate": rate} for epsilon, rate in least if name != NAMES[5]]
    names = [name[:2] for name in NAMES if name != NAMES[5]]
    return (
        alt.Chart(alt.Data(values=records))
        .mark_line()
        .encode(
            x=alt.X(
                "ε:Q", scale=alt.Scale(type="log"), title="budget ε", axis=alt.Axis(values=[0.1, 0.5, 1, 2, 5, 10])
            ),
            y=alt.Y("rate:Q", title="rate at the best δ of the map", scale=alt.Scale(domain=[0, 1.05])),
            color=alt.Color("V:N", sort=names, scale=alt.Scale(domain=names, range=list(COLOURS[:6])), title="set"),
        )
        .properties(width=210, height=210, title="V6 is V1")
    )


def _densities() -> Any:
    """Figure 3: Laplace, staircase and shell noise for a set with a gap."""
    largest = SHOWN[-1][1]
    places = np.linspace(-3 * largest, 3 * largest, 1081)
    line, choice = _best(SHOWN, AT)
    level = line.shells(choice.delta, choice.closing).level(np.rint(places * STEPS).astype(int))
    inner = optimal_inner(AT, largest * STEPS) / STEPS
    laws = {
        f"Laplace, E|noise| {float(Laplace.for_epsilon(AT, largest).scale):.2f}": np.abs(places) / largest,
        f"staircase, {float(_staircase(SHOWN, AT)):.2f}": np.floor((np.abs(places) + largest - inner) / largest),
        f"shells, {choice.error / STEPS:.2f}": level,
    }
    panels = []
    for colour, (name, exponent) in zip(COLOURS, laws.items(), strict=False):
        heights = np.exp(-AT * exponent)
        heights /= heights.sum() * (places[1] - places[0])
        records = [{"x": float(x), "density": float(y)} for x, y in zip(places, heights, strict=True)]
        axis = alt.Y("density:Q", title="density", scale=alt.Scale(type="sqrt", domain=[0, 0.25]))
        area = alt.Chart(alt.Data(values=records)).mark_area(color=colour, opacity=0.6, interpolate="step")
        panel = area.encode(x=alt.X("x:Q", title=f"noise for V = [0,1], [10,11] and ε = {AT:g}"), y=axis)
        panels.append(panel.properties(width=310, height=170, title=name))
    return alt.hconcat(*panels)


EXPERIMENT = Experiment(
    "neighbour_set",
    "Noise by what a record can add beats noise by the most it can add",
    "rate: E|noise| on the shells of V relative to Δ·exp(ε/2)/(exp(ε) − 1) of the staircase; blue is below 1",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
