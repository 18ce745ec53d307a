"""A function tried on made-up rows before anything is paid: what a block says is nobody's to know, so here it is said.

Nothing private is touched: the rows have the columns, types, declared bounds and values of those that the function will
be given, and are the same at each trial. They keep to no condition of the question and hold no NULL. The function runs
where it will run, in a process of its own behind the same walls and with the same limits (`robust/sandbox/workers.py`).

What is said of it is one of a few sentences of ours: which kind of exception of Python's own it raised, or whether what
it gave is an answer. No text and no value that the function chose is in them, whatever the machine lets it read: a
price is free, and would carry as much as anybody asks for.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.estimation.request import Request
from discreet.estimation.result import column_of
from discreet.noise.entropy import Entropy
from discreet.noise.uniform import uniform
from discreet.robust.aggregation.numeric import Centre
from discreet.robust.aggregation.sample_and_aggregate import Aggregator
from discreet.robust.aggregation.votes import Vote
from discreet.robust.sandbox import forkserver as nursery
from discreet.robust.sandbox.forkserver import read
from discreet.sql.catalog import Type
from discreet.sql.decimals import Decimals
from discreet.sql.parsing.scope import Field

__all__ = ["made_up", "tried"]

ROWS = 200
EACH = 2
"""Rows of one unit."""
_FINE = 1 << 30
_FIRST_DAY = np.datetime64("2020-01-01", "D")
_DAYS = 365
_UNDECLARED = (1, 100)
"""Numbers of which nothing is declared lie between these."""


def tried(request: Request, hidden: Sequence[Path] = ()) -> tuple[str, ...]:
    """What the function does on made-up rows, in a sentence, after one about walls that are missing, if any are."""
    rows = pickle.dumps(made_up(request.rows.visible), protocol=5)
    try:
        with request.workers(hidden, trial=True) as workers:
            missing = workers.missing
            (said,) = workers.answers(lambda _: rows, 1)
            if said is None:  # the system may end a process, too
                (said,) = workers.answers(lambda _: rows, 1)
    except (InvalidArgument, Unsupported) as error:
        return (f"it cannot be run: {error}",)
    warned = [f"walls that this machine cannot build: {', '.join(missing)}"] if missing else []
    return (*warned, f"on {ROWS} made-up rows it {_outcome(request, said)}")


def _outcome(request: Request, said: bytes | None) -> str:
    """A sentence for what a trial sent; a function may send what it likes."""
    limits = request.limits
    kind = nursery.OUTCOMES[said[0]] if said and said[0] < len(nursery.OUTCOMES) else None
    if said is None or kind is None:
        return f"takes more than {float(limits.seconds):g} s or {limits.memory >> 20:,} MB, or ends its process"
    if kind == "raised":
        named = nursery.RAISED[said[1]] if len(said) == 2 and said[1] < len(nursery.RAISED) else "an exception"
        columns = f"; its columns are {', '.join(one.label for one in request.rows.visible)}"
        return f"raises {named}" + (columns if named in ("KeyError", "AttributeError") else "")
    return _judged(request.aggregator, said[1:] if kind == "answer" else None, finite=kind != "not finite")


def _judged(aggregator: Aggregator, sent: bytes | None, finite: bool) -> str:
    """Whether an answer is one, and whether it would count as it is."""
    if not isinstance(aggregator, Centre):
        label = None
        with suppress(ValueError, TypeError, RecursionError):
            label = None if sent is None else read(sent)
        if label is None:
            return "gives what is no text, number or tuple of these"
        listed = not isinstance(aggregator, Vote) or label in aggregator.values
        return "gives an answer" if listed else "gives an answer that is not among the values"
    due = "a number" if aggregator.size == 1 else f"{aggregator.size} numbers"
    if sent is None or len(sent) != 8 * aggregator.size:
        return f"gives something else than {due}" if finite else f"gives {due}, but not finite: that is no answer"
    numbers = np.frombuffer(sent, dtype="<f8").tolist()
    within = all(one.lower <= number <= one.upper for number, one in zip(numbers, aggregator.each, strict=True))
    return f"gives {due} within the bounds" if within else f"gives {due} beyond the bounds: held within them"


def made_up(fields: Sequence[Field]) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Columns by their names, of the dtypes that blocks have."""
    source = Entropy.of_released(b"made-up rows")
    kinds: dict[str, Type] = {one.label: "real" if isinstance(one.type, Decimals) else one.type for one in fields}
    return {one.label: column_of(_values(one, source), kinds[one.label]) for one in fields}


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
