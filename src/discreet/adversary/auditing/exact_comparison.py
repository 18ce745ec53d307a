"""Two output distributions compared exactly, where they can be written down.

For a small discrete mechanism give the probabilities of its outputs on D and on D′. Everything here is exact in
those numbers: the largest ratio, the outputs that only one side reaches, and the least δ at a given ε (the
hockey-stick divergence, in both directions).

>>> told = {True: Fraction(3, 4), False: Fraction(1, 4)}
>>> asked = {True: Fraction(1, 4), False: Fraction(3, 4)}
>>> pair = Comparison(told, asked)
>>> pair.ratio, round(pair.epsilon, 4), pair.satisfies(PureDP("1.0987")), pair.satisfies(PureDP("1.0986"))
(Fraction(3, 1), 1.0986, True, False)
>>> Comparison({0: 1}, {0: Fraction(99, 100), 1: Fraction(1, 100)}).holes
(1,)
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, at_least, exact
from discreet.core.losses import ApproxDP, PureDP
from discreet.core.rounding import exp_down, exp_up, float_down, log_down

__all__ = ["Comparison"]

_TOTAL = Fraction(1, 10**9)
"""How far the given probabilities may be from adding up to 1, as decimals cut short are."""


@dataclass(frozen=True, init=False)
class Comparison:
    """The probabilities of each output on D (`p`) and on D′ (`q`)."""

    p: Mapping[Hashable, Fraction]
    q: Mapping[Hashable, Fraction]

    def __init__(self, p: Mapping[Hashable, Exactable], q: Mapping[Hashable, Exactable]) -> None:
        ours, theirs = _law("p", p), _law("q", q)
        outputs = list(ours | theirs)
        object.__setattr__(self, "p", {output: ours.get(output, Fraction(0)) for output in outputs})
        object.__setattr__(self, "q", {output: theirs.get(output, Fraction(0)) for output in outputs})

    @property
    def holes(self) -> tuple[Hashable, ...]:
        """Outputs that only one of the two data sets can produce."""
        return tuple(output for output in self.p if (self.p[output] == 0) != (self.q[output] == 0))

    @property
    def ratio(self) -> Fraction | None:
        """The largest ratio of the two probabilities of one output, either way; None if there is a hole."""
        if self.holes:
            return None
        both = ((self.p[output], self.q[output]) for output in self.p if self.p[output])
        return max(max(a / b, b / a) for a, b in both)

    @property
    def epsilon(self) -> float:
        """The least ε of pure differential privacy, rounded down; ∞ if there is a hole."""
        ratio = self.ratio
        return math.inf if ratio is None else float_down(log_down(ratio))

    def delta(self, epsilon: Exactable) -> Fraction:
        """The least δ at this ε, either way: Σ max(0, p − e^ε·q); rounded down by less than 2⁻⁹⁰."""
        return self._excess(exp_up(at_least("epsilon", epsilon, 0)))

    def satisfies(self, loss: PureDP | ApproxDP, tolerance: Exactable = 0) -> bool:
        """Whether the pair keeps this guarantee. Where probabilities were rounded, allow for that relative error."""
        slack = 1 + at_least("tolerance", tolerance, 0)
        if isinstance(loss, ApproxDP):
            return self._excess(exp_down(loss.epsilon)) <= loss.delta * slack
        ratio = self.ratio
        return ratio is not None and ratio <= exp_down(loss.epsilon) * slack

    def _excess(self, factor: Fraction) -> Fraction:
        pairs = [(self.p[output], self.q[output]) for output in self.p]
        return max(
            sum((max(Fraction(0), a - factor * b) for a, b in pairs), Fraction(0)),
            sum((max(Fraction(0), b - factor * a) for a, b in pairs), Fraction(0)),
        )


def _law(argument: str, given: Mapping[Hashable, Exactable]) -> dict[Hashable, Fraction]:
    law = {output: exact(argument, chance) for output, chance in given.items()}
    total = sum(law.values(), Fraction(0))
    if any(chance < 0 for chance in law.values()) or abs(total - 1) > _TOTAL:
        raise InvalidArgument(argument, float(total), "chances that add up to 1", "list every output with its chance")
    return law
