"""Rényi divergence on a secret sample, at whole orders n.

With f = P/Q the likelihood ratio of the inner event and γ the chance of being sampled, the divergence of the sampled
event is (1/(n−1))·ln(1 + excess), and what is known of the inner event are its moments E_Q[f^k] ≤ 1 + m_k for
2 ≤ k ≤ n. Orders between whole numbers follow because (α−1)·D_α is convex in α and zero at α = 1.

>>> from discreet.core.rounding import ball
>>> gaussian = [ball(Fraction(k * (k - 1), 2)).expm1() for k in range(2, 9)]
>>> (forward_excess(Fraction(1, 100), 8, gaussian).log1p() / 7).str(4)
'[0.0008936 +/- 4.40e-8]'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb

from flint import arb

from discreet.core.rounding import ball

__all__ = ["backward_excess", "fixed_size_excess", "forward_excess", "interpolated", "response_divergence"]


def forward_excess(rate: Fraction, order: int, moments: Sequence[arb]) -> arb:
    """E_Q[((1 − γ) + γf)^n] − 1 = Σ_{k≥2} C(n,k)·(1 − γ)^{n−k}·γ^k·m_k for Poisson sampling, with or without the unit.

    When a reflection swaps P and Q, as for every noise that is symmetric about the answer, this also bounds the
    divergence of Q from the mixture (Mironov, Talwar, Zhang 2019, Theorem 5); else see `backward_excess`.
    """
    ratio = ball(rate / (1 - rate))
    weight = ball(1 - rate) ** order * order * ratio
    result = arb(0)
    for k in range(2, order + 1):
        weight = weight * ((order - k + 1) * ratio) / k
        result += weight * moments[k - 2]
    return result


def backward_excess(rate: Fraction, order: int, second_moment: arb) -> arb:
    """At least E_Q[((1 − γ) + γf)^{1−n}] − 1, for Poisson sampling of any inner event.

    The function of f is convex with second derivative at most n(n−1)·γ²·(1 − γ)^{−n−1} at every f ≥ 0, so it lies
    below its tangent at f = 1 plus half of that times (f − 1)²; E_Q[(f − 1)²] = m_2.
    """
    return comb(order, 2) * ball(rate) ** 2 * ball(1 - rate) ** (-order - 1) * second_moment


def fixed_size_excess(rate: Fraction, order: int, moments: Sequence[arb], loss: Fraction | None) -> arb:
    """Sampling without replacement, one unit replaced (Wang, Balle, Kasiviswanathan 2019, Theorem 9).

    `loss` is the inner event's pure ε, where it has one.
    """
    gain = None if loss is None else ball(loss).expm1()
    second = 4 * moments[0]
    pair = (moments[0] + 1) * _capped(gain, 2)
    result = comb(order, 2) * ball(rate) ** 2 * second.min(pair)
    for k in range(3, order + 1):
        result += comb(order, k) * ball(rate) ** k * (moments[k - 2] + 1) * _capped(gain, k)
    return result


def response_divergence(rate: Fraction, epsilon: Fraction, order: Fraction) -> arb:
    """Any ε-private event on a Poisson sample, at any order: its worst case is randomized response, kept with
    chance γ. At γ = 1 this is the divergence of randomized response itself."""
    q, e, alpha = ball(rate), ball(epsilon), ball(order)
    wrong, right = 1 / (1 + e.exp()), 1 / (1 + (-e).exp())
    higher, lower = (q * e.expm1()).log1p(), (q * (-e).expm1()).log1p()
    forward = wrong * (alpha * higher).exp() + right * (alpha * lower).exp()
    backward = wrong * ((1 - alpha) * higher).exp() + right * ((1 - alpha) * lower).exp()
    return forward.max(backward).log() / (alpha - 1)


def interpolated(order: Fraction, at: Callable[[int], Fraction]) -> Fraction:
    """D_α between the whole orders where `at` bounds it."""
    below = order.numerator // order.denominator
    if below == order:
        return at(below)
    share = order - below
    left = (below - 1) * at(below) if below > 1 else Fraction(0)
    return ((1 - share) * left + share * below * at(below + 1)) / (order - 1)


def _capped(gain: arb | None, power: int) -> arb:
    return arb(2) if gain is None else (gain**power).min(arb(2))
