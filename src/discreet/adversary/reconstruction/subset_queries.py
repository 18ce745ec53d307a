"""Linear questions about secret bits: which of n people are counted, and with which weight.

`Listed` holds weights one query a row, dense or sparse; `Hadamard` is a structured set whose sums are computed by a
fast transform, so that tens of thousands of people are within reach. A query with weights 0 and 1 is a subset, and its
answer how many people of the subset have the bit; weights −1 and 1 (`signs=True`) ask for the difference of two.

>>> Listed.all_subsets(3).matrix().astype(int).tolist()[:4]
[[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
>>> queries = Hadamard(people=5)
>>> len(queries), queries.row(0).tolist()
(8, [1.0, 1.0, 1.0, 1.0, 1.0])
>>> queries.apply([1, 0, 0, 1, 1])[0]
np.float64(3.0)

What an attacker asks protects nobody, but the curator should not be able to guess it: questions are drawn from the
system's entropy, and from a seed only in tests.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.core.errors import InvalidArgument
from discreet.core.exact import natural
from discreet.noise.entropy import Entropy
from discreet.noise.uniform import permutation, uniform

__all__ = ["Hadamard", "Listed", "Queries", "transform"]

Doubles = NDArray[np.float64]
LARGEST = 1 << 28
"""Weights that are written down, at most: 2 GB."""
MOST_SUBSETS = 20
"""People whose subsets are all asked for, at most: a million questions."""


@runtime_checkable
class Queries(Protocol):
    """k linear queries on n bits."""

    @property
    def people(self) -> int:
        """n."""

    def __len__(self) -> int:
        """k."""

    def row(self, index: int) -> Doubles:
        """The weights of one query."""

    def matrix(self, indices: Iterable[int] | None = None) -> Any:
        """Weights of some queries, or of all: an array, or a sparse matrix of scipy."""

    def apply(self, x: ArrayLike) -> Doubles:
        """The answers of all queries on x."""

    def transpose(self, y: ArrayLike) -> Doubles:
        """For each person the sum of what the queries that weigh them have in y, by weight."""


@dataclass(frozen=True, eq=False)
class Listed:
    """Queries by their weights, one query a row: an array or a sparse matrix of scipy."""

    weights: Any = field(repr=False)

    def __post_init__(self) -> None:
        if not _is_sparse(self.weights):
            listed = np.asarray(self.weights, dtype=np.float64)
            if listed.ndim != 2 or listed.size == 0 or not np.isfinite(listed).all():
                wanted = "a table of finite weights, one query a row and one person a column"
                raise InvalidArgument("weights", f"of shape {listed.shape}", wanted, "write 0 for people left out")
            object.__setattr__(self, "weights", listed)
        else:
            object.__setattr__(self, "weights", self.weights.tocsr().astype(np.float64))

    @classmethod
    def all_subsets(cls, people: int) -> Listed:
        """Every subset; the query of number j counts the people whose binary digit in j is 1."""
        if natural("people", people) > MOST_SUBSETS:
            remedy = "ask random subsets or Hadamard queries: they need only as many questions as people"
            raise InvalidArgument("people", people, f"at most {MOST_SUBSETS} for all subsets", remedy)
        return cls((np.arange(1 << people)[:, None] >> np.arange(people)) & 1)

    @classmethod
    def drawn(cls, people: int, count: int, *, signs: bool = False, test_entropy: Entropy | None = None) -> Listed:
        """Everybody is in each subset by a fair coin; with `signs` those outside count −1."""
        k, n = _size(count, people)
        coins = uniform(2, (k, n), entropy=test_entropy)
        return cls(2 * coins - 1 if signs else coins)

    @classmethod
    def sparse(
        cls, people: int, count: int, each: int, *, signs: bool = False, test_entropy: Entropy | None = None
    ) -> Listed:
        """Subsets of `each` people (some of them drawn twice count once); with `signs` each weighs −1 or 1."""
        from scipy.sparse import csr_matrix

        k, n, size = natural("count", count), natural("people", people), natural("each", each)
        if size > n or k * size > LARGEST:
            raise InvalidArgument("each", each, f"at most {min(n, LARGEST // k)}", "ask smaller subsets")
        chosen = uniform(n, (k, size), entropy=test_entropy)
        drawn = csr_matrix((np.ones(k * size), (np.repeat(np.arange(k), size), chosen.reshape(-1))), shape=(k, n))
        drawn.sum_duplicates()
        drawn.data[:] = 2.0 * uniform(2, drawn.nnz, entropy=test_entropy) - 1 if signs else 1.0
        return cls(drawn)

    @property
    def people(self) -> int:
        """Whose bits are asked about."""
        return int(self.weights.shape[1])

    def __len__(self) -> int:
        return int(self.weights.shape[0])

    def row(self, index: int) -> Doubles:
        """The weights of one query."""
        one = self.weights[index]
        return np.asarray(one.todense()).reshape(-1) if _is_sparse(one) else one

    def matrix(self, indices: Iterable[int] | None = None) -> Any:
        """Weights of some queries, or of all."""
        return self.weights if indices is None else self.weights[np.asarray(indices)]

    def apply(self, x: ArrayLike) -> Doubles:
        """The answers on x."""
        return np.asarray(self.weights @ np.asarray(x, np.float64), np.float64)

    def transpose(self, y: ArrayLike) -> Doubles:
        """Aᵀy."""
        return np.asarray(self.weights.T @ np.asarray(y, np.float64), np.float64)


@dataclass(frozen=True, eq=False)
class Hadamard:
    """Rows of Hadamard matrices of the next power of two, each round with the people in a new order.

    One round asks as many questions as that power; people's columns are orthogonal, which no set of so many questions
    with weights within ±1 can better. The first row counts everybody.
    """

    people: int
    rounds: int = 1
    signs: bool = False
    test_entropy: Entropy | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        natural("people", self.people)
        natural("rounds", self.rounds)
        if self.order * self.rounds > LARGEST:
            raise InvalidArgument("people", self.people, f"at most {LARGEST // self.rounds // 2}", "ask fewer rounds")
        _ = self._places

    @cached_property
    def order(self) -> int:
        """Queries in a round."""
        return 1 << (self.people - 1).bit_length()

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """The column of every person in each round."""
        drawn = [permutation(self.order, entropy=self.test_entropy)[: self.people] for _ in range(self.rounds)]
        return np.stack(drawn).astype(np.int64)

    def __len__(self) -> int:
        return self.order * self.rounds

    def row(self, index: int) -> Doubles:
        """The weights of one query."""
        turn, number = divmod(int(index), self.order)
        if not 0 <= turn < self.rounds:
            raise InvalidArgument("index", index, f"from 0 to {len(self) - 1}", "there are no more queries")
        row: Doubles = 1.0 - 2.0 * (np.bitwise_count(self._places[turn] & number) & 1)
        return row if self.signs else (row + 1) / 2

    def matrix(self, indices: Iterable[int] | None = None) -> Any:
        """Weights of some queries, or of all, written down."""
        wanted = list(range(len(self)) if indices is None else indices)
        if len(wanted) * self.people > LARGEST:
            raise InvalidArgument("people", self.people, "few enough to write weights down", "use least squares")
        return np.stack([self.row(index) for index in wanted])

    def apply(self, x: ArrayLike) -> Doubles:
        """The answers on x, by the fast transform."""
        values = np.asarray(x, np.float64)
        spread = np.zeros((self.rounds, self.order))
        for turn in range(self.rounds):
            spread[turn, self._places[turn]] = values
        sums = transform(spread).reshape(-1)
        return sums if self.signs else (sums + values.sum()) / 2

    def transpose(self, y: ArrayLike) -> Doubles:
        """Aᵀy, by the fast transform."""
        given = np.asarray(y, np.float64).reshape(self.rounds, self.order)
        back = np.take_along_axis(transform(given), self._places, axis=1).sum(axis=0)
        return np.asarray(back if self.signs else (back + given.sum()) / 2, np.float64)


def transform(rows: ArrayLike) -> Doubles:
    """The Walsh–Hadamard transform of each row, whose length is a power of two: N·log₂N additions.

    >>> transform([[1, 0, 0, 0], [1, 2, 3, 4]]).tolist()
    [[1.0, 1.0, 1.0, 1.0], [10.0, -2.0, -4.0, 0.0]]
    """
    values = np.array(rows, dtype=np.float64)
    count, size = values.shape
    half = 1
    while half < size:
        pairs = values.reshape(count, -1, 2, half)
        values = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        half *= 2
    return values.reshape(count, size)


def _size(count: int, people: int) -> tuple[int, int]:
    k, n = natural("count", count), natural("people", people)
    if k * n > LARGEST:
        raise InvalidArgument("count", count, f"at most {LARGEST // n} queries of {n} people", "ask Hadamard queries")
    return k, n


def _is_sparse(matrix: object) -> bool:
    return hasattr(matrix, "tocsr")
