"""Domains: named attributes with declared values, whose combinations are the cells of a histogram.

What an attribute may hold is public and declared beforehand. Reading a value looks at nothing else and never fails: an
unknown category goes to the last cell, a number outside the bins to the nearest end, what is missing or no number to
the first bin. One record is in exactly one cell, so a unit with r records adds r to the cells in all.

>>> domain = Domain((Attribute("sex", ("F", "M")), Attribute.binned("age", (0, 18, 65, 120), whole=True)))
>>> domain.shape, domain.size, domain.attribute("age").labels
((2, 3), 6, ('[0, 18)', '[18, 65)', '[65, 120]'))
>>> domain.histogram({"sex": ["F", "M", "M"], "age": [17, 18, 400]}).tolist()
[1, 0, 0, 0, 1, 1]
>>> domain.decode([0, 5])
{'sex': ['F', 'M'], 'age': [9, 93]}
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from discreet.core.arrays import reals, whole
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, exact
from discreet.noise.batches import Integers
from discreet.noise.entropy import Entropy
from discreet.noise.uniform import uniform

__all__ = ["MOST_CELLS", "Attribute", "Domain"]

MOST_CELLS = 1 << 27
"""Histograms are kept cell by cell up to this size: 1 GB of counts."""
LARGEST_CELL = (1 << 62) - 1
"""Counts of a cell are held at this."""
_FINEST = 53
_PLAIN = str | int | float | np.integer | np.floating | np.bool_


@dataclass(frozen=True)
class Attribute:
    """A column and the values it may hold; with `edges` a number, whose values are the bins between them."""

    name: str
    values: tuple[Hashable, ...]
    edges: tuple[float, ...] | None = None
    whole: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgument("name", self.name, "a text", "name the column")
        listed = isinstance(self.values, Iterable) and not isinstance(self.values, str | bytes)
        object.__setattr__(self, "values", tuple(self.values) if listed else ())
        if any(value is not None and not isinstance(value, str | int) for value in self.values):
            raise InvalidArgument("values", self.values, "texts, whole numbers or None", "use binned for reals")
        if not self.values or len(set(self.values)) != len(self.values):
            raise InvalidArgument("values", self.values, "distinct and at least one", "list every category once")
        if self.edges is not None and self.values != _intervals(self.edges):
            raise InvalidArgument("values", self.values, "the bins between the edges", "use Attribute.binned")

    @classmethod
    def binned(cls, name: str, edges: Sequence[Exactable], whole: bool = False) -> Attribute:
        """A number in bins [e₀, e₁), [e₁, e₂), …, the last one closed; `whole` for whole numbers."""
        if isinstance(edges, str | bytes) or not isinstance(edges, Iterable):
            raise InvalidArgument("edges", edges, "a list of numbers", "list where the bins begin, and the end")
        ends = tuple(float(exact("edges", edge)) for edge in edges)
        if len(ends) < 2 or any(not low < high for low, high in pairwise(ends)):
            raise InvalidArgument("edges", edges, "two or more increasing numbers", "list them from low to high")
        if any(abs(end) > 2.0**1000 for end in ends):
            raise InvalidArgument("edges", edges, "within ±2^1000", "choose nearer ends; numbers outside go to them")
        if whole and any(not end.is_integer() or abs(end) > 2**53 for end in ends):
            raise InvalidArgument("edges", edges, "whole numbers within ±2^53", "set whole=False for reals")
        return cls(name, _intervals(ends), ends, whole)

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.values)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The values as people read them."""
        return tuple(str(value) for value in self.values)

    def span(self, first: int, last: int) -> str:
        """Words for the values from one place to another: `age in [20, 40)`, `sex = F`."""
        if self.edges is not None:
            closing = "]" if last == self.size - 1 else ")"
            return f"{self.name} in [{_number(self.edges[first])}, {_number(self.edges[last + 1])}{closing}"
        if first == last:
            return f"{self.name} = {self.labels[first]}"
        return f"{self.name} from {self.labels[first]} to {self.labels[last]}"

    def codes(self, column: object) -> Integers:
        """The place of each value; nothing about a value raises."""
        array = _column(column)
        if self.edges is not None:
            numbers = reals(self.name, array)
            inner = np.array(self.edges[1:-1])
            return np.searchsorted(inner, np.where(np.isnan(numbers), -np.inf, numbers), side="right").astype(np.int64)
        if array.dtype.kind in "iub" and array.dtype != np.uint64 and self._sorted is not None:
            order, known = self._sorted
            places = np.minimum(np.searchsorted(known, array), known.size - 1)
            return np.where(known[places] == array, order[places], self.size - 1).astype(np.int64)
        place, last = {value: index for index, value in enumerate(self.values)}, self.size - 1
        missing = place.get(None, last)
        found = (
            (missing if value is None or value != value else place.get(value, last))
            if value is None or isinstance(value, _PLAIN)
            else last
            for value in array.tolist()
        )
        return np.fromiter(found, dtype=np.int64, count=array.size)

    @cached_property
    def _sorted(self) -> tuple[Integers, Integers] | None:
        """Where all values are whole numbers of 63 bits: their order, and themselves in it."""
        if not all(isinstance(value, int) and abs(value) < 1 << 62 for value in self.values):
            return None
        known = np.array(self.values, dtype=np.int64)
        order = np.argsort(known)
        return order.astype(np.int64), known[order]

    def decode(self, codes: Integers, entropy: Entropy | None = None) -> list[Any]:
        """Values at these places: in a bin a number drawn uniformly with `entropy`, else the one in the middle."""
        if self.edges is None:
            return [self.values[code] for code in codes.tolist()]
        low, high = np.array(self.edges[:-1])[codes], np.array(self.edges[1:])[codes]
        if entropy is None:
            share: Any = 0.5
        else:
            share = np.ldexp(uniform(1 << _FINEST, codes.size, entropy=entropy).astype(np.float64), -_FINEST)
        if not self.whole:
            drawn: list[float] = (low + (high - low) * share).tolist()
            return drawn
        # The whole numbers of a bin are low, …, high − 1, of the last one high as well.
        many = high - low + (codes == self.size - 1)
        numbers: list[int] = (low + np.minimum(np.floor(many * share), many - 1)).astype(np.int64).tolist()
        return numbers

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        if self.edges is not None:
            return {"name": self.name, "edges": list(self.edges), "whole": self.whole}
        return {"name": self.name, "values": list(self.values)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Attribute:
        """The attribute that `to_json` wrote."""
        if "edges" in record:
            return cls.binned(record["name"], record["edges"], record.get("whole", False))
        return cls(record["name"], tuple(record["values"]))


@dataclass(frozen=True)
class Domain:
    """The cells of all combinations of values, the last attribute changing fastest."""

    attributes: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        if not self.attributes or not all(isinstance(a, Attribute) for a in self.attributes):
            raise InvalidArgument("attributes", self.attributes, "one or more Attributes", "declare every column")
        if len(set(self.names)) != len(self.names):
            raise InvalidArgument("attributes", self.names, "of distinct names", "declare every column once")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many values each attribute has."""
        return tuple(attribute.size for attribute in self.attributes)

    @cached_property
    def size(self) -> int:
        """How many cells there are."""
        return prod(self.shape)

    def index(self, name: str) -> int:
        """The place of an attribute."""
        if name in self.names:
            return self.names.index(name)
        near = get_close_matches(str(name), self.names, 3) or self.names
        raise InvalidArgument("attribute", name, "an attribute of the domain", f"there is {', '.join(near)}")

    def attribute(self, name: str) -> Attribute:
        """The attribute of that name."""
        return self.attributes[self.index(name)]

    def dense(self, most: int = MOST_CELLS, remedy: str = "use fewer attributes or coarser bins") -> int:
        """The size, refused above `most` cells with what they would take."""
        if self.size > most:
            memory = f"{self.size:.3g} cells, {8 * self.size / 2**30:.3g} GB for one histogram"
            raise InvalidArgument("domain", memory, f"at most {most:,} cells", remedy)
        return self.size

    def cells(self, codes: Sequence[object]) -> Integers:
        """The cell of each record, from one array of places for each attribute; places are held within the ends."""
        if self.size > LARGEST_CELL:
            raise InvalidArgument("domain", f"{self.size:.3g} cells", "below 2^62", "number fewer attributes")
        if len(codes) != len(self.attributes):
            raise InvalidArgument("codes", f"{len(codes)} arrays", f"{len(self.attributes)}", "one for each attribute")
        cells: Integers = np.zeros(1, dtype=np.int64)
        for size, places in zip(self.shape, codes, strict=True):
            cells = cells * size + np.clip(whole("codes", places), 0, size - 1)
        return cells

    def codes(self, cells: object) -> tuple[Integers, ...]:
        """The places of the attributes in these cells."""
        rest = np.clip(whole("cells", cells), 0, min(self.size, LARGEST_CELL) - 1)
        places = []
        for size in reversed(self.shape):
            rest, place = np.divmod(rest, size)
            places.append(place)
        return tuple(reversed(places))

    def histogram(self, columns: Mapping[str, Any]) -> Integers:
        """How many records are in each cell; columns that are not in the domain are left alone."""
        self.dense()
        missing = [name for name in self.names if name not in columns]
        if missing:
            raise InvalidArgument("columns", sorted(columns), f"all of {self.names}", f"give {', '.join(missing)}")
        codes = [attribute.codes(columns[attribute.name]) for attribute in self.attributes]
        if len({places.size for places in codes}) > 1:
            lengths = [places.size for places in codes]
            raise InvalidArgument("columns", f"of lengths {lengths}", "equally long", "give one value for each record")
        return np.bincount(self.cells(codes), minlength=self.size).astype(np.int64)

    def held(self, histogram: object) -> Integers:
        """A histogram as int64: of the right length, or refused; what is below 0 is 0, what is too large is held."""
        counts = whole("histogram", histogram)
        if counts.shape != (self.dense(),) and counts.shape != self.shape:
            shape = f"of shape {counts.shape}"
            raise InvalidArgument("histogram", shape, f"{self.size} counts", "use domain.histogram")
        return np.clip(counts.reshape(-1), 0, LARGEST_CELL)

    def decode(self, cells: object, entropy: Entropy | None = None) -> dict[str, list[Any]]:
        """Records in these cells as columns; numbers from the middle of their bins, or drawn with `entropy`."""
        places = zip(self.attributes, self.codes(cells), strict=True)
        return {attribute.name: attribute.decode(codes, entropy) for attribute, codes in places}

    def to_json(self) -> list[dict[str, Any]]:
        """A plain list."""
        return [attribute.to_json() for attribute in self.attributes]

    @classmethod
    def from_json(cls, record: Iterable[Mapping[str, Any]]) -> Domain:
        """The domain that `to_json` wrote."""
        return cls(tuple(Attribute.from_json(attribute) for attribute in record))


def _column(column: object) -> np.ndarray[Any, Any]:
    """A flat array; lists become arrays of objects, since numpy would change all values to fit the oddest."""
    if isinstance(column, np.ndarray):
        return column.reshape(-1)
    listed: Any = column.tolist() if hasattr(column, "tolist") else column
    if hasattr(column, "to_pylist"):
        listed = column.to_pylist()
    if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
        raise InvalidArgument("column", type(column).__name__, "a list or an array", "give one value for each record")
    values = list(listed)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _intervals(edges: Sequence[float]) -> tuple[str, ...]:
    ends = [_number(edge) for edge in edges]
    bins = [f"[{low}, {high})" for low, high in pairwise(ends)]
    return (*bins[:-1], bins[-1][:-1] + "]")


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
