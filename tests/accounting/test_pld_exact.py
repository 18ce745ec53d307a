"""The PLD accountant against laws small enough to enumerate, composed exactly.

Every pair here is a list of (P, Q) probabilities in 256-bit ball arithmetic, and composition is the product of lists:
the reference shares nothing with the code under test. `shortfalls` names the cases answered below the truth;
there are none for the honest accountant, and planted optimism must make some.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from tests.soak import third

from discreet.accounting.pld import distribution as pld
from discreet.accounting.pld import laws as pld_laws
from discreet.accounting.pld import queries as pld_query
from discreet.accounting.pld.grid import Array, Cells, Pmf
from discreet.accounting.pld.laws import PoissonAdd, PoissonRemove
from discreet.core.errors import NotAccountable
from discreet.core.events import (
    Approximate,
    BoundedRange,
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
    Repeated,
)

Pair = list[tuple[arb, arb]]

DELTAS = ("0.5", "0.05", "1e-3", "1e-6", "1e-12", "1e-30")
EPSILONS = ("0", "0.1", "1", "3")
CLOSE = 1e-4
"""How far above the truth ε may be, as a share of it; δ may be ten times that."""


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    with ctx.workprec(256):
        yield


def number(value: Fraction) -> arb:
    return arb(value.numerator) / value.denominator


def response(epsilon: Fraction, delta: Fraction = Fraction(0)) -> Pair:
    odds, lost = number(epsilon).exp(), number(delta)
    kept = (1 - lost) / (1 + odds)
    pair = [(kept * odds, kept), (kept, kept * odds)]
    return [*pair, (lost, arb(0)), (arb(0), lost)] if delta else pair


def laplace(scale: Fraction, shift: int) -> Pair:
    p = (-1 / number(scale)).exp()
    inner = [((1 - p) / (1 + p) * p**k, (1 - p) / (1 + p) * p ** (shift - k)) for k in range(1, shift)]
    return [(1 / (1 + p), p**shift / (1 + p)), *inner, (p**shift / (1 + p), 1 / (1 + p))]


def gaussian(variance: Fraction, shift: int) -> Pair:
    reach = math.ceil(13 * math.sqrt(variance)) + shift

    def weight(k: int) -> arb:
        return (-number(k * k / (2 * variance))).exp()

    total = sum((weight(k) for k in range(-2 * reach, 2 * reach + 1)), arb(0))
    return [(weight(k) / total, weight(k - shift) / total) for k in range(-reach, reach + shift + 1)]


def sampled(rate: Fraction, pair: Pair) -> Pair:
    share = number(rate)
    return [((1 - share) * q + share * p, q) for p, q in pair]


def mirrored(rate: Fraction, pair: Pair) -> Pair:
    """The pair of a fixed-size sample: each output of loss above 0 also with P and Q exchanged, and the rest alike."""
    upper = [(p, q) for p, q in sampled(rate, pair) if p > q]
    rest = 1 - sum((p + q for p, q in upper), arb(0))
    return [*upper, *((q, p) for p, q in upper), (rest, rest)]


def product(*pairs: Pair) -> Pair:
    return [
        (math.prod((p for p, _ in combo), start=arb(1)), math.prod((q for _, q in combo), start=arb(1)))
        for combo in itertools.product(*pairs)
    ]


def power(pair: Pair, count: int) -> Pair:
    """`count` copies, equal outputs up to order together."""
    found = []
    for combo in itertools.combinations_with_replacement(range(len(pair)), count):
        ways = math.factorial(count)
        for _, group in itertools.groupby(combo):
            ways //= math.factorial(len(list(group)))
        ps, qs = zip(*(pair[i] for i in combo), strict=True)
        found.append((ways * math.prod(ps, start=arb(1)), ways * math.prod(qs, start=arb(1))))
    return found


def delta_of(pair: Pair, epsilon: Fraction) -> float:
    factor = number(epsilon).exp()
    gains = ((p - factor * q, q - factor * p) for p, q in pair)
    sides = zip(*((max(float(a), 0.0), max(float(b), 0.0)) for a, b in gains), strict=True)
    return max(math.fsum(side) for side in sides)


def epsilon_of(pair: Pair, delta: Fraction) -> float:
    """The least ε ≥ 0 with δ(ε) ≤ delta in both directions, ∞ if there is none."""
    return max(_one_way([*pair], delta), _one_way([(q, p) for p, q in pair], delta))


def _one_way(pair: Pair, delta: Fraction) -> float:
    allowed = number(delta)
    above_p, above_q = arb(0), arb(0)
    low = 0.0
    for p, q in sorted(pair, key=lambda both: float(both[0] / both[1]) if both[1] != 0 else math.inf, reverse=True):
        if p == 0:
            continue
        above_p, above_q = above_p + p, above_q + q
        if above_p > allowed:
            if above_q == 0:
                return math.inf
            # δ(ε) is the largest of P(top) − e^ε·Q(top) over all sets of the outputs with the largest losses.
            low = max(low, float(((above_p - allowed) / above_q).log()))
    return low


@dataclass(frozen=True)
class Case:
    name: str
    event: Event
    pair: Callable[[], Pair]


F = Fraction
SMALL = [
    Case("coins", Repeated(Pure(F(1, 10)), 20), lambda: power(response(F(1, 10)), 20)),
    Case(
        "different coins",
        Composed((Pure(F(1)), Pure(F(1, 3)), Pure(F(314159, 10**6)))),
        lambda: product(response(F(1)), response(F(1, 3)), response(F(314159, 10**6))),
    ),
    Case(
        "approximate",
        Repeated(Approximate(F(1, 2), F(1, 10**5)), 6),
        lambda: power(response(F(1, 2), F(1, 10**5)), 6),
    ),
    Case("laplace", Repeated(Laplace(F(5, 2), 3), 5), lambda: power(laplace(F(5, 2), 3), 5)),
    Case("fine laplace", Repeated(Laplace(F(100), 40), 2), lambda: power(laplace(F(100), 40), 2)),
    Case("gaussian", Gaussian(F(10), F(1)), lambda: gaussian(F(10), 1)),
    Case("gaussians", Repeated(Gaussian(F(3, 2), F(4)), 2), lambda: power(gaussian(F(3, 2), 2), 2)),
    Case("two moves", Gaussian(F(3), F(2), 5), lambda: power(gaussian(F(3), 1), 2)),
    Case(
        "sampled coins",
        Repeated(PoissonSampled(F(1, 10), Pure(F(2))), 6),
        lambda: power(sampled(F(1, 10), response(F(2))), 6),
    ),
    Case(
        "sampled laplace",
        Repeated(PoissonSampled(F(3, 10), Laplace(F(5, 2), 3)), 3),
        lambda: power(sampled(F(3, 10), laplace(F(5, 2), 3)), 3),
    ),
    Case(
        "sampled gaussian",
        Repeated(PoissonSampled(F(1, 20), Gaussian(F(4), F(4))), 2),
        lambda: power(sampled(F(1, 20), gaussian(F(4), 2)), 2),
    ),
    Case(
        "sampled approximate",
        Repeated(PoissonSampled(F(1, 4), Approximate(F(1), F(1, 1000))), 2),
        lambda: power(sampled(F(1, 4), response(F(1), F(1, 1000))), 2),
    ),
    Case(
        "sampled together",
        Repeated(PoissonSampled(F(1, 4), Composed((Pure(F(1)), Laplace(F(5, 2), 3)))), 2),
        lambda: power(sampled(F(1, 4), product(response(F(1)), laplace(F(5, 2), 3))), 2),
    ),
    Case(
        "sampled twice",
        PoissonSampled(F(1, 4), PoissonSampled(F(1, 3), Laplace(F(1), 4))),
        lambda: sampled(F(1, 4), sampled(F(1, 3), laplace(F(1), 4))),
    ),
    Case(
        "fixed sample",
        Repeated(FixedSizeSampled(2, 7, Laplace(F(5, 2), 3)), 2),
        lambda: power(mirrored(F(2, 7), laplace(F(5, 2), 3)), 2),
    ),
    Case(
        "fixed sample of approximate",
        FixedSizeSampled(1, 2, Approximate(F(1), F(1, 10**7))),
        lambda: mirrored(F(1, 2), response(F(1), F(1, 10**7))),
    ),
    Case(
        "mixture",
        Composed((PoissonSampled(F(1, 4), Pure(F(1))), Laplace(F(7), 5), Approximate(F(1, 5), F(1, 10**7)))),
        lambda: product(sampled(F(1, 4), response(F(1))), laplace(F(7), 5), response(F(1, 5), F(1, 10**7))),
    ),
]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_answers_are_between_the_truth_and_a_little_above(case: Case) -> None:
    pair, loss = case.pair(), pld.privacy_loss(case.event)
    for text in DELTAS:
        truth = epsilon_of(pair, Fraction(text))
        if math.isinf(truth):
            with pytest.raises(NotAccountable, match="δ"):
                loss.epsilon(text)
            continue
        # The truth is rounded to a double, the answer is not below it before that.
        assert truth * (1 - 1e-15) <= loss.epsilon(text) <= truth * (1 + CLOSE), text
    for text in EPSILONS:
        truth = delta_of(pair, Fraction(text))
        assert truth * (1 - 1e-14) <= loss.delta(text) <= truth * (1 + 10 * CLOSE), text


def random_part(generator: np.random.Generator, fixed: bool) -> tuple[Event, Pair]:
    """A leaf, sometimes sampled, repeated up to four times."""
    size = Fraction(int(1 + 60 * 10 ** generator.uniform(-2, 0.6)), 60)
    shift = int(generator.integers(1, 5))
    lost = Fraction(1, 10 ** int(generator.integers(2, 10)))
    event, pair = [
        lambda: (Pure(size), response(size)),
        lambda: (Laplace(shift / size, shift), laplace(shift / size, shift)),
        lambda: (Gaussian(1 / size, Fraction(1)), gaussian(1 / size, 1)),
        lambda: (Approximate(size, lost), response(size, lost)),
        lambda: (Composed((Pure(size), Laplace(3 * size, 2))), product(response(size), laplace(3 * size, 2))),
    ][generator.integers(5)]()
    if generator.random() < 0.6:
        rate = [Fraction(1, 100), Fraction(1, 7), Fraction(1, 2), Fraction(9, 10)][generator.integers(4)]
        if fixed:
            event, pair = FixedSizeSampled(rate.numerator, rate.denominator, event), mirrored(rate, pair)
        else:
            event, pair = PoissonSampled(rate, event), sampled(rate, pair)
    count = int(generator.integers(1, 5))
    if math.comb(count + len(pair) - 1, count) > 300:
        count = 1
    return Repeated(event, count), power(pair, count)


@pytest.mark.parametrize("seed", range(3))
def test_random_compositions(seed: int) -> None:
    """Random events of all kinds, several questions to each so that earlier work is reused."""
    generator = np.random.default_rng(seed)
    for _ in range(third(12)):
        fixed = bool(generator.random() < 0.5)
        events, pair = zip(*(random_part(generator, fixed) for _ in range(generator.integers(1, 3))), strict=True)
        if math.prod(map(len, pair)) > 4000:
            continue
        loss, whole = pld.privacy_loss(Composed(events)), product(*pair)
        for text in generator.choice(["0.5", "0.1", "1e-2", "1e-4", "1e-6", "1e-9", "1e-15"], 3, replace=False):
            truth = epsilon_of(whole, Fraction(str(text)))
            try:
                found = float(loss.epsilon(str(text)))
            except NotAccountable:
                # Right where δ is below the mass at ∞, or not above it by more than is rounded up.
                assert delta_of(whole, Fraction(1000)) > Fraction(str(text)) * Fraction(1 - 1e-6)
                continue
            assert truth * (1 - 1e-14) <= found <= truth * (1 + 4 * CLOSE) + 1e-9
        for text in generator.choice(["0", "0.01", "0.3", "1", "2.5"], 2, replace=False):
            truth = delta_of(whole, Fraction(str(text)))
            assert truth * (1 - 1e-13) - 1e-60 <= loss.delta(str(text)) <= truth * 1.02 + 1e-30


SMOOTH = "continuous laplace"


def shortfalls(*names: str) -> set[str]:
    """Those of the named cases, or of all, in which an answer is below the truth."""
    found = set()
    for case in SMALL:
        if names and case.name not in names:
            continue
        pair = case.pair()
        for text in ("0.05", "1e-6"):
            truth = epsilon_of(pair, Fraction(text))
            if math.isfinite(truth) and pld.epsilon(case.event, text) < truth * (1 - 1e-12):
                found.add(case.name)
    if not names or SMOOTH in names:
        truth = -math.expm1((0.2 - 0.5) / 2)
        if pld.delta(Laplace(Fraction(2**21), 2**20), "0.2") < truth * (1 - 1e-9):
            found.add(SMOOTH)
    return found


def test_nothing_is_below_the_truth() -> None:
    assert shortfalls() == set()


def all_below(edges: Array, interval: float, cells: Cells) -> tuple[Array, Array]:
    return cells.p, np.zeros_like(cells.p)


def rounded_down(positions: Array, masses: Array, interval: float, first: int, size: int) -> Array:
    return np.bincount(np.floor(positions).astype(np.int64) - first, masses, size)


def test_losses_rounded_down_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pld_laws, "scatter", rounded_down)
    names = {"different coins", "sampled laplace", "sampled gaussian"}
    assert shortfalls(*names) == names


def test_cells_rounded_down_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pld_laws, "connect", all_below)
    assert shortfalls(SMOOTH) == {SMOOTH}


def test_one_event_forgotten_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pld_query.convolve
    monkeypatch.setattr(pld_query, "convolve", lambda p, c, h, tilt: honest(p, [n - (n > 1) for n in c], h, tilt))
    names = {"coins", "laplace", "fixed sample"}
    assert shortfalls(*names) == names


def test_one_direction_forgotten_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_way(law: PoissonRemove, interval: Fraction, tail: float, lowest: float = -math.inf) -> Pmf:
        return PoissonAdd(law.rate, law.inner).on_grid(interval, tail, lowest)

    monkeypatch.setattr(PoissonRemove, "on_grid", wrong_way)
    names = {"sampled coins", "sampled laplace"}
    assert shortfalls(*names) == names


def test_a_sampling_rate_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = PoissonRemove.atoms
    monkeypatch.setattr(
        PoissonRemove, "atoms", lambda law, tail: honest(PoissonRemove(law.rate * 0.999, law.inner), tail)
    )
    names = {"sampled coins", "sampled together"}
    assert shortfalls(*names) == names


def centred(epsilon: Fraction, share: Fraction) -> Pair:
    """The worst pair with all losses in [t − ε, t] for t = share·ε."""
    top, move = number(epsilon).exp(), number(epsilon * share).exp()
    high = (top - move) / (top - 1)
    return [(high, high / move), (1 - high, (1 - high) * top / move)]


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1), Fraction(6)])
def test_bounded_range_covers_every_centre(epsilon: Fraction) -> None:
    loss = pld.privacy_loss(BoundedRange(epsilon))
    for level in (Fraction(0), epsilon / 3, epsilon * Fraction(9, 10)):
        worst = (1 + level / epsilon) / 2
        truth = delta_of(centred(epsilon, worst), level)
        others = (delta_of(centred(epsilon, Fraction(k, 16)), level) for k in range(1, 16))
        assert max(others) <= truth <= loss.delta(level) <= truth * (1 + 10 * CLOSE)


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(1), Fraction(6)])
def test_repeated_bounded_range_covers_centres_that_depend_on_the_past(epsilon: Fraction) -> None:
    """The game played out for three steps over many centres is below, and close to, the account."""
    shares = [Fraction(k, 24) for k in range(1, 24)]
    moves = [
        [
            (float(p), float(epsilon * share) - (0 if i == 0 else float(epsilon)))
            for i, (p, _) in enumerate(centred(epsilon, share))
        ]
        for share in shares
    ]

    def game(level: float, steps: int) -> float:
        if steps == 0:
            return max(-math.expm1(level), 0.0)
        return max(math.fsum(p * game(level - loss, steps - 1) for p, loss in pair) for pair in moves)

    for count, close in ((2, 1.01), (3, 1.02)):
        for share in (0.0, 0.7):
            level = share * count * float(epsilon)
            truth = game(level, count)
            assert truth <= pld.delta(Repeated(BoundedRange(epsilon), count), level) <= truth * close


@pytest.mark.parametrize("order", ["abc", "acb", "bca", "aabc", "acab", "caab"])
def test_bounded_range_may_be_mixed_in_any_order(order: str) -> None:
    """Two kinds of range and a coin, each centre chosen in view of all outputs before."""
    ranges = {"a": Fraction(1), "b": Fraction(2, 5)}
    coin = 1 / (1 + math.exp(-0.7))
    parts = tuple(BoundedRange(ranges[kind]) if kind in ranges else Pure(Fraction(7, 10)) for kind in order)

    def pairs(kind: str) -> list[list[tuple[float, float]]]:
        if kind == "c":
            return [[(coin, 0.7), (1 - coin, -0.7)]]
        size = ranges[kind]
        shares = [Fraction(k, 10) for k in range(1, 10)]
        return [[(float(p), float(p.log() - q.log())) for p, q in centred(size, share)] for share in shares]

    def game(level: float, rest: str) -> float:
        if not rest:
            return max(-math.expm1(level), 0.0)
        return max(math.fsum(p * game(level - loss, rest[1:]) for p, loss in pair) for pair in choices[rest[0]])

    choices = {kind: pairs(kind) for kind in set(order)}
    for level in ("0.2", "1.1"):
        assert game(float(level), order) <= pld.delta(Composed(parts), level)


def test_bounded_range_is_half_as_bad_as_pure() -> None:
    """Many steps of range ε approach coins of ε/2, and never pass coins of ε."""
    count, epsilon = 300, Fraction(1, 50)
    found = pld.epsilon(Repeated(BoundedRange(epsilon), count), "1e-6")
    assert pld.epsilon(Repeated(Pure(epsilon / 2), count), "1e-6") <= found
    assert found <= pld.epsilon(Repeated(Pure(epsilon / 2), count), "1e-6") * Fraction(103, 100)


def test_a_real_fixed_size_sample_is_covered() -> None:
    """Sums over 2 of 7 people, one of whom changes by 3, with noise: composed three times, either way round."""
    event = Repeated(FixedSizeSampled(2, 7, Laplace(Fraction(5, 2), 3)), 3)
    pair = power(sampled(Fraction(2, 7), laplace(Fraction(5, 2), 3)), 3)
    for text in EPSILONS:
        assert delta_of(pair, Fraction(text)) <= pld.delta(event, text)


@pytest.mark.parametrize("shifts", [(2, 1), (1, 1, 1, 1, 1), (0, 2)])
def test_small_gaussian_noise_on_several_numbers_is_covered(shifts: tuple[int, ...]) -> None:
    """Too much movement for the exact account; the smoothed one must still be above every possible move."""
    event = Gaussian(Fraction(6), Fraction(5), len(shifts))
    pair = product(*(gaussian(Fraction(6), shift) for shift in shifts[:2] if shift))
    for text in ("0", "1", "2"):
        assert delta_of(pair, Fraction(text)) <= pld.delta(event, text) <= 1
