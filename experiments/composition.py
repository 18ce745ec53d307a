"""k-fold composition: six accounts of the same computation beside what it costs exactly.

    python experiments/composition.py [--quick]

Two mechanisms are run k times at δ = 10⁻⁶: one that is ε₀-private with ε₀ = 0.1, and Gaussian noise with σ = 10Δ; both
are 0.005-zCDP. For the first the worst case is randomized response, whose k answers have an exact ε by binomial
sums. For the second k releases are one release with √k times the sensitivity, whose ε is exact too. Basic, advanced
(Theorem 3.20) and optimal composition see of a Gaussian only the (ε, δ) of each release, and share δ among the
releases. The auditor's bounds come from running the mechanism k times, with confidence 1 − 10⁻¹².
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np

from curves import epsilon_at, gaussian_delta, response_delta
from discreet.accounting.approximate import approximate
from discreet.accounting.composition import advanced, basic, optimal
from discreet.accounting.conversions import convert
from discreet.accounting.pld import distribution as pld
from discreet.accounting.renyi import renyi
from discreet.accounting.zcdp import zcdp
from discreet.adversary import audit
from discreet.core import events
from discreet.core.losses import ApproxDP
from discreet.mechanisms import Gaussian, RandomizedResponse
from discreet.noise import Grid, discrete_gaussian
from harness import ALARM, COLOURS, Experiment, Row, points

DELTA = Fraction(1, 10**6)
EPSILON = Fraction(1, 10)
SIGMA = 10
PURE, NORMAL = "any 0.1-private mechanism", "Gaussian, σ = 10Δ"
NOISE = Gaussian(Fraction(SIGMA), Fraction(1), grid=Grid(-12))
AUDITED, EXACT = "audited", "exact"
PRECISION = 1e-7
"""Relative error allowed to the exact values, which are computed in double precision; for the Gaussian this also covers
the grid of 4,096 steps to the sensitivity."""
PIECE = 1 << 21


def measure(quick: bool) -> list[Row]:
    """All accounts of both mechanisms over k, then audits for the smaller k."""
    times = (1, 10, 100) if quick else (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
    rows = [row for name in (PURE, NORMAL) for k in times for row in _accounts(name, k)]
    for name in (PURE, NORMAL):
        for k in (1, 10) if quick else (1, 10, 100, 1000):
            rows.append(_audit(name, k, min(10**6, (2 * 10**5 if quick else 10**7) // k)))
    return rows


def exact_epsilon(name: str, k: int) -> float:
    """The ε at which k runs have exactly the δ asked for."""
    if name == PURE:
        return epsilon_at(float(DELTA), lambda e: response_delta(e, float(EPSILON), k))
    return epsilon_at(float(DELTA), lambda e: gaussian_delta(e, math.sqrt(k) / SIGMA))


def _accounts(name: str, k: int) -> list[Row]:
    event = events.Pure(EPSILON) if name == PURE else NOISE.events[0]
    repeated = events.Repeated(event, k)
    truth = exact_epsilon(name, k)
    # What the (ε, δ) theorems are told of one release: all of δ shared for basic composition, half kept as slack.
    one = ApproxDP(EPSILON, 0) if name == PURE else approximate(event, DELTA / k)
    half = one if name == PURE else approximate(event, DELTA / (2 * k))
    slack = DELTA if name == PURE else DELTA / 2
    accounts: dict[str, Callable[[], Fraction]] = {
        "basic": lambda: basic([one] * k).epsilon,
        "advanced (3.20)": lambda: advanced(half.epsilon, half.delta, k, slack).epsilon,
        "PLD": lambda: pld.epsilon(repeated, DELTA),
        "optimal": lambda: optimal(half.epsilon, half.delta, k, slack).epsilon,
        "zCDP": lambda: convert(zcdp(repeated), ApproxDP, delta=DELTA).epsilon,
        "Rényi": lambda: convert(renyi(repeated), ApproxDP, delta=DELTA).epsilon,
    }
    rows = []
    for account, composed in accounts.items():
        tight = name == PURE and account == "optimal"
        setting = {"mechanism": name, "k": k, "account": account}
        rows.append(Row(setting, float(composed()), truth, PRECISION * truth, "equal" if tight else "at most"))
    return rows


def _audit(name: str, k: int, runs: int) -> Row:
    """The auditor sees the number of ones, or the sum: what decides between neighbours in the best attack."""
    response = RandomizedResponse.for_epsilon(EPSILON)
    noise = NOISE.sigma / NOISE.grid.step

    def outputs(answer: int, size: int) -> Any:
        totals = np.empty(size, dtype=np.int64)
        step = max(1, PIECE // k)
        for start in range(0, size, step):
            shape = (min(step, size - start), k)
            if name == PURE:
                reports = response.release(np.full(shape, answer)).values
            else:
                reports = discrete_gaussian(noise, shape) + int(answer / NOISE.grid.step)
            totals[start : start + step] = reports.sum(axis=1)
        return totals

    found = audit(None, 0, 1, samples=runs, batch=outputs, delta=DELTA, confidence=1 - Fraction(ALARM))
    setting = {"mechanism": name, "k": k, "account": AUDITED}
    return Row(setting, exact_epsilon(name, k), found.epsilon)


def draw(rows: list[Row]) -> Any:
    """Above the ε of each account, below the same as a multiple of the exact one."""
    accounts = [*dict.fromkeys(row.setting["account"] for row in rows if row.setting["account"] != AUDITED)]
    colour = alt.Color(
        "account:N",
        title="account (optimal and Rényi dashed: other lines run below)",
        sort=None,
        scale=alt.Scale(domain=[*accounts, EXACT, AUDITED], range=[*COLOURS[:6], "#000", "#777"]),
        legend=alt.Legend(orient="bottom", columns=8, titleLimit=400, symbolType="square"),
    )
    dashes = [[1, 0] if account not in ("optimal", "Rényi") else [5, 5] for account in accounts]
    dash = alt.StrokeDash("account:N", scale=alt.Scale(domain=accounts, range=dashes), legend=None)
    across = alt.X("k:Q", scale=alt.Scale(type="log"), title="number of releases k", axis=_decades(0, 4))
    columns = []
    for name in (PURE, NORMAL):
        here = [row for row in rows if row.setting["mechanism"] == name]
        stated = [row for row in here if row.setting["account"] != AUDITED]
        data = points(stated, over=lambda row: row.bound / row.measured)
        base = alt.Chart(data).encode(x=across, color=colour, strokeDash=dash)
        up = alt.Y("bound:Q", scale=alt.Scale(type="log", domain=[0.05, 2e4], nice=False), axis=_decades(-1, 4))
        lines = base.mark_line().encode(y=up.title("ε at δ = 1e-6"))
        truth = [row for row in stated if row.setting["account"] == "PLD"]
        dots = alt.Chart(points(truth, account=lambda row: EXACT)).mark_point(filled=True, size=45, opacity=1)
        proved = [row for row in here if row.setting["account"] == AUDITED and row.measured > 0.05]
        marks = alt.Chart(points(proved)).mark_point(shape="triangle-up", filled=True, size=80, opacity=1)
        seen = {"x": across, "y": "measured:Q", "color": colour}
        top = lines + dots.encode(**seen) + marks.encode(**seen)
        over = alt.Y("over:Q", scale=alt.Scale(type="log", domain=[0.9, 80], nice=False), title="ε / exact ε")
        bottom = base.mark_line().encode(y=over.axis(values=[1, 2, 5, 10, 20, 50], format="~g"))
        upper = top.properties(width=380, height=280, title=alt.TitleParams(name, fontSize=14))
        columns.append(upper & bottom.properties(width=380, height=180))
    return columns[0] | columns[1]


def _decades(low: int, high: int) -> alt.Axis:
    return alt.Axis(values=[10.0**power for power in range(low, high + 1)], format="~g")


EXPERIMENT = Experiment(
    "composition",
    "k-fold composition: every account is above the truth, and PLD is on it",
    "ε of k releases at δ = 1e-6; no account is below the exact value, no audit above it",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
