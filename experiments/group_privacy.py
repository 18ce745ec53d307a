"""Group privacy: what the theorems say about k people, beside what Laplace and Gaussian noise really lose.

    python experiments/group_privacy.py [--quick]

An ε-private mechanism is kε-private for groups of k (Theorem 2.2), and an (ε, δ)-private one is
(kε, δ·(e^{kε} − 1)/(e^ε − 1))-private. A group of k moves the answer k times as far, so the true loss is that of the
same noise with k times the sensitivity. For Laplace noise the theorem is exact; for Gaussian noise it leaves the truth
as k grows, and accounting for the grouped event (PLD) recovers it. Audits of real draws are lower bounds.
"""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import altair as alt
from scipy.optimize import brentq

from curves import epsilon_at, gaussian_delta, laplace_delta
from discreet.accounting.conversions import convert
from discreet.accounting.group import group
from discreet.accounting.pld import distribution as pld
from discreet.accounting.zcdp import zcdp
from discreet.adversary import audit
from discreet.core.losses import ApproxDP
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import discrete_gaussian, discrete_laplace
from harness import ALARM, COLOURS, Experiment, Row, points

EPSILON, DELTA = Fraction(1, 2), Fraction(1, 10**6)
LAPLACE = Laplace.for_epsilon(EPSILON)
GAUSSIAN = Gaussian.for_approx(EPSILON, DELTA)
SIGMA = float(GAUSSIAN.sigma)
NORMAL, DOUBLE = f"Gaussian, σ = {SIGMA:.2f}Δ", f"Laplace, scale {LAPLACE.scale}Δ"
THEOREM, EXACT, AUDITED = "theorem", "exact", "audited"
PURE_LOSS, LOSS, LEAK = "ε at δ = 0", "ε at δ = 1e-6", "δ at kε"
PRECISION = 1e-6
"""Relative error allowed to exact values: double precision, and for the Gaussian the grid of 4,096 steps to Δ."""


def measure(quick: bool) -> list[Row]:
    """All bounds over the size of the group, then audits."""
    sizes = (1, 2, 5, 20) if quick else tuple(range(1, 21))
    rows = [row for k in sizes for row in (*_laplace(k), *_gaussian(k))]
    for k in (1, 5, 20):
        rows += _audits(k, 2 * 10**4 if quick else 10**6)
    return rows


def _laplace(k: int) -> list[Row]:
    grouped = group(LAPLACE.events[0], k)
    truth = epsilon_at(float(DELTA), lambda e: laplace_delta(e, float(LAPLACE.scale), k))
    stated = {THEOREM: group(LAPLACE.loss, k).epsilon, "PLD": pld.epsilon(grouped, DELTA)}
    largest = Row(
        _setting(DOUBLE, k, THEOREM, PURE_LOSS), float(stated[THEOREM]), k / float(LAPLACE.scale), 0.0, "equal"
    )
    return [largest, *(_row(DOUBLE, k, account, LOSS, float(e), truth) for account, e in stated.items())]


def _gaussian(k: int) -> list[Row]:
    """The δ at kε of the stated guarantee, then the ε at the same δ as for one person."""
    grouped = group(GAUSSIAN.events[0], k)
    reach = float(k * EPSILON)
    stated = {THEOREM: group(ApproxDP(EPSILON, DELTA), k).delta, "PLD": pld.delta(grouped, k * EPSILON)}
    truth = gaussian_delta(reach, k / SIGMA)
    rows = [_row(NORMAL, k, account, LEAK, float(bound), truth) for account, bound in stated.items()]
    truth = epsilon_at(float(DELTA), lambda e: gaussian_delta(e, k / SIGMA))
    composed = {
        THEOREM: _best_theorem(k),
        "zCDP": convert(zcdp(grouped), ApproxDP, delta=DELTA).epsilon,
        "PLD": pld.epsilon(grouped, DELTA),
    }
    return rows + [_row(NORMAL, k, account, LOSS, float(e), truth) for account, e in composed.items()]


def _best_theorem(k: int) -> Fraction:
    """The least kε for which some (ε, δ) of one person becomes (kε, at most 10⁻⁶) by the theorem."""

    def guarantee(epsilon: float) -> ApproxDP:
        return group(ApproxDP(epsilon, gaussian_delta(epsilon, 1 / SIGMA)), k)

    epsilon = brentq(lambda e: float(guarantee(e).delta / DELTA) - 1, 0.01, 20, xtol=1e-12)
    return guarantee(epsilon).epsilon


def _audits(k: int, runs: int) -> list[Row]:
    sigma, moved = GAUSSIAN.sigma / GAUSSIAN.grid.step, int(1 / GAUSSIAN.grid.step)
    proved = {
        DOUBLE: (lambda at, size: at + discrete_laplace(LAPLACE.scale, size), 1, Fraction(0)),
        NORMAL: (lambda at, size: at + discrete_gaussian(sigma, size), moved, DELTA),
    }
    rows = []
    for name, (batch, unit, delta) in proved.items():
        found = audit(None, 0, k * unit, samples=runs, batch=batch, delta=delta, confidence=1 - Fraction(ALARM))
        truth = float(k * EPSILON)
        if name == NORMAL:
            truth = epsilon_at(float(DELTA), lambda e: gaussian_delta(e, k / SIGMA))
        rows.append(Row(_setting(name, k, AUDITED, LOSS if delta else PURE_LOSS), truth, found.epsilon))
    return rows


def _setting(name: str, k: int, account: str, what: str) -> dict[str, str | int]:
    return {"noise": name, "group": k, "account": account, "what": what}


def _row(name: str, k: int, account: str, what: str, bound: float, truth: float) -> Row:
    return Row(_setting(name, k, account, what), bound, truth, PRECISION * truth)


def draw(rows: list[Row]) -> Any:
    """Three panels: ε of both noises, and the δ of the Gaussian at the theorem's ε."""
    colour = alt.Color(
        "account:N",
        title=None,
        sort=None,
        scale=alt.Scale(domain=[THEOREM, "zCDP", "PLD", EXACT, AUDITED], range=[*COLOURS[1:4], "#000", "#777"]),
        legend=alt.Legend(orient="bottom", columns=5, symbolType="square"),
    )
    panels = [_panel(rows, DOUBLE, (LOSS, PURE_LOSS), "ε of the group", colour)]
    panels.append(_panel(rows, NORMAL, (LOSS,), "ε of the group at δ = 1e-6", colour))
    panels.append(_panel(rows, NORMAL, (LEAK,), "δ of the group at kε", colour))
    return panels[0] | panels[1] | panels[2]


def _panel(rows: list[Row], name: str, what: tuple[str, ...], title: str, colour: alt.Color) -> Any:
    here = [row for row in rows if row.setting["noise"] == name and row.setting["what"] in what]
    stated = [row for row in here if row.setting["account"] != AUDITED and row.setting["what"] != PURE_LOSS]
    scale = alt.Scale(type="log") if LEAK in what else alt.Scale(domain=[0, 18], nice=False)
    axis = alt.Axis(format="~e", values=[10.0**power for power in range(-6, 0)]) if LEAK in what else alt.Axis()
    across = alt.X("group:Q", title="people in the group, k", scale=alt.Scale(domain=[0, 20.5], nice=False))
    lines = (
        alt.Chart(points(stated))
        .mark_line()
        .encode(x=across, y=alt.Y("bound:Q", title=title, scale=scale, axis=axis), color=colour)
    )
    truth = points([row for row in stated if row.setting["account"] == THEOREM], account=lambda row: EXACT)
    proved = points([row for row in here if row.setting["account"] == AUDITED])
    seen = {"x": across, "y": "measured:Q", "color": colour}
    dots = alt.Chart(truth).mark_point(filled=True, size=30, opacity=1).encode(**seen)
    marks = alt.Chart(proved).mark_point(shape="triangle-up", filled=True, size=80, opacity=1).encode(**seen)
    whole = lines + dots if LEAK in what else lines + dots + marks
    return whole.properties(width=280, height=300, title=alt.TitleParams(name, fontSize=14))


EXPERIMENT = Experiment(
    "group_privacy",
    "Group privacy: the theorem is exact for Laplace noise and loose for Gaussian noise",
    "One person has ε = 0.5, with δ = 1e-6 for the Gaussian; no bound for k people is below the exact loss",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
