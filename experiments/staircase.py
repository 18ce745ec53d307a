"""Staircase noise against Laplace noise: E|noise| stated and measured.

    python experiments/staircase.py [--quick]

No ε-private noise on one real number that moves by Δ has E|noise| below Δ·e^{ε/2}/(e^ε − 1), and staircase noise
attains it (Geng, Viswanath 2014). Laplace noise has Δ/ε on reals. On integers with Δ = 1 the two are the same law, with
1/sinh ε. Every law is drawn with the parameters of the library's mechanism.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import altair as alt
import numpy as np

from discreet.mechanisms import Laplace, Staircase
from discreet.noise import discrete_laplace, discrete_staircase, optimal_inner
from harness import COLOURS, Experiment, Row, deviation, points

STAIRCASE, LAPLACE, INTEGER = "staircase, real", "Laplace, real", "either, integer with Δ = 1"
GRID = 2.0**-18
"""Both grids have 2²⁰ steps in Δ; rounding and the choice of the inner step move E|noise| by less than four of them."""


def measure(quick: bool) -> list[Row]:
    """E|noise| for Δ = 1 over ε."""
    size = 10_000 if quick else 10**6
    budgets = np.geomspace(0.1, 10, 5 if quick else 13).round(3).tolist()
    return [row for epsilon in budgets for row in _at(epsilon, size)]


def _at(epsilon: float, size: int) -> list[Row]:
    stairs, smooth, whole = (
        Staircase(epsilon, 1, real=True),
        Laplace.for_epsilon(epsilon, 1, real=True),
        Laplace.for_epsilon(epsilon, 1),
    )
    theorem = math.exp(epsilon / 2) / math.expm1(epsilon)
    inner = optimal_inner(stairs.epsilon, stairs.steps)
    draws = {
        STAIRCASE: discrete_staircase(stairs.epsilon, stairs.steps, inner, size) * float(stairs.grid.step),
        LAPLACE: discrete_laplace(smooth.scale / smooth.grid.step, size) * float(smooth.grid.step),
        INTEGER: discrete_laplace(whole.scale, size),
    }
    # E|noise|, E[noise²], and the scale of Bernstein's condition: beyond Δ all three laws fall by e^{−ε} each Δ.
    laws = {
        STAIRCASE: (theorem, _staircase_second_moment(epsilon), 1 + 1 / epsilon, GRID),
        LAPLACE: (1 / epsilon, 2 / epsilon**2, 1 / epsilon, GRID),
        INTEGER: (1 / math.sinh(epsilon), 1 / (math.cosh(epsilon) - 1), 1 + 1 / epsilon, 0.0),
    }
    rows = [
        Row({"noise": STAIRCASE, "ε": epsilon, "from": "computed"}, theorem, stairs.mean_error, GRID, "equal"),
        Row({"noise": LAPLACE, "ε": epsilon, "from": "computed"}, 1 / epsilon, stairs.laplace_error, GRID, "equal"),
    ]
    for noise, (mean, second, scale, rounding) in laws.items():
        setting = {"noise": noise, "ε": epsilon, "from": f"{size:,} draws"}
        drawn = float(np.abs(draws[noise]).mean())
        rows.append(Row(setting, mean, drawn, deviation(second, scale, size) + rounding, "equal"))
    return rows


def _staircase_second_moment(epsilon: float) -> float:
    """Level j has density ∝ e^{−jε} on [0, γ) for j = 0 and on [γ + j − 1, γ + j) after, with γ = 1/(1 + e^{ε/2})."""
    ends = 1 / (1 + math.exp(epsilon / 2)) + np.arange(math.ceil(800 / epsilon))
    starts = np.concatenate([[0.0], ends[:-1]])
    weights = np.exp(-epsilon * np.arange(len(ends)))
    return float(weights @ (ends**3 - starts**3)) / 3 / float(weights @ (ends - starts))


def draw(rows: list[Row]) -> Any:
    """Left the error itself, right how much Laplace noise loses."""
    drawn = [row for row in rows if row.setting["from"] != "computed"]
    best = {row.setting["ε"]: row.bound for row in drawn if row.setting["noise"] == STAIRCASE}
    measured_best = {row.setting["ε"]: row.measured for row in drawn if row.setting["noise"] == STAIRCASE}
    data = points(
        [row for row in drawn if row.setting["noise"] != INTEGER],
        stated=lambda row: row.bound / best[row.setting["ε"]],
        seen=lambda row: row.measured / measured_best[row.setting["ε"]],
    )
    colour = alt.Color(
        "noise:N",
        title="noise (line: theorem, dots: drawn)",
        scale=alt.Scale(domain=[STAIRCASE, LAPLACE, INTEGER], range=list(COLOURS[:3])),
        legend=alt.Legend(orient="bottom", titleLimit=400),
    )
    ticks = alt.Axis(values=[0.1, 0.2, 0.5, 1, 2, 5, 10])
    across = alt.X("ε:Q", scale=alt.Scale(type="log", domain=[0.1, 10]), title="privacy budget ε", axis=ticks)
    decades = alt.Axis(values=[10.0**power for power in range(-5, 2)], format="~g")
    log = alt.Scale(type="log", domain=[5e-5, 12], nice=False)
    errors = alt.Chart(points([row for row in drawn if row.measured > 5e-5])).encode(x=across, color=colour)
    left = errors.mark_line().encode(y=alt.Y("bound:Q", scale=log, title="E|noise| / Δ", axis=decades))
    left += errors.mark_point(filled=True, size=60, opacity=1).encode(y="measured:Q")
    ratios = alt.Chart(data).encode(x=across, color=colour)
    steps = alt.Axis(values=[1, 2, 5, 10, 15])
    times = alt.Scale(type="log", domain=[0.9, 20], nice=False)
    title = "E|noise| relative to the staircase"
    right = ratios.mark_line().encode(y=alt.Y("stated:Q", scale=times, title=title, axis=steps))
    right += ratios.mark_point(filled=True, size=60, opacity=1).encode(y="seen:Q")
    size = {"width": 380, "height": 320}
    return left.properties(**size) | right.properties(**size)


EXPERIMENT = Experiment(
    "staircase",
    "Staircase noise has the least mean error of all ε-private noise",
    "E|noise| is Δ·exp(ε/2)/(exp(ε) − 1) for the staircase and Δ/ε for Laplace noise",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
