"""Draws do not depend on one another: neighbours, sign and size, low and high bits, parts of an array.

Each question is put as counts in a table of which every cell's probability is known if the draws are independent, and
judged as in `tests.noise.laws`. Each is also put to draws that depend on one another on purpose.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from tests.noise import laws
from tests.noise.laws import Law

from discreet.noise import Entropy, discrete_gaussian, discrete_laplace, geometric
from discreet.noise import batches as shape
from discreet.noise import gaussian as gaussian_module
from discreet.noise import laplace as laplace_module
from discreet.noise.batches import PART

SIZE = 8 * PART
LAPLACE = [Fraction("0.5"), Fraction(20), Fraction(2**20), Fraction(2**45)]
GAUSSIAN = [Fraction("0.5"), Fraction(20), Fraction(1000), Fraction(2**45)]
CASES: list[tuple[Callable[..., np.ndarray], Callable[..., Law], Fraction]] = [
    *((discrete_laplace, laws.laplace, scale) for scale in LAPLACE),
    *((discrete_gaussian, laws.gaussian, scale) for scale in GAUSSIAN),
]
IDS = [f"{sample.__name__} {float(scale):.3g}" for sample, _, scale in CASES]
LARGE = [
    (discrete_laplace, Fraction(2**29) + Fraction(1, 3)),
    (discrete_laplace, Fraction(2**45)),
    (discrete_laplace, Fraction(2**57)),
    (geometric, Fraction(2**31)),
    (discrete_gaussian, Fraction(2**20)),
    (discrete_gaussian, Fraction(2**45)),
    (discrete_gaussian, Fraction(2**59)),
]


def independent(left: np.ndarray, right: np.ndarray, first: Law, second: Law) -> bool:
    """Whether pairs look like independent draws from two binned laws."""
    rows = np.searchsorted(np.array(first.cuts), left)
    columns = np.searchsorted(np.array(second.cuts), right)
    odds = np.outer(first.odds, second.odds).ravel()
    counts = np.bincount(rows * len(second.odds) + columns, minlength=odds.size)
    return laws.distance(counts, odds) <= laws.limit(odds.size)


def coarse(law: Callable[..., Law], scale: Fraction) -> Law:
    """Six bins or fewer."""
    return law(scale, sorted({int(step * scale) for step in map(Fraction, ("-1", "-0.4", "0", "0.4", "1"))}))


@pytest.mark.parametrize(("sample", "law", "scale"), CASES, ids=IDS)
def test_neighbours_and_parts_are_independent(
    sample: Callable[..., np.ndarray], law: Callable[..., Law], scale: Fraction
) -> None:
    draws = sample(scale, SIZE, entropy=Entropy.for_tests(31))
    bins = coarse(law, scale)
    for lag in (1, 2, 511, 512, PART - 1, PART, PART + 1):
        # Pairs that share no draw: blocks of `lag`, each with the next.
        pairs = draws[: draws.size // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
        assert independent(pairs[:, 0].ravel(), pairs[:, 1].ravel(), bins, bins), lag
        assert not independent(pairs[:, 0].ravel(), pairs[:, 0].ravel(), bins, bins)


@pytest.mark.parametrize(("sample", "law", "scale"), CASES, ids=IDS)
def test_draws_on_both_sides_of_a_part_boundary_are_independent(
    sample: Callable[..., np.ndarray], law: Callable[..., Law], scale: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Parts of 64 draws have thousands of boundaries in an array that has seven otherwise.
    for module in (shape, laplace_module, gaussian_module):
        monkeypatch.setattr(module, "PART", 64)
    parts = sample(scale, SIZE // 4, entropy=Entropy.for_tests(32)).reshape(-1, 64)
    bins = coarse(law, scale)
    assert law(scale).accepts(parts.ravel())
    for left, right in ((parts[0:-1:2, -1], parts[1::2, 0]), (parts[0:-1:2, -2], parts[1::2, 1])):
        assert independent(left, right, bins, bins)
        assert not independent(left, left, bins, bins)


@pytest.mark.parametrize(("sample", "law", "scale"), [case for case in CASES if case[2] > 1])
def test_sign_is_independent_of_size(
    sample: Callable[..., np.ndarray], law: Callable[..., Law], scale: Fraction
) -> None:
    draws = sample(scale, SIZE, entropy=Entropy.for_tests(33))
    draws = draws[draws != 0]
    cuts = sorted({int(step * scale) for step in map(Fraction, ("0.2", "0.6", "1", "1.6", "2.5"))})
    whole = law(scale, [0, *cuts])
    above = [odds / sum(whole.odds[1:]) for odds in whole.odds[1:]]
    sizes, fair = Law(tuple(cuts), tuple(above)), Law((-1,), (0.5, 0.5))
    assert independent(draws, np.abs(draws), fair, sizes)
    tied = np.where(np.abs(draws) > cuts[-2], np.abs(draws), draws)
    assert not independent(tied, np.abs(tied), fair, sizes)


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "scale"), LARGE, ids=[f"{s.__name__} {float(x):.3g}" for s, x in LARGE])
def test_low_bits_of_wide_noise_are_uniform_and_independent_of_the_sign(
    sample: Callable[..., np.ndarray], scale: Fraction
) -> None:
    draws = sample(scale, SIZE, entropy=Entropy.for_tests(34))
    draws = draws[np.abs(draws) < laws.LARGEST]
    uniform = Law(tuple(range(255)), (1 / 256,) * 256)
    # A bit is uniform to within 2^bit/scale, far below what can be seen 16 bits under the scale.
    for shift in range(0, int(scale).bit_length() - 16 - 8, 4):
        assert uniform.accepts((draws >> shift) & 255), shift
    lowest = draws & 255
    assert not uniform.accepts(lowest & ~1)
    assert not uniform.accepts(np.where(lowest % 37 == 0, lowest ^ 64, lowest))
    if sample is not geometric:
        nibbles = Law(tuple(range(15)), (1 / 16,) * 16)
        assert independent(draws, draws & 15, Law((-1,), (0.5, 0.5)), nibbles)


def test_two_calls_and_two_sources_share_nothing() -> None:
    first, second = (discrete_laplace(2**57, 1000) for _ in range(2))
    assert np.intersect1d(first, second).size == 0
    seeded = [discrete_laplace(2**57, 1000, entropy=Entropy.for_tests(seed)) for seed in (0, 1)]
    assert np.intersect1d(*seeded).size == 0
