"""Mechanisms whose noise follows the data, held to their loss on data built to sit where it is worst.

Each pair has a neighbour on the other side of an instability, or one that makes the noise as different as it can be.
Fresh randomness at every run; each audit accuses an honest mechanism with probability at most 1e-9.
"""

from typing import Any

import numpy as np
import pytest

from discreet import Bounds, Mechanism, PureDP
from discreet.adversary import audit
from discreet.robust import (
    InterquartileRange,
    MedianDeviation,
    OnLine,
    OrderStatistic,
    ProposeTestRelease,
    Scale,
    SmoothSensitivity,
    SubsampledRelease,
    TrimmedMean,
    Unstable,
    mode,
)

pytestmark = pytest.mark.slow

BOUNDS = Bounds(0, 64)
STEEP = [0] * 13 + [1] * 4 + [60] * 13
"""One record more or less moves the median by a rank towards a gap of 59."""
RANGED = [0] * 8 + [4] * 15 + [20] * 7
"""A quartile range of 4, the end of a bin, that one record moves."""


def proposed(statistic: Any, bound: int, neighbours: Any = "add_remove") -> ProposeTestRelease:
    return ProposeTestRelease(OnLine(statistic, BOUNDS, 1), bound, 2, "0.05", neighbours)


def oldest(rows: Any) -> int:
    return max(rows, default=0)


CASES: list[tuple[str, Any, Any, Any]] = [
    ("median", proposed(OrderStatistic(), 1), STEEP, STEEP[1:]),
    ("median, replaced", proposed(OrderStatistic(), 1, "replace"), STEEP, [*STEEP[1:], 60]),
    ("quartile range", proposed(InterquartileRange(), 4), RANGED, RANGED[1:]),
    ("trimmed mean", proposed(TrimmedMean("0.4"), 1, "replace"), STEEP, [*STEEP[1:], 60]),
    ("deviation", proposed(MedianDeviation(), 1), STEEP, STEEP[:-1]),
    ("scale", Scale(2, "0.05", BOUNDS, 1), RANGED, RANGED[1:]),
    ("scale, the book's", Scale.book("0.5", "0.05", BOUNDS, 1), RANGED, RANGED[:-1]),
    ("mode", mode(2, "0.05"), [0] * 7 + [1] * 4, [0] * 7 + [1] * 5),
    ("mode, tied", mode(2, "0.05"), [0] * 5 + [1] * 5, [0] * 5 + [1] * 4),
    ("mode, replaced", mode(2, "0.05", "replace"), [0] * 8 + [1] * 4, [0] * 7 + [1] * 5),
    ("subsamples", SubsampledRelease(oldest, 2, "0.02", 30, "0.05", 4), [1] * 9, [1] * 9 + [7]),
    ("smooth median", SmoothSensitivity(OrderStatistic(), 2, BOUNDS, 1), STEEP, STEEP[1:]),
    ("smooth median, next to the gap", SmoothSensitivity(OrderStatistic(), 2, BOUNDS, 1), STEEP[:-3], STEEP[1:-3]),
    ("smooth deviation", SmoothSensitivity(MedianDeviation(), 2, BOUNDS, 1), STEEP, STEEP[1:]),
]


def said(mechanism: Mechanism) -> Any:
    def run(rows: Any) -> Any:
        value = mechanism.release(np.array(rows)).values
        return -100.0 if isinstance(value, Unstable) else float(value)

    return run


@pytest.mark.parametrize(("name", "mechanism", "d", "d_prime"), CASES, ids=[case[0] for case in CASES])
def test_a_release_keeps_to_its_loss(name: str, mechanism: Any, d: Any, d_prime: Any) -> None:
    loss = mechanism.loss
    found = audit(said(mechanism), d, d_prime, samples=3000, delta=0 if isinstance(loss, PureDP) else loss.delta)
    assert not found.violates(loss), str(found)


def test_a_lead_counted_for_the_wrong_neighbours_is_accused() -> None:
    """The mode as for a record added, where one is replaced: the distance moves by 2, and the auditor sees it."""
    d, d_prime = [0] * 4 + [1], [0] * 3 + [1] * 2
    wrong, right = mode(3, "0.01"), mode(3, "0.01", "replace")
    assert audit(said(wrong), d, d_prime, samples=3000, delta="0.01").violates(wrong.loss)
    assert not audit(said(right), d, d_prime, samples=3000, delta="0.01").violates(right.loss)
