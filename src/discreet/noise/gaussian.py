"""Exact discrete Gaussian noise: P(X = k) ∝ exp(−k²/2σ²) for every integer k.

No floating-point value decides an outcome unless it is farther from the decision boundary than its error bound. Draws
beyond the int64 range (σ above 2⁵⁷ only, and then below 10⁻¹⁴) are returned as its ends.

>>> discrete_gaussian(sigma=10, size=5, entropy=Entropy.for_tests(0)).tolist()
[-1, -9, -4, 13, 5]

Method: rejection from a staircase. The integers within about 6σ are cut into blocks of 2ᵏ neighbours, 64 to 128 blocks
to a σ; each block gets the height of its largest point, everything beyond is one geometric tail. A word's top 17 bits
pick a cell of a table that names the block owning that share of the staircase; its low k bits the place in the block;
the bits below the top ones the first part of the acceptance coin. Three cases leave the fast path, a few per cent
together: a cell shared by several blocks, a coin too high to accept at once, the tail. For σ < 128 the blocks are
single integers and no coin is needed.

Margin. A height e^(−x), x = m²/2σ², is off by less than (2x + ULPS)·e^(−x)·2⁻⁵¹: below 2⁻⁴⁵ of itself for x ≤ 20, below
2⁻⁷⁰ beyond. Summing fewer than 2¹¹ of them and scaling adds 2⁻⁴¹ of the whole, so a block's end is off by less than
2⁻²³ of a cell: `_SLACK` covers it. Acceptance probabilities are off by less than 2⁻⁴⁴, which `_COIN_SLACK` covers. What
falls within a margin is settled by ball arithmetic.

A few draws are not worth a table: they come from discrete Laplace noise of scale t = max(1, ⌊σ⌋), each kept with
probability exp(−(|k| − σ²/t)²/2σ²), known to 2⁻⁴⁴ as well. Tries are made by the batch, so that the work does not grow
with the values drawn.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import Any

import numpy as np
from flint import arb

from discreet.core.exact import Exactable
from discreet.core.rounding import ball
from discreet.noise import reference
from discreet.noise.batches import PART, Coins, Integers, Size, empty, parts
from discreet.noise.entropy import Entropy, Words, chosen
from discreet.noise.laplace import discrete_laplace, scale_argument
from discreet.noise.refinement import Uniform, double

__all__ = ["discrete_gaussian"]

Doubles = np.ndarray[Any, np.dtype[np.float64]]

_CELL_BITS = 17
_CELLS = 1 << _CELL_BITS
_COIN_BITS = 9
_SLACK = 2.0**-22
_COIN_SLACK = 2.0**-40
_FAST = 3
_REACH = 6
_SHARED = np.iinfo(np.int64).min
_LARGEST = (1 << 63) - 1
_FEW = 256
"""Up to this many draws are done before a table of a new σ would be built, and not much later than with one."""


@np.errstate(under="ignore")
def discrete_gaussian(sigma: Exactable, size: Size = None, *, entropy: Entropy | None = None) -> Integers:
    """Integers with P(k) ∝ exp(−k²/2σ²); `size` as in numpy, None for one."""
    deviation = scale_argument("sigma", sigma)
    source = chosen(entropy)
    out = empty(size)
    if out.size <= _FEW:
        _fill_few(deviation, out.reshape(-1), source)
        return out
    _draw(_table(deviation), out.reshape(-1), source)
    return out


def _draw(table: _Table, out: Integers, source: Entropy) -> None:
    """Fill `out`, and then again the places where a draw was rejected."""
    again = np.concatenate([number * PART + table.fill(part, source) for number, part in enumerate(parts(out))])
    if again.size:
        fresh: Integers = np.empty(again.size, dtype=np.int64)
        _draw(table, fresh, source)
        out[again] = fresh


def _fill_few(sigma: Fraction, out: Integers, source: Entropy) -> None:
    filled = 0
    while filled < out.size:
        draws = _accepted(sigma, 2 * out.size + 16, source)[: out.size - filled]
        out[filled : filled + draws.size] = draws
        filled += draws.size


def _accepted(sigma: Fraction, tries: int, source: Entropy) -> Integers:
    """What is left of `tries` draws of discrete Laplace noise."""
    scale = Fraction(max(1, floor(sigma)))
    draws = discrete_laplace(scale, tries, entropy=source)
    words = source.words(tries)
    distances = np.abs(draws).astype(np.float64) / float(sigma) - float(sigma / scale)
    odds = np.exp(-0.5 * distances**2)
    uniforms = words.astype(np.float64) * 2.0**-64
    kept = uniforms < odds
    beyond = np.abs(draws) == _LARGEST
    for index in np.flatnonzero(beyond | (np.abs(uniforms - odds) < _COIN_SLACK)).tolist():
        # At the end of int64 the draw may have been any larger one: its excess is geometric like the draw itself.
        magnitude = abs(int(draws[index])) + (reference.geometric(scale, source) if beyond[index] else 0)
        exponent = (magnitude - sigma**2 / scale) ** 2 / (2 * sigma**2)
        kept[index] = Uniform(int(words[index]), 64, source).is_below_exp(exponent)
    return draws[kept]


@lru_cache(maxsize=64)
def _table(sigma: Fraction) -> _Table:
    return _Table(sigma)


class _Table:
    """The staircase of one σ, ready to draw from."""

    def __init__(self, sigma: Fraction) -> None:
        self._rate = 1 / (2 * sigma * sigma)
        self._bits = max(0, int(sigma).bit_length() - 7)
        width = 1 << self._bits
        self._reach = int(_REACH * sigma / width) + 1
        self._tail = self._reach * width
        self._deviation = float(sigma)
        blocks = np.arange(-self._reach, self._reach, dtype=np.float64)
        # The least |x| in block b is b·width above zero and (−b − 1)·width + 1 below.
        self._nearest: Doubles = np.where(blocks >= 0, blocks * width, (-blocks - 1) * width + 1)
        heights = np.exp(-0.5 * (self._nearest / self._deviation) ** 2)
        ends = np.concatenate([[0.0], np.cumsum(heights)])
        tail = double(self._tail_mass) / width
        self._ends: Doubles = ends * (_CELLS / (float(ends[-1]) + tail))
        spans = self._nearest + (width - 1)
        worst = np.exp(-0.5 * (width - 1) * (self._nearest + spans) / self._deviation**2)
        fast = self._nearest <= _FAST * self._deviation
        self._sure = np.uint64(int((float(worst[fast].min()) - 1e-9) * (1 << _COIN_BITS)) << (64 - _COIN_BITS))
        self._starts = self._cells(blocks.astype(np.int64), fast)

    def _cells(self, blocks: Integers, fast: Coins) -> Integers:
        """For each cell the first integer of the one fast block that owns it, or `_SHARED`."""
        starts = np.full(_CELLS, _SHARED, dtype=np.int64)
        low = np.ceil(self._ends[:-1] + _SLACK).astype(np.int64)
        high = np.floor(self._ends[1:] - _SLACK).astype(np.int64)
        lengths = np.where(fast, np.maximum(high - low, 0), 0)
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        starts[np.repeat(low, lengths) + inside] = np.repeat(blocks[...] << self._bits, lengths)
        return starts

    def fill(self, out: Integers, source: Entropy) -> Integers:
        """Overwrite `out` with draws; the indices returned were rejected and must be drawn again."""
        words = source.words(out.size)
        starts = self._starts.take((words >> np.uint64(64 - _CELL_BITS)).view(np.int64), mode="clip")
        places = words if self._bits <= 64 - _CELL_BITS - _COIN_BITS else source.words(out.size)
        lows = (places & np.uint64((1 << self._bits) - 1)).view(np.int64)
        np.add(starts, lows, out=out)
        slow = starts == _SHARED
        if self._bits:
            slow |= (words << np.uint64(_CELL_BITS)) >= self._sure
        todo = np.flatnonzero(slow)
        kept = self._place(out, todo, words[todo], starts[todo], lows[todo], source)
        words.fill(0)
        return todo[~kept]

    def _place(
        self, out: Integers, todo: Integers, words: Words, starts: Integers, lows: Integers, source: Entropy
    ) -> Coins:
        """Draws the table could not place: find the block, toss the rest of the coin; False where rejected."""
        blocks = (starts >> self._bits) + self._reach
        shared = np.flatnonzero(starts == _SHARED)
        blocks[shared] = self._find(words[shared] >> np.uint64(64 - _CELL_BITS), source)
        tail = np.flatnonzero(blocks == 2 * self._reach)
        blocks[tail] = 0
        values = ((blocks - self._reach) << self._bits) + lows
        kept = self._toss(values, blocks, words, source) if self._bits else np.ones(todo.size, dtype=np.bool_)
        for index in tail.tolist():
            values[index], kept[index] = self._draw_tail(source)
        out[todo] = values
        return kept

    def _find(self, cells: Words, source: Entropy) -> Integers:
        """The block (or past the last one, the tail) that owns a place in a shared cell."""
        more = source.words(cells.size)
        places = cells.astype(np.float64) + more.astype(np.float64) * 2.0**-64
        first = np.searchsorted(self._ends, places, side="right") - 1
        doubtful = places - self._ends[first] < _SLACK
        doubtful |= np.append(self._ends, np.inf)[first + 1] - places < _SLACK
        for index in np.flatnonzero(doubtful).tolist():
            low, high = np.searchsorted(self._ends, places[index] + np.array([-_SLACK, _SLACK]), side="right") - 1
            place = Uniform(int(cells[index]) << 64 | int(more[index]), _CELL_BITS + 64, source)
            first[index] = place.find(max(int(low), 0), int(high), self._share)
        return first

    def _toss(self, values: Integers, blocks: Integers, words: Words, source: Entropy) -> Coins:
        """Accept each value with probability exp(−(x² − nearest²)/2σ²); the coin's first bits are in the word."""
        coins = (words << np.uint64(_CELL_BITS)) >> np.uint64(64 - _COIN_BITS)
        more = source.words(words.size)
        uniforms = (coins.astype(np.float64) + more.astype(np.float64) * 2.0**-64) * 2.0**-_COIN_BITS
        above = np.abs(values).astype(np.float64) - self._nearest[blocks]
        below = np.abs(values).astype(np.float64) + self._nearest[blocks]
        odds = np.exp(-0.5 * (above / self._deviation) * (below / self._deviation))
        kept = uniforms < odds
        for index in np.flatnonzero(np.abs(uniforms - odds) < _COIN_SLACK).tolist():
            place = Uniform(int(coins[index]) << 64 | int(more[index]), _COIN_BITS + 64, source)
            excess = int(values[index]) ** 2 - self._least(int(blocks[index])) ** 2
            kept[index] = place.is_below_exp(excess * self._rate)
        return kept

    def _draw_tail(self, source: Entropy) -> tuple[int, bool]:
        """One try at |x| ≥ tail: geometric from there on, accepted with probability exp(−g²/2σ²)."""
        negative = source.bits(1) == 1
        beyond = reference.geometric(1 / (2 * self._tail * self._rate), source)
        kept = reference.bernoulli_exp(beyond * beyond * self._rate, source) and not (negative and beyond == 0)
        value = min(self._tail + beyond, _LARGEST)
        return -value if negative else value, kept

    def _least(self, index: int) -> int:
        """The smallest |x| in a block, exactly."""
        block = index - self._reach
        return block << self._bits if block >= 0 else ((-block - 1) << self._bits) + 1

    def _share(self, last: int) -> arb:
        """The part of the staircase's mass in blocks up to `last`, not the tail, enclosed at the precision in force."""
        width = 1 << self._bits
        heights = [(-ball(self._least(block) ** 2 * self._rate)).exp() * width for block in range(2 * self._reach)]
        return sum(heights[: last + 1], arb(0)) / sum(heights, self._tail_mass())

    def _tail_mass(self) -> arb:
        ratio = (-ball(2 * self._tail * self._rate)).exp()
        return 2 * (-ball(self._tail**2 * self._rate)).exp() / (1 - ratio)
