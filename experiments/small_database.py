"""SmallDB and the median mechanism on small domains: what is proven beside what happens.

    python experiments/small_database.py [--quick]

The people are the 5,912 of the RAND Health Insurance Experiment, the queries all marginals of sex and health. Three
steps of the proof are looked at. Some database of m rows is near the truth on every query: the best one is looked up.
The exponential mechanism chooses one that is not much worse: its mean error is computed from the exact law and compared
with real choices. And so, with probability 95 %, no query is off by more than the stated bar: over repeated releases,
what is exceeded in 5 % of them must lie below it. The last is asked of the median mechanism as well.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np
from scipy.special import bdtr

from discreet.samples import rand_hie
from discreet.synopses.candidates import held, misses, multisets, number_of_multisets
from discreet.synopses.domain import Attribute, Domain
from discreet.synopses.median import MedianMechanism
from discreet.synopses.queries.workload import Workload
from discreet.synopses.small_database import SmallDatabase
from harness import ALARM, COLOURS, Experiment, Row, points

BETA = 0.05
NEAREST, MEAN, BAR = "best database", "mean error of the choice", "95 % bar"
SMALL, BOOK, MEDIAN = "SmallDB", "SmallDB, the book's", "median mechanism"
DOMAIN = Domain((Attribute("female", (0, 1)), Attribute("health", ("excellent", "good", "fair", "poor"))))
WORKLOAD = Workload.all_marginals(DOMAIN, 1) + Workload.all_marginals(DOMAIN, 2)
SPREAD_OUT = Fraction(1, 200)
"""An ε so small that choices differ: their mean is then worth comparing."""


def measure(quick: bool) -> list[Row]:
    """Over the number of rows at ε = 1, then over ε."""
    cells = _people()
    runs, sizes, rows = (80, (1, 2, 3, 5, 6), 4) if quick else (400, (1, 2, 3, 4, 6, 8, 10), 7)
    found = []
    for m in sizes:
        found += [_nearest(cells, m), _mean(cells, m, 3 * runs)]
        found.append(_bar(SMALL, _small(m, Fraction(1), cells), cells, runs, {"rows": m, "ε": 1.0}))
    for epsilon in (0.01, 0.1, 1.0) if quick else (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0):
        total, budget = int(cells.sum()), Fraction(str(epsilon))
        alpha = math.sqrt(math.log(len(WORKLOAD)) / rows) + 1e-9
        book = SmallDatabase.for_alpha(workload=WORKLOAD, epsilon=budget, alpha=alpha, size=total)
        setting = {"rows": rows, "ε": epsilon}
        found.append(_bar(SMALL, _small(rows, budget, cells), cells, runs, setting))
        found.append(_bar(BOOK, book, cells, runs, setting))
        # Below that its bound is more than four times all people.
        if epsilon >= 0.05:
            median = MedianMechanism(workload=WORKLOAD, epsilon=budget, size=total, rows=rows)
            found.append(_bar(MEDIAN, median, cells, runs, setting))
    return found


def _people() -> Any:
    survey = rand_hie()
    _, first = np.unique(survey["person"], return_index=True)
    return DOMAIN.histogram({name: survey[name][first] for name in DOMAIN.names})


def _small(rows: int, epsilon: Fraction, cells: Any, selection: Any = "permute-and-flip") -> SmallDatabase:
    return SmallDatabase(workload=WORKLOAD, epsilon=epsilon, size=int(cells.sum()), rows=rows, selection=selection)


def _law(small: SmallDatabase, cells: Any) -> tuple[Any, Any]:
    """How far off each database is, in counts, and with which chance the exponential mechanism chooses it."""
    rows, total = small.rows or 1, int(cells.sum())
    databases = multisets(small.kinds.number, rows, np.arange(number_of_multisets(small.kinds.number, rows)))
    off = misses(small.kinds.answers(databases), held(WORKLOAD, cells, rows), rows, total) / rows
    odds = np.exp(-float(small.epsilon) / 2 * (off - off.min()))
    return off, odds / odds.sum()


def _nearest(cells: Any, rows: int) -> Row:
    small = _small(rows, Fraction(1), cells)
    off, _ = _law(small, cells)
    setting = {"what": NEAREST, "by": "", "rows": rows, "ε": ""}
    return Row(setting, cells.sum() * small.kinds.nearest(rows), float(off.min()))


def _mean(cells: Any, rows: int, runs: int) -> Row:
    """Bernstein's inequality, with the variance of the exact law."""
    small = _small(rows, SPREAD_OUT, cells, "exponential")
    off, chances = _law(small, cells)
    mean = float(off @ chances)
    variance = float((off - mean) ** 2 @ chances)
    exponent = math.log(2 / ALARM)
    doubt = math.sqrt(2 * variance * exponent / runs) + float(np.ptp(off)) * exponent / (3 * runs)
    drawn = float(np.mean([_error(small, cells) for _ in range(runs)]))
    return Row({"what": MEAN, "by": BOOK, "rows": rows, "ε": float(SPREAD_OUT)}, mean, drawn, doubt, "equal")


def _bar(name: str, mechanism: Any, cells: Any, runs: int, setting: dict[str, Any]) -> Row:
    """The error exceeded in 5 % of the runs; surely no larger than the true one at the rank that chance allows."""
    errors = np.sort([_error(mechanism, cells) for _ in range(runs)])
    usual = float(errors[math.ceil((1 - BETA) * runs) - 1])
    chances = bdtr(np.arange(runs + 1), runs, 1 - BETA)
    surely = float(errors[max(0, int(np.searchsorted(chances, ALARM)) - 1)])
    return Row({"what": BAR, "by": name} | setting, mechanism.accuracy(BETA), usual, usual - surely)


def _error(mechanism: Any, cells: Any) -> float:
    answers = mechanism.release(cells).values.answers(WORKLOAD)
    return float(np.abs(answers - WORKLOAD.answers(cells)).max())


def draw(rows: list[Row]) -> Any:
    """Errors over the number of rows, and over ε."""
    scale = alt.Scale(type="log", domain=[200, 30_000], nice=False)
    over_rows = [
        row
        for row in rows
        if row.setting["what"] == NEAREST or (row.setting["by"] == SMALL and row.setting["ε"] == 1.0)
    ]
    last = max(row.setting["rows"] for row in rows if row.setting["by"] == MEDIAN)
    over_epsilon = [row for row in rows if row.setting["what"] == BAR and row.setting["rows"] == last]

    def panel(shown: list[Row], x: Any, series: Any, names: list[str], colours: tuple[str, ...]) -> Any:
        colour = alt.Color(
            "series:N",
            title=None,
            sort=names,
            scale=alt.Scale(domain=names, range=list(colours)),
            legend=alt.Legend(orient="bottom", columns=3),
        )
        base = alt.Chart(points(shown, series=series)).encode(x=x, color=colour)
        y = alt.Y("bound:Q", scale=scale, title="people that the worst query is off by", axis=alt.Axis(format="~s"))
        lines = base.mark_line().encode(y=y)
        return (lines + base.mark_point(filled=True, size=60, opacity=1).encode(y="measured:Q")).properties(
            width=340, height=320
        )

    across = alt.X("rows:Q", title="rows of the small database, m", scale=alt.Scale(zero=False))
    budget = alt.X(
        "ε:Q", title=f"ε, with {last} rows", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(format="~g")
    )
    left = panel(
        over_rows,
        across,
        lambda row: NEAREST if row.setting["what"] == NEAREST else "chosen at ε = 1",
        [NEAREST, "chosen at ε = 1"],
        COLOURS[2:4],
    )
    right = panel(over_epsilon, budget, lambda row: row.setting["by"], [SMALL, BOOK, MEDIAN], COLOURS[:3])
    return alt.hconcat(left, right).resolve_scale(color="independent")


EXPERIMENT = Experiment(
    "small_database",
    "SmallDB and the median mechanism: bounds are kept with room to spare",
    "Lines: proven for 95 % of all releases (5,912 people, 14 marginal queries); dots: exceeded in 5 % of them",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
