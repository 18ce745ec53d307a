"""What came of a question: the answer with its intervals, what it cost, and what is left; as JSON, CSV or columns.

`Outcome` is what the command line shows and writes. It holds released numbers and declared facts only.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from discreet.app.numerals import loss_record, number, places, plain, shown
from discreet.ledger import Standing
from discreet.sql.answer import Answer

__all__ = ["Cells", "Outcome", "standing_record"]


@dataclass(frozen=True)
class Cells:
    """One column as texts of one alignment."""

    title: str
    texts: list[str]
    right: bool = False
    firm: bool = False
    """Whether it is never broken into lines."""


@dataclass(frozen=True)
class Outcome:
    """An answer at a level of confidence, with the state of the budget after it."""

    answer: Answer
    level: str
    free: bool
    """Whether it was asked before, and so cost nothing."""
    standing: Standing
    """The account whose budget will be the first to end, after this question."""
    before: Fraction
    """The part of it that was used before."""

    @cached_property
    def spans(self) -> dict[str, list[tuple[float, float]]]:
        """The intervals of each measured column."""
        return self.answer.intervals(self.level)

    @property
    def percent(self) -> str:
        """The level as people say it."""
        return f"{float(Fraction(self.level)) * 100:.6g} %"

    @property
    def more(self) -> int | None:
        """About how many more questions at this price there is room for."""
        price = self.standing.used - self.before
        return None if price <= 0 else int((1 - self.standing.used) / price)

    @property
    def key(self) -> str | None:
        """The one column without an interval, if there is exactly one."""
        others = [name for name in self.answer.names if name not in self.spans]
        return others[0] if len(others) == 1 else None

    def columns(self) -> list[Cells]:
        """The columns to show; each measure is followed by its interval."""
        found = []
        for name in self.answer.names:
            values = self.answer.column(name)
            if name in self.spans:
                found += self._measured(name, values)
            else:
                numeric = all(isinstance(value, int | float) for value in values)
                found.append(Cells(name, [shown(value) for value in values], right=numeric))
        return found

    def _measured(self, name: str, values: Sequence[float]) -> list[Cells]:
        spans = self.spans[name]
        widths = [(high - low) / 2 for low, high in spans]
        decimals = places(widths)
        texts = [number(value, decimals) for value in values]
        slack = 0.5 * 10**-decimals
        if all(abs((low + high) / 2 - value) <= slack for value, (low, high) in zip(values, spans, strict=True)):
            halves = [number(width, decimals) for width in widths]
            return [Cells(name, texts, True, True), Cells(f"± {self.percent}", halves, True, True)]
        lows = [number(low, decimals) for low, _ in spans]
        highs = [number(high, decimals) for _, high in spans]
        left, right = max(map(len, lows), default=0), max(map(len, highs), default=0)
        ranges = [f"{low:>{left}} … {high:>{right}}" for low, high in zip(lows, highs, strict=True)]
        return [Cells(name, texts, True, True), Cells(f"{self.percent} interval", ranges, True, True)]

    def as_record(self) -> dict[str, Any]:
        """Everything, as plain data for JSON."""
        answer = self.answer
        return {
            "columns": list(answer.names),
            "rows": [[plain(value) for value in row] for row in answer.rows],
            "level": self.level,
            "intervals": {name: [[plain(low), plain(high)] for low, high in s] for name, s in self.spans.items()},
            "loss": loss_record(answer.loss),
            "free": self.free,
            "budget": standing_record(self.standing),
            "notes": list(answer.notes),
            "private": answer.private,
            "certificate": answer.certificate,
        }

    def as_csv(self) -> str:
        """Rows with a header; each measure is followed by the ends of its interval."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        heads = [[name, f"{name}_low", f"{name}_high"] if name in self.spans else [name] for name in self.answer.names]
        writer.writerow([head for part in heads for head in part])
        for place, row in enumerate(self.answer.rows):
            line: list[Any] = []
            for name, value in zip(self.answer.names, row, strict=True):
                line += [plain(value), *(map(plain, self.spans[name][place]) if name in self.spans else ())]
            writer.writerow(line)
        return out.getvalue()


def standing_record(standing: Standing) -> dict[str, Any]:
    """One account for JSON."""
    return {
        "account": list(standing.account),
        "budget": None if standing.budget is None else loss_record(standing.budget),
        "spent": loss_record(standing.spent),
        "remaining": None if standing.remaining is None else loss_record(standing.remaining, down=True),
        "used": float(standing.used),
    }
