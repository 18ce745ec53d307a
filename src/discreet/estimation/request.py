"""An estimate that is asked for, with everything decided before the data is touched: from declared facts alone.

The rows, what answers of the function may be, how many blocks there are, how answers become one, the events and so the
price: all of it follows from what was asked and declared. The guarantee is that of
`robust/aggregation/sample_and_aggregate.py`, for the session's unit: the unit of each row comes along from the engine,
and all rows of a unit are in one block.

An estimate asked again is another question, and charged again. What a function does cannot be told from what it looks
like: code it calls elsewhere may have changed, and it may draw numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from discreet.accounting.budgets import loss_of
from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.events import Event
from discreet.core.exact import natural
from discreet.core.expected_error import ExpectedError
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.robust.aggregation.numeric import MISSED, Centre
from discreet.robust.aggregation.sample_and_aggregate import Aggregator
from discreet.robust.aggregation.votes import Agreement, Vote
from discreet.robust.sandbox.forkserver import MOST, written
from discreet.robust.sandbox.shipping import name_of, shipped
from discreet.robust.sandbox.workers import Form, Limits, Workers
from discreet.sql.analysis.canonical import canonical
from discreet.sql.catalog import Catalog
from discreet.sql.parsing.row_source import wanted
from discreet.sql.parsing.scope import Rows
from discreet.sql.parsing.select import parse_rows
from discreet.sql.plan import Aggregate, Named, Project
from discreet.sql.relations import copies_in, units_in
from discreet.sql.statement.dialect import Dialect
from discreet.sql.statement.naming import renamed
from discreet.sql.statement.selection import Selection
from discreet.sql.statement.widths import longest_text, narrowed

__all__ = ["Ends", "Request"]

Ends = Bounds | Sequence[Any] | Mapping[str, Any] | None
"""What numbers may be: (low, high) or Bounds; for vectors a list of these, or a dict of them by name."""
FORMAT = 2
"""Of identities. What a number means never changes."""
TESTED = Fraction(1, 100)
"""The part of the budget's δ that an answer of no list may cost."""
LOUD = Fraction(1, 50)
"""Noise on a mean that is likely to be more than this part of the bounds is worth a warning."""
_RANKED = {"median": "a median", "winsorized": "fences"}
_MODULES = {"pandas": "pandas", "arrow": "pyarrow"}
_WORDS = {
    "median": "the median of the answers of {}, drawn by rank",
    "winsorized": "the mean of the answers of {}, held within fences found with a third of ε, with noise",
    "trimmed": "the mean of the answers of {} without the ends, with noise by its smooth sensitivity",
    "mean": "the mean of the answers of {}, with noise",
    "permute_and_flip": "a vote of {}, by permute-and-flip",
    "exponential": "a vote of {}, by the exponential mechanism",
    "noisy_max": "a vote of {}, the largest after noise",
    "agreement": "the most frequent answer of {}, as it is, or nothing if they do not agree enough",
}


@dataclass(frozen=True)
class Request:
    """A function of some rows, and how its answers become one."""

    function: Callable[[Any], Any]
    packed: bytes = field(repr=False)
    text: str
    rows: Rows
    names: tuple[str, ...]
    """What the numbers of an answer are called."""
    aggregator: Aggregator
    epsilon: Fraction
    budget: PureDP | ApproxDP | ZCDP
    dialect: Dialect
    form: Form
    limits: Limits

    @classmethod
    def of(
        cls,
        catalog: Catalog,
        budget: PureDP | ApproxDP | ZCDP,
        dialect: Dialect,
        function: Callable[[Any], Any],
        what: str | Sequence[str],
        epsilon: Fraction,
        bounds: Ends = None,
        values: Sequence[Any] | None = None,
        blocks: int | None = None,
        rounds: int = 1,
        method: str | None = None,
        default: Any = None,
        form: Form = "pandas",
        limits: Limits | None = None,
    ) -> Request:
        """Everything that is decided beforehand; raises for what cannot be."""
        packed = shipped(function)
        text, _ = wanted(catalog, what)
        rows = parse_rows(text, catalog)
        if copies_in(rows.relation) > 1:
            reason = "a row may be in several of the private tables, and so in several blocks"
            raise Unsupported("this function", reason, "ask for one table, or have the tables declared disjoint")
        labels = [one.label for one in rows.visible]
        twice = next((label for label in labels if labels.count(label) > 1), None)
        if twice is not None:
            raise InvalidArgument("columns", twice, "named once", "leave it out, or give it another name with AS")
        needed = _MODULES.get(form)
        if needed is not None and find_spec(needed) is None:
            raise InvalidArgument("form", form, "installed here", f'install {needed}, or write form="numpy"')
        if form == "rows":
            raise InvalidArgument("form", form, "'pandas', 'arrow' or 'numpy'", "rows of a table come by columns")
        if limits is not None and not isinstance(limits, Limits):
            raise InvalidArgument("limits", limits, "Limits", "write Limits(seconds=10) of discreet.robust")
        names, aggregator = _aggregator(budget, epsilon, bounds, values, blocks, rounds, method, default)
        asked = (names, aggregator, epsilon, budget, dialect, form, limits or Limits())
        return cls(function, packed, text, rows, *asked)

    @property
    def name(self) -> str:
        """What the function is called."""
        return name_of(self.function)

    @property
    def events(self) -> tuple[Event, ...]:
        """What will be run."""
        return self.aggregator.events

    @cached_property
    def loss(self) -> PureDP | ApproxDP | ZCDP:
        """What that costs alone."""
        return loss_of(self.events, self.budget)

    @cached_property
    def statement(self) -> str:
        """What the engine runs: the rows, each with its unit where that is a column."""
        shown = tuple(Named(f"c{place}", one.expression) for place, one in enumerate(self.rows.visible))
        relation, _ = renamed(narrowed(Project(self.rows.relation, shown)))
        return Selection(self.dialect, longest_text(relation, (), self.dialect)).select(relation)

    def workers(self, hidden: Sequence[Path] = (), trial: bool = False) -> Workers:
        """Processes that wait with the function, which has been loaded once in one of them; what cannot be loaded is
        refused here. Unless the function is trusted, none of its code runs but behind all walls
        (`robust/sandbox/confinement.py`)."""
        limits = replace(self.limits, workers=1, padded=False) if trial else self.limits
        confined = not limits.trusted
        asked = (self.function, self.aggregator.size, self.form, limits, self.packed, hidden)
        return Workers(*asked, confined=confined, trial=trial)

    def identity(self, sources: Mapping[str, str], number: str) -> str:
        """What is asked and declared; `number`, drawn for each asking, tells it from all others."""
        keys = tuple(Named(one.label, one.expression) for one in self.rows.visible)
        asked = {
            "format": FORMAT,
            "kind": "estimate",
            "rows": canonical(Aggregate(self.rows.relation, keys, ())),
            "function": hashlib.sha256(self.packed).hexdigest(),
            "epsilon": str(self.epsilon),
            "sources": dict(sources),
            "number": number,
        }
        return json.dumps(asked, sort_keys=True)

    @property
    def errors(self) -> tuple[ExpectedError, ...]:
        """How far off, where it is known beforehand."""
        found = self.aggregator
        if isinstance(found, Centre) and found.method == "median":
            told = f"± {{}} of {found.count:,} ranks where answers are spread evenly, in steps of "
            lost = f"; beyond all answers with probability {found.missed:.2g} at most"
            each = [ExpectedError(name, found.ranks, found.ranks, in_ranks=True) for name in self.names]
            steps = zip(each, found.steps, strict=True)
            return tuple(replace(one, meaning=f"{told}{step:g}{lost}") for one, step in steps)
        if isinstance(found, Centre) and found.method == "mean":
            reach = found.accuracy(Fraction(1, 2))
            ends = [reach * float(one.width) for one in found.each]
            return tuple(ExpectedError(name, off, off) for name, off in zip(self.names, ends, strict=True))
        return ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about the number of blocks."""
        found = self.aggregator
        if not isinstance(found, Centre):
            return ()
        if found.missed > MISSED:
            said = f"{_counted(found.blocks)} at this ε: too few for {_RANKED[found.method]}, what is drawn by rank "
            said += f"may lie beyond all answers (with probability {found.missed:.2g} at most)"
        elif found.method == "mean" and found.accuracy(Fraction(1, 2)) > LOUD:
            part = found.accuracy(Fraction(1, 2))
            said = f"{_counted(found.blocks)} at this ε: few, noise is likely to be {part:.0%} of the bounds"
        else:
            return ()
        return (f"{said}; have {found.least:,} or more for a median, tighter bounds for a mean, or more ε",)

    @property
    def words(self) -> str:
        """The plan in words."""
        found, limits = self.aggregator, self.limits
        method = "agreement" if isinstance(found, Agreement) else found.method
        said = [_WORDS[method].format(_counted(found.blocks * found.rounds))]
        units = sorted(units_in(self.rows.relation))
        whose = "all rows of a unit are" if self.rows.owned else "each row is"
        said.append(f"{whose} in one block" + (f" of each of {found.rounds} partitions" if found.rounds > 1 else ""))
        if units:
            said.append(f"rows whose {' or '.join(units)} is NULL are nobody's and left out")
        default = found.default
        if isinstance(found, Centre):
            each = default if isinstance(default, tuple) else (default,)
            counts = f"counts as {', '.join(f'{float(value):g}' for value in each)}"
        else:
            counts = "has no vote" if isinstance(found, Vote) and default is None else f"counts as {default!r}"
        said.append(f"a block that is empty, fails, or takes more than {float(limits.seconds):g} s {counts}")
        said.append("asked again it is charged again")
        return "; ".join(said)


def _counted(blocks: int) -> str:
    return f"{blocks:,} block{'s' if blocks != 1 else ''}"


def _check_labels(values: Iterable[Any]) -> None:
    """That a function can give each of these: an answer is a label, and no longer than one may be."""
    for value in values:
        try:
            long = len(written(value)) > MOST
        except (TypeError, ValueError, RecursionError):
            long = True
        if long:
            remedy = f"list texts, finite numbers, truth values, None, or tuples of these, of at most {MOST:,} bytes"
            raise InvalidArgument("values", value, "an answer that a block can give", remedy)


def _aggregator(
    budget: PureDP | ApproxDP | ZCDP,
    epsilon: Fraction,
    bounds: Ends,
    values: Sequence[Any] | None,
    blocks: int | None,
    rounds: int,
    method: str | None,
    default: Any,
) -> tuple[tuple[str, ...], Aggregator]:
    """By what answers may be: numbers within bounds, one of a list, or anything."""
    delta = budget.delta if isinstance(budget, ApproxDP) else Fraction(0)
    natural("rounds", rounds)
    if bounds is not None and values is not None:
        raise InvalidArgument("values", values, "left out where there are bounds", "answers are numbers or from a list")
    if bounds is not None:
        names, ends = _ends(bounds)
        size = 1 if isinstance(ends, Bounds) else len(ends)
        many = Centre.enough(epsilon, size, delta) if blocks is None else natural("blocks", blocks)
        if method is None:
            return names, Centre.best(ends, epsilon, many, rounds, delta, default)
        chosen: Any = method
        return names, Centre(ends, epsilon, many, rounds, delta, chosen, default=default)
    if values is not None:
        _check_labels(values)
        many = Vote.enough(values, epsilon) if blocks is None else blocks
        rule: Any = method or "permute_and_flip"
        return ("answer",), Vote(tuple(values), epsilon, many, rounds, rule, default)
    if method is not None:
        raise InvalidArgument("method", method, "left out where answers are anything", "give bounds or values")
    if not delta:
        remedy = "give bounds=(low, high) or values=[…], or have a budget with a δ"
        bound = f"one of the two under a {type(budget).__name__} budget"
        raise InvalidArgument("bounds, values", None, bound, remedy)
    many = Agreement.enough(epsilon, delta * TESTED) if blocks is None else blocks
    return ("answer",), Agreement(epsilon, delta * TESTED, many, rounds, default)


def _ends(bounds: Any) -> tuple[tuple[str, ...], Bounds | tuple[Bounds, ...]]:
    """Names and bounds of one number, or of several."""
    if isinstance(bounds, Mapping):
        if not bounds or not all(isinstance(name, str) for name in bounds):
            raise InvalidArgument("bounds", bounds, "by name", 'write {"slope": (-1, 1), "intercept": (0, 10)}')
        return tuple(bounds), tuple(_pair(one) for one in bounds.values())
    if isinstance(bounds, Bounds):
        return ("estimate",), bounds
    listed = [*bounds] if isinstance(bounds, Sequence) and not isinstance(bounds, str) else []
    if listed and all(isinstance(one, Bounds | tuple | list) for one in listed):
        return tuple(f"estimate {place + 1}" for place in range(len(listed))), tuple(_pair(one) for one in listed)
    return ("estimate",), _pair(bounds)


def _pair(ends: Any) -> Bounds:
    if isinstance(ends, Bounds):
        return ends
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InvalidArgument("bounds", ends, "a pair (low, high)", "declare what an answer may be: bounds=(0, 1)")
    return Bounds(ends[0], ends[1])
