"""Randomized response: what the coins cost, and the estimator's error bars against its errors.

    python experiments/randomized_response.py [--quick]

Three claims. The book's two coins (truth with chance 3/4) cost ln 3 and the textbook's coin (2/3) costs ln 2: the odds
of a report are counted on real reports. The estimate is unbiased with a mean squared error known in closed form. And
with probability 1 − β every category is within `accuracy(β, people)`: over many repeated surveys, the error that is
exceeded in a share β of them must lie below it. The people are simulated, or those of the RAND Health Insurance
Experiment, each asked once.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np
from scipy.special import bdtr

from discreet.mechanisms import RandomizedResponse
from discreet.noise import categorical
from discreet.samples import rand_hie
from harness import ALARM, COLOURS, Experiment, Row, points

BETA = 0.05
COINS = {"two coins, 3/4": Fraction(3, 4), "one coin, 2/3": Fraction(2, 3)}
ODDS, SPREAD, BARS = "odds of a report, ln", "root mean squared error", "95 % error bar"


def measure(quick: bool) -> list[Row]:
    """Coins first, then surveys of several populations over ε."""
    tosses, surveys = (10**5, 200) if quick else (10**7, 400)
    budgets = (0.5, 2.0) if quick else (0.25, 0.5, 1.0, 2.0, 4.0)
    rows = [_coin(name, truth, tosses) for name, truth in COINS.items()]
    for people, answers, categories in _populations(1_000 if quick else 10_000):
        schemes = [(f"ε = {epsilon}", RandomizedResponse.for_epsilon(epsilon, categories)) for epsilon in budgets]
        if categories == 2:
            schemes += [(name, RandomizedResponse(truth)) for name, truth in COINS.items()]
        for name, scheme in schemes:
            rows += _survey({"people": people, "k": categories, "scheme": name}, scheme, answers, surveys)
    return rows


def _coin(name: str, truth: Fraction, tosses: int) -> Row:
    """ln(odds) of a true against a false report of the same person, and how far chance may move it."""
    scheme = RandomizedResponse(truth)
    reports = scheme.release(np.ones(tosses, dtype=np.int64)).values
    share = float(reports.mean())
    odds = math.log(share / (1 - share))
    # Hoeffding bounds the share; the log-odds move by at most the error over the smallest s(1 − s) in reach.
    error = math.sqrt(math.log(2 / ALARM) / (2 * tosses))
    doubt = error / ((share + error) * (1 - share - error))
    setting = {"what": ODDS, "people": f"{tosses:,} tosses", "k": 2, "scheme": name}
    return Row(setting, float(scheme.loss.epsilon), odds, doubt, "equal")


def _populations(simulated: int) -> Iterator[tuple[str, Any, int]]:
    for categories in (2, 16):
        weights = [1] if categories == 2 else []
        weights = weights + list(range(categories - len(weights), 0, -1))
        yield f"{simulated:,} simulated", categorical(weights, simulated), categories
    survey = rand_hie()
    _, first = np.unique(survey["person"], return_index=True)
    for column in ("female", "health"):
        values, codes = np.unique(survey[column][first], return_inverse=True)
        yield f"{len(first):,}, RAND {column}", codes, len(values)


def _survey(setting: dict[str, str | int | float], scheme: RandomizedResponse, answers: Any, surveys: int) -> list[Row]:
    """The same people asked in `surveys` independent surveys."""
    people = len(answers)
    true = np.bincount(answers, minlength=scheme.categories) / people
    errors = np.array([scheme.estimate(scheme.release(answers).values) - true for _ in range(surveys)])
    truth = float(scheme.truth)
    lie = (1 - truth) / (scheme.categories - 1)
    variance = float(np.sum(true * truth * (1 - truth) + (1 - true) * lie * (1 - lie))) / people / (truth - lie) ** 2
    squares = (errors**2).sum(axis=1)
    worst = np.sort(np.abs(errors).max(axis=1))
    with_epsilon = setting | {"ε": round(float(scheme.loss.epsilon), 3)}
    return [
        Row(
            {"what": SPREAD} | with_epsilon,
            math.sqrt(variance),
            math.sqrt(float(squares.mean())),
            math.sqrt(variance) * _spread_of_root(surveys),
            "equal",
        ),
        Row(
            {"what": BARS} | with_epsilon,
            scheme.accuracy(BETA, people),
            float(worst[math.ceil((1 - BETA) * surveys) - 1]),
            float(worst[math.ceil((1 - BETA) * surveys) - 1] - worst[_surely_below(surveys)]),
        ),
    ]


def _spread_of_root(surveys: int) -> float:
    """How far, relatively, the root mean square of `surveys` errors may stray.

    An error vector is a sum over thousands of people, so it is Gaussian to well within this margin; the worst case for
    its squared length is one dimension, where the sum of n squares is χ² with n degrees of freedom. It lies between
    n − 2√(nt) and n + 2√(nt) + 2t, each side with probability 1 − e^{−t} (Laurent, Massart 2000).
    """
    t = math.log(2 / ALARM) / surveys
    low, high = max(0.0, 1 - 2 * math.sqrt(t)), 1 + 2 * math.sqrt(t) + 2 * t
    return max(1 - math.sqrt(low), math.sqrt(high) - 1)


def _surely_below(surveys: int) -> int:
    """The rank of a survey whose error is below the true 1 − β quantile, but for a chance of `ALARM`."""
    chances = bdtr(np.arange(surveys + 1), surveys, 1 - BETA)
    return max(0, int(np.searchsorted(chances, ALARM)) - 1)


def draw(rows: list[Row]) -> Any:
    """Error bars as lines, what is exceeded in 5 % of the surveys as dots."""
    shown = [row for row in rows if row.setting["what"] == BARS]
    colour = alt.Color(
        "population:N",
        title="people asked (line: stated error bar, dots: exceeded in 5 % of the surveys)",
        scale=alt.Scale(range=list(COLOURS)),
        sort=None,
        legend=alt.Legend(orient="bottom", columns=2, titleLimit=600),
    )
    data = points(shown, population=lambda row: f"{row.setting['people']}, k = {row.setting['k']}")
    ticks = alt.Axis(values=[0.25, 0.5, 1, 2, 4], format="~g")
    base = alt.Chart(data).encode(
        x=alt.X(
            "ε:Q", scale=alt.Scale(type="log", domain=[0.23, 4.4], nice=False), title="ε of one report", axis=ticks
        ),
        color=colour,
    )
    log = alt.Scale(type="log", domain=[0.002, 2], nice=False)
    axis = alt.Axis(values=[0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2], format="~g")
    lines = base.mark_line().encode(y=alt.Y("bound:Q", scale=log, title="error of the worst fraction", axis=axis))
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(y="measured:Q")
    coins = alt.Data(values=[{"ε": math.log(2), "coin": "2/3"}, {"ε": math.log(3), "coin": "3/4"}])
    marks = alt.Chart(coins).mark_rule(strokeDash=[3, 3], color="#888").encode(x="ε:Q")
    names = alt.Chart(coins).mark_text(align="left", dx=4, y=10, fontSize=12).encode(x="ε:Q", text="coin:N")
    return (marks + names + lines + dots).properties(width=640, height=360)


EXPERIMENT = Experiment(
    "randomized_response",
    "Randomized response: the stated error bars hold, on simulated and on real people",
    "With probability 95 % every estimated fraction is within the error bar; 3/4 costs ln 3, 2/3 costs ln 2",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
