"""Which features matter, and which model fits: chosen on blocks of real people, released or not.

    python experiments/significant_features.py [--quick]

Examples 7.1 to 7.3 on the RAND Health Insurance Experiment, 5,912 people. What a person costs (the logarithm of yearly
spending) is explained by eight facts and twelve columns of pure noise; LASSO on each of a number of disjoint blocks
names the three that enter first. The lists are put together as sets or feature by feature. On the same blocks
the law of spending is chosen among three by likelihood.

Blocks are drawn anew a number of times, and each time the releases are run and their chance of ⊥ is computed from the
secret counts; what is measured must agree with it. Beside them, which no theorem covers: a noisy vote on each feature
that splits ε over the six votes a list can change, and the noisy maximum over the three laws.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from fractions import Fraction
from functools import cache
from typing import Any

import altair as alt
import numpy as np

from discreet.mechanisms import NoisyMax
from discreet.noise import discrete_laplace
from discreet.robust import RawData, SignificantFeatures
from discreet.samples import rand_hie
from harness import ALARM, COLOURS, Experiment, Row, points

DELTA = Fraction(1, 10**6)
NAMED, DECOYS = 3, 12
PART = Fraction(2, 5)
"""Of the blocks must name a feature: below a half, since a real one is missed more often than noise is named."""
FEATURES, SETS, VOTES, MODEL, NOISY = (
    "features, one test",
    "sets, one test",
    "features, noisy votes",
    "law of spending, one test",
    "law of spending, noisy maximum",
)
LAWS = ("normal", "exponential", "log-normal")


@cache
def people() -> dict[str, Any]:
    """Facts of each person by columns, and the cost."""
    survey = rand_hie()
    _, owner = np.unique(survey["person"], return_inverse=True)

    def mean(values: Any) -> Any:
        return np.bincount(owner, values) / np.bincount(owner)

    facts = {name: mean(survey[name]) for name in ("age", "female", "family_size", "coinsurance", "hospital_stays")}
    facts |= {
        "log income": np.log1p(mean(survey["income"])),
        "fair or poor health": mean(np.isin(survey["health"], ["fair", "poor"])),
        "log visits": np.log1p(mean(survey["doctor_visits"])),
    }
    rng = np.random.default_rng(0)
    facts |= {f"noise {k}": rng.normal(size=int(owner.max()) + 1) for k in range(1, DECOYS + 1)}
    facts["cost"] = np.log1p(mean(survey["spending"]))
    return facts


def significant(block: dict[str, Any]) -> tuple[str, ...]:
    """The features that enter first when LASSO's penalty falls; coordinate descent on standardised columns."""
    names = [name for name in block if name != "cost"]
    x = np.stack([block[name] - block[name].mean() for name in names], axis=1)
    x /= np.sqrt((x**2).mean(axis=0)) + 1e-12
    within, pull = x.T @ x / len(x), x.T @ (block["cost"] - block["cost"].mean()) / len(x)
    weights, entered = np.zeros(len(names)), []
    penalty = np.abs(pull).max()
    while len(entered) < NAMED and penalty > 1e-6:
        penalty *= 0.9
        for _ in range(6):
            for j in range(len(names)):
                left = pull[j] - within[j] @ weights + weights[j]
                weights[j] = math.copysign(max(abs(left) - penalty, 0.0), left)
        entered += [j for j in np.argsort(-np.abs(weights)) if weights[j] and j not in entered]
    return tuple(sorted(names[j] for j in entered[:NAMED]))


def likeliest(block: dict[str, Any]) -> str:
    """The law of spending and a dollar with the largest likelihood; a parameter more costs one."""
    dollars, n = np.exp(block["cost"]), len(block["cost"])
    fits = (
        -n * math.log(dollars.std() + 1e-9) - n / 2 * math.log(2 * math.pi * math.e) - 2,
        -n * math.log(dollars.mean()) - n - 1,
        -block["cost"].sum() - n * math.log(block["cost"].std() + 1e-9) - n / 2 * math.log(2 * math.pi * math.e) - 2,
    )
    return LAWS[int(np.argmax(fits))]


def measure(quick: bool) -> list[Row]:
    """Releases over the number of blocks and ε, then how often each feature was named."""
    drawn, runs, sizes = (1, 60, (24, 50)) if quick else (12, 400, (20, 30, 40, 50, 60, 80))
    rows, lists = [], []
    for blocks in sizes:
        made = [_chosen(blocks) for _ in range(drawn)]
        lists = [one[0] for one in made]
        for epsilon in (Fraction(1, 2), Fraction(1), Fraction(2)):
            rows += _released(made, blocks, epsilon, runs)
    return rows + _named(lists)


def _chosen(blocks: int) -> tuple[list[tuple[str, ...]], list[str]]:
    hands = RawData(blocks, 1, DELTA).hand_out(people())
    return [significant(block) for block in hands], [likeliest(block) for block in hands]


def _released(made: list[Any], blocks: int, epsilon: Fraction, runs: int) -> list[Row]:
    """Against the chance of ⊥, of each drawing of blocks as many runs."""
    truth, law = significant(people()), likeliest(people())
    studies = (
        (FEATURES, SignificantFeatures(blocks, epsilon, DELTA, part=PART), 0, truth),
        (SETS, RawData(blocks, epsilon, DELTA), 0, truth),
        (MODEL, RawData(blocks, epsilon, DELTA), 1, law),
    )
    rows, setting = [], {"blocks": blocks, "ε": float(epsilon)}
    for name, study, which, right in studies:
        chance = 0.0
        for choices in (one[which] for one in made):
            answer, distance = study._judge(choices)
            chance += (1 - float(study.test.chance(distance)) if answer == right else 1.0) / len(made)
        missed = sum(study.release(one[which]).values != right for one in made for _ in range(runs))
        share = missed / (runs * len(made))
        rows.append(Row(setting | {"by": name}, chance, share, _doubt(chance, runs * len(made)), "equal"))
    noisy = {
        VOTES: sum(_vote(one[0], epsilon) != truth for one in made for _ in range(runs)),
        NOISY: sum(_noisiest(one[1], epsilon) != law for one in made for _ in range(runs)),
    }
    return rows + [Row(setting | {"by": name}, 1.0, noisy[name] / (runs * len(made)), 0.0, "none") for name in noisy]


def _vote(lists: list[tuple[str, ...]], epsilon: Fraction) -> tuple[str, ...]:
    """Every feature whose count with noise is above the line: a list that changes moves up to six counts by one."""
    names = [name for name in people() if name != "cost"]
    noise = discrete_laplace(2 * NAMED / epsilon, len(names))
    counts = Counter(name for listed in lists for name in listed)
    return tuple(sorted(name for name, off in zip(names, noise, strict=True) if counts[name] + off > PART * len(lists)))


def _noisiest(choices: list[str], epsilon: Fraction) -> str:
    counts = Counter(choices)
    return LAWS[NoisyMax(epsilon).release([counts[law] for law in LAWS]).values]


def _named(lists: list[list[tuple[str, ...]]]) -> list[Row]:
    """The eight features that were named most, in parts of the blocks."""
    counts = Counter(name for one in lists for listed in one for name in listed)
    total = sum(len(one) for one in lists)
    return [
        Row({"by": "named", "feature": name, "blocks": len(lists[0])}, 1.0, number / total)
        for name, number in counts.most_common(8)
    ]


def _doubt(chance: float, runs: int) -> float:
    """Bernstein's inequality for the mean of independent coins of that mean chance."""
    exponent = math.log(2 / ALARM)
    return math.sqrt(2 * chance * exponent / runs) + exponent / (3 * runs)


def draw(rows: list[Row]) -> Any:
    """Left who was named, right how often nothing right came out."""
    named = [row for row in rows if row.setting["by"] == "named"]
    blocks = named[0].setting["blocks"]
    left = (
        alt.Chart(points(named))
        .mark_bar(color=COLOURS[0])
        .encode(
            y=alt.Y("feature:N", title=None, sort="-x"),
            x=alt.X("measured:Q", title=f"part of {blocks} blocks that name it", scale=alt.Scale(domain=[0, 1])),
        )
    )
    names = [FEATURES, SETS, VOTES, MODEL, NOISY]
    right = (
        alt.Chart(points([row for row in rows if row.setting["by"] in names and row.setting["ε"] == 1.0]))
        .mark_line(point=True)
        .encode(
            x=alt.X("blocks:Q", title="blocks of 5,912 people, at ε = 1 and δ = 1e-6"),
            y=alt.Y("measured:Q", title="releases without the right answer"),
            color=alt.Color("by:N", title=None, sort=names, scale=alt.Scale(domain=names, range=list(COLOURS[:5]))),
        )
    )
    return alt.hconcat(left.properties(width=260, height=280), right.properties(width=340, height=280))


EXPERIMENT = Experiment(
    "significant_features",
    "Choices made on blocks of people come out where the blocks agree",
    "Three of twenty features by LASSO, and the law of spending; answers fail to come out as often as counts say",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
