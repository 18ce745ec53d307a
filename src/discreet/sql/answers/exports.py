"""Answers as tables of other libraries: Arrow, Polars, pandas. Types follow from the question, not from the values.

With a level, each measure is followed by the ends of its interval, as `n low` and `n high`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from discreet.core.errors import Unsupported
from discreet.core.exact import Exactable
from discreet.core.no_answer import Unstable
from discreet.sql.catalog import Type

if TYPE_CHECKING:
    from discreet.sql.answers.answer import Answer

__all__ = ["arrow", "library", "pandas", "polars"]


def library(name: str, wanted: str, install: str | None = None) -> Any:
    """A library that not everybody has."""
    try:
        return import_module(name)
    except ImportError:
        raise Unsupported(wanted, f"{name} is not installed", f"run: pip install {install or name}") from None


def arrow(answer: Answer, level: Exactable | None = None) -> Any:
    """The rows as an Arrow table."""
    import pyarrow

    kinds = {
        "integer": pyarrow.int64(),
        "real": pyarrow.float64(),
        "boolean": pyarrow.bool_(),
        "text": pyarrow.string(),
        "date": pyarrow.date32(),
        "timestamp": pyarrow.timestamp("us"),
    }
    listed = list(_columns(answer, level))
    arrays = [pyarrow.array(values, kinds[kind]) for _, kind, values in listed]
    return pyarrow.Table.from_arrays(arrays, names=[name for name, _, _ in listed])


def polars(answer: Answer, level: Exactable | None = None) -> Any:
    """The rows as a Polars frame."""
    return library("polars", "to_polars()").from_arrow(arrow(answer, level))


def pandas(answer: Answer, level: Exactable | None = None) -> Any:
    """The rows as a pandas frame."""
    library("pandas", "to_pandas()")
    return arrow(answer, level).to_pandas()


def _columns(answer: Answer, level: Exactable | None) -> Iterator[tuple[str, Type, list[Any]]]:
    spans = {} if level is None else answer.intervals(level)
    for name, kind in zip(answer.names, answer.types, strict=True):
        values = answer.column(name)
        held = [None if isinstance(value, Unstable) else value for value in values]
        yield name, kind, [None if v is None else float(v) for v in held] if kind == "real" else held
        if name in spans:
            yield f"{name} low", "real", [low for low, _ in spans[name]]
            yield f"{name} high", "real", [high for _, high in spans[name]]
