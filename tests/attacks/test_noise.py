"""Attacks on noise that worked elsewhere: precision, holes, wrapping integers, weak generators, clocks.

The numbers: 1 and 2 are low-order bits and outputs that cannot be reached, 5 is integers at the ends of their type,
29 generators and forks, 30 how long a draw takes.
"""

import os
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpz
from tests.attacks import faults
from tests.attacks.register import attack
from tests.noise import laws
from tests.noise.blocks import PRECISION, Staircase
from tests.noise.formulas import boundary, magnitude
from tests.noise.spies import Counted

from discreet.mechanisms import Laplace
from discreet.noise import Entropy, Grid, discrete_gaussian, discrete_laplace, geometric, reference

LARGEST = (1 << 63) - 1
HELD = (1 << 62) - 1
ONES = (1 << 64) - 1


def lowest_bits(values: np.ndarray) -> np.ndarray:
    """The place of the lowest bit set in each double, which late rounding and float noise betray."""
    mantissas, exponents = np.frexp(values)
    whole = (mantissas * 2.0**53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(values == 0, -2000, exponents - 53 + lowest)


def same_law(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether two samples of one size look alike: each value seen is as likely to come from either."""
    values, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    halves = places[: left.size], places[left.size :]
    counts = [np.bincount(half, minlength=values.size) for half in halves]
    # Given the pooled counts a fair coin decides which side each came from; a union over the values.
    bound = laws.limit(2, laws.ALARM / values.size)
    return all(laws.distance(np.array(pair), [0.5, 0.5]) <= bound for pair in zip(*counts, strict=True))


def on_grid(value: float, seed: int) -> np.ndarray:
    mechanism = Laplace(Fraction(1), Fraction(1), 200_000, real=True, grid=Grid(-20))
    return mechanism.release(np.full(200_000, value), entropy=Entropy.for_tests(seed)).values


@attack(1, finds=[faults.noise_in_doubles])
def test_1_noise_on_zero_and_on_one_reaches_the_same_low_order_bits() -> None:
    zero, one = lowest_bits(on_grid(0.0, 1)), lowest_bits(on_grid(1.0, 2))
    assert set(zero) | set(one) <= set(range(-20, 5)) | {-2000}
    common = (zero >= -20) & (one >= -20)
    assert same_law(zero[common], one[common])


@pytest.mark.parametrize("scale", [2**29, 2**45, 2**57], ids=lambda s: f"2^{s.bit_length() - 1}")
@pytest.mark.parametrize("sample", [discrete_laplace, discrete_gaussian])
def test_1_noise_on_neighbouring_integers_reaches_the_same_residues(
    sample: Callable[..., np.ndarray], scale: int
) -> None:
    draws = [sample(scale, 100_000, entropy=Entropy.for_tests(seed)) for seed in (3, 4)]
    for modulus in (2, 3, 64, 1000):
        left, right = draws[0] % modulus, (draws[1] + 1) % modulus
        assert set(left) == set(right) == set(range(modulus))
        assert same_law(left, right)
    floats = np.rint(np.random.default_rng(5).laplace(scale=2.0**57, size=100_000)).astype(np.int64)
    assert not same_law(floats % 64, (floats + 1) % 64), "doubles this large are multiples of a power of two"


def laplace_words(target: int, scale: Fraction) -> list[int]:
    """Words from which discrete Laplace noise is `target`: the documented method run backwards."""
    low_bits = next(k for k in range(64) if scale <= 2**30 or scale / 2**k <= 2**20)
    high, upper, signed = scale / 2**low_bits, abs(target) >> low_bits, low_bits == 0
    # Between the uniforms where y = upper and y = upper + 1, in as many words as it takes to be sure.
    for depth in range(4):
        bits = 63 + 64 * depth
        ends = [boundary(high, signed, step, bits) for step in (upper, upper + 1)]
        digits = (min(ends[0], (1 << bits) - 1) + ends[1]) // 2
        if magnitude(high, signed, digits, bits) == upper:
            break
    uniform, *extension = [digits >> 64 * (depth - i) & ONES for i in range(depth + 1)]
    sign = int(target < 0)
    if signed:
        return [uniform | sign << 63, *extension]
    return [uniform, *extension, abs(target) & ((1 << low_bits) - 1), sign]


@pytest.mark.parametrize(
    "scale", [Fraction("0.05"), Fraction("0.5"), Fraction("3.7"), Fraction(1000), Fraction(2**45), Fraction(2**57)]
)
@attack(2, finds=[faults.noise_that_is_even], scale=Fraction(2**45))
def test_2_laplace_noise_has_no_holes(scale: Fraction) -> None:
    generator = np.random.default_rng(6)
    reach = min(int(40 * scale) + 3, LARGEST - 2)
    targets = {0, 1, 2, 3, reach, *(int(x) for x in generator.integers(0, reach, size=60))}
    for target in sorted(targets):
        for neighbour in (target, target + 1, -target, -target - 1):
            source = Entropy.scripted_for_tests(laplace_words(neighbour, scale))
            assert int(discrete_laplace(scale, entropy=source)) == neighbour


@pytest.mark.parametrize("sigma", [Fraction("0.5"), Fraction("3.7"), Fraction(127), Fraction(1000), Fraction(2**45)])
def test_2_gaussian_noise_has_no_holes(sigma: Fraction) -> None:
    stairs = Staircase(sigma)
    table, bits = stairs.table, 17 + 64
    generator = np.random.default_rng(7)
    reach = stairs.reach * stairs.width
    for target in {0, -1, reach - 1, -reach, *generator.integers(-reach, reach, size=60).tolist()}:
        block, place = divmod(target, stairs.width)
        index = block + stairs.reach
        with ctx.workprec(PRECISION):
            centre = (stairs.ends[index] + stairs.ends[index + 1]) / 2 * arb(fmpz(1) << bits)
            digits = int(centre.mid().floor().fmpz())
        word = (digits >> 64) << 47 | (place if place < 1 << 38 else 0)
        shared = table._starts[digits >> 64] == np.iinfo(np.int64).min
        out = np.empty(1, dtype=np.int64)
        # The rest of the place, where the cell is shared, and of the coin: zeros accept.
        apart = [place] if table._bits > 64 - 17 - 9 else []
        source = Entropy.scripted_for_tests([word, *apart, *([digits & ONES] if shared else []), 0])
        rejected = table.fill(out, source)
        assert rejected.size == 0
        assert int(out[0]) == target


@pytest.mark.parametrize("sample", [discrete_laplace, geometric, discrete_gaussian])
def test_5_the_widest_noise_never_wraps(sample: Callable[..., np.ndarray]) -> None:
    draws = sample(2**60, 400_000, entropy=Entropy.for_tests(8))
    assert draws.min() >= -LARGEST, "so that −draws and |draws| are right"
    assert np.abs(draws.astype(np.float64)).max() > 2.0**61
    signs = np.sign(draws)
    assert (np.abs(draws) * signs == draws).all()


@pytest.mark.parametrize("value", [0, 5, -5, HELD, -HELD])
@pytest.mark.parametrize("sign", [0, 1])
@attack(5, finds=[faults.sums_that_wrap], value=HELD, sign=0)
def test_5_the_ends_of_int64_never_show_in_numbers_held_within_a_half_of_it(value: int, sign: int) -> None:
    # The same far draw, as returned and as it would be without an end: 89 scales out.
    script = [0, 0, 1 << 62, 0, sign]
    returned = int(discrete_laplace(2**60, entropy=Entropy.scripted_for_tests(script)))
    unbounded = (-1) ** sign * (89 << 60)
    assert abs(returned) == LARGEST
    released = Laplace(2**60, 1).release(value, entropy=Entropy.scripted_for_tests(script)).values
    assert int(released) == max(-HELD, min(HELD, value + unbounded))


@attack(29, finds=[faults.words_of_numpy])
def test_29_seeding_other_generators_does_not_repeat_noise() -> None:
    drawn = []
    for _ in range(2):
        random.seed(0)
        np.random.seed(0)
        drawn += [discrete_laplace(2**50, 5).tolist(), discrete_gaussian(2**50, 5).tolist()]
    flat = [value for values in drawn for value in values]
    assert len(set(flat)) == len(flat)


@attack(29, finds=[faults.forks_not_noticed])
def test_29_a_forked_service_does_not_repeat_its_parents_noise() -> None:
    mechanism = Laplace(2**50, 1)
    mechanism.release(0)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(int(mechanism.release(0).values)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        from_child = int(pipe.read())
    os.waitpid(child, 0)
    assert from_child != int(mechanism.release(0).values)


@attack(29, finds=[faults.seeds_in_earnest])
def test_29_noise_from_a_test_seed_says_so() -> None:
    assert Laplace(10, 1).release(3).private
    assert not Laplace(10, 1).release(3, entropy=Entropy.for_tests(0)).private


def words_by_size(draw: Callable[[Entropy], int], middle: int) -> tuple[set[int], set[int]]:
    """How many words small draws and large draws read."""
    read: tuple[set[int], set[int]] = (set(), set())
    for seed in range(400):
        source = Counted(seed=seed)
        large = abs(draw(source)) > middle
        read[large].add(source.handed_out)
    return read


@pytest.mark.parametrize(
    ("draw", "middle"),
    [
        (lambda source: int(discrete_laplace(1000, entropy=source)), 700),
        (lambda source: int(geometric(1000, entropy=source)), 700),
        (lambda source: int(discrete_gaussian(1000, entropy=source)), 700),
        (lambda source: int(discrete_gaussian("3.7", entropy=source)), 2),
    ],
    ids=["laplace", "geometric", "gaussian", "narrow gaussian"],
)
@attack(30, finds=[faults.draws_by_trial], draw=lambda source: int(discrete_laplace(1000, entropy=source)), middle=700)
def test_30_a_single_draw_does_as_much_work_whatever_it_is(draw: Callable[[Entropy], int], middle: int) -> None:
    small, large = words_by_size(draw, middle)
    assert len(small) == 1
    assert small == large


def test_30_work_that_grows_with_the_noise_is_seen() -> None:
    small, large = words_by_size(lambda source: reference.geometric(Fraction(1000), source), 2500)
    assert max(large) > max(small)
