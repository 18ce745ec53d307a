"""The terms on which a synopsis is built: the same public fields for every mechanism, checked in one place.

Unit: whoever adds up to at most `unit_weight` steps in the cells of the histogram. Neighbours: that unit's steps are
there or not (`changes=1`), or are exchanged for as many others (`changes=2`). `size` is the number of steps in the
histogram where that is public; else it is unknown and has to be bought.

With `delta=0` the loss is ε-DP, else (ε, δ)-DP by the tightest accountant there is. It is computed from `events`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from discreet.accounting.approximate import approximate
from discreet.accounting.pure import pure
from discreet.core.errors import InvalidArgument
from discreet.core.events import Composed, Event
from discreet.core.exact import count, natural, positive, probability
from discreet.core.losses import ApproxDP, PureDP
from discreet.synopses.queries.workload import Workload

__all__ = ["Terms"]


@dataclass(frozen=True, kw_only=True)
class Terms(ABC):
    """What every mechanism of this part is told."""

    workload: Workload
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    unit_weight: int = 1
    changes: int = 1
    size: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.workload, Workload):
            raise InvalidArgument("workload", self.workload, "a Workload", "build one over the domain")
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta, zero=True))
        if natural("unit_weight", self.unit_weight) > 1 << 40:
            raise InvalidArgument("unit_weight", self.unit_weight, "at most 2^40 steps", "count in coarser steps")
        if isinstance(self.changes, bool) or self.changes not in (1, 2):
            raise InvalidArgument("changes", self.changes, "1 or 2", "1 for add/remove neighbours, 2 for replace")
        if self.size is not None:
            count("size", self.size, limit=1 << 52)

    @property
    def budget(self) -> PureDP | ApproxDP:
        """What was asked for; `loss` is no more."""
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @property
    @abstractmethod
    def events(self) -> tuple[Event, ...]:
        """What `release` will run."""

    @cached_property
    def loss(self) -> PureDP | ApproxDP:
        """What the events cost: ε, or ε at this δ."""
        event = Composed(self.events)
        return approximate(event, self.delta) if self.delta else pure(event)
