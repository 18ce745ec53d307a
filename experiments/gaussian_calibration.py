"""Gaussian noise: the σ of Theorem A.1 against the exact one, and where using the theorem past ε = 1 breaks privacy.

    python experiments/gaussian_calibration.py [--quick]

Theorem A.1 states that σ = √(2·ln(1.25/δ))·Δ/ε is enough for (ε, δ) when ε < 1. What a given σ really costs is
δ(ε) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ) with μ = Δ/σ (Balle, Wang 2018), computed here apart from the library.
Draws give it again: it is the mean of (1 − e^{ε − L})₊ over outputs of the mechanism, L being their privacy loss.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np
from scipy.optimize import brentq

from curves import gaussian_delta
from discreet.mechanisms import Gaussian
from discreet.noise import Grid, discrete_gaussian
from harness import COLOURS, Experiment, Row, deviation, points

DELTAS = (1e-5, 1e-6, 1e-9)
DRAWN_DELTA = DELTAS[0]
BOOK, EXACT = "Theorem A.1", "exact"
GRID = Grid(-12)
CHUNK = 10**6


def measure(quick: bool) -> list[Row]:
    """The true δ of both calibrations over ε and δ, computed and drawn."""
    inside = (0.01, 0.1, 0.9) if quick else (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.9, 0.99)
    outside = (2.0, 10.0) if quick else (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0)
    rows = [row for delta in DELTAS for epsilon in inside + outside for row in _computed(epsilon, delta)]
    rows += [_crossing(delta) for delta in DELTAS]
    for epsilon in (0.9, 10.0) if quick else (0.1, 0.5, 0.9, 2.0, 4.0, 6.0, 8.0, 10.0):
        rows += [_drawn(kind, epsilon, 2 * 10**5 if quick else 10**7) for kind in (BOOK, EXACT)]
    return rows


def book_sigma(epsilon: float, delta: float) -> float:
    """The formula of Theorem A.1 for Δ = 1, whether or not ε < 1."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _mechanism(kind: str, epsilon: float, delta: float) -> Gaussian:
    if kind == EXACT:
        return Gaussian.for_approx(epsilon, delta)
    if epsilon < 1:
        return Gaussian.for_approx(epsilon, delta, classic=True)
    return Gaussian(Fraction(book_sigma(epsilon, delta)), Fraction(1), grid=GRID)


def _computed(epsilon: float, delta: float) -> list[Row]:
    sigmas = {kind: float(_mechanism(kind, epsilon, delta).sigma) for kind in (BOOK, EXACT)}
    rows = []
    for kind, sigma in sigmas.items():
        setting = {"σ from": kind, "δ": delta, "ε": epsilon, "σ/Δ": sigma, "δ from": "formula"}
        if kind == EXACT:
            setting["noise saved"] = f"{1 - sigma / sigmas[BOOK]:.1%}"
        claim = "none" if kind == BOOK and epsilon >= 1 else "at most"
        # The formula loses a few digits to cancellation.
        rows.append(Row(setting, delta, gaussian_delta(epsilon, 1 / sigma), 1e-9 * delta, claim))
    return rows


def _crossing(delta: float) -> Row:
    """The ε from which the formula of Theorem A.1 is no longer enough."""
    epsilon = brentq(lambda e: gaussian_delta(e, 1 / book_sigma(e, delta)) - delta, 1, 50)
    sigma = book_sigma(epsilon, delta)
    setting = {"σ from": BOOK, "δ": delta, "ε": epsilon, "σ/Δ": sigma, "δ from": "last ε that holds"}
    return Row(setting, delta, gaussian_delta(epsilon, 1 / sigma), 1e-9 * delta, "none")


def _drawn(kind: str, epsilon: float, size: int) -> Row:
    mechanism = _mechanism(kind, epsilon, DRAWN_DELTA)
    sigma, moved = mechanism.sigma / mechanism.grid.step, float(1 / mechanism.grid.step)
    variance = float(sigma) ** 2
    total = 0.0
    for _ in range(0, size, CHUNK):
        outputs = moved + discrete_gaussian(sigma, min(CHUNK, size))
        losses = moved * (outputs - moved / 2) / variance
        total += float(-np.expm1(epsilon - losses[losses > epsilon]).sum())
    # The mean of something between 0 and 1 whose mean, and so its second moment, is the true δ.
    doubt = deviation(gaussian_delta(epsilon, 1 / float(mechanism.sigma)), 1 / 3, size)
    setting = {"σ from": kind, "δ": DRAWN_DELTA, "ε": epsilon, "σ/Δ": float(mechanism.sigma)}
    claim = "none" if kind == BOOK and epsilon >= 1 else "at most"
    return Row(setting | {"δ from": f"{size:,} draws"}, DRAWN_DELTA, total / size, doubt, claim)


def draw(rows: list[Row]) -> Any:
    """Left the exact σ as a share of the book's, right the true δ of the book's σ as a multiple of the stated one."""
    stated = [row for row in rows if row.setting["δ from"] == "formula"]
    book = [row for row in stated if row.setting["σ from"] == BOOK]
    sigmas = {(row.setting["δ"], row.setting["ε"]): row.setting["σ/Δ"] for row in book}
    shares = points(
        [row for row in stated if row.setting["σ from"] == EXACT],
        share=lambda row: row.setting["σ/Δ"] / sigmas[row.setting["δ"], row.setting["ε"]],
        name=_named,
    )
    drawn = [row for row in rows if row.setting["σ from"] == BOOK and "draws" in row.setting["δ from"] and row.measured]
    curves, dots = points(book, name=_named), points(drawn, name=_named)
    colour = alt.Color(
        "name:N",
        title="stated δ (line: formula, dots: draws)",
        sort=None,
        scale=alt.Scale(domain=[f"{delta:g}" for delta in DELTAS], range=list(COLOURS[:3])),
        legend=alt.Legend(orient="bottom", titleLimit=400),
    )
    axis = alt.Axis(values=[0.01, 0.1, 1, 10], format="~g")
    across = alt.X("ε:Q", scale=alt.Scale(type="log", domain=[0.01, 10]), title="stated ε", axis=axis)
    zone = alt.Chart(alt.Data(values=[{"from": 1, "to": 10, "word": "outside the theorem"}]))
    shade = zone.mark_rect(color="#d55e00", opacity=0.08).encode(x=alt.X("from:Q", title="stated ε"), x2="to:Q")
    words = zone.mark_text(align="right", dx=-6, y=12, color="#a04000", fontSize=12).encode(x="to:Q", text="word:N")
    one = alt.Chart(alt.Data(values=[{"y": 1}])).mark_rule(color="#444", strokeDash=[4, 3]).encode(y="y:Q")
    near = alt.Scale(domain=[0.45, 1.1], nice=False, zero=False)
    left = (
        alt.Chart(shares)
        .mark_line()
        .encode(
            x=across,
            y=alt.Y("share:Q", title="exact σ / σ of Theorem A.1", scale=near),
            color=colour,
        )
    )
    powers = alt.Axis(values=[1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100], format="~g")
    right = (
        alt.Chart(curves)
        .mark_line()
        .encode(
            x=across,
            y=alt.Y("ratio:Q", title="true δ / stated δ", scale=alt.Scale(type="log"), axis=powers),
            color=colour,
        )
    )
    right += alt.Chart(dots).mark_point(filled=True, size=60, opacity=1).encode(x=across, y="ratio:Q", color=colour)
    size = {"width": 380, "height": 320}
    return (shade + words + one + left).properties(**size) | (shade + words + one + right).properties(**size)


def _named(row: Row) -> str:
    return f"{row.setting['δ']:g}"


EXPERIMENT = Experiment(
    "gaussian_calibration",
    "Gaussian noise: Theorem A.1 adds too much noise below ε = 1 and too little far above",
    "The exact σ meets the stated δ at every ε; Theorem A.1 holds for ε < 1 only",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
