"""Any function made stable: A_samp beside theorem 7.3, and what its answers take.

    python experiments/subsampled.py [--quick]

Theorem 7.3: if a function gives its answer on a random subsample with probability 3/4, A_samp with the book's constants
gives that answer with probability 1 − 3δ at least. The function here says whether one of k records is in the
subsample, which has a probability that is known and is made to be 3/4 or just above. How often the answer
fails to come out is also computed: blocks are independent, so their number that agree is binomial, and the chance of ⊥
at each lead is known. What is drawn must agree with it, as the book has it and with fewer blocks.

Then, at δ = 10⁻⁶, how many runs of a function are asked for where nine in ten of them agree, and how large a part of
the records each run sees: the book's constants, the fewest random subsamples, and disjoint blocks, where a record is in
one. No constant of the book's is needed for its proof: only how many blocks a record can be in.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import altair as alt
import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.robust import RawData, SubsampledRelease
from harness import ALARM, COLOURS, Experiment, Row, points

BOOK, FEWER, DISJOINT = "book's algorithm 14", "fewest random subsamples", "disjoint blocks"
SIZE = 120
"""Records; those that the function looks for come first."""


def measure(quick: bool) -> list[Row]:
    """How often no answer comes out, then what answers take."""
    runs, settings = (5, ((8, "0.1"), (16, "0.02"))) if quick else (200, ((8, "0.1"), (12, "0.05"), (16, "0.02")))
    rows = []
    for epsilon, delta in settings:
        book = SubsampledRelease.book(_seen, epsilon, delta, SIZE)
        rows += _failures(BOOK, book, float(3 * Fraction(delta)), runs)
        fewer = SubsampledRelease.for_blocks(_seen, epsilon, delta, 60, agreement=Fraction(3, 5))
        rows += _failures(FEWER, fewer, 0.0, 20 * runs)
    for epsilon in (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4)):
        rows += _asked(epsilon)
    return rows


def _seen(rows: Any) -> bool:
    return bool((rows == 1).any())


def _failures(name: str, mechanism: SubsampledRelease, bound: float, runs: int) -> list[Row]:
    """Data on which the function gives True on a subsample with probability 3/4 or just above."""
    rate = float(mechanism.rate)
    sought = math.ceil(math.log(1 / 4) / math.log(1 - rate))
    size = max(SIZE, sought)
    data = np.repeat([1, 0], [sought, size - sought])
    failed = sum(mechanism.release(data).values is not True for _ in range(runs)) / runs
    chance = _chance(mechanism, 1 - (1 - rate) ** sought, size)
    setting = {"what": "no answer", "by": name, "ε": float(mechanism.epsilon), "blocks": mechanism.blocks}
    rows = [Row(setting | {"against": "its law"}, chance, failed, _doubt(chance, runs), "equal")]
    if bound:
        rows.append(Row(setting | {"against": "3δ of theorem 7.3"}, bound, failed, _doubt(bound, runs)))
    return rows


def _chance(mechanism: SubsampledRelease, stable: float, size: int) -> float:
    """⊥, or the wrong answer, of independent blocks; a record in too many of them is beside it."""
    from scipy.stats import binom

    blocks, cap = mechanism.blocks, mechanism.cap
    agreed = np.arange(blocks + 1)
    leads = 2 * agreed - blocks
    passed = [float(mechanism.test.chance(max(0, int(lead) - 1) // (2 * cap))) if lead > 0 else 0.0 for lead in leads]
    crowded = 1 - (1 - binom.sf(cap, blocks, float(mechanism.rate))) ** size
    return float(1 - (1 - crowded) * (binom.pmf(agreed, blocks, stable) * passed).sum())


def _asked(epsilon: Fraction) -> list[Row]:
    """Runs, and the part of the records in each, where nine tenths of the runs agree and 95 % of data is answered."""
    delta, agreement = Fraction(1, 10**6), Fraction(9, 10)
    book = SubsampledRelease.book(_seen, epsilon, delta, 10_000)
    fewer = next(found for found in (_for(epsilon, delta, runs) for runs in _rising()) if found is not None)
    needed = RawData(1, epsilon, delta).needed(Fraction(1, 20))
    disjoint = math.ceil(needed / (2 * agreement - 1))
    setting = {"what": "asked for", "ε": float(epsilon), "against": "the book's"}
    return [
        Row(setting | {"by": name, "blocks": runs, "part": part}, float(book.blocks), float(runs), 0.0)
        for name, runs, part in (
            (BOOK, book.blocks, float(book.rate)),
            (FEWER, fewer.blocks, float(fewer.rate)),
            (DISJOINT, disjoint, 1 / disjoint),
        )
    ]


def _rising() -> Any:
    return (math.ceil(10 * 1.2**k) for k in range(60))


def _for(epsilon: Fraction, delta: Fraction, runs: int) -> SubsampledRelease | None:
    """Subsamples that see at least a thousandth of the records, if so many runs do."""
    try:
        found = SubsampledRelease.for_blocks(_seen, epsilon, delta, runs)
    except InvalidArgument:
        return None
    return found if found.rate >= Fraction(1, 1000) else None


def _doubt(chance: float, runs: int) -> float:
    """Bernstein's inequality for the mean of independent coins of that chance."""
    exponent = math.log(2 / ALARM)
    return math.sqrt(2 * chance * exponent / runs) + exponent / (3 * runs)


def draw(rows: list[Row]) -> Any:
    """Left what is measured beside its law and the bound, right the runs asked for over ε."""
    tested = [row for row in rows if row.setting["what"] == "no answer"]
    names = [BOOK, FEWER, DISJOINT]
    colour = alt.Color(
        "by:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=list(COLOURS[:3])),
        legend=alt.Legend(orient="bottom"),
    )
    label = points(
        tested,
        line=lambda row: f"{row.setting['by'].split(' ')[0]}, ε = {row.setting['ε']:g}, {row.setting['against']}",
    )
    base = alt.Chart(label).encode(y=alt.Y("line:N", title=None, axis=alt.Axis(labelLimit=260)))
    left = base.mark_tick(thickness=3, size=18, color="black").encode(
        x=alt.X("bound:Q", title="releases without the answer: stated (tick), measured (dot)")
    ) + base.mark_point(filled=True, size=80, opacity=1).encode(x="measured:Q", color=colour)
    asked = points([row for row in rows if row.setting["what"] == "asked for"])
    lines = (
        alt.Chart(asked)
        .mark_line(point=True)
        .encode(x=alt.X("ε:Q", scale=alt.Scale(type="log"), title="ε, at δ = 1e-6"), color=colour)
    )
    runs = lines.encode(
        y=alt.Y("measured:Q", scale=alt.Scale(type="log"), title="runs of the function", axis=alt.Axis(format="~s"))
    )
    part = lines.encode(y=alt.Y("part:Q", scale=alt.Scale(type="log"), title="part of the records in each"))
    size = {"width": 300, "height": 300}
    return alt.hconcat(left.properties(**size), runs.properties(**size), part.properties(**size))


EXPERIMENT = Experiment(
    "subsampled",
    "Answers of subsamples come out as is proven, and disjoint blocks ask for the fewest",
    "Theorem 7.3: a function that gives its answer on 3 subsamples of 4 is answered but for 3δ",
    measure,
    draw,
)

if __name__ == "__main__":
    sys.exit(EXPERIMENT.main())
