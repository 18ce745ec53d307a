"""Blocks of linear queries over a domain: Kronecker products of factors, or sparse rows.

    Product({"age": prefixes, "sex": every})   each query of one factor with each of the other; the rest is summed out
    Explicit(matrix)                           one row for each query, one column for each cell, entries in [0, 1]

Queries of a product are ordered by the domain's attributes, the last one changing fastest.

>>> from discreet.synopses.domain import Attribute
>>> domain = Domain((Attribute("sex", ("F", "M")), Attribute.binned("age", (0, 18, 65, 120))))
>>> block = Product({"age": prefixes, "sex": every}).bound(domain)
>>> block.count(domain), block.describe(domain, 4)
(6, 'sex = M and age in [0, 65)')
>>> [part.tolist() for part in block.support(domain, 4)]
[[3, 4], [1.0, 1.0]]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import exact
from discreet.noise.batches import Integers
from discreet.synopses.domain import Domain
from discreet.synopses.queries.factors import FINE, Doubles, Factor, Sets, every, prefixes, ranges, rounded

__all__ = ["MOST_ENTRIES", "Block", "Explicit", "Product", "sparse_rows"]

MOST_ENTRIES = 1 << 28
"""Sparse rows with more entries than this (3 GB) are refused."""
_NAMED = {factor.kind: factor for factor in (every, prefixes, ranges)}
_PAIRS = 2048
"""Up to this many values the distance of every two columns of a factor is looked at."""


class Block(ABC):
    """A list of queries."""

    fractional: bool

    @abstractmethod
    def bound(self, domain: Domain) -> Block:
        """This block for a domain, or a refusal."""

    @abstractmethod
    def count(self, domain: Domain) -> int:
        """How many queries there are."""

    @abstractmethod
    def support(self, domain: Domain, index: int) -> tuple[Integers, Doubles]:
        """The cells one query weighs, in order, and its weights there."""

    @abstractmethod
    def describe(self, domain: Domain, index: int) -> str:
        """One query in words."""

    @abstractmethod
    def squared(self) -> Block:
        """The same with every entry squared."""

    @abstractmethod
    def top(self) -> float:
        """The largest entry, or more."""

    @abstractmethod
    def column(self, domain: Domain) -> float:
        """The largest sum of a column, or more."""

    @abstractmethod
    def apart(self, domain: Domain) -> float:
        """The largest ℓ1 distance of two columns of 0 and 1, or more; for fractions twice the largest sum."""

    @abstractmethod
    def packed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """A plain dictionary, and arrays by name."""


class Product(Block):
    """A Kronecker product: one factor for each attribute named, all values of the others."""

    def __init__(self, factors: Mapping[str, Factor]) -> None:
        if not isinstance(factors, Mapping) or not all(isinstance(f, Factor) for f in factors.values()):
            raise InvalidArgument("factors", factors, "factors by attribute", "use every, prefixes, ranges or Sets")
        blurred = sum(factor.fractional for factor in factors.values())
        if blurred > FINE // 2:
            raise InvalidArgument("factors", f"{blurred} of fractions", f"at most {FINE // 2}", "use 0/1 sets")
        # Products of entries are multiples of 2⁻²⁰ too.
        self.factors = {name: factor.rounded(FINE // max(blurred, 1)) for name, factor in factors.items()}
        self.fractional = blurred > 0
        self.disjoint = all(factor is every for factor in factors.values())
        """Whether every record is counted by exactly one query: a marginal."""

    def bound(self, domain: Domain) -> Product:
        for name, factor in self.factors.items():
            factor.bound(domain.attribute(name))
        ordered = Product({})
        ordered.__dict__ |= self.__dict__ | {"factors": {n: self.factors[n] for n in domain.names if n in self.factors}}
        return ordered

    def axes(self, domain: Domain) -> tuple[int, ...]:
        """The places of the attributes it looks at."""
        return tuple(domain.index(name) for name in self.factors)

    def counts(self, domain: Domain) -> tuple[int, ...]:
        """How many queries each factor has."""
        return tuple(factor.count(domain.attribute(name).size) for name, factor in self.factors.items())

    def count(self, domain: Domain) -> int:
        return prod(self.counts(domain))

    def apply(self, tensor: Doubles) -> Doubles:
        """The answers on a tensor of just the attributes it looks at."""
        for axis, factor in enumerate(self.factors.values()):
            tensor = factor.apply(tensor, axis)
        return tensor.reshape(-1)

    def spread(self, domain: Domain, values: Doubles) -> Doubles:
        """The transpose of `apply`."""
        tensor = values.reshape(self.counts(domain))
        for axis, (name, factor) in enumerate(self.factors.items()):
            tensor = factor.spread(tensor, axis, domain.attribute(name).size)
        return tensor

    def support(self, domain: Domain, index: int) -> tuple[Integers, Doubles]:
        rows = self._rows(domain, index)
        cells, weights = np.zeros(1, dtype=np.int64), np.ones(1)
        for name, size in zip(domain.names, domain.shape, strict=True):
            row = rows.get(name, np.ones(size))
            places = np.flatnonzero(row)
            cells = np.add.outer(cells * size, places).reshape(-1)
            weights = np.multiply.outer(weights, row[places]).reshape(-1)
        return cells, weights

    def describe(self, domain: Domain, index: int) -> str:
        places = self._places(domain, index)
        words = [f.describe(places[name], domain.attribute(name)) for name, f in self.factors.items()]
        return " and ".join(words) or "all records"

    def squared(self) -> Product:
        copy = Product({})
        copy.__dict__ |= self.__dict__ | {"factors": {name: f.squared() for name, f in self.factors.items()}}
        return copy

    def top(self) -> float:
        return prod(factor.top() for factor in self.factors.values())

    def column(self, domain: Domain) -> float:
        return prod(float(f.sums(domain.attribute(name).size).max()) for name, f in self.factors.items())

    def apart(self, domain: Domain) -> float:
        sizes = [domain.attribute(name).size for name in self.factors]
        if not sizes:
            return 0.0
        if self.fractional or len(sizes) != 1 or sizes[0] > _PAIRS:
            return 2 * self.column(domain)
        # ‖a − b‖₁ = ‖a‖ + ‖b‖ − 2⟨a, b⟩ for columns of 0 and 1.
        [factor] = self.factors.values()
        shared = factor.shared(sizes[0])
        own = np.diagonal(shared)
        return float((np.add.outer(own, own) - 2 * shared).max())

    def packed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        kinds = {name: factor.kind for name, factor in self.factors.items()}
        arrays = {name: factor.matrix for name, factor in self.factors.items() if isinstance(factor, Sets)}
        return {"kind": "product", "factors": kinds}, arrays

    @classmethod
    def unpacked(cls, record: Mapping[str, Any], arrays: Mapping[str, Any]) -> Product:
        """The block that `packed` wrote."""
        kinds = record["factors"].items()
        return cls({name: Sets(arrays[name]) if kind == Sets.kind else _NAMED[kind] for name, kind in kinds})

    def _places(self, domain: Domain, index: int) -> dict[str, int]:
        places = np.unravel_index(index, self.counts(domain) or (1,))
        return dict(zip(self.factors, (int(place) for place in places), strict=False))

    def _rows(self, domain: Domain, index: int) -> dict[str, Doubles]:
        places = self._places(domain, index)
        return {name: f.row(places[name], domain.attribute(name).size) for name, f in self.factors.items()}

    def __repr__(self) -> str:
        return f"Product({self.factors})"


class Explicit(Block):
    """Sparse rows over all cells, with a name for each where given."""

    def __init__(self, matrix: Any, names: tuple[str, ...] = ()) -> None:
        from scipy import sparse

        try:
            rows = sparse.csr_array(matrix, dtype=np.float64, copy=True)
        except (TypeError, ValueError):
            dense = [[float(exact("matrix", entry)) for entry in row] for row in matrix]
            rows = sparse.csr_array(np.array(dense, dtype=np.float64))
        if rows.ndim != 2:
            raise InvalidArgument("matrix", f"of {rows.ndim} dimensions", "a matrix", "give one row for each query")
        rows.sum_duplicates()
        rows.data = rounded("matrix", rows.data, FINE)
        rows.eliminate_zeros()
        if names and len(names) != rows.shape[0]:
            raise InvalidArgument("names", f"{len(names)} names", f"{rows.shape[0]}", "give one for each query")
        self.matrix = rows
        self.names = tuple(names)
        self.fractional = bool((rows.data % 1).any())

    def bound(self, domain: Domain) -> Explicit:
        if self.matrix.shape[1] != domain.dense():
            found = f"{self.matrix.shape[1]} columns"
            raise InvalidArgument("matrix", found, f"{domain.size}", "give one for each cell of the domain, in order")
        return self

    def count(self, domain: Domain) -> int:
        return int(self.matrix.shape[0])

    def support(self, domain: Domain, index: int) -> tuple[Integers, Doubles]:
        start, stop = self.matrix.indptr[index : index + 2]
        return self.matrix.indices[start:stop].astype(np.int64), self.matrix.data[start:stop]

    def describe(self, domain: Domain, index: int) -> str:
        return self.names[index] if self.names else f"query {index}"

    def squared(self) -> Explicit:
        if not self.fractional:
            return self
        copy = object.__new__(Explicit)
        copy.__dict__ |= self.__dict__ | {"matrix": self.matrix.power(2)}
        return copy

    def top(self) -> float:
        return float(self.matrix.data.max(initial=0.0))

    def column(self, domain: Domain) -> float:
        return float(np.max(self.matrix.sum(axis=0), initial=0.0))

    def apart(self, domain: Domain) -> float:
        return 2 * self.column(domain)

    def packed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        parts = {name: getattr(self.matrix, name) for name in ("data", "indices", "indptr")}
        return {"kind": "explicit", "names": list(self.names), "columns": int(self.matrix.shape[1])}, parts

    @classmethod
    def unpacked(cls, record: Mapping[str, Any], arrays: Mapping[str, Any]) -> Explicit:
        """The block that `packed` wrote."""
        from scipy import sparse

        shape = (arrays["indptr"].size - 1, record["columns"])
        matrix = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        return cls(matrix, tuple(record["names"]))

    def __repr__(self) -> str:
        return f"Explicit({self.matrix.shape[0]} queries)"


def sparse_rows(supports: list[tuple[Integers, Doubles]], columns: int) -> Any:
    """A CSR matrix of rows given by cells and weights."""
    from scipy import sparse

    ends = np.cumsum([0, *(cells.size for cells, _ in supports)])
    if ends[-1] > MOST_ENTRIES:
        memory = f"{ends[-1]:.3g} entries, {12 * int(ends[-1]) / 2**30:.3g} GB"
        raise InvalidArgument("rows", memory, f"at most {MOST_ENTRIES:,}", "take fewer rows, or products of factors")
    places = np.concatenate([np.empty(0, dtype=np.int64), *(cells for cells, _ in supports)])
    weights = np.concatenate([np.empty(0), *(part for _, part in supports)])
    return sparse.csr_array((weights, places, ends), shape=(len(supports), columns))
