"""Studies to try tracing on: people of whom fair coins decide who is in, exact and private means, rows drawn again.

>>> study = Study.drawn(people=10, traits=4)
>>> study.bits.shape, study.means.size, study.private_means(1).size
((10, 4), 4, 4)
>>> tried, others, inside = divided(100, 20)
>>> tried.size, others.size, inside.size
(20, 80, 20)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.core.exact import Exactable, natural
from discreet.mechanisms.laplace import Laplace
from discreet.noise.uniform import permutation, uniform

__all__ = ["Study", "divided", "redrawn"]

Coins = NDArray[np.bool_]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Study:
    """Fair bits of people, about half of whom are in."""

    bits: NDArray[np.int64] = field(repr=False)
    inside: Coins = field(repr=False)

    @classmethod
    def drawn(cls, people: int, traits: int) -> Study:
        """All by coins."""
        n = natural("people", people)
        return cls(uniform(2, (n, natural("traits", traits))), uniform(2, n) == 1)

    @property
    def means(self) -> NDArray[np.float64]:
        """What an unprotected study publishes."""
        return np.asarray(self.bits[self.inside].mean(axis=0), np.float64)

    @property
    def population(self) -> NDArray[np.float64]:
        """What everybody knows."""
        return np.full(self.bits.shape[1], 0.5)

    def private_means(self, epsilon: Exactable) -> NDArray[np.float64]:
        """Counts with Laplace noise, ε for all of them together, over the number of people."""
        traits = self.bits.shape[1]
        counts = Laplace.for_epsilon(epsilon, sensitivity=traits, dimension=traits)
        released = counts.release(self.bits[self.inside].sum(axis=0)).values
        return np.asarray(released, np.float64) / max(1, int(self.inside.sum()))


def divided(people: int, tried: int) -> tuple[Places, Places, Coins]:
    """Places of those who are tried and of the others, and which of the former are in, by coins."""
    order = permutation(natural("people", people))
    return order[:tried], order[tried:], uniform(2, natural("tried", tried)) == 1


def redrawn(table: Mapping[str, Any]) -> dict[str, Any]:
    """As many rows, drawn from the table with replacement: what a generator does that has learned people by heart."""
    size = len(next(iter(table.values())))
    places = uniform(size, size)
    return {name: np.asarray(column)[places] for name, column in table.items()}
