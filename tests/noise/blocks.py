"""The discrete Gaussian's staircase of blocks from its documented definition, in high precision."""

from fractions import Fraction

import numpy as np
from flint import arb, ctx, fmpz

from discreet.core.rounding import ball
from discreet.noise.gaussian import _CELL_BITS, _Table

PRECISION = 500


class Staircase:
    """The documented staircase, from its own definition and in high precision."""

    def __init__(self, sigma: Fraction) -> None:
        self.sigma = sigma
        table = _Table(sigma)
        self.table, self.width, self.reach = table, 1 << table._bits, table._reach
        self.nearest = [min(abs(x) for x in (b * self.width, (b + 1) * self.width - 1)) for b in self.blocks]
        with ctx.workprec(PRECISION):
            rate = 1 / (2 * sigma * sigma)
            heights = [(-ball(m * m * rate)).exp() * self.width for m in self.nearest]
            start = self.reach * self.width
            # Two geometric tails from `start` on, with the slope of the Gaussian there.
            tail = 2 * (-ball(start * start * rate)).exp() / (1 - (-ball(2 * start * rate)).exp())
            whole, run = sum(heights, tail), arb(0)
            self.ends = [arb(0)]
            for height in heights:
                run += height
                self.ends.append(run / whole)

    @property
    def blocks(self) -> range:
        return range(-self.reach, self.reach)

    def holds(self, index: int, prefix: int, bits: int) -> bool:
        """Whether all uniforms that start with these bits lie in block `index` (the last: the tail)."""
        with ctx.workprec(PRECISION):
            unit = arb(fmpz(1) << bits)
            starts = self.ends[index] <= arb(prefix) / unit
            return starts and (index == len(self.ends) - 1 or arb(prefix + 1) / unit <= self.ends[index + 1])

    def places(self, near: int, prefix: int, bits: int) -> bool:
        """Whether all uniforms that start with these bits lie in one block, `near` or one beside it."""
        blocks = range(max(near - 2, 0), min(near + 3, len(self.ends)))
        return any(self.holds(index, prefix, bits) for index in blocks)

    def boundary(self, index: int, bits: int) -> int:
        """The first bits of the uniform where block `index` ends."""
        with ctx.workprec(PRECISION):
            return int((self.ends[index + 1] * arb(fmpz(1) << bits)).mid().floor().fmpz())

    def fast_word(self, block: int) -> int:
        """A word that the table places in a block at once, at its first integer."""
        cell = int(np.flatnonzero(self.table._starts == block * self.width)[0])
        return cell << (64 - _CELL_BITS)
