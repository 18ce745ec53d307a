"""What the additive mechanisms share: numbers onto the grid, noise on, saturating, and back.

Unit and neighbours are the caller's: `sensitivity` is how far the whole vector can move, in the norm of the mechanism,
between neighbouring data sets. Two kinds of data are taken, and which of them is public:

- whole numbers (`real=False`): int arrays. They lie on the grid already, so steps = sensitivity/step exactly.
- reals (`real=True`): each of the `dimension` coordinates is rounded to the grid, which can add up to one step to how
  far it moves. The sensitivity in steps includes that.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from discreet.core.arrays import has_fractions, reals, whole
from discreet.core.errors import InvalidArgument
from discreet.noise.batches import Integers
from discreet.noise.grid import Grid
from discreet.noise.laplace import scale_argument

__all__ = ["COMPARABLE", "END", "comparable", "flag", "from_steps", "saturating_sum", "to_steps"]

END = (1 << 62) - 1
"""Data and sums are held within ±END. Noise is held within ±(2⁶³ − 1), so noise at its end carries any data past END
and the held sum is a function of the unheld one: post-processing, whatever the scale."""
COMPARABLE = Fraction(1 << 52)
"""The largest scale of noise that is compared instead of released: it reaches 2⁶² with probability below e^(−1000)."""


def to_steps(data: object, grid: Grid, real: bool, dimension: int) -> Integers:
    """The data on the grid; its dtype and size are public and must be as declared."""
    array = reals("data", data) if real and has_fractions(data) else whole("data", data)
    if array.size > dimension:
        raise InvalidArgument("data", f"{array.size} numbers", f"at most {dimension}", "declare the dimension")
    return np.clip(grid.steps(array), -END, END)


def saturating_sum(values: Integers, noise: Integers) -> Integers:
    """values + noise held within ±END; the values are within it already."""
    with np.errstate(over="ignore"):
        total = values + noise
    wrapped = ((values ^ total) & (noise ^ total)) < 0
    return np.where(wrapped, np.where(noise > 0, END, -END), np.clip(total, -END, END)).astype(np.int64)


def flag(argument: str, value: object) -> None:
    """Refuse what only looks true or false: a text would silently halve the noise."""
    if not isinstance(value, bool):
        raise InvalidArgument(argument, value, "True or False", "give a bool")


def comparable(argument: str, scale: Fraction) -> None:
    """Refuse noise so wide that int64 could not compare its sums."""
    if scale_argument(argument, scale) > COMPARABLE:
        raise InvalidArgument(argument, float(scale), "at most 2^52 grid steps", "choose a coarser grid")


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
