"""Factors: sets of linear queries over the values of one attribute, as small matrices with entries in [0, 1].

    every       one query for each value                  identity
    prefixes    values up to each one                     n queries
    ranges      values from each one to each later one    n(n + 1)/2 queries, by their first value, then their last
    Sets(rows)  any rows: 0/1 for sets of values, between for weights

The first three are applied by sums along the axis and never written down.

>>> counts = np.array([3.0, 1.0, 2.0])
>>> every.apply(counts, 0).tolist(), prefixes.apply(counts, 0).tolist()
([3.0, 1.0, 2.0], [3.0, 4.0, 6.0])
>>> ranges.apply(counts, 0).tolist()
[3.0, 4.0, 6.0, 1.0, 3.0, 2.0]
>>> Sets([[1, 0, 1]]).apply(counts, 0).tolist()
[5.0]

Entries between 0 and 1 are rounded to multiples of 2⁻²⁰, once; whole counts are then answered without any rounding as
long as they add up to less than 2³³ (2⁵³ where all entries are 0 or 1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import exact
from discreet.synopses.domain import Attribute

__all__ = ["FINE", "Doubles", "Factor", "Sets", "every", "prefixes", "ranges", "rounded"]

Doubles = np.ndarray[Any, np.dtype[np.float64]]
FINE = 20
"""Entries are multiples of 2⁻²⁰."""
_LISTED = 4
"""Sets of up to this many values are described by listing them."""


class Factor(ABC):
    """A matrix with one column for each of n values."""

    kind: str
    fractional = False
    even = False
    """Whether all columns have the same sum."""

    @abstractmethod
    def count(self, size: int) -> int:
        """How many queries there are on `size` values."""

    @abstractmethod
    def apply(self, tensor: Doubles, axis: int) -> Doubles:
        """The answers, along `axis` instead of the values."""

    @abstractmethod
    def spread(self, tensor: Doubles, axis: int, size: int) -> Doubles:
        """The transpose of `apply`."""

    @abstractmethod
    def row(self, index: int, size: int) -> Doubles:
        """One query."""

    @abstractmethod
    def describe(self, index: int, attribute: Attribute) -> str:
        """One query in words."""

    @abstractmethod
    def shared(self, size: int) -> Doubles:
        """⟨a, b⟩ for every two columns a and b."""

    def bound(self, attribute: Attribute) -> Factor:
        """This factor for an attribute, or a refusal."""
        return self

    def squared(self) -> Factor:
        """The same with every entry squared."""
        return self

    def rounded(self, bits: int) -> Factor:
        """The same with entries rounded to multiples of 2^−bits."""
        return self

    def top(self) -> float:
        """The largest entry."""
        return 1.0

    def sums(self, size: int) -> Doubles:
        """The sum of each column."""
        return self.spread(np.ones(self.count(size)), 0, size)


class _Every(Factor):
    kind, even = "every", True

    def count(self, size: int) -> int:
        return size

    def apply(self, tensor: Doubles, axis: int) -> Doubles:
        return tensor

    def spread(self, tensor: Doubles, axis: int, size: int) -> Doubles:
        return tensor

    def row(self, index: int, size: int) -> Doubles:
        return np.asarray(np.arange(size) == index, dtype=np.float64)

    def describe(self, index: int, attribute: Attribute) -> str:
        return attribute.span(index, index)

    def shared(self, size: int) -> Doubles:
        return np.eye(size)

    def __repr__(self) -> str:
        return self.kind


class _Prefixes(_Every):
    kind, even = "prefixes", False

    def apply(self, tensor: Doubles, axis: int) -> Doubles:
        return np.cumsum(tensor, axis=axis)

    def spread(self, tensor: Doubles, axis: int, size: int) -> Doubles:
        return np.flip(np.cumsum(np.flip(tensor, axis), axis=axis), axis)

    def row(self, index: int, size: int) -> Doubles:
        return np.asarray(np.arange(size) <= index, dtype=np.float64)

    def describe(self, index: int, attribute: Attribute) -> str:
        return attribute.span(0, index)

    def shared(self, size: int) -> Doubles:
        places = np.arange(size)
        return np.asarray(size - np.maximum.outer(places, places), dtype=np.float64)


class _Ranges(_Every):
    kind, even = "ranges", False

    def count(self, size: int) -> int:
        return size * (size + 1) // 2

    def apply(self, tensor: Doubles, axis: int) -> Doubles:
        first, last = np.triu_indices(tensor.shape[axis])
        upto = np.cumsum(np.moveaxis(tensor, axis, 0), axis=0)
        before = np.concatenate([np.zeros_like(upto[:1]), upto])
        return np.moveaxis(upto[last] - before[first], 0, axis)

    def spread(self, tensor: Doubles, axis: int, size: int) -> Doubles:
        first, last = np.triu_indices(size)
        rows = np.moveaxis(tensor, axis, 0)
        changes = np.zeros((size + 1, *rows.shape[1:]))
        np.add.at(changes, first, rows)
        np.subtract.at(changes, last + 1, rows)
        return np.moveaxis(np.cumsum(changes, axis=0)[:size], 0, axis)

    def row(self, index: int, size: int) -> Doubles:
        first, last = self._ends(index, size)
        places = np.arange(size)
        return np.asarray((places >= first) & (places <= last), dtype=np.float64)

    def describe(self, index: int, attribute: Attribute) -> str:
        return attribute.span(*self._ends(index, attribute.size))

    def shared(self, size: int) -> Doubles:
        places = np.arange(size)
        low, high = np.minimum.outer(places, places), np.maximum.outer(places, places)
        return np.asarray((low + 1) * (size - high), dtype=np.float64)

    @staticmethod
    def _ends(index: int, size: int) -> tuple[int, int]:
        first, last = np.triu_indices(size)
        return int(first[index]), int(last[index])


class Sets(Factor):
    """Queries given row by row, each with a weight in [0, 1] for every value."""

    kind = "sets"

    def __init__(self, rows: Any) -> None:
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        try:
            matrix = np.array(dense, dtype=np.float64)
        except (TypeError, ValueError):
            matrix = np.array([[float(exact("rows", entry)) for entry in row] for row in dense], dtype=np.float64)
        if matrix.ndim != 2 or 0 in matrix.shape:
            raise InvalidArgument("rows", f"of shape {matrix.shape}", "a matrix", "give one row for each query")
        self.matrix = rounded("rows", matrix, FINE)
        self.fractional = bool((self.matrix % 1).any())
        self.even = bool((self.matrix.sum(axis=0) == self.matrix[:, 0].sum()).all())

    def bound(self, attribute: Attribute) -> Factor:
        if self.matrix.shape[1] != attribute.size:
            found, wanted = f"{self.matrix.shape[1]} weights in a row", f"{attribute.size} for {attribute.name}"
            raise InvalidArgument("rows", found, wanted, "give one weight for each value")
        return self

    def squared(self) -> Factor:
        if not self.fractional:
            return self
        copy = object.__new__(Sets)
        copy.__dict__ |= self.__dict__ | {"matrix": self.matrix**2}
        return copy

    def rounded(self, bits: int) -> Factor:
        return Sets(rounded("rows", self.matrix, bits)) if self.fractional else self

    def count(self, size: int) -> int:
        return int(self.matrix.shape[0])

    def top(self) -> float:
        return float(self.matrix.max())

    def apply(self, tensor: Doubles, axis: int) -> Doubles:
        return np.moveaxis(np.tensordot(self.matrix, tensor, axes=(1, axis)), 0, axis)

    def spread(self, tensor: Doubles, axis: int, size: int) -> Doubles:
        return np.moveaxis(np.tensordot(self.matrix, tensor, axes=(0, axis)), 0, axis)

    def row(self, index: int, size: int) -> Doubles:
        return np.asarray(self.matrix[index], dtype=np.float64)

    def describe(self, index: int, attribute: Attribute) -> str:
        row = self.matrix[index]
        held = np.flatnonzero(row)
        if self.fractional or held.size > _LISTED:
            return f"{attribute.name} in set {index}"
        return f"{attribute.name} in {{{', '.join(attribute.labels[place] for place in held)}}}"

    def shared(self, size: int) -> Doubles:
        return self.matrix.T @ self.matrix

    def __repr__(self) -> str:
        return f"Sets({self.matrix.tolist()})"


every: Factor = _Every()
"""One query for each value."""
prefixes: Factor = _Prefixes()
"""For each value one query: all up to it."""
ranges: Factor = _Ranges()
"""All runs of values."""


def rounded(argument: str, entries: Doubles, bits: int) -> Doubles:
    """Entries in [0, 1] as multiples of 2^−bits; others are refused."""
    if not (np.isfinite(entries).all() and (entries >= 0).all() and (entries <= 1).all()):
        raise InvalidArgument(argument, "an entry outside", "in [0, 1]", "scale the queries")
    return np.ldexp(np.floor(np.ldexp(entries, bits) + 0.5), -bits)
