"""Base generators: the worst error on the queries they are given, stated and measured.

    python experiments/base_generators.py [--quick]

Theorem 6.6, any queries: of all databases of n rows the first that is within λ/2 of all noisy answers is within
λ = 2b(ln k + ln(2/β)) of the truth on k statistics. Theorem 6.7, linear queries: a fractional database within α of
every noisy count is within 2α. Theorem 6.8: n′ rows drawn from it add √(ln(4k/β)/2n′) of n. All at the β of a false
alarm. The linear queries are over people of the RAND Health Insurance Experiment in their first year.
"""

from __future__ import annotations

import sys
from math import log
from typing import Any

import altair as alt
import numpy as np

from discreet import samples
from discreet.synopses import ArbitraryGenerator, Attribute, Domain, LinearGenerator, Statistics, Workload
from harness import ALARM, COLOURS, Experiment, Row, points

DOMAIN = Domain(
    (
        Attribute.binned("age", range(0, 66, 5)),
        Attribute("female", (0, 1)),
        Attribute("coinsurance", (0, 25, 50, 95, 100)),
        Attribute("health", ("excellent", "good", "fair", "poor")),
    )
)
WORK = Workload.all_marginals(DOMAIN, 2) + Workload.ranges(DOMAIN, "age")
SMALL = Domain((Attribute("health", ("excellent", "good", "fair", "poor")),))
PEOPLE = 12
ANY = "6.6: any statistics, first database in a list"
BOOK, PROGRAM, SQUARES = "6.6, the book's b", "6.7: linear program", "6.7: least squares"
DRAWN = "6.8: rows drawn"


def statistics(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """None of them linear: the largest cell, the smallest, how many are in use, and how far two of them are apart."""
    used = (x > 0).sum(axis=1)
    return np.stack([x.max(axis=1), x.min(axis=1), used, np.abs(x[:, 0] - x[:, 1])], axis=1)


def measure(quick: bool) -> list[Row]:
    """Each theorem over ε, and drawn rows over their number."""
    survey = samples.rand_hie()
    first = survey["year"] == 1
    people = {name: column[first] for name, column in survey.items()}
    cells = DOMAIN.histogram(people)
    few = SMALL.histogram({"health": people["health"][:PEOPLE]})
    budgets = (0.5, 2.0, 8.0, 32.0) if quick else (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
    rows = [row for epsilon in budgets for row in (*_any(epsilon, few), *_linear(epsilon, cells))]
    return rows + [_drawn(many, cells) for many in ((100, 1000, 10_000, 10**5) if quick else 10 ** np.arange(1, 7))]


def _any(epsilon: float, cells: np.ndarray[Any, Any]) -> list[Row]:
    asked = Statistics(SMALL, 4, statistics, sensitivity=1)
    generator = ArbitraryGenerator(workload=asked, epsilon=epsilon, size=PEOPLE)
    found = generator.release(cells).values.weights
    worst = float(np.abs(statistics(found[None]) - statistics(cells[None])).max())
    book = 2 * float(generator.mechanism.scale) * (log(4) + log(2 / ALARM))
    return [
        Row({"theorem": ANY, "ε": epsilon}, generator.accuracy(ALARM), worst),
        Row({"theorem": BOOK, "ε": epsilon}, book, worst),
    ]


def _linear(epsilon: float, cells: np.ndarray[Any, Any]) -> list[Row]:
    rows = []
    for name, solver in ((PROGRAM, "linear program"), (SQUARES, "least squares")):
        generator = LinearGenerator(workload=WORK, epsilon=epsilon, size=int(cells.sum()), solver=solver)
        synopsis = generator.release(cells).values
        bound = 2 * generator.base.measurement.error(ALARM)
        rows.append(Row({"theorem": name, "ε": epsilon}, bound, _worst(synopsis, cells)))
    return rows


def _drawn(many: int, cells: np.ndarray[Any, Any]) -> Row:
    generator = LinearGenerator(
        workload=WORK, epsilon=8, size=int(cells.sum()), rows=int(many), solver="linear program"
    )
    worst = _worst(generator.release(cells).values, cells)
    return Row({"theorem": DRAWN, "ε": 8.0, "rows": int(many)}, generator.accuracy(ALARM), worst)


def _worst(synopsis: Any, cells: np.ndarray[Any, Any]) -> float:
    return float(np.abs(synopsis.answers(WORK) - WORK.answers(cells)).max())


def draw(rows: list[Row]) -> Any:
    """Three panels, bounds as lines and errors as dots."""
    colour = alt.Color(
        "theorem:N",
        title="theorem (line: bound, dots: measured)",
        sort=None,
        scale=alt.Scale(domain=[ANY, BOOK, PROGRAM, SQUARES, DRAWN], range=list(COLOURS[:5])),
        legend=alt.Legend(orient="bottom", columns=3, titleLimit=400),
    )
    panels = [
        _panel(rows, (ANY, BOOK), "ε:Q", "ε", f"{PEOPLE} people, 4 cells, 4 statistics", colour),
        _panel(rows, (PROGRAM, SQUARES), "ε:Q", "ε", f"{len(WORK)} counts over {DOMAIN.size} cells", colour),
        _panel(rows, (DRAWN,), "rows:Q", "rows drawn, n′", "the same, rows drawn, ε = 8", colour),
    ]
    return alt.hconcat(*panels)


def _panel(rows: list[Row], names: tuple[str, ...], x: str, words: str, title: str, colour: alt.Color) -> Any:
    mine = [row for row in rows if row.setting["theorem"] in names]
    across = alt.X(
        x,
        title=words,
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(format="~g" if x == "ε:Q" else "~s", labelOverlap=True),
    )
    # An error of nothing has no place on a logarithm.
    data = points(mine, shown=lambda row: max(row.measured, 0.5))
    up = alt.Scale(type="log", nice=False, domainMin=10 if x == "rows:Q" else 0.5)
    lines = (
        alt.Chart(data)
        .mark_line()
        .encode(x=across, y=alt.Y("bound:Q", title="worst error, records", scale=up), color=colour)
    )
    dots = alt.Chart(data).mark_point(filled=True, size=60, opacity=1).encode(x=across, y="shown:Q", color=colour)
    return (lines + dots).properties(width=270, height=300, title=title)


EXPERIMENT = Experiment(
    "base_generators",
    "Base generators: worst error on the queries they are given",
    "Below each bound, which is for a chance of 1e-12; the least squares are nearer than the linear program",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
