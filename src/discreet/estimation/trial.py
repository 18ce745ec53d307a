"""A function tried on made-up rows before anything is paid: what a block says is nobody's to know, so here it is said.

Nothing private is touched: the rows have the columns, types, declared bounds and values of those that the function will
be given, and are the same at each trial. They keep to no condition of the question and hold no NULL. The function runs
where it will run, in a process of its own with the same limits (`robust/workers.py`); what it raises, or why what it
gives is no answer, comes back as a sentence.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.estimation.request import Request
from discreet.estimation.result import column_of
from discreet.noise.entropy import Entropy
from discreet.noise.uniform import uniform
from discreet.robust.centre import Centre
from discreet.robust.nursery import read, written
from discreet.robust.votes import Vote
from discreet.robust.workers import Workers
from discreet.sql.scope import Field

__all__ = ["made_up", "tried"]

ROWS = 200
EACH = 2
"""Rows of one unit."""
_FINE = 1 << 30
_FIRST_DAY = np.datetime64("2020-01-01", "D")
_DAYS = 365
_UNDECLARED = (1, 100)
"""Numbers of which nothing is declared lie between these."""


def tried(request: Request, hidden: Sequence[Path] = ()) -> str:
    """What the function does on made-up rows, in a sentence."""
    limits = replace(request.limits, workers=1, padded=False)
    rows = pickle.dumps(made_up(request.rows.visible), protocol=5)
    on = f"on {ROWS} made-up rows"
    try:
        with Workers(_telling(request), None, request.form, limits, None, hidden) as workers:
            (said,) = workers.answers(lambda _: rows, 1)
            if said is None:  # the system may end a process, too
                (said,) = workers.answers(lambda _: rows, 1)
    except InvalidArgument as error:
        return f"it cannot be run: {error}"
    if said is None:
        return f"{on} it takes more than {float(limits.seconds):g} s or {limits.memory >> 20:,} MB, or ends its process"
    return f"{on} it {read(said)}"


def made_up(fields: Sequence[Field]) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Columns by their names, of the dtypes that blocks have."""
    source = Entropy.of_released(b"made-up rows")
    return {one.label: column_of(_values(one, source), one.type) for one in fields}


def _values(field: Field, source: Entropy) -> list[Any]:
    drawn = uniform(_FINE, ROWS, entropy=source)
    if field.unit:
        drawn = np.arange(ROWS) // EACH
        return [f"p{number}" if field.type == "text" else number + 1 for number in drawn.tolist()]
    if field.values is not None:
        listed = [value for value in field.values.values if value is not None] or [None]
        return [listed[place % len(listed)] for place in drawn.tolist()]
    if field.type == "text":
        return ["abc"[place % 3] for place in drawn.tolist()]
    if field.type == "boolean":
        return [place % 2 == 1 for place in drawn.tolist()]
    if field.type in ("date", "timestamp"):
        return [_FIRST_DAY + place % _DAYS for place in drawn.tolist()]
    ends = _UNDECLARED if field.bounds is None else (field.bounds.lower, field.bounds.upper)
    low, high = (float(end) for end in ends)
    part = drawn / _FINE
    numbers = low * (1 - part) + high * part
    return [math.floor(number) if field.type == "integer" else number for number in numbers.tolist()]


def _telling(request: Request) -> Callable[[Any], str]:
    """The function, but what it gives is a sentence about that."""
    packed, aggregator = request.packed, request.aggregator
    ends = [(float(one.lower), float(one.upper)) for one in aggregator.each] if isinstance(aggregator, Centre) else None
    listed = list(aggregator.values) if isinstance(aggregator, Vote) else None

    # Sent by its code, since it is inside another, and loads the function itself: so that this may fail, too.
    def told(rows: Any) -> str:
        import numpy

        try:
            value = pickle.loads(packed)(rows)
        except Exception as error:
            return f"raises {type(error).__name__}: {error}"[:400]
        shown = " ".join(repr(value.tolist() if isinstance(value, numpy.ndarray | numpy.generic) else value).split())
        shown = f"gives {shown if len(shown) <= 80 else shown[:77] + '...'}"
        if ends is None:
            try:
                label = read(written(value))
            except (TypeError, ValueError):
                return f"{shown}, which is no text, number or tuple of these"
            return shown if listed is None or label in listed else f"{shown}, which is not among the values"
        try:
            numbers = numpy.asarray(value)
        except ValueError:
            numbers = numpy.asarray("")
        due = "a number is" if len(ends) == 1 else f"{len(ends)} numbers are"
        if numbers.dtype.kind not in "biuf" or numbers.ndim > 1:
            return f"{shown}, where {due} due"
        if numbers.size != len(ends):
            return f"gives {numbers.size} number{'s' * (numbers.size != 1)}, where {due} due"
        if not numpy.isfinite(numbers).all():
            return f"{shown}, which is no answer: a number must be finite"
        held = zip(numbers.reshape(-1).tolist(), ends, strict=True)
        out = any(not low <= number <= high for number, (low, high) in held)
        return f"{shown}, beyond the bounds: it would be held within them" if out else shown

    return told
