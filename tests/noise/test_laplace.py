"""Discrete Laplace and geometric draws are the documented formula of the words they read, to the last bit."""

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpz
from tests.noise.formulas import PRECISION, boundary, magnitude, offset
from tests.noise.spies import Counted, Readings, Watched

from discreet.core.rounding import ball
from discreet.noise import Entropy, discrete_laplace, geometric
from discreet.noise.laplace import _plan

LARGEST = (1 << 63) - 1
SIGN = 1 << 63
SCALES = [Fraction(s) for s in ("1e-6", "0.05", "0.5", "1", "3.7", "64", "1000")] + [
    Fraction(2**20) + Fraction(1, 3),
    Fraction(10**9),
    Fraction(2**30),
]


def tricky_words(scale: Fraction, signed: bool, generator: np.random.Generator) -> list[int]:
    """Words round the boundaries, at the edges of the margin and of the range, and anywhere."""
    fraction_bits = _plan(scale, signed).fraction_bits
    words = [0, 1, 2, (1 << 46) - 1, 1 << 46, (1 << 46) + 1, LARGEST - 1, LARGEST]
    most = max(1, int(11 * scale))
    marks = {1, 2, 3, most, *generator.integers(1, most + 1, size=60).tolist()}
    for k in sorted(marks):
        word = boundary(scale, signed, k)
        if 0 <= word <= LARGEST:
            # ŷ is 2^−F from the whole number k where the word is off by about word·2^−F/scale.
            edge = int(word / scale / 2**fraction_bits)
            shifts = [0, 1, 2, 5, *(int(edge * f) for f in (0.4, 0.9, 0.99, 1.01, 1.1, 2.5))]
            words += [min(max(word + s * shift, 0), LARGEST) for shift in shifts for s in (-1, 1)]
    words += generator.integers(0, LARGEST, size=300, endpoint=True).tolist()
    words += (generator.integers(0, LARGEST, size=50) >> generator.integers(0, 63, size=50)).tolist()
    signs = generator.integers(0, 2, size=len(words)).tolist()
    return [word | sign << 63 for word, sign in zip(words, signs, strict=True)]


@pytest.mark.parametrize("signed", [True, False], ids=["laplace", "geometric"])
@pytest.mark.parametrize("scale", SCALES, ids=lambda s: f"{float(s):.4g}")
def test_draws_equal_the_formula_of_their_words(scale: Fraction, signed: bool, settled: list[Watched]) -> None:
    words = tricky_words(scale, signed, np.random.default_rng(int(scale * 1000)))
    sample = discrete_laplace if signed else geometric
    draws = sample(scale, len(words), entropy=Entropy.scripted_for_tests(words)).tolist()
    readings = Readings(settled)
    assert readings.unused > 0

    def decided(prefix: int, bits: int) -> bool:
        return magnitude(scale, signed, prefix, bits) is not None

    for word, draw in zip(words, draws, strict=True):
        expected = magnitude(scale, signed, *readings.of(word & LARGEST, 63, decided))
        assert expected is not None
        assert draw == (-expected if signed and word & SIGN else expected)
    assert not readings.unused


@pytest.mark.parametrize("signed", [True, False], ids=["laplace", "geometric"])
@pytest.mark.parametrize("scale", [Fraction("0.5"), Fraction("3.7"), Fraction(1000), Fraction(2**30)])
@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_word_on_a_boundary_is_extended_until_it_leaves_it(
    scale: Fraction, signed: bool, depth: int, settled: list[Watched]
) -> None:
    # The first 63 + 64·depth bits are those of the boundary itself; the next word says on which side U lies.
    k = max(1, int(2 * scale))
    bits = 63 + 64 * depth
    on_it = boundary(scale, signed, k, bits)
    first, rest = on_it >> 64 * depth, on_it & ((1 << 64 * depth) - 1)
    extension = [rest >> 64 * (depth - 1 - i) & (1 << 64) - 1 for i in range(depth)]
    sample = discrete_laplace if signed else geometric
    for last, expected in ((0, k), ((1 << 64) - 1, k - 1)):
        settled.clear()
        source = Counted([first, *extension, last])
        assert int(sample(scale, entropy=source)) == expected
        assert [uniform.words_read for uniform in settled] == [depth + 1]
        assert source.handed_out == depth + 2


@pytest.mark.parametrize("scale", [Fraction(1, 10**6), Fraction(1), Fraction(1000), Fraction(2**30)])
def test_a_word_of_zeros_is_extended(scale: Fraction, settled: list[Watched]) -> None:
    draw = int(discrete_laplace(scale, entropy=Entropy.scripted_for_tests([SIGN, 0, 0, 1 << 60])))
    assert -draw == magnitude(scale, True, 1 << 60, 63 + 3 * 64)
    assert settled[0].words_read == 3


@pytest.mark.parametrize(("word", "slow"), [((1 << 46) - 1, True), (1 << 46, False), (LARGEST, True)])
def test_small_uniforms_and_the_largest_are_settled(word: int, slow: bool, settled: list[Watched]) -> None:
    scale = Fraction(1000)
    assert int(geometric(scale, entropy=Entropy.scripted_for_tests([word]))) == magnitude(scale, False, word, 63)
    assert bool(settled) == slow


@pytest.mark.parametrize("scale", [Fraction(1, 2**60), Fraction(1, 10**6), Fraction(1, 100)])
def test_tiny_scales_are_not_settled_at_zero(scale: Fraction, settled: list[Watched]) -> None:
    words = [LARGEST, LARGEST - 1, 1 << 62, 1 << 60]
    assert not discrete_laplace(scale, 4, entropy=Entropy.scripted_for_tests(words)).any()
    assert not settled


@pytest.mark.parametrize("scale", SCALES, ids=lambda s: f"{float(s):.4g}")
def test_few_draws_are_settled(scale: Fraction, settled: list[Watched]) -> None:
    # Within 2^−F of a whole number: 2^(1−F) of them. U < 2^−17: one in 2^17. Ten times the mean is never reached.
    size = 1 << 18
    discrete_laplace(scale, size, entropy=Entropy.for_tests(41))
    mean = size * (2.0 ** (1 - _plan(scale, True).fraction_bits) + 2.0**-17)
    assert len(settled) < 10 * mean + 20


def split(scale: Fraction) -> tuple[int, Fraction]:
    """How many low bits are drawn apart, and the scale of what is above them."""
    low_bits = next(k for k in range(64) if scale / 2**k <= 2**20)
    return low_bits, scale / 2**low_bits


LARGE = [Fraction(2**30 + 1), Fraction(2**31), Fraction(2**45), Fraction(10**17, 3), Fraction(2**60)]


@pytest.mark.parametrize("signed", [True, False], ids=["laplace", "geometric"])
@pytest.mark.parametrize("scale", LARGE, ids=lambda s: f"{float(s):.4g}")
def test_wide_draws_are_put_together_from_their_words(scale: Fraction, signed: bool) -> None:
    size = 40
    low_bits, high = split(scale)
    generator = np.random.default_rng(5)
    uniforms = generator.integers(1 << 50, LARGEST, size=size).tolist()
    # A coin below one half is always heads.
    lows = (generator.integers(0, 1 << 63, size=size)).tolist()
    signs = generator.integers(0, 1 << 63, size=size).tolist()
    source = Counted([*uniforms, *lows, *signs])
    draws = (discrete_laplace if signed else geometric)(scale, size, entropy=source).tolist()
    for uniform, low, sign, draw in zip(uniforms, lows, signs, draws, strict=True):
        upper = magnitude(high, False, uniform, 63)
        assert upper is not None
        size_of = min(upper << low_bits | low & ((1 << low_bits) - 1), LARGEST)
        assert draw == (-size_of if signed and sign & 1 else size_of)
    assert source.handed_out == (3 if signed else 2) * size


@pytest.mark.parametrize("scale", LARGE, ids=lambda s: f"{float(s):.4g}")
@pytest.mark.parametrize("kept", [True, False])
def test_the_coin_of_the_low_bits_is_settled_on_its_boundary(
    scale: Fraction, kept: bool, settled: list[Watched]
) -> None:
    low_bits, high = split(scale)
    spare = 64 - low_bits
    low = (1 << low_bits) - 3
    with ctx.workprec(PRECISION):
        odds = (-ball(low / scale)).exp() * arb(fmpz(1) << (spare + 64))
        on_it = int(odds.mid().floor().fmpz())
    coin, extension = on_it >> 64, on_it & (1 << 64) - 1
    assert coin >= (1 << spare) - (1 << (spare - 19)) - 1, "the fast path takes only surer coins"
    first, second = 1 << 61, 1 << 60
    last = 0 if kept else (1 << 64) - 1
    redrawn = [] if kept else [second, 0]
    words = [first, coin << low_bits | low, extension, last, *redrawn]
    draw = int(geometric(scale, entropy=Entropy.scripted_for_tests(words)))
    expected = magnitude(high, False, first if kept else second, 63)
    assert expected is not None
    assert draw == (expected << low_bits | (low if kept else 0))
    assert [uniform.words_read for uniform in settled] == [2]


@pytest.mark.parametrize("scale", LARGE, ids=lambda s: f"{float(s):.4g}")
def test_a_negative_zero_is_drawn_again(scale: Fraction) -> None:
    # The largest uniform gives high digit 0 once it is extended by ones; low bits 0; sign −. Then a plain draw.
    ones = (1 << 64) - 1
    again = [1 << 61, 0, 0]
    source = Entropy.scripted_for_tests([LARGEST, 0, 1, *again])
    low_bits, high = split(scale)
    expected = magnitude(high, False, 1 << 61, 63)
    assert expected is not None
    assert int(discrete_laplace(scale, entropy=source)) == expected << low_bits
    positive = Entropy.scripted_for_tests([LARGEST, 0, 0, *again])
    assert int(discrete_laplace(scale, entropy=positive)) == 0
    assert int(geometric(scale, entropy=Entropy.scripted_for_tests([LARGEST, 0, ones]))) == 0


def test_the_far_tail_of_the_widest_noise_stops_at_the_end_of_int64() -> None:
    # U = 2^−129: 89 scales out, where int64 ends after 8.
    for sign, end in ((0, LARGEST), (1, -LARGEST)):
        source = Entropy.scripted_for_tests([0, 0, 1 << 62, 0, sign])
        assert int(discrete_laplace(2**60, entropy=source)) == end
    assert int(geometric(2**60, entropy=Entropy.scripted_for_tests([0, 0, 1 << 62, 0]))) == LARGEST


@pytest.mark.parametrize("scale", SCALES, ids=lambda s: f"{float(s):.4g}")
@pytest.mark.parametrize("signed", [True, False], ids=["laplace", "geometric"])
def test_the_double_precision_form_is_within_its_margin(scale: Fraction, signed: bool) -> None:
    plan = _plan(scale, signed)
    generator = np.random.default_rng(6)
    few = np.arange(20)
    words = np.concatenate([generator.integers(1 << 46, LARGEST, 500), (1 << 46) + few, LARGEST - few])
    computed = np.log(words.astype(np.float64) * 2.0**-63) * -plan.slope + plan.intercept
    with ctx.workprec(200):
        for word, value in zip(words.tolist(), computed.tolist(), strict=True):
            for end in (word, word + 1):
                exact = ball(scale) * (offset(scale, signed) - (arb(end) / arb(fmpz(1) << 63)).log())
                off = abs(ball(Fraction(value) / 2**plan.fraction_bits) - exact)
                assert off < ball(scale) * arb(2) ** -44
                assert ball(scale) * arb(2) ** -44 <= arb(2) ** -plan.fraction_bits
