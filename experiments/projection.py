"""Projected noise: the mean squared error of all counts over the number of records, stated and measured.

    python experiments/projection.py [--quick]

Algorithm 18 adds noise to k counts and projects them on what databases of n records could answer. Theorem 12.8 bounds
the sum of squares by kn·√(192·ln(1/δ)·ln(2|X|/β))/ε for its noise; the library's bounds are for the noise it adds, at
the β of a false alarm. Without projecting, the error does not depend on n. The data are people of the RAND Health
Insurance Experiment in their first year; queries are all counts of three attributes.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from math import log, sqrt
from typing import Any

import altair as alt
import numpy as np

from discreet import samples
from discreet.mechanisms import Gaussian
from discreet.noise.uniform import permutation
from discreet.synopses import Attribute, Domain, Projection, Workload
from harness import ALARM, COLOURS, Experiment, Row, points

EPSILON, DELTA = 1, 1e-6
DOMAIN = Domain(
    (
        Attribute("site", range(1, 7)),
        Attribute.binned("age", (0, 6, 18, 25, 35, 45, 55, 65)),
        Attribute("female", (0, 1)),
        Attribute("coinsurance", (0, 25, 50, 95, 100)),
        Attribute("health", ("excellent", "good", "fair", "poor")),
        Attribute.binned("doctor_visits", (0, 1, 2, 3, 5, 10, 78)),
    )
)
WORK = Workload.all_marginals(DOMAIN, 3)
LAPLACE, GAUSSIAN, BOOK = "Laplace, ε = 1", "Gaussian, ε = 1, δ = 1e-6", "the book's Laplace, ε = 1, δ = 1e-6"
NOISES: dict[str, dict[str, Any]] = {
    LAPLACE: {},
    GAUSSIAN: {"delta": str(DELTA), "noise": "gaussian"},
    BOOK: {"delta": str(DELTA), "noise": "book"},
}
THEOREM, RAW = "bound", "not projected"


def measure(quick: bool) -> list[Row]:
    """Each noise at each number of records: against its bound, and against the error without projecting."""
    survey = samples.rand_hie()
    first = survey["year"] == 1
    people = {name: column[first] for name, column in survey.items()}
    order = permutation(int(first.sum()))
    rows = []
    for n in (50, 400, 3000) if quick else (25, 50, 100, 200, 400, 800, 1600, 3200, 5600):
        cells = DOMAIN.histogram({name: column[order[:n]] for name, column in people.items()})
        for known in (True, False) if n == 400 else (True,):
            rows += [row for name in NOISES for row in _at(name, n, cells, known)]
    return rows


def _at(name: str, n: int, cells: np.ndarray[Any, Any], known: bool) -> list[Row]:
    projection = Projection(workload=WORK, epsilon=EPSILON, size=n if known else None, **NOISES[name])
    synopsis = projection.release(cells).values
    squares = float(((synopsis.answers(WORK) - WORK.answers(cells)) ** 2).mean())
    noise = projection.mechanism
    raw = float(noise.sigma) ** 2 if isinstance(noise, Gaussian) else 2 * float(noise.scale) ** 2
    # A total that was bought is bounded from above, by twice what it may be off.
    most = n + 2 * projection.population.doubt(Fraction(1, 2**40))
    stated = projection.squared_error(ALARM, most) / len(WORK)
    if name == BOOK and known:
        stated = n * sqrt(192 * log(1 / DELTA) * log(2 * DOMAIN.size / ALARM)) / EPSILON
    setting = {"noise": name, "n": n, "size": "public" if known else "bought"}
    return [Row({**setting, "against": THEOREM}, stated, squares), Row({**setting, "against": RAW}, raw, squares)]


def draw(rows: list[Row]) -> Any:
    """One panel for each noise: the bound, the error without projecting, and dots for what was measured."""
    colour = alt.Color(
        "against:N",
        title=None,
        scale=alt.Scale(domain=[THEOREM, RAW, "projected, measured"], range=[COLOURS[1], COLOURS[2], COLOURS[0]]),
        legend=alt.Legend(orient="bottom", symbolType="square"),
    )
    up = alt.Y(
        "bound:Q",
        title="mean squared error of a count",
        scale=alt.Scale(type="log", domain=[0.1, 1e7], nice=False),
        axis=alt.Axis(format="~s", values=[10.0**power for power in range(-1, 8)]),
    )
    across = alt.X(
        "n:Q",
        title="records n",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(values=[30, 100, 300, 1000, 3000]),
    )
    panels = []
    for name in NOISES:
        mine = [row for row in rows if row.setting["noise"] == name and row.setting["size"] == "public"]
        lines = alt.Chart(points(mine)).mark_line().encode(x=across, y=up, color=colour)
        seen = points([row for row in mine if row.setting["against"] == RAW], against=lambda row: "projected, measured")
        dots = (
            alt.Chart(seen).mark_point(filled=True, size=60, opacity=1).encode(x=across, y="measured:Q", color=colour)
        )
        panels.append((lines + dots).properties(width=270, height=300, title=name))
    return alt.hconcat(*panels)


EXPERIMENT = Experiment(
    "projection",
    "Projecting on what a database could answer: error over the number of records",
    f"All {len(WORK):,} counts of three attributes, {DOMAIN.size:,} cells; projected errors are below both lines",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
