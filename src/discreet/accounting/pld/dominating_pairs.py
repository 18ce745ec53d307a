"""Events to dominating pairs: for each event the loss laws that are as bad as any neighbour pair it allows.

A pair (P, Q) dominates a computation M when δ_{P,Q}(ε) ≥ δ_{M(D),M(D′)}(ε) for all ε and all neighbours; sums of the
losses of dominating pairs then dominate any adaptive composition (Zhu, Dong, Wang 2022). The unit may be added or
removed, and every step has the same direction, so there are two lists of laws, to be summed separately.

>>> pairs = dominating(Repeated(Composed((Pure(Fraction(1)), Gaussian(Fraction(10**9), Fraction(10**8)))), 3))
>>> [(type(law).__name__, count) for law, count in pairs.remove], pairs.add is pairs.remove
([('Lattice', 3), ('Normal', 1)], True)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.pld.bounded_range_laws import bounded_range
from discreet.accounting.pld.discrete_laws import DiscreteNormal, laplace, randomised_response
from discreet.accounting.pld.laws import Law, Mirrored, Normal, PoissonAdd, PoissonRemove
from discreet.accounting.pld.subsampled_groups import Compound
from discreet.core.errors import NotAccountable
from discreet.core.events import (
    Approximate,
    BoundedRange,
    BoundedRanges,
    Composed,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    Nothing,
    PoissonSampled,
    Pure,
    Repeated,
)
from discreet.core.rounding import exp_up, float_up, log1p_down, log1p_up, shorten_down, sqrt_up

__all__ = ["Pairs", "dominating", "flatten"]

Laws = list[tuple[Law, int]]

EXACT_VARIANCE = 2**18
"""Up to this variance one discrete Gaussian integer is accounted by its own probabilities."""
HOPELESS, FAINT = 10**6, Fraction(1, 10**60)
"""Losses above the first are had in full, or refused; losses and rates below the second are raised to it."""


@dataclass(frozen=True)
class Pairs:
    """Laws with their counts, and what is added to their sum: δ(ε) ≤ catastrophe + (1 − catastrophe)·e^slack·
    δ_sum(ε − 2·slack − certain)."""

    remove: Laws
    add: Laws
    slack: Fraction = Fraction(0)
    catastrophe: Fraction = Fraction(0)
    certain: Fraction = Fraction(0)


def flatten(event: Event, times: int = 1) -> Counter[Event]:
    """The computations that an event is made of, equal ones counted together; those that lose nothing left out."""
    found: Counter[Event] = Counter()
    match event:
        case _ if times == 0:
            pass
        case Composed(events):
            for part in events:
                found.update(flatten(part, times))
        case Repeated(inner, count):
            found.update(flatten(inner, times * count))
        case PoissonSampled(rate=1, event=inner):
            found.update(flatten(inner, times))
        case FixedSizeSampled(sample, population, inner) if sample == population:
            found.update(flatten(inner, times))
        case PoissonSampled(event=inner) | FixedSizeSampled(event=inner) if not flatten(inner):
            pass
        case Nothing() | PoissonSampled(rate=0) | FixedSizeSampled(sample=0) | Laplace(sensitivity=0):
            pass
        case Pure(epsilon=0) | BoundedRange(epsilon=0) | Approximate(epsilon=0, delta=0):
            pass
        case BoundedRanges(squared_epsilon=0) | Gaussian(squared_sensitivity=0):
            pass
        case _:
            found[event] = times
    return found


def dominating(event: Event) -> Pairs:
    """The laws of everything that an event is made of."""
    events = flatten(event)
    if len(_sampling(events)) > 1:
        remedy = "account for Poisson samples (a unit added or removed) and fixed-size ones (a unit replaced) apart"
        raise NotAccountable("PLD", event, remedy)
    safe = Fraction(1)
    certain = Fraction(0)
    rest: Counter[Event] = Counter()
    for part, count in events.items():
        if isinstance(part, Approximate):
            safe *= _power_down(1 - part.delta, count)
            part = Pure(part.epsilon)
        if isinstance(part, Laplace | Pure | BoundedRange) and _top(part) > HOPELESS:
            certain += count * _top(part)
        elif part != Pure(Fraction(0)):
            rest[part] += count
    remove, add, slack = _laws(rest)
    return Pairs(remove, add, slack, 1 - safe, certain)


def _laws(events: Mapping[Event, int]) -> tuple[Laws, Laws, Fraction]:
    """Laws for removal and for addition (the same list where every pair is symmetric), and the sum of all slacks."""
    both: Laws = []
    sampled: list[tuple[Law, Law, int]] = []
    slack = Fraction(0)
    squared_shift = Fraction(0)
    for event, count in events.items():
        if _top(event) > HOPELESS:
            raise NotAccountable("PLD", event, "add more noise: this much protects nobody")
        match event:
            case Laplace(scale, sensitivity) if sensitivity > FAINT * scale:
                both.append((laplace(scale, sensitivity), count))
            case Pure() | Laplace():
                both.append((randomised_response(max(_top(event), FAINT)), count))
            case Approximate(epsilon, delta):
                both.append((randomised_response(max(epsilon, FAINT), float_up(delta)), count))
            case BoundedRange(epsilon):
                both.extend(bounded_range(max(epsilon, FAINT), count))
            case Gaussian():
                exact = _exact_gaussian(event)
                if exact is not None:
                    both.append((exact[0], exact[1] * count))
                else:
                    ratio, each = _smoothed_gaussian(event, count)
                    squared_shift += count * ratio
                    slack += count * each
            case PoissonSampled(rate, inner):
                removing, adding, each = _laws(flatten(inner))
                out, into, share = _single(removing), _single(adding), float_up(max(rate, FAINT))
                if share < 1:
                    out, into = PoissonRemove(share, out), PoissonAdd(share, into)
                sampled.append((out, into, count))
                slack += count * each
            case FixedSizeSampled(sample, population, inner):
                same, _, each = _laws(flatten(inner))
                share = float_up(max(Fraction(sample, population), FAINT))
                both.append((Mirrored(PoissonRemove(share, _single(same))) if share < 1 else _single(same), count))
                slack += count * each
            case BoundedRanges():
                raise NotAccountable("PLD", event, "use zcdp or renyi: how the ranges are spread is not known")
            case _:
                raise NotAccountable("PLD", event, "describe the computation by events of discreet.core.events")
    if squared_shift:
        both.append((Normal(float_up(max(sqrt_up(squared_shift), FAINT))), 1))
    if not sampled:
        return both, both, slack
    remove = both + [(out, count) for out, _, count in sampled]
    return remove, both + [(into, count) for _, into, count in sampled], slack


def _single(laws: Laws) -> Law:
    (law, count), *others = laws
    return law if count == 1 and not others and not isinstance(law, Mirrored) else Compound(laws)


def _exact_gaussian(event: Gaussian) -> tuple[Law, int] | None:
    """A law and how often to count it, where integers that move so little leave one worst move.

    Integers with Σv² ≤ 3 are that many moves of 1; one integer moves by at most the whole part of the sensitivity.
    """
    squared = math.floor(event.squared_sensitivity)
    if event.variance > EXACT_VARIANCE or (event.dimension > 1 and squared > 3):
        return None
    if event.dimension == 1:
        return DiscreteNormal(event.variance, math.isqrt(squared)), 1
    return DiscreteNormal(event.variance, 1), min(squared, event.dimension)


def _smoothed_gaussian(event: Gaussian, count: int) -> tuple[Fraction, Fraction]:
    """μ² of a continuous Gaussian pair, and κ, with δ(ε) ≤ e^κ·δ_μ(ε − 2κ).

    Round a continuous Gaussian of variance σ² − τ² to z with probability φ_τ(z − y)/S(y), S(y) = Σ_z φ_τ(z − y). The
    convolution of the two densities is φ_σ, so the result has the discrete Gaussian's probabilities up to the factors
    S, which Poisson's summation puts in (1 ± η)^d with η = 2·e^{−2π²τ²}/(1 − e^{−6π²τ²}), and its normalisation, which
    is in the same range: up to e^{±κ}, κ = d·ln((1 + η)/(1 − η)). Mixtures, and hence samples, keep such factors.
    """
    squared = math.floor(event.squared_sensitivity)
    chosen = _softening(event, count)
    if chosen is None:
        raise NotAccountable("PLD", event, "use a finer grid: more steps to the noise's standard deviation")
    # 2π² = 19.7392…
    fade = exp_up(-Fraction("19.739") * chosen)
    eta = 2 * fade / (1 - fade**3)
    kappa = event.dimension * (log1p_up(eta) - log1p_down(-eta))
    return squared / (event.variance - chosen), kappa


def _softening(event: Gaussian, count: int) -> Fraction | None:
    """The τ² at which the two prices are together about least: more shift, by τ²/σ² of it, and 2κ for each event."""
    if event.variance > 2**200:
        return Fraction(8)
    variance = float(event.variance)
    rho = count * float(_top(event))
    price = rho + math.sqrt(60 * rho)

    def cost(softening: float) -> float:
        fade = math.exp(-19.739 * softening)
        bulk = 8 * count * event.dimension * fade if fade < 0.2 else math.inf
        return softening / (variance - softening) * price + bulk

    best = max(math.log(160 * count * event.dimension * variance / price) / 19.739, 0.125)
    if best < variance / 16:
        return Fraction(min(math.ceil(best * 8), 64), 8)
    options = [variance * j / 32 for j in range(1, 32)]
    chosen = min(options, key=cost)
    return Fraction(chosen) if math.isfinite(cost(chosen)) else None


def _top(event: Event) -> Fraction:
    """The largest loss of an event, of a Gaussian one the mean loss, and 0 where it is found from its parts."""
    match event:
        case Laplace(scale, sensitivity):
            return sensitivity / scale
        case Gaussian(variance, squared):
            return squared / (2 * variance)
        case Pure(epsilon) | BoundedRange(epsilon) | Approximate(epsilon, _):
            return epsilon
    return Fraction(0)


def _power_down(base: Fraction, exponent: int) -> Fraction:
    """At most base**exponent; exact for an exponent of 1."""
    result = Fraction(1)
    square = base
    while exponent:
        if exponent & 1:
            result = square if result == 1 else shorten_down(result * square, 128)
        exponent >>= 1
        if exponent:
            square = shorten_down(square * square, 128)
    return result


def _sampling(events: Mapping[Event, int]) -> set[type[Event]]:
    """The kinds of sampling in use at any depth."""
    kinds: set[type[Event]] = set()
    for event in events:
        if isinstance(event, PoissonSampled | FixedSizeSampled):
            kinds |= {type(event)} | _sampling(flatten(event.event))
    return kinds
