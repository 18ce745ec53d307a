"""How far a released number is likely off, known before anything is released.

>>> print(ExpectedError("n", 4.44, 4.44))
n ± 4.44
>>> print(ExpectedError("mean", 12, 60, over_count=True))
mean ± 12 to 60 over the number of rows, plus what clipping takes
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

__all__ = ["ExpectedError"]


@dataclass(frozen=True)
class ExpectedError:
    """How far one released column is likely off, known beforehand.

    `noise` is the mean absolute error of a cell if units weigh 1 each, `at_limit` if they weigh the declared limit
    (infinite where there is none); `over_count` says to divide it by the number of rows in the cell, as for averages.
    """

    column: str
    noise: float
    at_limit: float
    over_count: bool = False
    in_ranks: bool = False
    """Quantiles are off by so many rows in the order of values."""
    meaning: str = ""
    """What the number says, where it is nothing of this."""

    def __str__(self) -> str:
        if self.meaning:
            most = "" if self.noise == self.at_limit else f" to {self.at_limit:,.3g}"
            times = ", times the limit on a unit's rows" if self.at_limit == inf else ""
            return f"{self.column} {self.meaning.format(f'{self.noise:,.3g}{most if not times else str()}')}{times}"
        kind = " ranks" if self.in_ranks else " over the number of rows" if self.over_count else ""
        if self.noise == self.at_limit:
            return f"{self.column} ± {self.noise:,.3g}{kind}"
        if self.at_limit == inf:
            return f"{self.column} ± {self.noise:,.3g}{kind}, times the limit on a unit's rows, plus what that takes"
        return f"{self.column} ± {self.noise:,.3g} to {self.at_limit:,.3g}{kind}, plus what clipping takes"
