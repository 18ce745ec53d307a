"""How a draw is settled when double precision cannot.

A uniform real U in (0, 1) is an endless string of bits, of which a sampler has read the first few: all it knows is
U ∈ [prefix, prefix + 1]·2^−bits. The vectorised paths compute in double precision with a proven error margin and
accept a decision only where it is the same for everything within the margin. The few draws left over come here:
read 64 more bits of U, enclose the decision in ball arithmetic of matching precision, and repeat until only one
outcome is possible. Nothing is ever rounded away, so the outcome has exactly the stated law.

The margins rest on `numpy.log` and `numpy.exp` being within `ULPS` units in the last place for doubles (their
documented errors are below 4; the test-suite measures them), and on IEEE arithmetic.

The precision of ball arithmetic is one setting for all threads. A thread that changes it may widen the balls of
another, which then reads on or computes again, and decides no differently.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from flint import arb, ctx, fmpz

from discreet.core.rounding import ball
from discreet.noise.entropy import Entropy

__all__ = ["ULPS", "Uniform", "double"]

ULPS = 16
"""How far, in units of the last place, numpy's log and exp are allowed to be off."""


def double(number: Callable[[], arb]) -> float:
    """The real number that `number` encloses at the precision in force, to within one unit in the last place."""
    while True:
        with ctx.workprec(256):
            enclosure = number()
        if enclosure.rel_accuracy_bits() > 100:
            return float(enclosure.mid())


class Uniform:
    """A uniform real of which `bits` leading bits are known; reads more only when a question needs them."""

    def __init__(self, prefix: int, bits: int, entropy: Entropy) -> None:
        self._prefix = prefix
        self._bits = bits
        self._entropy = entropy

    def _read_on(self) -> None:
        self._prefix = self._prefix << 64 | self._entropy.bits(64)
        self._bits += 64

    def is_below(self, threshold: Callable[[], arb]) -> bool:
        """Whether U < threshold, which encloses one real number at the precision in force."""
        while True:
            with ctx.workprec(self._bits + 64):
                scaled = threshold() * arb(fmpz(1) << self._bits)
                if scaled >= self._prefix + 1:
                    return True
                if scaled <= self._prefix:
                    return False
            self._read_on()

    def is_below_exp(self, exponent: Fraction) -> bool:
        """Whether U < exp(−exponent), for exponent ≥ 0."""
        return self.is_below(lambda: (-ball(exponent)).exp())

    def floor_log(self, scale: Fraction, offset: Callable[[], arb]) -> int:
        """⌊scale·(offset − ln U)⌋, for an offset ≥ 0 enclosed at the precision in force."""
        while True:
            if self._prefix:
                with ctx.workprec(self._bits + 128):
                    unit = arb(fmpz(1) << self._bits)
                    size, shift = ball(scale), offset()
                    low = size * (shift - (arb(self._prefix + 1) / unit).log())
                    high = size * (shift - (arb(self._prefix) / unit).log())
                    whole = low.lower().floor().unique_fmpz()
                    least = None if whole is None else max(int(whole), 0)
                    if least is not None and high < least + 1:
                        return least
            self._read_on()

    def find(self, first: int, last: int, share: Callable[[int], arb]) -> int:
        """The least index i in [first, last] with U < share(i), the probability of an index up to i."""
        while first < last:
            middle = (first + last) // 2
            if self.is_below(partial(share, middle)):
                last = middle
            else:
                first = middle + 1
        return first
