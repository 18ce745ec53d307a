"""Faults planted where it is decided what a name and a listed value mean, one at a time."""

import math
from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

from tests.attacks.faults import together

from discreet.engines.duckdb import engine as duckdb
from discreet.engines.duckdb import frames
from discreet.engines.postgres import engine as postgres
from discreet.session import connect
from discreet.sql import catalog
from discreet.sql.analysis.lineage import Origins
from discreet.sql.functions import registry
from discreet.sql.parsing import key_values
from discreet.sql.plan import Ref

TOLD = {"below": "<", "left": "/", "right": "\\"}


def names_as_duckdb_tells_them_apart() -> Any:
    """Of two columns alike but for the case the second is called otherwise, and the first is found under both names."""
    return together(
        patch.object(duckdb, "told_apart", lambda rows, described: (rows, described)),
        patch.object(frames, "alone", lambda names: frozenset(map(str.lower, names))),
    )


def the_first_of_two_names() -> Any:
    """Whichever column comes first is taken for the one that is named."""

    def readable(columns: Iterable[tuple[str, Any, str]]) -> Any:
        readings: dict[str, Any] = {}
        omitted = []
        for name, read, reason in columns:
            if read is None or name.lower() in readings:
                omitted.append((name, reason))
            else:
                readings[name.lower()] = read
        return readings, tuple(omitted)

    return together(
        patch.object(postgres, "readable", readable), patch.object(catalog, "check_alone", lambda *given: None)
    )


def values_as_they_are_listed() -> Any:
    return patch.object(connect, "held", lambda value, kind: value)


def constants_of_any_size() -> Any:
    return patch.object(registry, "_is_held", lambda literal: True)


def listed_and_written_unseen() -> Any:
    return together(values_as_they_are_listed(), constants_of_any_size())


def ranges_beyond_the_type() -> Any:
    def whole(reach: Any, kind: str) -> Any:
        if math.isinf(reach.lower) or math.isinf(reach.upper) or reach.upper - reach.lower > key_values.MOST:
            return None
        numbers = range(math.ceil(reach.lower), math.floor(reach.upper) + 1)
        return tuple(map(float, numbers)) if kind == "real" else tuple(numbers)

    return together(patch.object(key_values, "_whole", whole), constants_of_any_size())


def ways_as_text() -> Any:
    """A column that is called like the way to another one is taken for it."""

    def source(self: Origins, column: str | None, path: tuple[str, ...], found: Any) -> Ref:
        name = "".join(TOLD[step] for step in path) + ("?" if column is None else column)
        self.sources.setdefault(name, found)
        return Ref(name, found.type)

    return patch.object(Origins, "_source", source)
