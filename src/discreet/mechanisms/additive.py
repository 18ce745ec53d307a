"""What the additive mechanisms share: numbers onto the grid, noise on, saturating, and back.

Unit and neighbours are the caller's: `sensitivity` is how far the whole vector can move, in the norm of the mechanism,
between neighbouring data sets. Two kinds of data are taken, and which of them is public:

- whole numbers (`real=False`): int arrays. They lie on the grid already, so steps = sensitivity/step exactly.
- reals (`real=True`): each of the `dimension` coordinates is rounded to the grid, which can add up to one step to how
  far it moves. The sensitivity in steps includes that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.noise.grid import Grid
from discreet.noise.shape import Integers

__all__ = ["from_steps", "saturating_sum", "to_steps"]

_LARGEST = (1 << 63) - 1


def to_steps(data: object, grid: Grid, real: bool, dimension: int) -> Integers:
    """The data on the grid; its dtype and size are public and must be as declared."""
    array = np.asarray(data)
    if array.size > dimension:
        raise InvalidArgument("data", f"{array.size} numbers", f"at most {dimension}", "declare the dimension")
    if array.dtype.kind not in ("iubf" if real or array.size == 0 else "iub"):
        remedy = "build the mechanism with real=True" if array.dtype.kind == "f" else "convert to numbers first"
        raise InvalidArgument("data", array.dtype.name, "numbers" if real else "whole numbers", remedy)
    return grid.steps(array.astype(np.int64) if array.size == 0 else array)


def saturating_sum(values: Integers, noise: Integers) -> Integers:
    """values + noise, held at the ends of int64 instead of wrapping round."""
    with np.errstate(over="ignore"):
        total = values + noise
    wrapped = ((values ^ total) & (noise ^ total)) < 0
    ends = np.where(noise > 0, _LARGEST, -_LARGEST)
    return np.where(wrapped, ends, np.maximum(total, -_LARGEST)).astype(np.int64)


def from_steps(steps: Integers, grid: Grid, real: bool) -> Any:
    """Reals as doubles; whole numbers rounded back to whole numbers (post-processing)."""
    if real:
        values: Any = grid.values(steps)
    elif grid.exponent == 0:
        values = steps
    else:
        shift = -grid.exponent
        values = (steps >> shift) + ((steps >> (shift - 1)) & 1)
    return values[()] if values.ndim == 0 else values
