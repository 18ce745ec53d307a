"""Tracing: how many means of how many people give members away, and what ε leaves of that.

    python experiments/tracing.py [--quick]

Studies of n people publish the means of d fair bits with noise of s standard deviations of a bit. The inner product
test with a false alarm rate of α (Chernoff's threshold, √(2·ln(1/α)) standard deviations) claims a member with
probability Φ(√(d/(n + (n·s)²)) − √(2·ln(1/α))): exact means give members away from d ≈ n on, noisy ones from d ≈
(n·s)² on. Against ε-DP means of any d no test claims more than e^ε·α. Fingerprinting codes of d ≥ (π²/2)·n²·ln(1/α)
columns trace one of n people even where all that is published is which value is commoner in a column.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import altair as alt
import numpy as np
from scipy.special import betaincinv, ndtr

from discreet.adversary.membership.fingerprinting import FingerprintCode
from discreet.adversary.membership.from_means import trace_means
from discreet.noise import discrete_gaussian, discrete_laplace, uniform
from harness import ALARM, COLOURS, Experiment, Row, points

ALPHA = 0.05
SELDOM = 0.001
"""The false alarm rate of codes: small, so that chance traces none of twenty people."""
GRAIN = 1 << 20
"""Steps of the noise on means, for each standard deviation."""
APPROXIMATION = 0.03
"""What the normal law may be off by in sums of 50 terms or more of fair bits."""
EXACT, PRIVATE, ALARMS, CODES = "power", "power against ε-DP means", "false alarms", "nobody traced"


def measure(quick: bool) -> list[Row]:
    """Over d and s, then over ε, then over the length of codes."""
    runs, people = (60, 20) if quick else (600, 64)
    ratios = (0.5, 8, 32) if quick else (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
    rows = []
    for noise in (0.0, 0.1, 0.3):
        for ratio in ratios:
            rows += _power(people, math.ceil(ratio * people), noise, runs)
    for epsilon in (0.1, 1.0, 4.0) if quick else (0.1, 0.3, 1.0, 2.0, 4.0, 16.0, 64.0, 256.0):
        for traits in (50, 300) if quick else (50, 500, 5000):
            rows += [_private(people // 2, traits, epsilon, runs)]
    for coalition in (4, 8) if quick else (5, 10, 20):
        for share in (0.05, 1.0) if quick else (0.03, 0.1, 0.3, 1.0):
            rows += [_codes(coalition, share, 50)]
    return rows


def _study(people: int, traits: int) -> tuple[Any, Any]:
    """People of the study, and one who is not in it."""
    bits = uniform(2, (people + 1, traits))
    return bits[:-1], bits[-1:]


def _power(people: int, traits: int, noise: float, runs: int) -> list[Row]:
    claimed = np.zeros((runs, 2))
    for run in range(runs):
        members, other = _study(people, traits)
        means = members.mean(axis=0)
        if noise:
            means = means + discrete_gaussian(int(noise * GRAIN), traits) / (2 * GRAIN)
        tried = np.concatenate([members[:1], other])
        claimed[run] = trace_means(means, tried, population=np.full(traits, 0.5), alpha=ALPHA).claims
    signal = math.sqrt(traits / (people + (people * noise) ** 2))
    wanted = float(ndtr(signal - math.sqrt(2 * math.log(1 / ALPHA))))
    power, alarms = claimed.mean(axis=0).tolist()
    setting = {"n": people, "d": traits, "s": noise, "ε": ""}
    doubt = _doubt(wanted, runs) + APPROXIMATION
    return [
        Row({"what": EXACT} | setting, wanted, power, doubt, "equal"),
        Row({"what": ALARMS} | setting, ALPHA, alarms, _excess(alarms, runs)),
    ]


def _private(people: int, traits: int, epsilon: float, runs: int) -> Row:
    caught = 0
    for _ in range(runs):
        members, _ = _study(people, traits)
        means = (members.sum(axis=0) + discrete_laplace(traits / epsilon, traits)) / people
        caught += int(trace_means(means, members[:1], population=np.full(traits, 0.5), alpha=ALPHA).claims[0])
    most = min(1.0, math.exp(epsilon) * ALPHA)
    setting = {"what": PRIVATE, "n": people, "d": traits, "s": "", "ε": epsilon}
    return Row(setting, most, caught / runs, _excess(caught / runs, runs))


def _codes(coalition: int, share: float, runs: int) -> Row:
    """The share of coalitions of whom nobody is accused; at full length the mean score is at the threshold."""
    length = math.ceil(share * math.pi**2 / 2 * coalition**2 * math.log(1 / SELDOM))
    free = 0
    for _ in range(runs):
        code = FingerprintCode.generate(coalition, coalition, alpha=SELDOM, length=length)
        free += not code.accuse((code.words.mean(axis=0) > 0.5).astype(float)).claims.any()
    setting = {"what": CODES, "n": coalition, "d": length, "s": "", "ε": "", "d/n²": share}
    claim: Any = "at most" if share >= 1 else "none"
    return Row(setting, 0.5, free / runs, _excess(free / runs, runs), claim)


def _doubt(chance: float, runs: int) -> float:
    """Bernstein's inequality for a coin."""
    exponent = math.log(2 / ALARM)
    return math.sqrt(2 * chance * (1 - chance) * exponent / runs) + exponent / (3 * runs)


def _excess(seen: float, runs: int) -> float:
    """How far below what was seen the true chance may lie: Clopper and Pearson."""
    hits = round(seen * runs)
    return seen - float(betaincinv(hits, runs - hits + 1, ALARM)) if hits else 0.0


def draw(rows: list[Row]) -> Any:
    """Power over the number of means, over ε, and codes over their length."""
    chosen = {what: [row for row in rows if row.setting["what"] == what] for what in (EXACT, PRIVATE, CODES)}
    share, plain = alt.Axis(format="%"), alt.Axis(format="~g")

    def colour(title: str, first: int) -> Any:
        legend = alt.Legend(orient="bottom", columns=3)
        return alt.Color("series:N", title=title, sort=None, scale=alt.Scale(range=COLOURS[first:]), legend=legend)

    def series(row: Row) -> str:
        return "none" if row.setting["s"] == 0 else f"{row.setting['s']:g}"

    base = alt.Chart(points(chosen[EXACT], series=series)).encode(
        x=alt.X("d:Q", title="published means, d", scale=alt.Scale(type="log"), axis=alt.Axis(format="~s")),
        color=colour("noise on a mean, s", 0),
    )
    y = alt.Y("bound:Q", title="members that are claimed", axis=share, scale=alt.Scale(domain=[0, 1]))
    left = base.mark_line().encode(y=y) + base.mark_point(filled=True, size=60, opacity=1).encode(y="measured:Q")
    ours = alt.Chart(points(chosen[PRIVATE], series=lambda row: f"{row.setting['d']:,}")).encode(
        x=alt.X("ε:Q", title="ε of all means together", scale=alt.Scale(type="log", nice=False), axis=plain)
    )
    limit = ours.mark_line(color="#444", strokeDash=[5, 4]).encode(y=y)
    dots = ours.mark_point(filled=True, size=60, opacity=1).encode(y="measured:Q", color=colour("means, d", 3))
    codes = alt.Chart(
        points(chosen[CODES], series=lambda row: str(row.setting["n"]), caught=lambda row: 1 - row.measured)
    )
    right = codes.mark_line(point=alt.OverlayMarkDef(filled=True, size=60)).encode(
        x=alt.X("d/n²:Q", title="columns, in (π²/2)·n²·ln(1/α)", scale=alt.Scale(type="log"), axis=plain),
        y=alt.Y("caught:Q", title="coalitions of whom somebody is traced", axis=share, scale=alt.Scale(domain=[0, 1])),
        color=colour("people, n", 0),
    )
    panels = [panel.properties(width=290, height=300) for panel in (left, limit + dots, right)]
    return alt.hconcat(*panels).resolve_scale(color="independent")


EXPERIMENT = Experiment(
    "tracing",
    "Members are read off means of many traits, unless the means are private",
    "Left: lines by formula, dots measured. Middle: ε-DP means stay below e^ε·α (dashed). False alarms: α = 5 %",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
