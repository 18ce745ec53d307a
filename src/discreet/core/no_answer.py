"""⊥: no answer, which is an answer, and costs as much.

>>> from discreet.core.losses import ApproxDP
>>> refused = Unstable(ApproxDP(1, "1e-6"))
>>> print(refused)
not stable enough to answer; this cost ε = 1, δ = 1e-6
>>> bool(refused), refused.symbol
(False, '⊥')
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.core.losses import Loss

__all__ = ["Unstable"]


@dataclass(frozen=True)
class Unstable:
    """⊥: the data is too near to data with another answer. It is an outcome like any other, and costs the same."""

    loss: Loss
    symbol: ClassVar[str] = "⊥"
    """What stands for it in a table."""

    def __bool__(self) -> bool:
        """No answer."""
        return False

    def __str__(self) -> str:
        from discreet.core.display.numbers import loss

        return f"not stable enough to answer; this cost {loss(self.loss)}"
