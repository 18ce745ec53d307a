"""What a chart of an answer shows: keys with the axis each makes, and a panel of values and ends for each measure.

>>> Key.of("site", [3, 1, 2]).kind, Key.of("decade", [10, 20, 50]).labels, Key.of("income", [1, 17, 1000]).kind
('steps', ['10', '20', '30', '40', '50'], 'number')
>>> Key.of("city", ["York", "Bath", None]).labels
['York', 'Bath', '–']

Texts in a chart cannot leave it: a notebook writes a chart into a page as a script, so `safe` keeps `<` from opening or
closing a tag there.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from discreet.core.display.numbers import HUGE, number, percent, places, shown
from discreet.core.exact import Exactable
from discreet.core.no_answer import Unstable
from discreet.sql.catalog import is_number
from discreet.sql.plan import Measure, Ref

if TYPE_CHECKING:
    from discreet.sql.answers.answer import Answer

__all__ = ["Key", "Panel", "keys_of", "panels_of", "safe", "title_of"]

Kind = Literal["text", "steps", "number", "time"]

MOST_STEPS = 40
"""Evenly spaced numbers that get a place each, gaps and all."""


def safe(text: str) -> str:
    """The text with an invisible joiner after each `<`."""
    return text.replace("<", "<\u2060")


@dataclass(frozen=True)
class Key:
    """One key: its column, what kind of axis it makes, and its values in the order of that axis."""

    name: str
    column: tuple[Any, ...]
    kind: Kind
    values: tuple[Any, ...]

    @classmethod
    def of(cls, name: str, column: Sequence[Any]) -> Key:
        """The key of a column: times and numbers in their order, anything else as it comes."""
        held = tuple(column)
        seen = tuple(dict.fromkeys(held))
        if seen and all(isinstance(value, datetime.date) for value in seen):
            return cls(name, held, "time", tuple(sorted(seen)))
        if not seen or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in seen):
            return cls(name, held, "text", seen)
        ordered = tuple(sorted(seen))
        steps = _steps([Fraction(value) for value in ordered])
        return cls(name, held, "number", ordered) if steps is None else cls(name, held, "steps", steps)

    @classmethod
    def joined(cls, keys: Sequence[Key]) -> Key:
        """Several keys as one of their texts; one is as it was, but for its kind."""
        rows = zip(*(key.column for key in keys), strict=True)
        texts = tuple(", ".join(shown(value) for value in row) for row in rows)
        return cls(", ".join(key.name for key in keys), texts, "text", tuple(dict.fromkeys(texts)))

    @property
    def labels(self) -> list[str]:
        """Its values as texts."""
        return [safe(shown(value)) for value in self.values]

    def placed(self, value: Any) -> Any:
        """A value as the chart's data have it."""
        if self.kind == "time":
            # With a time of day: a bare date is read as midnight in Greenwich, which further west is the day before.
            return value.isoformat() if isinstance(value, datetime.datetime) else f"{value.isoformat()}T00:00:00"
        return value if self.kind == "number" else safe(shown(value))


def _steps(values: list[Fraction]) -> tuple[float, ...] | None:
    """All evenly spaced numbers from the first to the last, if they are few and hold these."""
    if len(values) == 1:
        return (float(values[0]),)
    step = min(after - before for before, after in pairwise(values))
    count = (values[-1] - values[0]) / step + 1
    if count > MOST_STEPS or any(((value - values[0]) / step).denominator != 1 for value in values):
        return None
    return tuple(float(values[0] + step * place) for place in range(int(count)))


@dataclass(frozen=True)
class Panel:
    """One measure: its column, what to write on its axis, a record for each row, and whether bars from zero suit it."""

    name: str
    label: str
    records: list[dict[str, Any]]
    bars: bool


def keys_of(answer: Answer) -> list[Key]:
    """The keys; the number of the row where there are several rows and no key."""
    if not answer.keys and len(answer.rows) > 1:
        return [Key.of("row", range(1, len(answer.rows) + 1))]
    return [Key.of(name, answer.column(name)) for name in answer.keys]


def panels_of(answer: Answer, roles: Mapping[str, Key], level: Exactable) -> Iterator[Panel]:
    """A panel for each measure, and for each column of numbers that are computed from measures."""
    spans = answer.intervals(level)
    told = [{role: key.placed(key.column[place]) for role, key in roles.items()} for place in range(len(answer.rows))]
    for name, kind in zip(answer.names, answer.types, strict=True):
        if name in answer.keys or not is_number(kind):
            continue
        values = answer.column(name)
        ends: Sequence[tuple[float, float] | None] = spans.get(name, [None] * len(values))
        measure = answer.spans.measures[answer.measured[name]] if name in answer.measured else None
        decimals = places([(end[1] - end[0]) / 2 for end in ends if end is not None])
        records = [
            place | _record(value, end, decimals)
            for place, value, end in zip(told, values, ends, strict=True)
            if value is not None and not isinstance(value, Unstable) and abs(value) < HUGE
        ]
        bars = measure is not None and measure.aggregation.is_additive
        yield Panel(name, safe(name if measure is None else _label(name, measure)), records, bars)


def _record(value: float, ends: tuple[float, float] | None, decimals: int) -> dict[str, Any]:
    text = number(value, decimals)
    record: dict[str, Any] = {"value": value, "shown": text}
    if ends is None or not max(map(abs, ends)) < HUGE:
        return record | {"interval": "none", "label": text}
    low, high = (number(end, decimals, way) for end, way in zip(ends, (ROUND_FLOOR, ROUND_CEILING), strict=True))
    reach = max(ends[1] - value, value - ends[0])
    even = abs(sum(ends) / 2 - value) <= 0.5 * 10**-decimals
    label = f"{text} ± {number(reach, decimals, ROUND_CEILING)}" if even else f"{text} ({low} … {high})"
    return record | {"low": ends[0], "high": ends[1], "interval": f"{low} … {high}", "label": label}


def _label(name: str, measure: Measure) -> str:
    """A measure's name with what it is, unless its name says so."""
    words, at_half = measure.aggregation.words, measure.aggregation.at_half
    if at_half and measure.rank is not None:
        words = at_half if measure.rank == Fraction(1, 2) else f"{percent(measure.rank)} {words}"
    if isinstance(measure.argument, Ref):
        words = f"{words.removesuffix(' of rows')} of {measure.argument.name}"
    return name if "(" in name else f"{name} ({words})"


def title_of(panels: Sequence[Panel], keys: Sequence[Key]) -> str:
    """The measures by the keys."""
    by = f" by {_listed([key.name for key in keys])}" if keys else ""
    return safe(_listed([panel.name for panel in panels]) + by)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
