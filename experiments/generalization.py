"""Lemma 6.5: a synopsis of few bits that is right on a random sample of queries is right on most of them.

    python experiments/generalization.py [--quick]

Of all databases of four rows over sixteen cells (2^m of them), those that are within λ of the data on every one of k
queries drawn from D are kept, and the worst of them is looked for: on what part of D is it off by more than λ? The
lemma allows (m + ln(1/γ))/k, the exact argument behind it 1 − (γ·2^(−m))^(1/k), both but for a chance of γ, which is
that of a false alarm here. Nothing is private in this experiment: it is about sampling.
"""

from __future__ import annotations

import sys
from math import log
from typing import Any

import altair as alt
import numpy as np

from discreet.noise.uniform import categorical, uniform
from discreet.synopses.candidates import multisets, number_of_multisets
from harness import ALARM, COLOURS, Experiment, Row, points

CELLS, ROWS, QUERIES = 16, 4, 4096
SYNOPSES = number_of_multisets(CELLS, ROWS)
BITS = log(SYNOPSES) / log(2)
EVEN, SKEWED = "D even", "D skewed"
THRESHOLDS = (0.2, 0.3)


def measure(quick: bool) -> list[Row]:
    """Sample sizes for two distributions and two thresholds λ (as fractions of the data)."""
    databases = multisets(CELLS, ROWS, np.arange(SYNOPSES)) / ROWS
    queries = uniform(2, (QUERIES, CELLS)).astype(np.float64)
    # Data that no small database matches on everything: geometric weights on the cells.
    data = 0.8 ** np.arange(CELLS)
    misses = np.abs(databases @ queries.T - queries @ (data / data.sum()))
    masses = {EVEN: np.full(QUERIES, 1000), SKEWED: 1 + 10**6 // np.arange(1, QUERIES + 1)}
    sizes = (4, 8, 16, 32, 64, 128, 256) if quick else (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    rows = []
    for threshold in THRESHOLDS:
        wrong = misses > threshold
        for name, mass in masses.items():
            part = wrong @ (mass / mass.sum())
            for k in sizes:
                worst = max(_worst(wrong, part, mass, name, k) for _ in range(3 if quick else 30))
                stated = min(1.0, (BITS + log(1 / ALARM)) / k)
                exact = 1 - (ALARM / SYNOPSES) ** (1 / k)
                setting = {"D": name, "λ": threshold, "k": k}
                rows.append(Row({**setting, "form": "lemma 6.5"}, stated, worst))
                rows.append(Row({**setting, "form": "exact"}, exact, worst))
    return rows


def _worst(
    wrong: np.ndarray[Any, Any], part: np.ndarray[Any, Any], mass: np.ndarray[Any, Any], name: str, k: int
) -> float:
    drawn = uniform(QUERIES, k) if name == EVEN else categorical(mass.tolist(), k)
    right = ~wrong[:, drawn].any(axis=1)
    return float(part[right].max()) if right.any() else 0.0


def draw(rows: list[Row]) -> Any:
    """A panel for each distribution: the bounds as lines, the worst synopsis found as dots."""
    forms = ["lemma 6.5", "exact", *(f"worst, λ = {threshold}" for threshold in THRESHOLDS)]
    colour = alt.Color(
        "form:N",
        title=None,
        sort=None,
        scale=alt.Scale(domain=forms, range=[COLOURS[1], COLOURS[2], COLOURS[0], COLOURS[3]]),
        legend=alt.Legend(orient="bottom", symbolType="square"),
    )
    across = alt.X("k:Q", title="queries drawn, k", scale=alt.Scale(type="log", base=2, nice=False))
    up = alt.Y("bound:Q", title="part of D that is answered wrongly", scale=alt.Scale(domain=[0, 1]))
    panels = []
    for name in (EVEN, SKEWED):
        mine = [row for row in rows if row.setting["D"] == name]
        stated = [row for row in mine if row.setting["λ"] == THRESHOLDS[0]]
        lines = alt.Chart(points(stated)).mark_line().encode(x=across, y=up, color=colour)
        seen = points(
            [row for row in mine if row.setting["form"] == "exact"], form=lambda row: f"worst, λ = {row.setting['λ']}"
        )
        dots = (
            alt.Chart(seen).mark_point(filled=True, size=60, opacity=1).encode(x=across, y="measured:Q", color=colour)
        )
        panels.append((lines + dots).properties(width=360, height=300, title=name))
    return alt.hconcat(*panels)


EXPERIMENT = Experiment(
    "generalization",
    "A small synopsis that is right on a sample of queries is right on most of them",
    f"The worst of {SYNOPSES:,} synopses that fit k of {QUERIES:,} random queries; bounds for a chance of 1e-12",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
