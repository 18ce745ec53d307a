"""Subsample and aggregate: logistic regression of a real survey, over the number of blocks.

    python experiments/sample_and_aggregate.py [--quick]

Which years of people cost more than $40? A regression on age, sex, family, income, coinsurance, health and visits in
the RAND Health Insurance Experiment: 5,912 people in 20,190 years. Four fifths of the people are for fitting, at ε = 1
and δ = 10⁻⁶ for all years of a person, the others for counting how often the fitted model is right. The function knows
nothing of privacy: it is fitted on each block of people in a process of its own, and the eight coefficients are put
together by each method.

Few blocks are drowned in noise, many have too few people to fit anything. The claim is that of the default number of
blocks and method, which nobody tuned: within 2 points of the accuracy of a fit to all people at once; the same through
`session.estimate`; and of the median without noise up to that number of blocks.
"""

from __future__ import annotations

import pickle
import sys
from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np

import discreet as dc
from discreet.noise import system
from discreet.robust import Centre, Limits
from discreet.robust.aggregation.blocks import blocks_of
from discreet.robust.sandbox.workers import Workers
from discreet.samples import rand_hie
from harness import COLOURS, Experiment, Row, points

EPSILON, DELTA = Fraction(1), Fraction(1, 10**6)
BOUNDS = (dc.Bounds(-3, 3),) * 8
DRAWN = 12
"""Releases from the same answers of blocks: noise is cheap, fitting is not."""
BARE = "median, no noise"
METHODS = ("median", "winsorized", "mean")
SEEN, LOST, COSTLY = "points below the fit to everybody", 0.02, 40
USED = ["person", "age", "female", "family_size", "income", "coinsurance", "health", "doctor_visits", "spending"]


def design(rows: Any) -> Any:
    """Eight columns of about one size, by constants that are known beforehand."""
    poor = np.select([rows["health"] == name for name in ("excellent", "good", "fair", "poor")], [0.0, 1.0, 2.0, 3.0])
    columns = [
        np.ones(len(poor)),
        rows["female"],
        (rows["age"] - 30) / 20,
        (rows["family_size"] - 4) / 2,
        np.log1p(rows["income"]) - 9,
        rows["coinsurance"] / 100,
        poor,
        np.minimum(rows["doctor_visits"], 10) / 2,
    ]
    return np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)


def fitted(rows: Any) -> Any:
    """Coefficients of a logistic regression with a light ridge, by Newton's method."""
    inputs, dear = design(rows), np.asarray(rows["spending"] > COSTLY, dtype=float)
    weights = np.zeros(inputs.shape[1])
    for _ in range(25):
        chance = 1 / (1 + np.exp(-np.clip(inputs @ weights, -30, 30)))
        slope = inputs.T @ (dear - chance) - weights
        curve = (inputs * (chance * (1 - chance))[:, None]).T @ inputs + np.eye(len(weights))
        step = np.linalg.solve(curve, slope)
        weights = weights + step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def right(weights: Any, rows: Any) -> float:
    """How often the model says what happened."""
    return float(np.mean((design(rows) @ np.asarray(weights) > 0) == (rows["spending"] > COSTLY)))


def measure(quick: bool) -> list[Row]:
    """The curve over the number of blocks for each method, then the default."""
    survey = {name: column for name, column in rand_hie().items() if name in USED}
    people = np.unique(survey["person"])
    held = np.random.default_rng(7).choice(people, len(people) // 5, replace=False)
    apart = np.isin(survey["person"], held)
    train, test = ({name: column[mask] for name, column in survey.items()} for mask in (~apart, apart))
    best = right(fitted(train), test)
    default = Centre.enough(EPSILON, len(BOUNDS), DELTA)
    sizes = (8, 12, 16, 20, 30) if quick else (10, 20, 40, 80, 160, default, 500, 1000)
    rows = []
    limits = Limits(seconds=20, workers=1 if quick else 2)
    with Workers(fitted, len(BOUNDS), "numpy", limits) as workers:
        for blocks in sorted(sizes):
            chosen = Centre.best(BOUNDS, EPSILON, blocks, delta=DELTA).method
            for method, off in _losses(workers, train, test, best, blocks, 1 if quick else 4).items():
                claimed = method == BARE or (blocks == default and method == chosen)
                setting = {"blocks": blocks, "by": method, "people in each": round(len(people) * 0.8 / blocks)}
                rows.append(Row(setting, LOST, off, claim="at most" if claimed and blocks <= default else "none"))
    if not quick:
        asked = {"blocks": default, "by": "session.estimate", "people in each": ""}
        rows.append(Row(asked, LOST, best - right(_asked(train, limits), test)))
    dear = float(np.mean(test["spending"] > COSTLY))
    majority = max(dear, 1 - dear)
    print(f"right without privacy: {best:.4f}; who always says what is more frequent: {majority:.4f}\n")
    rows.append(Row({"blocks": "", "by": "majority", "people in each": ""}, LOST, best - majority, claim="none"))
    return rows


def _asked(train: Any, limits: Limits) -> Any:
    """The coefficients from a session, by default all the way."""
    budget = dc.ApproxDP(EPSILON, DELTA)
    with dc.connect(train, table="survey", unit=dc.User("person"), budget=budget) as session:
        made = session.estimate(fitted, USED, epsilon=EPSILON, bounds=BOUNDS, form="numpy", limits=limits)
    return made.values


def _losses(workers: Workers, train: Any, test: Any, best: float, blocks: int, runs: int) -> dict[str, float]:
    """The mean loss of accuracy by each method, on the same answers of blocks."""
    each = {method: Centre(BOUNDS, EPSILON, blocks, delta=DELTA, method=method) for method in METHODS}
    off = dict.fromkeys((BARE, *METHODS), 0.0)
    for _ in range(runs):
        parts = blocks_of(train["person"], blocks, entropy=system())

        def block(number: int, parts: Any = parts) -> bytes:
            return pickle.dumps({name: column[parts[number]] for name, column in train.items()})

        answers = [each["mean"].read(raw) for raw in workers.answers(block, blocks)]
        off[BARE] += (best - right(np.median(np.clip(answers, -3, 3), axis=0), test)) / runs
        for method, centre in each.items():
            drawn = [best - right(centre.release(answers).values, test) for _ in range(1 if runs == 1 else DRAWN)]
            off[method] += float(np.mean(drawn)) / runs
    return off


def draw(rows: list[Row]) -> Any:
    """Points lost over the number of blocks."""
    curve = [row for row in rows if row.setting["by"] in (*METHODS, BARE)]
    alone = [row for row in rows if row.setting["by"] == "majority"]
    names = [*METHODS, BARE]
    base = alt.Chart(points(curve, lost=lambda row: 100 * row.measured)).encode(
        x=alt.X("blocks:Q", scale=alt.Scale(type="log"), title="blocks"),
        y=alt.Y("lost:Q", title=SEEN),
        color=alt.Color(
            "by:N",
            title=None,
            sort=names,
            scale=alt.Scale(domain=names, range=[*COLOURS[:3], "#888888"]),
            legend=alt.Legend(orient="bottom"),
        ),
    )
    levels = [
        {"lost": 100 * LOST, "what": "2 points"},
        *({"lost": 100 * r.measured, "what": "majority"} for r in alone),
    ]
    rule = alt.Chart(alt.Data(values=levels)).encode(y="lost:Q")
    lines = rule.mark_rule(strokeDash=[5, 4], color="#444")
    words = rule.mark_text(align="left", dx=4, dy=-6, color="#444").encode(x=alt.value(0), text="what:N")
    return (base.mark_line(point=True) + lines + words).properties(width=560, height=340)


EXPERIMENT = Experiment(
    "sample_and_aggregate",
    "A regression that knows nothing of privacy, fitted on blocks of people",
    "Logistic regression of a survey of 5,912 people, eight coefficients at ε = 1, δ = 1e-6 for all years of a person",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
