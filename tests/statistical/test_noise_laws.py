"""Each sampler has the law it states, at scales from a millionth of a step to 2⁶⁰; wrong laws are seen.

The test and its false alarms (10⁻⁹ each) are explained in `tests.noise.laws`. A wrong law is planted only where the
statistic is expected at least six standard deviations above the limit, so that its power exceeds 1 − 10⁻⁸.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from tests.noise import laws
from tests.noise.laws import LARGEST, Law, table_law

from discreet.noise import (
    Entropy,
    bernoulli,
    bernoulli_exp,
    categorical,
    discrete_gaussian,
    discrete_laplace,
    discrete_staircase,
    geometric,
    gibbs,
    heads,
    permutation,
    reference,
    uniform,
)
from discreet.noise import gaussian as gaussian_module

SIZE = 1_000_000
SCALES = [
    Fraction(scale)
    for scale in ("1e-6", "0.05", "0.5", "1", "3.7", "63.9", "64", "127", "128", "1000", f"{3 * 2**20 + 1}/3", "1e9")
] + [Fraction(2) ** power for power in (30, 31, 45, 50, 57, 60)]
CERTAIN = 6
"""Standard deviations between the limit and what a planted law is expected to show."""


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: f"{float(scale):.4g}")
def test_discrete_laplace_has_its_law(scale: Fraction) -> None:
    assert laws.laplace(scale).accepts(discrete_laplace(scale, SIZE, entropy=Entropy.for_tests(1)))


@pytest.mark.parametrize("scale", SCALES, ids=lambda scale: f"{float(scale):.4g}")
def test_geometric_has_its_law(scale: Fraction) -> None:
    assert laws.geometric(scale).accepts(geometric(scale, SIZE, entropy=Entropy.for_tests(2)))


@pytest.mark.parametrize("sigma", SCALES, ids=lambda sigma: f"{float(sigma):.4g}")
def test_discrete_gaussian_has_its_law(sigma: Fraction) -> None:
    assert laws.gaussian(sigma).accepts(discrete_gaussian(sigma, SIZE, entropy=Entropy.for_tests(3)))


@pytest.mark.parametrize("sigma", SCALES[1::2], ids=lambda sigma: f"{float(sigma):.4g}")
def test_a_few_gaussians_at_a_time_have_the_same_law(sigma: Fraction) -> None:
    source = Entropy.for_tests(4)
    draws = np.concatenate([discrete_gaussian(sigma, 256, entropy=source) for _ in range(400)])
    assert laws.gaussian(sigma).accepts(draws)


@pytest.mark.parametrize("off", [Fraction(97, 100), Fraction(103, 100)], ids=["3% less", "3% more"])
@pytest.mark.parametrize("scale", [s for s in SCALES if Fraction(1, 2) <= s < 2**60], ids=lambda s: f"{float(s):.4g}")
@pytest.mark.parametrize(
    ("law", "sample"),
    [(laws.laplace, discrete_laplace), (laws.gaussian, discrete_gaussian)],
    ids=["laplace", "gaussian"],
)
def test_a_scale_three_per_cent_off_is_seen(
    law: Callable[..., Law], sample: Callable[..., np.ndarray], scale: Fraction, off: Fraction
) -> None:
    honest = law(scale)
    assert laws.power_margin(law(scale * off, honest.cuts), honest, SIZE) > CERTAIN
    assert not honest.accepts(sample(scale * off, SIZE, entropy=Entropy.for_tests(5)))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(37, 10), Fraction(64), Fraction(500)])
def test_a_zero_counted_for_both_signs_is_seen(scale: Fraction) -> None:
    honest = laws.laplace(scale)
    assert laws.power_margin(laws.two_zeros(scale, honest.cuts), honest, SIZE) > CERTAIN
    source = Entropy.for_tests(6)
    signs = 1 - 2 * uniform(2, SIZE, entropy=source)
    assert not honest.accepts(signs * geometric(scale, SIZE, entropy=source))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(37, 10), Fraction(30)])
@pytest.mark.parametrize(
    ("law", "sample"),
    [(laws.laplace, discrete_laplace), (laws.gaussian, discrete_gaussian)],
    ids=["laplace", "gaussian"],
)
def test_a_shift_by_one_is_seen(law: Callable[..., Law], sample: Callable[..., np.ndarray], scale: Fraction) -> None:
    honest = law(scale)
    moved = Law(honest.cuts, law(scale, [cut - 1 for cut in honest.cuts]).odds)
    assert laws.power_margin(moved, honest, SIZE) > CERTAIN
    assert not honest.accepts(sample(scale, SIZE, entropy=Entropy.for_tests(7)) + 1)


@pytest.mark.slow
def test_blocks_without_their_acceptance_coin_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without the coin every point of a block is as likely as its largest: the law widens by less than one per cent.
    sigma, cut, parts, size = 2048, 2253, 8, 3_000_000
    near = laws.gaussian(Fraction(sigma), [-cut - 1, cut]).odds[1]
    table = gaussian_module._table(Fraction(sigma))
    blocks = np.arange(-table._reach, table._reach)
    width = 1 << table._bits
    heights = np.exp(-(np.where(blocks >= 0, blocks * width, (-blocks - 1.0) * width + 1) ** 2) / (2 * sigma**2))
    points = np.abs(blocks[:, None] * width + np.arange(width))
    wrong = float((heights[:, None] * (points <= cut)).sum() / (heights.sum() * width))
    honest, planted = (Law((0,), (odds, 1 - odds)) for odds in (near, wrong))
    assert laws.power_margin(planted, honest, parts * size) > CERTAIN

    def seen() -> float:
        draws = (discrete_gaussian(sigma, size, entropy=Entropy.for_tests(seed)) for seed in range(parts))
        inside = sum(int(np.count_nonzero(np.abs(part) <= cut)) for part in draws)
        return laws.distance(np.array([inside, parts * size - inside]), honest.odds)

    assert seen() <= laws.limit(2)
    monkeypatch.setattr(gaussian_module._Table, "_toss", lambda self, values, *rest: np.ones(values.size, dtype=bool))
    assert seen() > laws.limit(2)


STAIRCASES = [(Fraction(1), 10, 4), (Fraction(1), 1, 1), (Fraction(1, 10), 3, 3), (Fraction(5), 20, 1)]


@pytest.mark.parametrize(("epsilon", "sensitivity", "inner"), STAIRCASES)
def test_discrete_staircase_has_its_law(epsilon: Fraction, sensitivity: int, inner: int) -> None:
    law = laws.staircase(epsilon, sensitivity, inner)
    assert law.accepts(discrete_staircase(epsilon, sensitivity, inner, SIZE, entropy=Entropy.for_tests(9)))
    wrong = discrete_staircase(epsilon * Fraction(103, 100), sensitivity, inner, SIZE, entropy=Entropy.for_tests(10))
    assert not law.accepts(wrong)


def test_a_staircase_of_large_epsilon_is_drawn_without_endless_rejection() -> None:
    draws = discrete_staircase(40, 10**6, 1, 100_000, entropy=Entropy.for_tests(11))
    assert table_law({0: 1.0}).accepts(draws)


@pytest.mark.parametrize("x", [Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(5), Fraction(14)])
def test_exponential_coins_have_their_odds(x: Fraction) -> None:
    odds = float(np.exp(-float(x)))
    law = table_law({0: 1 - odds, 1: odds})
    assert law.accepts(bernoulli_exp(x, SIZE, entropy=Entropy.for_tests(12)).astype(np.int64))
    if Fraction(1, 4) < x < 10:
        wrong = bernoulli_exp(x * Fraction(103, 100), SIZE, entropy=Entropy.for_tests(13))
        assert not law.accepts(wrong.astype(np.int64))


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 2), Fraction(999, 1000), Fraction(1, 10**5)])
def test_rational_coins_have_their_odds(p: Fraction) -> None:
    law = table_law({0: float(1 - p), 1: float(p)})
    assert law.accepts(bernoulli(p, SIZE, entropy=Entropy.for_tests(14)).astype(np.int64))


@pytest.mark.parametrize("below", [2, 3, 6, 257, 1000])
def test_uniform_is_uniform(below: int) -> None:
    law = table_law(dict.fromkeys(range(below), 1 / below))
    assert law.accepts(uniform(below, SIZE, entropy=Entropy.for_tests(15)))


@pytest.mark.parametrize("below", [3, 6, 257, 1000])
def test_a_remainder_in_place_of_rejection_is_seen(below: int) -> None:
    words = uniform(1 << below.bit_length(), SIZE, entropy=Entropy.for_tests(16))
    assert not table_law(dict.fromkeys(range(below), 1 / below)).accepts(words % below)


def test_weighted_choices_have_their_weights() -> None:
    law = table_law({0: 0.1, 2: 0.6, 3: 0.3})
    assert law.accepts(categorical([1, 0, 6, 3], SIZE, entropy=Entropy.for_tests(17)))
    huge = [10**30, 0, 6 * 10**30, 3 * 10**30]
    assert law.accepts(categorical(huge, 50_000, entropy=Entropy.for_tests(18)))
    assert not law.accepts(categorical([1, 0, 60, 30], SIZE, entropy=Entropy.for_tests(19)))


def test_gibbs_has_its_law() -> None:
    scores = np.array([7, -3, 7, 5, 0, 6])
    weights = np.exp((scores - 7) / 3)
    law = table_law(dict(enumerate(weights / weights.sum())))
    assert law.accepts(gibbs(scores, Fraction(1, 3), SIZE, entropy=Entropy.for_tests(20)))
    assert not law.accepts(gibbs(scores, Fraction(103, 300), SIZE, entropy=Entropy.for_tests(21)))


def test_heads_have_their_odds() -> None:
    scores = np.repeat(np.array([0, 3, 10]), 200_000)
    coins = heads(scores, Fraction(1, 5), entropy=Entropy.for_tests(22)).reshape(3, -1)
    for gap, row in zip((10, 7), coins, strict=False):
        odds = float(np.exp(-gap / 5))
        assert table_law({0: 1 - odds, 1: odds}).accepts(row.astype(np.int64))
    assert coins[2].all()


def test_permutations_are_equally_likely() -> None:
    source = Entropy.for_tests(23)
    places = {order: place for place, order in enumerate(permutations(range(4)))}
    drawn = np.array([places[tuple(permutation(4, entropy=source).tolist())] for _ in range(20_000)])
    law = table_law(dict.fromkeys(range(24), 1 / 24))
    assert law.accepts(drawn)
    assert not law.accepts(np.where(drawn == 0, 1, drawn))


REFERENCES: list[tuple[str, Callable[[Entropy], int], Law]] = [
    ("laplace 3.7", lambda e: reference.discrete_laplace(Fraction("3.7"), e), laws.laplace(Fraction("3.7"))),
    ("laplace 1/20", lambda e: reference.discrete_laplace(Fraction("0.05"), e), laws.laplace(Fraction("0.05"))),
    ("laplace 2^40", lambda e: reference.discrete_laplace(Fraction(2**40), e), laws.laplace(Fraction(2**40))),
    ("geometric 9/2", lambda e: reference.geometric(Fraction(9, 2), e), laws.geometric(Fraction(9, 2))),
    ("gaussian 1/2", lambda e: reference.discrete_gaussian(Fraction(1, 2), e), laws.gaussian(Fraction(1, 2))),
    ("gaussian 64", lambda e: reference.discrete_gaussian(Fraction(64), e), laws.gaussian(Fraction(64))),
    ("staircase", lambda e: reference.discrete_staircase(Fraction(1), 5, 2, e), laws.staircase(Fraction(1), 5, 2)),
    ("categorical", lambda e: reference.categorical([1, 0, 6, 3], e), table_law({0: 0.1, 2: 0.6, 3: 0.3})),
    (
        "gibbs",
        lambda e: reference.gibbs([Fraction(0), Fraction(1)], e),
        table_law({0: 1 / (1 + np.e), 1: np.e / (1 + np.e)}),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("sample", "law"), [r[1:] for r in REFERENCES], ids=[r[0] for r in REFERENCES])
def test_the_reference_has_the_law_the_fast_samplers_have(sample: Callable[[Entropy], int], law: Law) -> None:
    source = Entropy.for_tests(24)
    draws = np.array([sample(source) for _ in range(5_000)])
    assert law.accepts(draws)
    assert not law.accepts(draws + np.maximum(1, np.abs(draws) // 4)), "a quarter too much to the right is seen"


@pytest.mark.parametrize("sigma", [Fraction(1, 2), Fraction(100), Fraction(1000)])
def test_the_tail_of_the_gaussian_table_has_its_law(sigma: Fraction) -> None:
    table = gaussian_module._table(sigma)
    source = Entropy.for_tests(25)
    tries = [table._draw_tail(source) for _ in range(6_000)]
    draws = np.array([value for value, kept in tries if kept])
    assert draws.size > 1000
    start = table._tail
    steps = sorted({start + int(step * float(sigma)) for step in (0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.8)})
    reach = range(start, start + 4 * int(sigma) + 8)
    weights = np.array([float(np.exp(float((start**2 - x**2) / (2 * sigma**2)))) for x in reach])
    # −tail belongs to the last block on the left, so the left tail starts one farther out.
    right = np.bincount(np.searchsorted(steps, list(reach)), weights=weights, minlength=len(steps) + 1)
    left = np.bincount(np.searchsorted(steps, list(reach)[1:]), weights=weights[1:], minlength=len(steps) + 1)
    odds = np.concatenate([left, right]) / (left.sum() + right.sum())
    places = np.searchsorted(steps, np.abs(draws)) + (draws > 0) * (len(steps) + 1)
    assert laws.distance(np.bincount(places, minlength=odds.size), odds) <= laws.limit(odds.size)


def test_the_ends_of_int64_take_what_lies_beyond() -> None:
    draws = discrete_laplace(2**60, SIZE, entropy=Entropy.for_tests(26))
    odds = float(np.exp(-8.0)) / 2
    ends = np.array([np.count_nonzero(draws == -LARGEST), np.count_nonzero(draws == LARGEST)])
    counts = np.array([*ends, SIZE - ends.sum()])
    assert laws.distance(counts, [odds, odds, 1 - 2 * odds]) <= laws.limit(3)
    assert np.abs(draws).max() == LARGEST
