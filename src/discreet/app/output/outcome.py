"""What came of a question: the answer with its intervals, what it cost, and what is left; as JSON, CSV or columns.

`Outcome` is what the command line shows and writes. It holds released numbers and declared facts only.
"""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from discreet.charging.quote import Quote
from discreet.core.display.columns import Cells
from discreet.core.display.numbers import loss_record, percent, plain, rational
from discreet.core.display.text import csv_cell
from discreet.ledger import Standing
from discreet.sql.answers.answer import Answer
from discreet.sql.answers.html import columns

__all__ = ["MOST_MORE", "Outcome", "standing_record"]

MOST_MORE = 1000
"""Further questions that are tried, to tell how many there is room for."""


@dataclass(frozen=True)
class Outcome:
    """An answer at a level of confidence, with the state of the budget after it."""

    answer: Answer
    level: str
    free: bool
    """Whether it was asked before, and so cost nothing."""
    standing: Standing
    """The account whose budget will be the first to end, after this question."""
    more: int
    """How many more questions like this there is room for, exactly, or `MOST_MORE` if there are so many or more."""

    @cached_property
    def spans(self) -> dict[str, list[tuple[float, float]]]:
        """The intervals of each measured column."""
        return self.answer.intervals(self.level)

    @property
    def percent(self) -> str:
        """The level as people say it."""
        return percent(self.level)

    @property
    def key(self) -> str | None:
        """The one column without an interval, if there is exactly one."""
        others = [name for name in self.answer.names if name not in self.spans]
        return others[0] if len(others) == 1 else None

    def columns(self) -> list[Cells]:
        """The columns to show; each measure is followed by its interval."""
        return columns(self.answer, self.level)

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
            "budget": {name: standing_record(self.standing)[name] for name in ("account", "budget", "used")},
            "more": self.more,
            "notes": list(answer.notes),
            "private": answer.private,
            "certificate": answer.certificate,
        }

    def as_csv(self) -> str:
        """Rows with a header; each measure is followed by the ends of its interval."""
        out = io.StringIO()
        # Texts are quoted, so that what separates cells elsewhere, a semicolon say, begins no cell here.
        writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        heads = [[name, f"{name}_low", f"{name}_high"] if name in self.spans else [name] for name in self.answer.names]
        writer.writerow([csv_cell(head) for part in heads for head in part])
        for place, row in enumerate(self.answer.rows):
            line: list[Any] = []
            for name, value in zip(self.answer.names, row, strict=True):
                line += [plain(value), *(map(plain, self.spans[name][place]) if name in self.spans else ())]
            writer.writerow(map(csv_cell, line))
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


@dataclass(frozen=True)
class Priced:
    """A quote, as it is shown."""

    quote: Quote
    nominal: bool = False
    """Whether its ε only plans noise, under a budget in ρ, and is nothing that was asked for or charged."""

    @property
    def words(self) -> list[str]:
        """How it would be answered, and how good the answer would be."""
        return [self.quote.plan, *map(str, self.quote.errors)]

    def as_record(self) -> dict[str, Any]:
        """The price for JSON."""
        errors = [{name: plain(value) for name, value in asdict(error).items()} for error in self.quote.errors]
        return {
            "epsilon": None if self.nominal else rational(self.quote.epsilon),
            "loss": loss_record(self.quote.loss),
            "fits": self.quote.fits,
            "stored": self.quote.stored,
            "failed": self.quote.failed,
            "pays": loss_record(self.quote.pays),
            "plan": self.quote.plan,
            "errors": errors,
        }
