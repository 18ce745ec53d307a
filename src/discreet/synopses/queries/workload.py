"""Workloads: many linear queries over a domain, answered together and never written down where they are products.

A query is a weight q in [0, 1] for every cell; its answer on a histogram x is the count ⟨q, x⟩. How far answers move
when one record comes or goes is computed from the queries (`column_norm`, `largest`, `neighbour_set`), not declared.

>>> from discreet.synopses.domain import Attribute
>>> domain = Domain((Attribute("sex", ("F", "M")), Attribute.binned("age", (0, 18, 65, 120))))
>>> work = Workload.marginals(domain, [("sex",), ("sex", "age")]) + Workload.prefixes(domain, "age")
>>> len(work), work.describe(0), work.describe(9)
(11, 'sex = F', 'age in [0, 65)')
>>> work.answers([1, 2, 3, 4, 5, 6]).tolist()
[6.0, 15.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 5.0, 12.0, 21.0]
>>> work.column_norm(1), work.column_norm(2, changes=2), work.largest()
(Fraction(5, 1), Fraction(6, 1), Fraction(1, 1))

A unit that adds up to w in all the cells moves the answers by w times a mean of columns of the query matrix, so norms
of columns bound norms of moves, w times for ℓ1 and w² times for squared ℓ2.

Products that leave an attribute out share the histogram summed over it: at every step the attribute that most of the
remaining products leave out is summed out for all of them. Thousands of marginals of a million cells then cost about as
much as ten passes over them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.exact import natural
from discreet.noise.batches import Integers
from discreet.synopses.domain import LARGEST_CELL, Domain
from discreet.synopses.queries.blocks import Block, Explicit, Product, sparse_rows
from discreet.synopses.queries.factors import FINE, Doubles, every, prefixes, ranges

__all__ = ["Workload"]

_EXACT = 53
"""Whole numbers of so many bits are added up in doubles without rounding."""
_SOUGHT = 1 << 24
"""In domains of up to this many cells the largest column is looked for; beyond, those of the blocks are added up."""


@dataclass(frozen=True, eq=False)
class Workload:
    """The queries of all blocks, one after the other; with `selection` only those, in that order."""

    domain: Domain
    blocks: tuple[Block, ...]
    selection: Integers | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Domain):
            raise InvalidArgument("domain", self.domain, "a Domain", "declare the attributes")
        blocks = tuple(self.blocks) if isinstance(self.blocks, Iterable) else ()
        if not blocks or not all(isinstance(block, Block) for block in blocks):
            raise InvalidArgument("blocks", self.blocks, "one or more of Product and Explicit", "give some queries")
        object.__setattr__(self, "blocks", tuple(block.bound(self.domain) for block in blocks))
        if self.selection is not None:
            chosen = np.asarray(self.selection)
            if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or ((chosen < 0) | (chosen >= self._ends[-1])).any():
                raise InvalidArgument("selection", "some indices", f"from 0 to {self._ends[-1] - 1}", "list queries")
            object.__setattr__(self, "selection", chosen.astype(np.int64))
        if len(self) == 0:
            raise InvalidArgument("workload", "no queries", "at least one query", "give some queries")

    @classmethod
    def marginals(cls, domain: Domain, names: Iterable[Sequence[str]]) -> Workload:
        """For each list of attributes the counts of all combinations of their values; of none, of all records."""
        listed = [(part,) if isinstance(part, str) else tuple(part) for part in names]
        return cls(domain, tuple(Product(dict.fromkeys(part, every)) for part in listed))

    @classmethod
    def all_marginals(cls, domain: Domain, order: int) -> Workload:
        """The marginals of every `order` attributes."""
        if natural("order", order) > len(domain.names):
            raise InvalidArgument("order", order, f"at most {len(domain.names)}", "the domain has no more attributes")
        return cls.marginals(domain, combinations(domain.names, order))

    @classmethod
    def prefixes(cls, domain: Domain, name: str) -> Workload:
        """For each value of an attribute, how many records are up to it."""
        return cls(domain, (Product({name: prefixes}),))

    @classmethod
    def ranges(cls, domain: Domain, name: str) -> Workload:
        """All runs of values of an attribute."""
        return cls(domain, (Product({name: ranges}),))

    @classmethod
    def predicates(cls, domain: Domain, predicates: Iterable[Any]) -> Workload:
        """One query for each predicate: weights of all cells, or a function that computes them.

        A function is given a dictionary of the places of every attribute's values, as arrays that broadcast to all
        cells: `lambda at: (at["age"] > 2) & (at["sex"] == 0)`.
        """
        size = domain.dense()
        grid = dict(zip(domain.names, np.ogrid[tuple(slice(n) for n in domain.shape)], strict=True))
        supports, names = [], []
        for number, predicate in enumerate(predicates):
            weights = predicate(grid) if callable(predicate) else predicate
            row = np.asarray(weights, dtype=np.float64)
            flat = row if row.shape == (size,) else _broadcast(row, domain.shape)
            cells = np.flatnonzero(flat).astype(np.int64)
            supports.append((cells, flat[cells]))
            names.append(_name(predicate, number))
        return cls(domain, (Explicit(sparse_rows(supports, size), tuple(names)),))

    def __add__(self, other: Workload) -> Workload:
        """The queries of both."""
        if not isinstance(other, Workload) or other.domain != self.domain:
            raise InvalidArgument("workload", other, "over the same domain", "build both over one Domain")
        if self.selection is None and other.selection is None:
            return Workload(self.domain, self.blocks + other.blocks)
        chosen = np.concatenate([self._chosen, other._chosen + self._ends[-1]])
        return Workload(self.domain, self.blocks + other.blocks, chosen)

    def __len__(self) -> int:
        return int(self._ends[-1]) if self.selection is None else self.selection.size

    def __repr__(self) -> str:
        return f"Workload({len(self)} queries of {self.domain.size:,} cells)"

    @cached_property
    def _ends(self) -> Integers:
        """Where each block begins, and the end of the last."""
        return np.cumsum([0, *(block.count(self.domain) for block in self.blocks)])

    @cached_property
    def _chosen(self) -> Integers:
        return np.arange(self._ends[-1]) if self.selection is None else self.selection

    @cached_property
    def denominator(self) -> int:
        """All entries are multiples of one over this: 1 or 2²⁰."""
        return 1 << FINE if any(block.fractional for block in self.blocks) else 1

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The blocks that queries are from."""
        if self.selection is None:
            return tuple(range(len(self.blocks)))
        return tuple(np.unique(np.searchsorted(self._ends, self.selection, side="right") - 1).tolist())

    def block_of(self, index: int) -> tuple[int, int]:
        """The block of a query, and its place there."""
        if not 0 <= index < len(self):
            raise InvalidArgument("index", index, f"from 0 to {len(self) - 1}", "there are no more queries")
        place = int(self._chosen[index])
        number = int(np.searchsorted(self._ends, place, side="right")) - 1
        return number, place - int(self._ends[number])

    def answers(self, x: object) -> Doubles:
        """⟨q, x⟩ for every query; on whole numbers without rounding while they add up to 2⁵³/`denominator` at most."""
        cells = np.asarray(x, dtype=np.float64)
        if cells.size != self.domain.dense():
            raise InvalidArgument("x", f"{cells.size} numbers", f"{self.domain.size}, one for each cell", "give all")
        out = np.zeros(int(self._ends[-1]))
        parts = [out[start:stop] for start, stop in zip(self._ends[:-1], self._ends[1:], strict=True)]
        self._descend(self._plan, cells.reshape(self.domain.shape), parts)
        for number, block in self._explicit:
            parts[number][...] = block.matrix @ cells.reshape(-1)
        return out if self.selection is None else out[self.selection]

    def weighed(self, y: object) -> Doubles:
        """Σ y_i·q_i for every cell: the transpose of `answers`."""
        values = np.asarray(y, dtype=np.float64).reshape(-1)
        if values.size != len(self):
            raise InvalidArgument("y", f"{values.size} numbers", f"{len(self)}, one for each query", "give all")
        self.domain.dense()
        if self.selection is not None:
            values = np.bincount(self.selection, values, minlength=int(self._ends[-1])).astype(np.float64)
        parts = [values[start:stop] for start, stop in zip(self._ends[:-1], self._ends[1:], strict=True)]
        total = self._ascend(self._plan, parts).reshape(-1)
        for number, block in self._explicit:
            total += block.matrix.T @ parts[number]
        return total

    def counts(self, histogram: object) -> Integers:
        """The exact answers on a histogram of whole numbers, in steps of 1/`denominator`, held within ±(2⁶² − 1)."""
        cells = self.domain.held(histogram)
        room = (1 << _EXACT) // self.denominator
        # With fractions room may end at some ten thousand people, of whom one more must not be seen by the clock.
        if self.denominator == 1 and float(cells.sum(dtype=np.float64)) < room * 0.99:
            return self.answers(cells).astype(np.int64)
        # In digits so short that no sum of them is rounded.
        bits = (room // self.domain.size).bit_length() - 1
        total = np.zeros(len(self), dtype=object)
        for shift in range(0, 62, bits):
            digits = (cells >> shift) & ((1 << bits) - 1)
            total += (self.answers(digits) * self.denominator).astype(np.int64).astype(object) << shift
        return np.minimum(total, LARGEST_CELL).astype(np.int64)

    def support(self, index: int) -> tuple[Integers, Doubles]:
        """The cells one query weighs, in order, and its weights there."""
        number, place = self.block_of(index)
        return self.blocks[number].support(self.domain, place)

    def row(self, index: int) -> Doubles:
        """One query, cell by cell."""
        row = np.zeros(self.domain.dense())
        cells, weights = self.support(index)
        row[cells] = weights
        return row

    def rows(self, indices: Iterable[int]) -> Any:
        """Some queries as a scipy CSR matrix."""
        return sparse_rows([self.support(index) for index in indices], self.domain.dense())

    def describe(self, index: int) -> str:
        """One query in words."""
        number, place = self.block_of(index)
        return self.blocks[number].describe(self.domain, place)

    def subset(self, indices: object) -> Workload:
        """Some of the queries, in the order given; a query may be there more than once."""
        chosen = np.asarray(indices)
        if chosen.dtype.kind not in "iu" or chosen.size == 0 or (chosen < 0).any() or (chosen >= len(self)).any():
            raise InvalidArgument("indices", indices, f"some from 0 to {len(self) - 1}", "list the queries to keep")
        return Workload(self.domain, self.blocks, self._chosen[chosen.reshape(-1)])

    def column_norm(self, p: int, changes: int = 1) -> Fraction:
        """How far one record moves all answers: the largest ℓ1 norm (`p=1`) or squared ℓ2 norm (`p=2`) of a column.

        For `changes=2`, of a column or a difference of two; where that is not found exactly it is an upper bound,
        never above twice the norm of one column (‖a − b‖² ≤ ‖a‖² + ‖b‖², as no entry is below 0).
        """
        _one_or_two("p", p)
        blocks = tuple(block.squared() for block in self.blocks) if p == 2 else self.blocks
        one = Workload(self.domain, blocks, self.selection)._largest_column
        if _one_or_two("changes", changes) == 1:
            return one
        # On 0 and 1 both norms of a difference are the same. A unit may also have no record on one side.
        if self.selection is not None or self.denominator > 1:
            return 2 * one
        return max(one, min(2 * one, Fraction(sum(block.apart(self.domain) for block in blocks))))

    @cached_property
    def _largest_column(self) -> Fraction:
        # A query that is selected several times adds to its column each time.
        times = 1 if self.selection is None else int(np.unique(self.selection, return_counts=True)[1].max())
        above = times * sum(block.column(self.domain) for block in self.blocks)
        if not self._even and self.domain.size <= _SOUGHT:
            above = min(above, float(self.weighed(np.ones(len(self))).max()))
        # Up to 2¹³ squares of 40 bits are added up without rounding, more of them to k·2⁻⁵¹ of the sum.
        blurred = self.denominator > 1 and len(self) > 1 << (_EXACT - 2 * FINE)
        return Fraction(above) * (1 + Fraction(len(self), 1 << 51) if blurred else 1)

    @property
    def _even(self) -> bool:
        """Whether all columns have the same norm."""
        products = [block for block in self.blocks if isinstance(block, Product)]
        even = all(factor.even for block in products for factor in block.factors.values())
        return self.selection is None and not self._explicit and even and self.denominator == 1

    def largest(self, changes: int = 1) -> Fraction:
        """How far one record moves any one answer: the largest entry, also when two are exchanged."""
        _one_or_two("changes", changes)
        return max(Fraction(self.blocks[number].top()) for number in self.used)

    def neighbour_set(self, changes: int = 1) -> tuple[Any, ...]:
        """What one record adds to one query, or to a pair of them: `values` of a `NeighbourSet`.

        With `changes=2` give it `neighbours="replace"`; nothing is then among the values, for units without a record.
        """
        _one_or_two("changes", changes)
        if len(self) > 2:
            raise InvalidArgument("workload", f"{len(self)} queries", "one or two queries", "take a subset")
        columns = np.unique(np.stack([self.row(index) for index in range(len(self))], axis=1), axis=0)
        values = [tuple(Fraction(entry) for entry in column) for column in columns.tolist()]
        nothing = (Fraction(0),) * len(self)
        listed = values if changes == 1 or nothing in values else [nothing, *values]
        return tuple(value[0] if len(self) == 1 else value for value in listed)

    @cached_property
    def _explicit(self) -> tuple[tuple[int, Explicit], ...]:
        return tuple((number, block) for number, block in enumerate(self.blocks) if isinstance(block, Explicit))

    @cached_property
    def _plan(self) -> _Node:
        """Which attribute to sum out for which products, and when."""
        pairs = [(number, self.blocks[number]) for number in self.used]
        products = {number: block.axes(self.domain) for number, block in pairs if isinstance(block, Product)}
        return _plan(tuple(range(len(self.domain.shape))), products)

    def _descend(self, node: _Node, tensor: Doubles, parts: list[Doubles]) -> None:
        for number in node.products:
            block = self.blocks[number]
            if isinstance(block, Product):
                parts[number][...] = block.apply(tensor)
        for axis, inner in node.inner:
            self._descend(inner, tensor.sum(axis=axis), parts)

    def _ascend(self, node: _Node, parts: list[Doubles]) -> Doubles:
        total = np.zeros(tuple(self.domain.shape[axis] for axis in node.axes))
        for number in node.products:
            block = self.blocks[number]
            if isinstance(block, Product):
                total += block.spread(self.domain, parts[number])
        for axis, inner in node.inner:
            total += np.expand_dims(self._ascend(inner, parts), axis)
        return total

    def packed(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """A plain dictionary, and arrays by name, from which `unpacked` makes the workload again."""
        records: list[dict[str, Any]] = []
        arrays: dict[str, Any] = {}
        for number, block in enumerate(self.blocks):
            record, parts = block.packed()
            records.append(record)
            arrays |= {f"{number}.{name}": part for name, part in parts.items()}
        if self.selection is not None:
            arrays["selection"] = self.selection
        return {"domain": self.domain.to_json(), "blocks": records}, arrays

    @classmethod
    def unpacked(cls, record: Mapping[str, Any], arrays: Mapping[str, Any]) -> Workload:
        """The workload that `packed` wrote."""
        blocks: list[Block] = []
        for number, entry in enumerate(record["blocks"]):
            start = f"{number}."
            own = {name.removeprefix(start): part for name, part in arrays.items() if name.startswith(start)}
            kind = Product if entry["kind"] == "product" else Explicit
            blocks.append(kind.unpacked(entry, own))
        return cls(Domain.from_json(record["domain"]), tuple(blocks), arrays.get("selection"))


@dataclass(frozen=True)
class _Node:
    """A tensor of some attributes: the products of just these, and further tensors summed over one more axis."""

    axes: tuple[int, ...]
    products: tuple[int, ...]
    inner: tuple[tuple[int, _Node], ...]


def _plan(axes: tuple[int, ...], products: Mapping[int, tuple[int, ...]]) -> _Node:
    here = tuple(number for number, used in products.items() if len(used) == len(axes))
    rest = {number: used for number, used in products.items() if number not in here}
    inner = []
    while rest:
        # The first of the axes that most leave out: sums over leading axes are the fastest.
        axis = max(axes, key=lambda a: sum(a not in used for used in rest.values()))
        without = {number: used for number, used in rest.items() if axis not in used}
        inner.append((axes.index(axis), _plan(tuple(a for a in axes if a != axis), without)))
        rest = {number: used for number, used in rest.items() if number not in without}
    return _Node(axes, here, tuple(inner))


def _one_or_two(argument: str, value: int) -> int:
    if isinstance(value, bool) or value not in (1, 2):
        raise InvalidArgument(argument, value, "1 or 2", "name one of the two")
    return value


def _broadcast(row: Doubles, shape: tuple[int, ...]) -> Doubles:
    try:
        return np.ascontiguousarray(np.broadcast_to(row, shape)).reshape(-1)
    except ValueError:
        raise InvalidArgument("predicate", f"of shape {row.shape}", f"one weight for each of {shape}", "") from None


def _name(predicate: Callable[..., Any] | object, number: int) -> str:
    name = getattr(predicate, "__name__", "<lambda>")
    return f"predicate {number}" if name == "<lambda>" else str(name)
