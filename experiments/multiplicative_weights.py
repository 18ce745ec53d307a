"""Multiplicative weights: the worst error of all queries over the number of rounds, stated and measured.

    python experiments/multiplicative_weights.py [--quick]

After T rounds every answer of the book's MWEM (Hardt, Ligett, McSherry 2012) is within √(4n²·ln|X|/T + a²) + b of the
truth, where a and b are the noise of measurements and choices and grow with T. Online, after at most T updates (Hardt,
Rothblum 2010), answers are within threshold + c. Both bounds are the library's, at the β of a false alarm. The best
method has no bound to hold; it is shown beside the book's. The data are the person-years of the RAND Health Insurance
Experiment, whose number is taken as public; the queries are all marginals of two attributes.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from math import ceil
from typing import Any

import altair as alt
import numpy as np

from discreet import samples
from discreet.synopses import MWEM, Attribute, Domain, OnlineMultiplicativeWeights, Workload
from harness import ALARM, COLOURS, Experiment, Row, points

BOOK, BEST, ONLINE = "book", "best", "online"
NAMES = {BOOK: "MWEM, the book's", BEST: "MWEM, best", ONLINE: "online"}
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
WORK = Workload.all_marginals(DOMAIN, 2)


def measure(quick: bool) -> list[Row]:
    """The worst error over rounds, for a tight and a loose budget."""
    cells = DOMAIN.histogram(samples.rand_hie())
    few, many = [2, 4, 8, 16], [1024] if quick else [64, 256, 1024, 4096]
    settings = {1: few if quick else few + many, 1000: few + many}
    return [row for epsilon, rounds in settings.items() for t in rounds for row in _at(epsilon, t, cells)]


def _at(epsilon: int, rounds: int, cells: np.ndarray[Any, Any]) -> list[Row]:
    size, alarm = int(cells.sum()), Fraction(ALARM)
    terms: dict[str, Any] = {"workload": WORK, "epsilon": epsilon, "size": size}
    book = MWEM(**terms, method="book", rounds=rounds).release(cells).values
    found = {BOOK: (book.accuracy(ALARM), _worst(book, cells))}
    threshold = ceil(OnlineMultiplicativeWeights(**terms, updates=rounds).design.threshold(size, alarm)) + 1
    online = OnlineMultiplicativeWeights(**terms, updates=rounds, threshold=threshold).release(cells).values
    found[ONLINE] = online.accuracy(ALARM), _worst(online, cells)
    rows = [Row(_setting(name, epsilon, rounds), *pair) for name, pair in found.items()]
    if rounds <= len(WORK.blocks) + 1:
        best = MWEM(**terms, rounds=rounds).release(cells).values
        rows.append(Row(_setting(BEST, epsilon, rounds), found[BOOK][0], _worst(best, cells), claim="none"))
    return rows


def _setting(name: str, epsilon: int, rounds: int) -> dict[str, str | int | float]:
    return {"method": NAMES[name], "ε": epsilon, "rounds": rounds}


def _worst(synopsis: Any, cells: np.ndarray[Any, Any]) -> float:
    return float(np.abs(synopsis.answers(WORK) - WORK.answers(cells)).max())


def draw(rows: list[Row]) -> Any:
    """One panel for each ε: bounds as lines, errors as dots."""
    colour = alt.Color(
        "method:N",
        title="method (line: bound, dots: measured)",
        scale=alt.Scale(domain=list(NAMES.values()), range=list(COLOURS[:3])),
        legend=alt.Legend(orient="bottom", titleLimit=400),
    )
    log = alt.Scale(type="log", base=10, nice=False, domain=[1, 2e6])
    decades = alt.Axis(values=[10.0**power for power in range(7)], format="~s", title="worst error, records")
    across = alt.X("rounds:Q", scale=alt.Scale(type="log", base=2), title="rounds, or updates online")
    panels = []
    for epsilon in sorted({row.setting["ε"] for row in rows}):
        mine = [row for row in rows if row.setting["ε"] == epsilon]
        stated = alt.Chart(points([row for row in mine if row.claim != "none"])).mark_line()
        lines = stated.encode(x=across, color=colour, y=alt.Y("bound:Q", scale=log, axis=decades))
        dots = alt.Chart(points(mine)).mark_point(filled=True, size=60, opacity=1)
        panel = lines + dots.encode(x=across, color=colour, y="measured:Q")
        panels.append(panel.properties(width=360, height=320, title=f"ε = {epsilon}"))
    return alt.hconcat(*panels)


EXPERIMENT = Experiment(
    "multiplicative_weights",
    "Multiplicative weights: worst error over rounds",
    f"20,190 person-years in {DOMAIN.size:,} cells; all {len(WORK)} counts of two attributes are within the bound",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
