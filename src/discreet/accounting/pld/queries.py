"""From a list of loss laws to δ(ε) and ε(δ), choosing grid, tilt and window for each question.

>>> from discreet.accounting.pld.laws import Normal
>>> losses = LossSum([(Normal(1.0), 1)])
>>> losses.delta(Fraction(1)) - 0.1269367375 < 1e-6  # Φ(1/2 − 1) − e·Φ(−1/2 − 1)
True
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from discreet.accounting.pld.convolution import Window, convolve
from discreet.accounting.pld.grid import Pmf
from discreet.accounting.pld.laws import Law
from discreet.accounting.pld.sketch import LOG_LEAST, Sketch, fitted

__all__ = ["LossSum"]

LEAST, TYPICAL = math.exp(LOG_LEAST), 1e-30
"""The smallest δ that is resolved, and one to try first."""
KEPT = 6
"""Grids and windows kept for later questions."""
CLOSE = 1e-5
"""How close to the largest loss ε may be to be replaced by it."""
REUSE, ACCEPT, SHARP = 1e-6, 1e-4, 0.999
"""The share of δ that may be noise for an old window to answer, and for a new one; the share that an answer attains."""
MOST_REFINED = 2**22
NEAR = 1e-6
"""The share of ε that noise may add."""


class LossSum:
    """The sum of independent losses, one direction of a composition."""

    def __init__(self, parts: Sequence[tuple[Law, int]], interval: Fraction | None = None) -> None:
        self.laws = [law for law, _ in parts]
        self.counts = [count for _, count in parts]
        self.total = sum(self.counts)
        self.interval = interval
        self._sketches: dict[int, Sketch] = {}
        self._grids: dict[tuple[Fraction, float], list[Pmf]] = {}
        self._windows: list[tuple[Window, float]] = []

    @property
    def ceiling(self) -> Fraction | None:
        """No finite sum is above this; None where there is no bound."""
        tops = [law.ceiling for law in self.laws]
        known = [count * top for count, top in zip(self.counts, tops, strict=True) if top is not None]
        return sum(known, Fraction(0)) if len(known) == len(tops) else None

    def epsilon(self, delta: float) -> Fraction | None:
        """An ε ≥ 0 with δ(ε) ≤ `delta`, close to the least; None where none was found."""
        if not self.laws:
            return Fraction(0)
        if delta < LEAST:
            return self.ceiling
        for window, scale in self._windows:
            found = window.epsilon(delta)
            if found is None or not _fits(window, scale, found):
                continue
            point = window.delta(found)
            if point.bound > SHARP * delta and point.noise + window.unseen < REUSE * delta:
                return self._capped(found)
        sketch, tail = self._sketch(delta)
        if sketch.drift <= delta:
            return Fraction(0)
        top = self.ceiling
        if sketch.lost > delta:
            return top
        tilt = sketch.tilt_for_delta(math.log(delta))
        if top is not None and 4 * self.total < CLOSE * tilt * top:
            return top  # so far out every loss is about 2/tilt below its largest value
        best: Fraction | None = None
        scale = sketch.moments(tilt)[1]
        for attempt in range(6):
            window = self._window(sketch, tilt, scale, tail)
            found = window.epsilon(delta)
            if found is None:
                tilt *= 2
                continue
            best = found if best is None else min(best, found)
            if 0 < found <= window.bottom and tilt > 0:
                tilt = tilt / 4 if attempt < 2 else 0.0
                continue
            point = window.delta(found)
            if found <= 0:
                break
            if point.bound > SHARP * delta and point.noise < max(ACCEPT * delta, NEAR * float(found) * point.slope):
                if float(found) > scale / 4 or self.interval is not None:
                    break
                scale = float(found)
                continue
            sketch = self._refined(sketch, window.interval, tail)
            tilt = sketch.tilt_for_delta(math.log(delta))
        return self._capped(best)

    def delta(self, epsilon: Fraction) -> float:
        """An upper bound on δ(ε), close to it."""
        top = self.ceiling
        if top is not None and epsilon >= top:
            return 0.0
        if not self.laws:
            return 1.0
        for window, scale in self._windows:
            if _fits(window, scale, epsilon):
                point = window.delta(epsilon)
                if point.noise + window.unseen < REUSE * point.bound:
                    return min(1.0, point.bound)
        guess = TYPICAL
        best = min(1.0, self._sketch(guess)[0].drift)
        tried: set[tuple[float, float]] = set()
        for _ in range(6):
            sketch, tail = self._sketch(guess)
            tilt = sketch.tilt_for_epsilon(float(epsilon))
            guess, last = math.exp(min(0.0, max(sketch.log_delta(tilt, float(epsilon)), LOG_LEAST))), guess
            if guess < last / 2**8:
                continue
            if (tail, tilt) in tried:
                break
            tried.add((tail, tilt))
            window = self._window(sketch, tilt, float(epsilon), tail)
            if epsilon < window.bottom:
                window = self._window(sketch, 0.0, float(epsilon), tail)
            point = window.delta(epsilon)
            best = min(best, point.bound)
            if point.noise + window.unseen < ACCEPT * point.bound or guess <= LEAST:
                break
            guess = max(min(guess / 2**16, best), LEAST)
        return best

    def _capped(self, found: Fraction | None) -> Fraction | None:
        top = self.ceiling
        options = [max(option, Fraction(0)) for option in (found, top) if option is not None]
        return min(options, default=None)

    def _sketch(self, delta: float) -> tuple[Sketch, float]:
        """A sketch and how much of each law's upper tail may go to ∞ when δ is about this."""
        octave = math.floor(math.log2(delta) / 8)
        tail = max(2.0 ** (8 * octave - 20) / self.total, 1e-290)
        if octave not in self._sketches:
            self._sketches[octave] = Sketch.of_laws(self.laws, self.counts, tail)
        return self._sketches[octave], tail

    def _window(self, sketch: Sketch, tilt: float, epsilon: float, tail: float) -> Window:
        """A window for answers of about this ε."""
        interval = self.interval or fitted(sketch.interval(tilt, epsilon), self.laws)
        window = convolve(self._pmfs(interval, tail), self.counts, interval, tilt)
        self._windows = [(window, epsilon), *self._windows][:KEPT]
        return window

    def _pmfs(self, interval: Fraction, tail: float) -> list[Pmf]:
        key = (interval, tail)
        if key not in self._grids:
            while len(self._grids) >= KEPT:
                del self._grids[next(iter(self._grids))]
            self._grids[key] = [law.on_grid(interval, tail) for law in self.laws]
        return self._grids[key]

    def _refined(self, sketch: Sketch, interval: Fraction, tail: float) -> Sketch:
        """A sketch from the masses on a fine grid, where they are not too many."""
        pmfs = self._pmfs(interval, tail)
        return Sketch.of_pmfs(pmfs, self.counts, float(interval)) if _size(pmfs) < MOST_REFINED else sketch


def _fits(window: Window, scale: float, epsilon: Fraction) -> bool:
    """Whether ε is in the bulk of a window made for answers of about `scale`, and not much smaller than those."""
    away = abs(float(epsilon / window.interval) - window.centre)
    return epsilon > window.bottom and float(epsilon) >= scale / 4 and away < 4 * window.spread


def _size(pmfs: Sequence[Pmf]) -> int:
    return len(pmfs) * max(len(pmf.mass) for pmf in pmfs)
