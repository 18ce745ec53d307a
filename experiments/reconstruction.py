"""Reconstruction: how many secret bits come back from noisy answers, over the noise and over the number of questions.

    python experiments/reconstruction.py [--quick]

Theorem 8.1: answers to all subsets within E give all but 4E bits away. Theorem 8.2 and its efficient versions: with
noise well below √n some n questions are enough, even if a part of the answers is arbitrary; at most (2α/η)² bits are
wrong if all but a ½ − η part are within α. The claims for noise are ≥ 99 % of the bits at a standard deviation of
0.2·√n. Against answers that are private at ε = 0.1 for all questions together, no attack has more bits right than
chance allows, up to the probability of a false alarm.
"""

from __future__ import annotations

import sys
from math import sqrt
from typing import Any

import altair as alt
import numpy as np
from scipy.stats import norm

from discreet import PureDP, User, connect
from discreet.adversary import FromSession, Hadamard, Listed, most_by_chance, reconstruct
from discreet.mechanisms import Gaussian, Laplace
from harness import ALARM, COLOURS, Experiment, Row, points

EPSILON, DELTA = 0.1, 1e-6
RANDOM, SPARSE = "random subsets, 8n, robust", "sparse ±1 questions, 8n, robust"
HADAMARD, FOUR = "Hadamard ±1, n, least squares", "Hadamard subsets, 4n, least squares"
KINDS = (RANDOM, SPARSE, HADAMARD, FOUR)
NOISES = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0)
QUERIES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
BY_NOISE, BY_QUERIES, SUBSETS, ARBITRARY, OURS = "noise", "questions", "Theorem 8.1", "Theorem 8.2", "ours, ε = 0.1"
PROVEN = 0.239
"""The part of arbitrary answers for which ℓ1 decoding is proven to work."""


def measure(quick: bool) -> list[Row]:
    """All parts of the figure, and the two theorems."""
    generator = np.random.default_rng(8)
    small, large = (96, 4096) if quick else (300, 65_536)
    rows = []
    for kind in KINDS:
        for noise in NOISES[2:9:3] if quick else NOISES:
            rows.append(_at_noise(kind, small if kind in (RANDOM, SPARSE) else large, noise, generator))
    if not quick:
        rows.append(_at_noise(RANDOM, 500, 0.2, generator))
    for noise in (0.2,) if quick else (0.05, 0.2, 0.5):
        rows += [_with_queries(small, part, noise, generator) for part in (QUERIES[1::3] if quick else QUERIES)]
    rows += [_all_subsets(10, error, generator) for error in (0.0, 0.5, 1.0, 1.5, 2.0)]
    rows += [_arbitrary(small, a, part, generator) for a in (0.0, 1.0) for part in (0.1, 0.2, 0.3)]
    return rows + _ours(64 if quick else 256, small, large, generator)


def _queries(kind: str, n: int) -> Any:
    if kind == SPARSE:
        return Listed.sparse(n, 8 * n, n // 4, signs=True)
    if kind == RANDOM:
        return Listed.drawn(n, 8 * n)
    return Hadamard(n, signs=True) if kind == HADAMARD else Hadamard(n, rounds=4)


def _at_noise(kind: str, n: int, noise: float, generator: np.random.Generator) -> Row:
    """The part of the bits that is wrong, with noise of so many √n; at most 1 % up to 0.2."""
    queries, bits = _queries(kind, n), generator.integers(0, 2, n)
    noisy = queries.apply(bits) + generator.normal(0, noise * sqrt(n), len(queries))
    wrong = 1 - float(reconstruct(noisy, queries, truth=bits).right or 0)
    setting = {"part": BY_NOISE, "kind": kind, "n": n, "noise / √n": noise}
    return Row(setting, 0.01, wrong, _doubt(n), "at most" if noise <= 0.2 else "none")


def _doubt(n: int) -> float:
    """A part of n bits that is expected to be 1 % at most is above 1 % by more with probability ALARM at most."""
    exponent = -np.log(ALARM)
    return float(sqrt(2 * 0.01 * exponent / n) + exponent / n)


def _with_queries(n: int, part: float, noise: float, generator: np.random.Generator) -> Row:
    bits, k = generator.integers(0, 2, n), round(part * n)
    queries = Listed.drawn(n, k)
    noisy = queries.apply(bits) + generator.normal(0, noise * sqrt(n), k)
    wrong = 1 - float(reconstruct(noisy, queries, method="least squares", truth=bits).right or 0)
    setting = {"part": BY_QUERIES, "kind": f"noise {noise:g}·√n", "n": n, "noise / √n": noise, "questions / n": part}
    return Row(setting, 0.01, wrong, _doubt(n), "at most" if part >= 8 and noise <= 0.2 else "none")


def _all_subsets(n: int, error: float, generator: np.random.Generator) -> Row:
    """A curator who answers between the data and data 4E bits away, half of them ones: each answer within E."""
    bits = np.arange(n) % 2
    other = bits.copy()
    flipped = round(4 * error)
    ones, zeros = np.flatnonzero(bits == 1), np.flatnonzero(bits == 0)
    other[np.r_[ones[: flipped // 2], zeros[: flipped - flipped // 2]]] ^= 1
    queries = Listed.all_subsets(n)
    between = (queries.apply(bits) + queries.apply(other)) / 2
    found = reconstruct(between, queries, method="all candidates", truth=bits)
    wrong = round((1 - float(found.right or 0)) * n)
    return Row({"part": SUBSETS, "kind": "all candidates", "n": n, "E": error}, 4 * error, wrong)


def _arbitrary(n: int, within: float, part: float, generator: np.random.Generator) -> Row:
    """A part of the answers is that of other bits, the rest within α; at most (2α/η)² bits may be wrong."""
    bits, k = generator.integers(0, 2, n), 8 * n
    queries = Listed.drawn(n, k, signs=True)
    answers = queries.apply(bits) + generator.uniform(-within, within, k)
    lied = generator.permutation(k)[: round(part * k)]
    answers[lied] = queries.apply(1 - bits)[lied]
    wrong = (1 - float(reconstruct(answers, queries, truth=bits).right or 0)) * n
    setting = {"part": ARBITRARY, "kind": f"within {within:g}", "n": n, "arbitrary": part}
    return Row(setting, (2 * within / (0.5 - part)) ** 2, wrong, claim="at most" if part < PROVEN else "none")


def _ours(asked: int, small: int, large: int, generator: np.random.Generator) -> list[Row]:
    """Answers of our mechanisms, and of a session, at ε = 0.1 for all questions together: right bits beside chance."""
    rows = []
    for kind, n in ((RANDOM, small), (HADAMARD, large)):
        queries, bits = _queries(kind, n), generator.integers(0, 2, n)
        exact, k = queries.apply(bits).astype(np.int64), len(queries)
        noisy = {
            "Laplace": Laplace.for_epsilon(str(EPSILON), k, dimension=k).release(exact).values,
            "Gaussian": Gaussian.for_approx(str(EPSILON), str(DELTA), k, dimension=k).release(exact).values,
        }
        for name, values in noisy.items():
            found = reconstruct(values, queries, truth=bits)
            rows.append(_guessed(f"{name}, {k:,} questions", n, float(found.right or 0)))
    rows.append(_guessed(f"a session, {asked:,} statements", asked, _session(asked, generator)))
    return rows


def _session(n: int, generator: np.random.Generator) -> float:
    bits = generator.integers(0, 2, n)
    people = {"person": np.arange(n), "flu": bits}
    values = {"flu": [0, 1]}
    each = PureDP(EPSILON).epsilon / n
    with connect(people, unit=User("person"), budget=PureDP(1), table="people", values=values) as session:
        template = "SELECT COUNT(*) AS n FROM people WHERE flu = 1 AND {subset}"
        answerer = FromSession(session, template, "person", range(n), each)
        found = reconstruct(answerer, Hadamard(n), truth=bits)
        assert found.answered == n, found.reasons
        assert session.spent.epsilon <= PureDP(EPSILON).epsilon * (1 + 1e-6)
    return float(found.right or 0)


def _guessed(name: str, n: int, right: float) -> Row:
    return Row({"part": OURS, "kind": name, "n": n}, most_by_chance(n, EPSILON, ALARM) / n, right)


def draw(rows: list[Row]) -> Any:
    """Bits recovered over the noise, over the number of questions, and from our own answers."""

    def recovered(part: str) -> Any:
        return points([row for row in rows if row.setting["part"] == part], right=lambda row: 1 - row.measured)

    up = alt.Y("right:Q", title="bits recovered", scale=alt.Scale(domain=[0.45, 1.0]), axis=alt.Axis(format="%"))
    legend = alt.Legend(orient="bottom", columns=1, symbolType="circle")
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=list(KINDS), range=COLOURS), legend=legend)
    across = alt.X("noise / √n:Q", title="standard deviation of the noise / √n", scale=alt.Scale(type="sqrt"))
    curves = alt.Chart(recovered(BY_NOISE)).transform_filter("datum.n != 500")
    line = curves.mark_line(point=True).encode(x=across, y=up, color=colour)
    thresholds = [{"at": 0.2, "said": "0.2·√n"}, {"at": 1.0, "said": "√n"}]
    marks = alt.Chart(alt.Data(values=thresholds)).mark_rule(strokeDash=[4, 4], color="#888")
    curve = [{"at": float(s), "right": float(norm.cdf(0.5 / s))} for s in np.linspace(0.05, 5, 100)]
    theory = alt.Chart(alt.Data(values=curve)).mark_line(color="#bbb").encode(x="at:Q", y=up)
    signs = marks.mark_text(align="left", dx=4, dy=135, color="#666").encode(x="at:Q", text="said:N")
    first = (theory + marks.encode(x="at:Q") + signs + line).properties(width=330, height=300, title="over the noise")
    more = (
        alt.Chart(recovered(BY_QUERIES))
        .mark_line(point=True)
        .encode(
            x=alt.X("questions / n:Q", title="questions / n", scale=alt.Scale(type="log", nice=False)),
            y=up,
            color=alt.Color("kind:N", title=None, scale=alt.Scale(range=COLOURS[3:]), legend=legend),
        )
        .properties(width=300, height=300, title="over the number of questions")
    )
    name = alt.Y("kind:N", title=None, axis=alt.Axis(labelLimit=240))
    share = alt.X("measured:Q", title="bits guessed right", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1]))
    ours = alt.Chart(points([row for row in rows if row.setting["part"] == OURS]))
    bars = ours.mark_bar(color=COLOURS[0], height=14).encode(x=share, y=name)
    most = ours.mark_tick(color=COLOURS[1], thickness=3, size=24).encode(x="bound:Q", y=name)
    last = (bars + most).properties(width=300, height=200, title="private answers; the tick is what chance allows")
    return alt.hconcat(first, more, last).resolve_scale(color="independent")


EXPERIMENT = Experiment(
    "reconstruction",
    "Secret bits from answers about groups: noise below √n protects nobody",
    f"At noise ≤ 0.2·√n at least 99 % come back; from answers at ε = {EPSILON:g} no more than chance allows",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
