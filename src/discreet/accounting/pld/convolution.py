"""Sums of independent losses by one tilted Fourier transform, with every error bounded and added.

Masses p_i are tilted to p_i·e^{θ·i·h}/Z, so that the part of the sum that an answer depends on is its bulk, where
rounding noise is nothing. The tilt is undone inside the sum for δ(ε). Four things are added so that the result bounds
the exact sum: the noise of the transform at each point, the mass past the top of the window (Chernoff), the mass at ∞,
and a factor for the rounding of elementary operations. Mass from below the window wraps round into it and only adds.

>>> coin = Pmf(-1, np.array([0.2689414213699952, 0.0, 0.7310585786300049]), 0.0)
>>> two = convolve([coin], [2], Fraction(1), tilt=1.0)
>>> round(two.delta(Fraction(1)).bound, 6)                    # P(L = 2)·(1 − e^{1 − 2})
0.337835
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.pld.grid import ULP, Array, Pmf, dot

__all__ = ["Window", "convolve"]

DEPTH = 28.0
"""The window leaves out at most e^−DEPTH of the tilted mass on each side."""
WRAPPED = math.exp(-DEPTH)
NIL = 1e-130
"""Tilted masses below this are dropped, and as much is added everywhere: less to do, and no underflow."""
FFT_UNITS = 16.0
"""Rounding units charged to a level of the transform, in the 2-norm; for radix 2 Higham's Theorem 24.2 has 7."""


class Point(NamedTuple):
    """An upper bound on δ(ε), about −dδ/dε, and how much of the bound may be noise and wrapped mass."""

    bound: float
    slope: float
    noise: float


@dataclass(frozen=True, eq=False)
class Window:
    """Tilted masses of a sum of losses at (first + k)·interval.

    The mass at the loss l is at most mass[k]·e^{log_scale − tilt·(l − origin·interval)}, and the mass above the window
    and at ∞ at most `unseen`. `noise` is the part of each mass[k] that bounds the errors of the transform.
    """

    interval: Fraction
    first: int
    origin: int
    mass: Array
    tilt: float
    log_scale: float
    noise: float
    unseen: float
    centre: float
    spread: float

    @property
    def bottom(self) -> Fraction:
        """The lowest loss in the window."""
        return self.first * self.interval

    def delta(self, epsilon: Fraction) -> Point:
        """The profile at an ε that is not below the window, or at any ε where there is no tilt."""
        start = min(max(0, math.floor(epsilon / self.interval) + 1 - self.first), len(self.mass))
        head = float((self.first + start) * self.interval - epsilon)
        rises = head + float(self.interval) * np.arange(len(self.mass) - start, dtype=np.float64)
        fall = self.tilt * float(epsilon - self.origin * self.interval)
        doubt = 16 * ULP * (abs(self.log_scale) + abs(fall) + self.tilt * float(self.interval) * len(self.mass) + 1)
        doubt += 4 * ULP * len(rises)
        weights = np.exp(np.minimum(self.log_scale - fall + doubt - self.tilt * rises, 650.0))
        faded = np.exp(-rises)
        gains = weights * -np.expm1(-rises)
        bound = dot(self.mass[start:], gains) + self.unseen
        slope = dot(self.mass[start:], weights * faded)
        return Point(bound, slope, self.noise * float(gains.sum()) + WRAPPED * float(gains.max(initial=0.0)))

    def epsilon(self, delta: float) -> Fraction | None:
        """An ε at which `self.delta` is at most `delta`, the least or `bottom`; None where it is above the window."""
        room = delta - self.unseen
        if room <= 0:
            return None
        step = float(self.interval)
        places = np.arange(len(self.mass), dtype=np.float64)
        start = self.log_scale - self.tilt * float((self.first - self.origin) * self.interval)
        weights = self.mass * np.exp(np.minimum(start - self.tilt * step * places, 300.0))
        above = np.cumsum(weights[::-1])[::-1]
        # δ(ε) is below the mass above ε and, one further down, most of it: ε is not far below where that mass is δ.
        middle = max(int(np.count_nonzero(above > room)) - 1, 0)
        rises = step * (places - middle)
        faded = np.cumsum((weights * np.exp(np.clip(-rises, -600.0, 300.0)))[::-1])[::-1]
        # Entry k: δ at the grid point k − 1, with everything from k on above it.
        profile = above - np.exp(np.minimum(rises - step, 300.0)) * faded
        cell = int(np.count_nonzero(profile > room)) - 1
        if cell + 1 == len(profile):
            return None
        if cell < 0 and self.tilt > 0:
            return self._certified(self.bottom, delta)
        cell = max(cell, 0)
        ratio = (above[cell] - room) / faded[cell] if faded[cell] > 0 else 0.0
        inside = math.log(ratio) - float(rises[cell]) if ratio > 0 else -math.inf
        inside = max(inside, -step if cell or self.tilt > 0 else -1e3)
        return self._certified((self.first + cell) * self.interval + Fraction(min(inside, 0.0)), delta)

    def _certified(self, guess: Fraction, delta: float) -> Fraction | None:
        unit = Fraction(float(self.interval)) / 2**30
        for _ in range(40):
            point = self.delta(guess)
            if point.bound <= delta:
                return guess
            move = (point.bound - delta) / point.slope if point.slope > 0 else math.inf
            guess += min(Fraction(1.01 * move), self.interval) + unit if math.isfinite(move) else self.interval
            unit *= 2
        return None


def convolve(pmfs: Sequence[Pmf], counts: Sequence[int], interval: Fraction, tilt: float) -> Window:
    """The law of Σ counts[i] independent losses of the law pmfs[i], tilted by e^{tilt·loss}."""
    step = float(interval)
    tilted = [_tilt(pmf.mass, tilt * step) for pmf in pmfs]
    origin = sum(count * (pmf.first + part.pivot) for pmf, part, count in zip(pmfs, tilted, counts, strict=True))
    total = sum(counts)
    mean = sum(count * part.mean for part, count in zip(tilted, counts, strict=True))
    spread = math.sqrt(sum(count * part.variance for part, count in zip(tilted, counts, strict=True))) + 0.5
    above, below = (_reach(tilted, counts, spread, side) for side in (1, -1))
    bottom = math.floor(mean - below.width)
    size = _smooth(math.ceil(mean + above.width) + 1 - bottom)
    top = bottom + size

    log_norm = sum(count * part.log_norm for part, count in zip(tilted, counts, strict=True))
    mass, noise = _placed(tilted[0], bottom, size) if total == 1 else _transformed(tilted, counts, bottom, size)
    dropped = NIL * sum(count * len(pmf.mass) for pmf, count in zip(pmfs, counts, strict=True))
    mass, noise = mass + dropped, noise + dropped
    rounding = sum(count * part.doubt for part, count in zip(tilted, counts, strict=True))
    rounding += 16 * ULP * sum(count * abs(part.log_norm) for part, count in zip(tilted, counts, strict=True))
    log_scale = log_norm + rounding
    beyond = math.exp(above.log_tail(top - mean) + 1e-6) + dropped
    log_beyond = log_scale - tilt * step * top + math.log(beyond) if tilt >= 0 else math.inf
    return Window(
        interval=interval,
        first=bottom + origin,
        origin=origin,
        mass=mass,
        tilt=tilt,
        log_scale=log_scale,
        noise=noise,
        unseen=math.exp(min(log_beyond, 0.0)) + _infinity(pmfs, counts),
        centre=mean + origin,
        spread=spread,
    )


def _transformed(parts: Sequence[_Tilted], counts: Sequence[int], bottom: int, size: int) -> tuple[Array, float]:
    """The tilted masses of the sum from `bottom` on, each with the noise that bounds its error, and that noise."""
    total = sum(counts)
    level = FFT_UNITS * ULP * math.log2(size)
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    others = np.ones(size // 2 + 1) if total > 4096 else None
    noise, excess, offset = 0.0, 0.0, 0
    for part, count in zip(parts, counts, strict=True):
        length = math.sqrt(dot(part.mass, part.mass)) * (1 + 1e-9)
        single = np.fft.rfft(_folded(part.mass, size), size)
        error = level * length * math.sqrt(size)
        noise += count * level * length
        excess += count * (error + abs(part.total - 1))
        if others is not None and count > 1:
            others *= (np.abs(single) + error) ** (count - 1)
        spectrum *= _power(single, count)
        offset -= count * part.low
    # `others` bounds the product of all factors but one: with it the noise of one factor meets the decay of the rest.
    if others is not None:
        noise *= min(1.0, math.sqrt(2 * dot(others, others) / size))
    numbers = spectrum.view(np.float64)
    energy = math.sqrt(2 * dot(numbers, numbers) / size)
    noise = noise * math.exp(min(excess, 50.0)) + (8 * ULP * total + level) * energy
    return np.maximum(np.roll(np.fft.irfft(spectrum, size), -((bottom + offset) % size)), 0.0) + noise, noise


def _placed(part: _Tilted, bottom: int, size: int) -> tuple[Array, float]:
    """The tilted masses of one loss from `bottom` on, modulo `size`, and no noise."""
    folded = _folded(part.mass, size)
    return np.roll(np.pad(folded, (0, size - len(folded))), -((bottom - part.low) % size)), 0.0


@dataclass(frozen=True, eq=False)
class _Tilted:
    """Masses of sum about 1; the untilted mass at pivot + s is mass[s − low]·e^{log_norm − rate·s ± doubt}."""

    mass: Array
    pivot: int
    low: int
    log_norm: float
    doubt: float
    total: float
    mean: float
    variance: float


def _tilt(mass: Array, rate: float) -> _Tilted:
    pivot = len(mass) // 2
    steps = np.arange(-pivot, len(mass) - pivot, dtype=np.float64)
    exponents = rate * steps
    reach = abs(float(exponents[-1] - exponents[0]))
    if reach < 600:
        tilted = mass * np.exp(exponents)
        log_norm = math.log(float(tilted.sum()))
    else:
        with np.errstate(divide="ignore"):
            logs = np.log(mass) + exponents
        peak = float(logs.max())
        tilted = np.exp(logs - peak)
        log_norm = peak + math.log(float(tilted.sum()))
        reach += 700
    tilted *= 1 / float(tilted.sum())
    tilted[tilted < NIL] = 0.0
    kept = np.flatnonzero(tilted)
    start, end = int(kept[0]), int(kept[-1]) + 1
    tilted, steps = tilted[start:end], steps[start:end]
    mean = dot(tilted, steps)
    variance = dot(tilted, (steps - mean) ** 2)
    doubt = 4 * ULP * (2 * reach + 16) + 4 * ULP * abs(log_norm)
    return _Tilted(tilted, pivot, start - pivot, log_norm, doubt, float(tilted.sum()), mean, variance)


@dataclass(frozen=True)
class _Reach:
    """The tilted mass farther than `width` from the mean on one side: at most e^{growth − rate·distance}."""

    width: float
    rate: float
    growth: float

    def log_tail(self, distance: float) -> float:
        """A bound on ln of the tilted mass at least this far; −∞ past the support."""
        return -math.inf if math.isinf(self.rate) else self.growth - self.rate * distance


def _reach(parts: Sequence[_Tilted], counts: Sequence[int], spread: float, side: int) -> _Reach:
    """Where all but e^−DEPTH of the tilted mass ends, above the mean (side 1) or below (side −1)."""
    ends = (part.mean - part.low if side < 0 else part.low + len(part.mass) - part.mean for part in parts)
    best = _Reach(sum(count * end for count, end in zip(counts, ends, strict=True)) + 1, math.inf, 0.0)
    rate = min(math.sqrt(2 * DEPTH) / spread, 200 / max(len(part.mass) for part in parts))
    for _ in range(40):
        growth = 0.0
        for part, count in zip(parts, counts, strict=True):
            steps = np.arange(len(part.mass), dtype=np.float64) + (part.low - part.mean)
            growth += count * math.log(dot(part.mass, np.exp(side * rate * steps)))
        width = (growth + DEPTH) / rate
        if width < best.width:
            best = _Reach(width, rate, growth)
        elif math.isfinite(best.rate):
            break
        rate /= 2
    return best


def _infinity(pmfs: Sequence[Pmf], counts: Sequence[int]) -> float:
    """The mass at ∞ of the sum: Π(fᵢ + pᵢ) − Π fᵢ for finite masses fᵢ and infinite ones pᵢ."""
    finite, ratio = 0.0, 0.0
    for pmf, count in zip(pmfs, counts, strict=True):
        total = float(pmf.mass.sum()) * (1 + 2 * ULP * len(pmf.mass))
        finite += count * math.log(total)
        ratio += count * math.log1p(pmf.infinity / total)
    return math.expm1(ratio) * math.exp(min(finite, 700.0)) * (1 + 1e-9)


def _smooth(size: int) -> int:
    """A length at least `size` whose transform is fast: 8, 9, 10, 12 or 15 times a power of two."""
    power = 1 << max(0, (size - 1).bit_length() - 4)
    return next(factor * power for factor in (8, 9, 10, 12, 15, 16) if factor * power >= size)


def _folded(mass: Array, size: int) -> Array:
    """The masses modulo `size`."""
    if len(mass) <= size:
        return mass
    rows = -(-len(mass) // size)
    return np.asarray(np.pad(mass, (0, rows * size - len(mass))).reshape(rows, size).sum(axis=0))


def _power(base: NDArray[np.complex128], exponent: int) -> NDArray[np.complex128]:
    """By repeated squaring, so that the relative error is at most 3·exponent rounding units."""
    if exponent == 1:
        return base
    result, square = np.ones_like(base), base
    while exponent:
        if exponent & 1:
            result = result * square
        exponent >>= 1
        if exponent:
            square = square * square
    return result
