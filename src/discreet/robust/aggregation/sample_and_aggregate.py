"""Any function made private: run on disjoint blocks of the data, its answers aggregated (subsample and aggregate).

Guarantee (a unit is a record, or all records that `units` gives one name). Blocks are drawn unit by unit
(`aggregation/blocks.py`), so add/remove or replace neighbours differ in `rounds` blocks; a block's answer depends on
its own rows and fresh randomness only (`sandbox/workers.py`), is held within what was declared, and is the default
where there is none; so neighbours differ in `rounds` answers, and the aggregator (`aggregation/numeric.py`,
`aggregation/votes.py`) costs what it says. Nothing is assumed of the function. What leaves a block is its answer:
nothing else of a run, not even that it failed, is seen.

>>> from discreet.core.domains import Bounds
>>> from discreet.noise.entropy import Entropy
>>> def spread(rows):
...     return rows.std() / rows.mean()
>>> relative = SampleAndAggregate(spread, Centre(Bounds(0, 5), epsilon=2, blocks=60))
>>> incomes = np.random.default_rng(0).lognormal(8, 0.5, 6_000)
>>> release = relative.release(incomes, entropy=Entropy.for_tests(0))
>>> round(float(spread(incomes)), 2), round(release.values, 1), release.loss
(0.53, 0.5, PureDP(epsilon=2))
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.events import Event
from discreet.core.losses import Loss
from discreet.core.mechanism import Release
from discreet.noise.entropy import Entropy, chosen
from discreet.robust.aggregation.blocks import blocks_of
from discreet.robust.aggregation.numeric import Centre
from discreet.robust.aggregation.votes import Agreement, Vote
from discreet.robust.sandbox.workers import Limits, Workers

__all__ = ["Aggregator", "SampleAndAggregate"]

Aggregator = Centre | Vote | Agreement


@dataclass(frozen=True)
class SampleAndAggregate:
    """The aggregated answers of `function` on random disjoint blocks of records."""

    function: Callable[[Any], Any]
    aggregator: Aggregator
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidArgument("function", self.function, "callable", "give a function of rows")
        if not isinstance(self.aggregator, Centre | Vote | Agreement):
            raise InvalidArgument("aggregator", self.aggregator, "Centre, Vote or Agreement", "say what answers are")
        if not isinstance(self.limits, Limits):
            raise InvalidArgument("limits", self.limits, "Limits", "write Limits(seconds=10)")

    @property
    def events(self) -> tuple[Event, ...]:
        """What `release` will run."""
        return self.aggregator.events

    @property
    def loss(self) -> Loss:
        """What the aggregator costs."""
        return self.aggregator.loss

    def release(
        self,
        data: Any,
        *,
        units: Any = None,
        progress: Callable[[float], None] | None = None,
        entropy: Entropy | None = None,
    ) -> Release:
        """`data` is an array, whose first axis counts records, or a list of records; `units` says whose each is."""
        rows = data if isinstance(data, np.ndarray) and data.ndim else list(data)
        owners = np.arange(len(rows)) if units is None else units
        if len(owners) != len(rows):
            raise InvalidArgument("units", len(owners), f"{len(rows)}, one for each record", "name whose each is")
        source, aggregator = chosen(entropy), self.aggregator
        with Workers(self.function, aggregator.size, "rows", self.limits) as workers:
            blocks = blocks_of(owners, aggregator.blocks, aggregator.rounds, entropy=source)

            def block(number: int) -> bytes | None:
                places = blocks[number]
                if not places.size:
                    return None
                held = rows[places] if isinstance(rows, np.ndarray) else [rows[place] for place in places.tolist()]
                try:
                    return pickle.dumps(held, protocol=5)
                except Exception:  # a record that cannot be sent is nothing to be told about
                    return None

            answers = workers.answers(block, len(blocks), progress)
        return aggregator.release([aggregator.read(answer) for answer in answers], entropy=source)
