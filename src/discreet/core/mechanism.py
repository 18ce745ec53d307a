"""What every mechanism offers, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from discreet.core.events import Event
from discreet.core.exact import probability
from discreet.core.losses import Loss

__all__ = ["Mechanism", "Release"]


@dataclass(frozen=True)
class Release:
    """Values that may leave, with the loss they cost and how wrong they may be.

    `private` is False when the randomness came from a test seed: such values carry no guarantee at all.
    """

    values: Any
    loss: Loss
    events: tuple[Event, ...]
    error: Callable[[float], float] | None = field(default=None, compare=False, repr=False)
    private: bool = True
    limit: float | None = field(default=None, compare=False, repr=False)
    """Where values are held within plus and minus this, an interval that reaches it has no end on that side."""

    def intervals(self, level: float = 0.95) -> np.ndarray[Any, np.dtype[Any]]:
        """For each value, (low, high) on a new last axis: they hold the noiseless value with probability ≥ `level`."""
        confidence = probability("level", level)
        if self.error is None:
            raise TypeError("this release is a choice or a set of answers, not numbers; it has no intervals")
        bound = self.error(float(1 - confidence))
        values = np.asarray(self.values)
        low, high = (np.asarray(end, dtype=np.float64) for end in (values - bound, values + bound))
        # Past 2⁵² a double next to the end may be inside it.
        low = np.where(np.abs(low) >= 2.0**52, np.nextafter(low, -np.inf), low)
        high = np.where(np.abs(high) >= 2.0**52, np.nextafter(high, np.inf), high)
        if self.limit is not None:
            low, high = np.where(low <= -self.limit, -np.inf, low), np.where(high >= self.limit, np.inf, high)
        return np.stack([low, high], axis=-1)

    def _repr_html_(self) -> str:
        from discreet.core.display.columns import Cells, measured
        from discreet.core.display.html import MOST_ROWS, block, note, table
        from discreet.core.display.numbers import loss, shown

        if self.error is None:
            listed = list(self.values) if isinstance(self.values, list | tuple | np.ndarray) else [self.values]
            cells = [Cells("value", [shown(value) for value in listed])]
        else:
            ends = self.intervals().reshape(-1, 2).tolist()
            cells = measured("value", np.ravel(self.values).tolist(), [(low, high) for low, high in ends], "95 %")
        warning = "" if self.private else note("NOT PRIVATE: the randomness came from a test seed.", alarm=True)
        return block(table(cells, MOST_ROWS), note(f"({loss(self.loss)})"), warning)


@runtime_checkable
class Mechanism(Protocol):
    """A frozen description of one randomised computation, checked when it is built.

    `loss` is computed from `events`, and `events` from the same parameters that set the noise.
    """

    @property
    def events(self) -> tuple[Event, ...]:
        """What `release` will run."""

    @property
    def loss(self) -> Loss:
        """An upper bound on what one release costs."""

    def release(self, data: Any) -> Release:
        """Run once on `data`; costs `loss`."""
