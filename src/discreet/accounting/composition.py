"""The composition theorems for (ε, δ), by name.

`basic` and `heterogeneous` take any list of losses; `advanced` and `optimal` take k times the same one. `optimal` is
the exact answer for k mechanisms of which nothing but (ε, δ) is known; the others are here to be compared with it.

>>> basic([ApproxDP(1, "1e-6"), PureDP(2)])
ApproxDP(epsilon=3, delta=1e-06)
>>> advanced("0.1", 0, 100, "1e-6").epsilon > heterogeneous([PureDP("0.1")] * 100, "1e-6").epsilon
True
>>> optimal("0.1", 0, 100, "1e-6")
ApproxDP(epsilon=4.77457, delta=1e-06)
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from flint import arb, ctx

from discreet.accounting.enclosures import above, total
from discreet.accounting.zcdp import pure_rho
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, at_least, count, probability
from discreet.core.losses import ApproxDP, PureDP
from discreet.core.rounding import PRECISION, ball, upper

__all__ = ["advanced", "basic", "heterogeneous", "optimal"]

LARGEST_ADVANCED = 1000
"""Above this ε the e^ε of advanced composition is a number that nobody can use."""


def basic(losses: Iterable[PureDP | ApproxDP]) -> ApproxDP:
    """The ε and the δ add up, whatever each mechanism learns from the outputs before it (Dwork, Roth, Theorem B.1)."""
    epsilons, deltas = _columns(losses)
    return ApproxDP(total(epsilons), min(Fraction(1), total(deltas)))


def advanced(epsilon: Exactable, delta: Exactable, k: int, slack: Exactable) -> ApproxDP:
    """√(2k·ln(1/δ′))·ε + kε(e^ε − 1) at kδ + δ′, where δ′ is the `slack` (Dwork, Roth, Theorem 3.20)."""
    e, d, times, spare = _homogeneous(epsilon, delta, k, slack)
    if e > LARGEST_ADVANCED:
        raise InvalidArgument("epsilon", epsilon, f"at most {LARGEST_ADVANCED} for this theorem", "use optimal")
    if spare == 0:
        return ApproxDP(times * e, min(Fraction(1), times * d))
    composed = above(lambda: ball(e) * ((-2 * times * ball(spare).log()).sqrt() + times * ball(e).expm1()))
    return ApproxDP(composed, min(Fraction(1), times * d + spare))


def heterogeneous(losses: Iterable[PureDP | ApproxDP], slack: Exactable) -> ApproxDP:
    """Any (ε_l, δ_l), at 1 − (1 − δ′)·Π(1 − δ_l): the least of three bounds on ε.

    They are Σε_l, and Σε_l·tanh(ε_l/2) + √(2Σε_l²·L) with L = ln(1/δ′) or L = ln(e + √Σε_l²/δ′)
    (Kairouz, Oh, Viswanath 2015, Theorem 3.5).
    """
    epsilons, deltas = _columns(losses)
    spare = probability("slack", slack, zero=True, one=True)
    bounds = [total(epsilons)]
    if spare > 0:
        squares = total(e**2 for e in epsilons)
        drift = total(map(pure_rho, epsilons))
        bounds.append(drift + above(lambda: (-2 * ball(squares) * ball(spare).log()).sqrt()))
        bounds.append(drift + above(lambda: _shrunk_spread(ball(squares), ball(spare))))
    return ApproxDP(min(bounds), _joint(deltas, 1, spare))


def optimal(epsilon: Exactable, delta: Exactable, k: int, slack: Exactable) -> ApproxDP:
    """The least ε for k-fold composition at 1 − (1 − δ)^k·(1 − δ′), where δ′ is the `slack`.

    The worst k mechanisms are k randomized responses: l of the k answers point away from the truth with chance
    P_l = C(k,l)·e^{(k−l)ε}/(1+e^ε)^k on one side and Q_l = C(k,l)·e^{lε}/(1+e^ε)^k on the other, so the composition
    costs (g, Σ_l max(0, P_l − e^g·Q_l)) for every g (Kairouz, Oh, Viswanath 2015, Theorem 3.3). That sum is solved
    for g in k/2 steps of ball arithmetic.
    """
    e, d, times, spare = _homogeneous(epsilon, delta, k, slack)
    return ApproxDP(_least_epsilon(e, times, spare), _joint([d], times, spare))


def _least_epsilon(epsilon: Fraction, k: int, slack: Fraction) -> Fraction:
    """The least g ≥ 0 with Σ_l max(0, P_l − e^g·Q_l) ≤ slack."""
    if epsilon == 0 or k == 0 or slack == 1:
        return Fraction(0)
    small = (epsilon.denominator // epsilon.numerator).bit_length()
    large = (epsilon.numerator * k // epsilon.denominator).bit_length()
    with ctx.workprec(PRECISION + 2 * small + large + k.bit_length()):
        e, spare = ball(epsilon), ball(slack)
        grown, shrunk = e.exp(), (-e).exp()
        p_mass, q_mass = (-k * shrunk.log1p()).exp(), (-k * grown.log1p()).exp()
        p_sum, q_sum = arb(0), arb(0)
        reached = k * epsilon
        threshold = (k * e).exp()
        for i in range(1, (k + 1) // 2 + 1):
            # Exactly the terms l < i are positive for g between (k − 2i)·ε and `reached`.
            p_sum += p_mass
            q_sum += q_mass
            target = max(Fraction(0), (k - 2 * i) * epsilon)
            threshold = threshold * shrunk * shrunk if target else arb(1)
            if not p_sum - threshold * q_sum <= spare:
                needed = (p_sum - spare) / q_sum
                return min(reached, max(target, upper(needed.log()))) if needed > 0 else reached
            reached = target
            step = ball(Fraction(k - i + 1, i))
            p_mass *= step * shrunk
            q_mass *= step * grown
        return reached


def _homogeneous(
    epsilon: Exactable, delta: Exactable, k: int, slack: Exactable
) -> tuple[Fraction, Fraction, int, Fraction]:
    return (
        at_least("epsilon", epsilon, 0),
        probability("delta", delta, zero=True, one=True),
        count("k", k),
        probability("slack", slack, zero=True, one=True),
    )


def _columns(losses: Iterable[PureDP | ApproxDP]) -> tuple[list[Fraction], list[Fraction]]:
    listed = list(losses)
    for loss in listed:
        if not isinstance(loss, PureDP | ApproxDP):
            raise InvalidArgument("losses", loss, "PureDP or ApproxDP", "convert it to ApproxDP first")
    return [x.epsilon for x in listed], [x.delta if isinstance(x, ApproxDP) else Fraction(0) for x in listed]


def _shrunk_spread(squares: arb, slack: arb) -> arb:
    return (2 * squares * (arb(1).exp() + squares.sqrt() / slack).log()).sqrt()


def _joint(deltas: list[Fraction], times: int, slack: Fraction) -> Fraction:
    """1 − (1 − slack)·Π(1 − δ)^times, rounded up."""
    if not any(deltas):
        return slack
    if slack == 1 or 1 in deltas:
        return Fraction(1)
    survival = [(slack, 1), *((d, times) for d in deltas)]
    joint = above(lambda: -sum((n * (-ball(d)).log1p() for d, n in survival), arb(0)).expm1())
    return min(Fraction(1), times * total(deltas) + slack, joint)
