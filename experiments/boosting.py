"""Boosting for queries: how many queries the median gets wrong over the rounds, and what is left of it in practice.

    python experiments/boosting.py [--quick]

Theorem 6.1 and Lemma 6.2. A base generator that is right on a ½ + η part of the current distribution, η = 1/3, and
wrong by a mile on the rest, is boosted. After t rounds the median may be wrong on an exp(−η²t) part of all queries by
the lemma's words, on (1 − 4η²)^(t/2) by its proof. Three such generators choose differently where to be wrong; they are
made for the purpose and not private. The other panel has no theorem to test: worst errors of boosting with the linear
base generator beside other methods, for all counts of three attributes of the people of the RAND Health Insurance
Experiment in their first year (with ranges of age by site, over ten thousand queries) at ε = 1, δ = 1e-6. There μ,
solved for exactly, is larger than the number of people, so that the draws are next to uniform: boosting needs far more
data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import numpy as np

from discreet import samples
from discreet.noise.uniform import permutation
from discreet.synopses import (
    MWEM,
    Answers,
    Attribute,
    Boosting,
    Domain,
    LinearGenerator,
    Product,
    Projection,
    Workload,
    every,
    ranges,
)
from discreet.synopses.noisy_counts import Reading
from harness import COLOURS, Experiment, Row, points

ETA = 1 / 3
LINE = Domain((Attribute("place", range(60)),))
RANGES = Workload.ranges(LINE, "place")
LEMMA, PROOF = "lemma 6.2: exp(−η²t)", "its proof: (1 − 4η²)^(t/2)"
WRONG: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "wrong on the rarest": np.argsort,
    "wrong on the likeliest": lambda mass: np.argsort(-mass),
    "wrong at random": lambda mass: permutation(mass.size),
}
FAR = 10**6


@dataclass(frozen=True)
class Adversary:
    """Right on a ½ + η part of the distribution, and no more."""

    boosting: Boosting
    order: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
    sample: int = 1
    bits: float = 1.0
    events: tuple[Any, ...] = ()
    scores: list[np.ndarray[Any, Any]] = field(default_factory=list)

    def error(self, beta: Any) -> float:
        """Where it is right it is exact."""
        return 0.0

    def generate(self, histogram: Any, queries: Any, cells: Any, past: Any, entropy: Any) -> tuple[Answers, Reading]:
        """Follows the distribution, which a real generator sees only by samples."""
        truth, reading = RANGES.counts(histogram), Reading(queries, np.zeros(len(queries)), 1.0)
        slope = float(self.boosting.alpha) / self.boosting.attenuation
        weights = np.exp(slope * (sum(self.scores) - np.max(sum(self.scores)))) if self.scores else np.ones(len(RANGES))
        mass = weights / weights.sum()
        order = self.order(mass)
        wrong = order[np.cumsum(mass[order]) <= 0.5 - ETA]
        answers = truth.astype(np.float64)
        answers[wrong] += FAR
        synopsis = Answers(RANGES, answers)
        self.scores.append(-self.boosting._credit(truth, synopsis, reading))
        return synopsis, reading


def measure(quick: bool) -> list[Row]:
    """The lemma, round by round, then the methods side by side."""
    rows = [row for name in WRONG for row in _rounds(name)]
    return rows if quick else rows + _methods()


def _rounds(name: str) -> list[Row]:
    cells = np.arange(60)
    # Room enough for a μ that is small beside how far the answers are off.
    boosting = Boosting(
        workload=RANGES,
        epsilon=100,
        size=int(cells.sum()),
        sample=1,
        base=lambda made, budget: Adversary(made, WRONG[name]),
    )
    synopses = boosting.release(cells).values.synopses
    truth, rows = RANGES.answers(cells), []
    for t in range(1, boosting.turns + 1):
        median = np.median(np.stack([synopsis.values for synopsis in synopses[:t]]), axis=0)
        wrong = float((np.abs(median - truth) > boosting.mu).mean())
        rows.append(Row({"what": name, "t": t, "form": LEMMA}, float(np.exp(-(ETA**2) * t)), wrong))
        rows.append(Row({"what": name, "t": t, "form": PROOF}, (1 - 4 * ETA**2) ** (t / 2), wrong))
    return rows


def _methods() -> list[Row]:
    """Worst errors on real data; bounds are the library's where it states one, else the number of people."""
    survey = samples.rand_hie()
    domain = Domain(
        (
            Attribute.binned("age", range(0, 66, 5)),
            Attribute("site", range(1, 7)),
            Attribute("female", (0, 1)),
            Attribute("family_size", range(1, 9)),
            Attribute("coinsurance", (0, 25, 50, 95, 100)),
            Attribute("health", ("excellent", "good", "fair", "poor")),
            Attribute.binned("doctor_visits", (0, 1, 2, 3, 5, 8, 13, 21, 78)),
        )
    )
    work = Workload.all_marginals(domain, 3) + Workload(
        domain, (Product({"age": ranges, "site": every}), Product({"age": ranges, "family_size": every}))
    )
    first = survey["year"] == 1
    cells = domain.histogram({name: column[first] for name, column in survey.items()})
    n, truth = int(cells.sum()), work.answers(cells)
    terms: dict[str, Any] = {"workload": work, "epsilon": 1, "size": n}
    tight = {**terms, "delta": "1e-6"}
    laplace, gaussian = Projection(**terms), Projection(**tight)
    found = {
        "Laplace": (laplace.mechanism.accuracy(0.05, len(work)), laplace.mechanism.release(work.counts(cells)).values),
        "Laplace, projected": (laplace.accuracy(0.05), laplace.release(cells).values.answers(work)),
        "Gaussian": (
            gaussian.mechanism.accuracy(0.05, len(work)),
            gaussian.mechanism.release(work.counts(cells)).values,
        ),
        "Gaussian, projected": (gaussian.accuracy(0.05), gaussian.release(cells).values.answers(work)),
        "linear base generator": (float(n), LinearGenerator(**tight).release(cells).values.answers(work)),
        "MWEM": (float(n), MWEM(**tight).release(cells).values.answers(work)),
    }
    for name, options in {"boosting": {"rounds": 8}, "boosting, the book's": {"rounds": 8, "method": "book"}}.items():
        boosting = Boosting(**tight, **options)
        print(
            f"{name}: {len(work):,} queries, {boosting.drawn} a round, {boosting.turns} rounds, μ = {boosting.mu:,.0f}"
        )
        found[name] = boosting.mu, boosting.release(cells).values.answers(work)
    return [
        Row({"what": name, "form": "worst"}, bound, float(np.abs(answers - truth).max()), claim="none")
        for name, (bound, answers) in found.items()
    ]


def draw(rows: list[Row]) -> Any:
    """The lemma as lines and dots; the methods as bars."""
    names = [LEMMA, PROOF, *WRONG]
    colour = alt.Color(
        "form:N",
        title=None,
        sort=None,
        scale=alt.Scale(domain=names, range=[COLOURS[1], COLOURS[2], COLOURS[0], COLOURS[3], COLOURS[4]]),
        legend=alt.Legend(orient="bottom", columns=3, symbolType="square"),
    )
    rounds = [row for row in rows if "t" in row.setting]
    floor = 1 / (2 * len(RANGES))
    up = alt.Y("bound:Q", title="part of all queries that the median gets wrong", scale=alt.Scale(type="log"))
    across = alt.X("t:Q", title="rounds t")
    stated = [row for row in rounds if row.setting["what"] == next(iter(WRONG))]
    lines = alt.Chart(points(stated)).mark_line().encode(x=across, y=up, color=colour)
    seen = points(
        [row for row in rounds if row.setting["form"] == PROOF],
        form=lambda row: row.setting["what"],
        shown=lambda row: max(row.measured, floor),
    )
    dots = alt.Chart(seen).mark_point(filled=True, size=50, opacity=0.9).encode(x=across, y="shown:Q", color=colour)
    left = (lines + dots).properties(
        width=420, height=320, title=f"{len(RANGES):,} ranges; none wrong is drawn at the foot"
    )
    others = [row for row in rows if "t" not in row.setting]
    if not others:
        return left
    bars = alt.Chart(points(others)).encode(y=alt.Y("what:N", sort=None, title=None, axis=alt.Axis(labelLimit=220)))
    length = bars.mark_bar(color=COLOURS[0]).encode(x=alt.X("measured:Q", title="worst error, records"))
    text = bars.mark_text(align="left", dx=4).encode(x="measured:Q", text=alt.Text("measured:Q", format=",.0f"))
    return left | (length + text).properties(
        width=300, height=320, title="5,638 people, ε = 1 (δ = 1e-6 but for Laplace)"
    )


EXPERIMENT = Experiment(
    "boosting",
    "Boosting for queries: base generators that are right on five sixths are right on all, together",
    "The median is wrong on no larger part than the lemma allows; on real data of this size others are better",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
