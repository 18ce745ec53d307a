"""The discrete Gaussian's table, coins and boundaries are those of the documented staircase, to the last bit."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb, ctx, fmpz
from tests.noise.blocks import PRECISION, Staircase
from tests.noise.spies import Counted, Readings, Watched

from discreet.core.rounding import ball
from discreet.noise import Entropy, discrete_gaussian, discrete_laplace, reference
from discreet.noise import gaussian as module
from discreet.noise.gaussian import _CELL_BITS, _COIN_BITS, _FEW, _SHARED, _SLACK, _Table

LARGEST = (1 << 63) - 1
ONES = (1 << 64) - 1
NARROW = [Fraction(s) for s in ("1e-6", "0.05", "0.5", "1", "3.7", "63.9", "127.99")]
WIDE = [Fraction(128), Fraction(1000), Fraction(2**20) + Fraction(1, 3), Fraction(2**45), Fraction(2**60)]


def label(sigma: Fraction) -> str:
    return f"{float(sigma):.4g}"


def is_below_exp(exponent: Fraction, prefix: int, bits: int) -> bool | None:
    """Whether every U that starts with these bits is below exp(−exponent), or none."""
    with ctx.workprec(PRECISION):
        scaled = (-ball(exponent)).exp() * arb(fmpz(1) << bits)
        return True if scaled >= prefix + 1 else False if scaled <= prefix else None


def is_decided(exponent: Fraction, prefix: int, bits: int) -> bool:
    return is_below_exp(exponent, prefix, bits) is not None


@pytest.mark.parametrize("sigma", NARROW + WIDE, ids=label)
def test_every_cell_of_the_table_lies_inside_the_block_it_names(sigma: Fraction) -> None:
    stairs = Staircase(sigma)
    assert stairs.width == 1 or 64 <= sigma / stairs.width <= 128
    assert stairs.reach * stairs.width > 6 * sigma
    starts = stairs.table._starts
    assert starts.size == 1 << _CELL_BITS
    owned = 0
    with ctx.workprec(PRECISION):
        for index, block in enumerate(stairs.blocks):
            cells = np.flatnonzero(starts == block * stairs.width)
            if cells.size:
                owned += cells.size
                unit = arb(1 << _CELL_BITS)
                assert stairs.ends[index] * unit <= int(cells[0])
                assert stairs.ends[index + 1] * unit >= int(cells[-1]) + 1
    assert owned + np.count_nonzero(starts == _SHARED) == starts.size


@pytest.mark.parametrize("sigma", NARROW + WIDE, ids=label)
def test_block_ends_are_within_their_margin(sigma: Fraction) -> None:
    stairs = Staircase(sigma)
    with ctx.workprec(PRECISION):
        for computed, exact in zip(stairs.table._ends.tolist(), stairs.ends, strict=True):
            assert abs(ball(Fraction(computed)) - exact * (1 << _CELL_BITS)) < arb(2) ** -23


@pytest.mark.parametrize("sigma", WIDE, ids=label)
def test_coins_taken_at_once_are_below_every_acceptance_of_their_blocks(sigma: Fraction) -> None:
    stairs = Staircase(sigma)
    sure = Fraction(int(stairs.table._sure), 1 << 64)
    assert sure > Fraction(9, 10)
    fast = set(stairs.table._starts.tolist())
    for index, block in enumerate(stairs.blocks):
        if block * stairs.width in fast:
            near, far = stairs.nearest[index], stairs.nearest[index] + stairs.width - 1
            with ctx.workprec(PRECISION):
                assert (-ball((far**2 - near**2) / (2 * sigma * sigma))).exp() > ball(sure)


@pytest.mark.parametrize("sigma", [*NARROW[1:], Fraction(1000), Fraction(2**60)], ids=label)
def test_places_are_found_in_the_block_that_owns_them(sigma: Fraction, settled: list[Watched]) -> None:
    stairs = Staircase(sigma)
    bits = _CELL_BITS + 64
    generator = np.random.default_rng(7)
    edge = int(_SLACK * 2**64)
    shifts = [0, 1, 2, 1 << 30, *(int(edge * f) for f in (0.5, 0.99, 1.01, 2))]
    places = [0, 1, (1 << bits) - 1, (1 << bits) - 2]
    # Settling in a table of a thousand blocks takes milliseconds.
    chosen = range(2 * stairs.reach) if stairs.reach < 30 else [0, stairs.reach - 1, stairs.reach, 2 * stairs.reach - 1]
    places += [stairs.boundary(index, bits) + sign * shift for index in chosen for shift in shifts for sign in (-1, 1)]
    anywhere = generator.integers(0, 1 << _CELL_BITS, size=99).tolist()
    places += [cell << 64 | int(generator.integers(0, LARGEST)) for cell in anywhere]
    places = [min(max(place, 0), (1 << bits) - 1) for place in places]
    cells = np.array([place >> 64 for place in places], dtype=np.uint64)
    found = stairs.table._find(cells, Entropy.scripted_for_tests([place & ONES for place in places])).tolist()
    readings = Readings(settled)
    assert readings.unused > 0
    for place, index in zip(places, found, strict=True):
        assert stairs.holds(index, *readings.of(place, bits, partial(stairs.places, index)))
    assert not readings.unused


@pytest.mark.parametrize("sigma", WIDE, ids=label)
def test_coins_fall_as_their_exact_odds_say(sigma: Fraction, settled: list[Watched]) -> None:
    stairs = Staircase(sigma)
    bits = _COIN_BITS + 64
    generator = np.random.default_rng(8)
    values, blocks, coins = [], [], []
    for _ in range(150):
        index = int(generator.integers(0, 2 * stairs.reach))
        block = stairs.blocks[index]
        value = block * stairs.width + int(generator.integers(0, stairs.width))
        exponent = (value**2 - stairs.nearest[index] ** 2) / (2 * sigma * sigma)
        with ctx.workprec(PRECISION):
            on_it = int(((-ball(exponent)).exp() * arb(fmpz(1) << bits)).mid().floor().fmpz())
        edge = int(module._COIN_SLACK * 2**bits)
        far = int(generator.integers(1 << 60))
        for shift in (0, 1, -1, 1 << 20, -(1 << 20), edge, -edge, 2 * edge, -2 * edge, far):
            values.append(value)
            blocks.append(index)
            coins.append(min(max(on_it - shift, 0), (1 << bits) - 1))
    words = np.array([(coin >> 64) << (64 - _CELL_BITS - _COIN_BITS) for coin in coins], dtype=np.uint64)
    source = Entropy.scripted_for_tests([coin & ONES for coin in coins])
    kept = stairs.table._toss(np.array(values), np.array(blocks), words, source).tolist()
    readings = Readings(settled)
    assert readings.unused > 0
    for value, index, coin, accepted in zip(values, blocks, coins, kept, strict=True):
        exponent = (value**2 - stairs.nearest[index] ** 2) / (2 * sigma * sigma)
        assert is_below_exp(exponent, *readings.of(coin, bits, partial(is_decided, exponent))) is accepted
    assert not readings.unused


@pytest.mark.parametrize("sigma", [Fraction("3.7"), Fraction(1000)], ids=label)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_word_on_a_block_end_is_extended_until_it_leaves_it(
    sigma: Fraction, depth: int, settled: list[Watched]
) -> None:
    stairs = Staircase(sigma)
    size = _FEW + 1
    index = stairs.reach + int(sigma) // stairs.width
    bits = _CELL_BITS + 64 * (1 + depth)
    on_it = stairs.boundary(index, bits)
    cell = on_it >> (bits - _CELL_BITS)
    extension = [on_it >> 64 * (depth - i) & ONES for i in range(depth + 1)]
    place = 0 if stairs.width == 1 else 3
    words = [cell << (64 - _CELL_BITS) | place, *[stairs.fast_word(0)] * (size - 1), *extension]
    for last, block in ((0, index), (ONES, index + 1)):
        settled.clear()
        # A coin of zeros accepts whatever the block; the narrow table has no coins.
        coin = [0] if stairs.width > 1 else []
        draws = discrete_gaussian(sigma, size, entropy=Entropy.scripted_for_tests([*words, last, *coin]))
        assert draws[0] == stairs.blocks[block] * stairs.width + place
        assert not draws[1:].any()
        assert settled[0].words_read == depth + 1


@pytest.mark.parametrize("sigma", WIDE[1:], ids=label)
@pytest.mark.parametrize("kept", [True, False])
def test_a_coin_on_its_odds_is_extended(sigma: Fraction, kept: bool, settled: list[Watched]) -> None:
    stairs = Staircase(sigma)
    size = _FEW + 1
    block = 2 * int(sigma) // stairs.width
    place = stairs.width - 1
    value = block * stairs.width + place
    exponent = (value**2 - (block * stairs.width) ** 2) / (2 * sigma * sigma)
    with ctx.workprec(PRECISION):
        on_it = int(((-ball(exponent)).exp() * arb(fmpz(1) << (_COIN_BITS + 64))).mid().floor().fmpz())
    apart = stairs.table._bits > 64 - _CELL_BITS - _COIN_BITS
    coin = (on_it >> 64) << (64 - _CELL_BITS - _COIN_BITS)
    words = [stairs.fast_word(block) | coin | (0 if apart else place), *[stairs.fast_word(0)] * (size - 1)]
    places = [place, *[0] * (size - 1)] if apart else []
    redrawn = [stairs.fast_word(1), *([5] if apart else [])]
    script = [*words, *places, on_it & ONES, 0 if kept else ONES, *([] if kept else redrawn)]
    draws = discrete_gaussian(sigma, size, entropy=Entropy.scripted_for_tests(script))
    assert draws[0] == (value if kept else stairs.width + (5 if apart else 0))
    assert not draws[1:].any()
    assert [uniform.words_read for uniform in settled] == [1]


@pytest.mark.parametrize("sigma", [Fraction("0.5"), Fraction(1000), Fraction(2**60)], ids=label)
@pytest.mark.parametrize("negative", [0, 1])
def test_the_last_place_of_all_is_in_the_tail(sigma: Fraction, negative: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stairs = Staircase(sigma)
    size = _FEW + 1
    start = stairs.reach * stairs.width
    apart = stairs.table._bits > 64 - _CELL_BITS - _COIN_BITS
    words = [ONES, *[stairs.fast_word(0)] * (size - 1), *([0] * size if apart else []), ONES]
    words += [0] if stairs.width > 1 else []
    asked: list[Fraction] = []
    beyond = iter([5, 0])
    monkeypatch.setattr(reference, "geometric", lambda scale, source: asked.append(scale) or next(beyond))
    monkeypatch.setattr(reference, "bernoulli_exp", lambda x, source: asked.append(x) or True)
    draws = discrete_gaussian(sigma, size, entropy=Entropy.scripted_for_tests([*words, negative << 63]))
    expected = min(start + 5, LARGEST)
    assert draws[0] == (-expected if negative else expected)
    assert asked == [sigma * sigma / start, 25 / (2 * sigma * sigma)]


def test_the_left_end_of_the_tail_belongs_to_the_last_block(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _Table(Fraction(1000))
    monkeypatch.setattr(reference, "geometric", lambda scale, source: 0)
    monkeypatch.setattr(reference, "bernoulli_exp", lambda x, source: True)
    assert table._draw_tail(Entropy.scripted_for_tests([1 << 63])) == (-table._tail, False)
    assert table._draw_tail(Entropy.scripted_for_tests([0])) == (table._tail, True)


def proposals(sigma: Fraction, words: list[int]) -> list[int]:
    """What discrete Laplace noise of scale max(1, ⌊σ⌋) makes of these words."""
    scale = max(1, int(sigma))
    return discrete_laplace(scale, len(words), entropy=Entropy.scripted_for_tests(words)).tolist()


def excess(sigma: Fraction, draw: int) -> Fraction:
    """x such that a Laplace draw is accepted with probability exp(−x)."""
    scale = max(1, int(sigma))
    return (abs(draw) - sigma * sigma / scale) ** 2 / (2 * sigma * sigma)


@pytest.mark.parametrize("sigma", [*NARROW[1:], WIDE[1], Fraction(2**29)], ids=label)
def test_a_few_draws_are_the_first_accepted_of_their_tries(sigma: Fraction, settled: list[Watched]) -> None:
    size = 100
    tries = 2 * size + 16
    generator = np.random.default_rng(9)
    words = generator.integers(1 << 50, LARGEST, size=tries).tolist()
    tried = proposals(sigma, words)
    settled.clear()
    coins = generator.integers(0, 1 << 64, size=tries, dtype=np.uint64).tolist()
    for place in range(0, tries, 3):
        with ctx.workprec(PRECISION):
            odds = (-ball(excess(sigma, tried[place]))).exp() * arb(fmpz(1) << 64)
            coins[place] = min(int(odds.mid().floor().fmpz()) + place % 5 - 2, ONES)
        coins[place] = max(coins[place], 0)
    draws = discrete_gaussian(sigma, size, entropy=Entropy.scripted_for_tests([*words, *coins])).tolist()
    readings = Readings(uniform for uniform in settled if uniform.first[1] == 64)
    assert readings.unused > 0
    accepted = []
    for draw, coin in zip(tried, coins, strict=True):
        exponent = excess(sigma, draw)
        heads = is_below_exp(exponent, *readings.of(coin, 64, partial(is_decided, exponent)))
        assert heads is not None
        accepted += [draw] if heads else []
    assert not readings.unused
    kept = min(len(accepted), size)
    assert draws[:kept] == accepted[:kept]


@pytest.mark.parametrize(("further", "accepted"), [(0, True), (1 << 60, True), (1 << 61, False)])
def test_a_try_at_the_end_of_int64_is_continued_beyond_it(
    further: int, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sigma, tries = Fraction(2**60), 18
    monkeypatch.setattr(reference, "geometric", lambda scale, source: further)
    # Of eighteen tries the first is 89 scales out; the second is the plain 2^19·ln 2 high digits of half a uniform.
    plain = [1 << 62] * (tries - 1)
    laplace_words = [0, *plain, 0, 1 << 62, *[0] * tries, *[0] * tries]
    chance = is_below_exp(excess(sigma, LARGEST + further), 1 << 10, 64)
    assert chance == accepted
    script = [*laplace_words, 1 << 10, *[0] * (tries - 1)]
    draw = int(discrete_gaussian(sigma, entropy=Entropy.scripted_for_tests(script)))
    assert (draw == LARGEST) == accepted
    assert draw == LARGEST or draw < 2**61


def test_the_work_of_a_few_draws_does_not_grow_with_them() -> None:
    # A batch of tries takes a set number of words; another batch is needed about once in 10^7 times.
    near, far = [], []
    for seed in range(300):
        source = Counted(seed=seed)
        draw = abs(int(discrete_gaussian(1000, entropy=source)))
        (far if draw > 1000 else near).append(source.handed_out)
    assert set(near) == set(far) == {36}
