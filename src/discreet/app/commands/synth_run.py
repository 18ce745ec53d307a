"""Synthetic rows from the command line: a session is opened from the settings, asked once, and closed.

>>> bins(["age=10", "cost=0:50:100"])
{'age': 10, 'cost': ['0', '50', '100']}
>>> queries(["SELECT a, COUNT(*) FROM t GROUP BY a", "a,b", "a, c"])
['SELECT a, COUNT(*) FROM t GROUP BY a', ['a', 'b'], ['a', 'c']]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.app.commands.query import Bill, billed
from discreet.app.config.declarations import pairs
from discreet.app.config.settings import Settings
from discreet.app.output.outcome import Priced, standing_record
from discreet.app.output.progress import waiting
from discreet.app.output.terminal import console, facts, show_grid, standing_line
from discreet.core.display.columns import Cells
from discreet.core.display.numbers import loss, loss_record
from discreet.core.errors import InvalidArgument
from discreet.session.connect import connect
from discreet.session.session import Session
from discreet.sql.statement.dialect import quoted
from discreet.synthesis.question import SyntheticRows
from discreet.synthesis.result import Synthesis

__all__ = ["Made", "Wish", "bins", "made", "priced", "queries"]

STARTS = ("SELECT", "WITH", "FROM", "(")


@dataclass(frozen=True)
class Wish:
    """What the command was told; numbers are texts."""

    table: str
    epsilon: str | None
    columns: Sequence[str]
    workload: Sequence[str]
    method: str | None
    bins: Sequence[str]
    max_rows: int | None
    check: str
    study: str | None
    analyst: str | None
    rho: str | None = None

    @property
    def what(self) -> str:
        """The table, or a SELECT of its columns."""
        if not self.columns:
            return self.table
        if self.table.strip().upper().startswith(STARTS):
            raise InvalidArgument("columns", list(self.columns), "for a table", "list them in the SELECT")
        names = _names(self.columns)
        if not names:
            raise InvalidArgument("columns", "", "names of columns", "write --columns age,city, or nothing for all")
        return f"SELECT {', '.join(map(quoted, names))} FROM {quoted(self.table)}"

    def options(self) -> dict[str, Any]:
        """What a session is asked with, besides the table."""
        return {
            "epsilon": self.epsilon,
            "rho": self.rho,
            "workload": queries(self.workload) if self.workload else None,
            "method": self.method,
            "bins": bins(self.bins) if self.bins else None,
            "max_rows": self.max_rows,
            "check": self.check,
        }

    def arguments(self, settings: Settings) -> dict[str, Any]:
        """What `connect` is called with."""
        return settings.arguments(study=self.study, analyst=self.analyst)


@dataclass(frozen=True)
class Made:
    """Rows, what they cost, and what is left."""

    bill: Bill[Synthesis]
    public: dict[str, list[Any]] | None
    """Public rows to compare them with."""

    @property
    def synthesis(self) -> Synthesis:
        """The rows."""
        return self.bill.what

    def page(self) -> str:
        """How good they are."""
        return self.synthesis.report(self.public)

    def as_record(self, out: Path) -> dict[str, Any]:
        """Everything but the rows, for JSON."""
        found, spans = self.synthesis, [error.misplaced() for error in self.synthesis.errors]
        return {
            "out": str(out),
            "rows": len(found),
            "columns": list(found.names),
            "method": found.request.chosen.name,
            "cells": found.workload.domain.size,
            "plan": found.request.words,
            "errors": [
                {"counts": error.label, "queries": error.counts, "misplaced": share, "low": low, "high": high}
                for error, (share, low, high) in zip(found.errors, spans, strict=True)
            ],
            "loss": loss_record(found.loss),
            "free": self.bill.free,
            "budget": {name: standing_record(self.bill.standing)[name] for name in ("account", "budget", "used")},
            "private": found.private,
            "certificate": found.certificate,
        }

    def show(self, out: Path) -> None:
        """A few lines for people."""
        means = [error for error in self.synthesis.errors if not error.counts]
        if means:
            spans = [error.misplaced() for error in means]
            show_grid(
                [
                    Cells("counts by", [error.label.removeprefix("mean of ") for error in means]),
                    Cells("rows in the wrong place", [f"{share * 100:.1f} %" for share, _, _ in spans], True, True),
                    Cells("95 %", [f"{low * 100:.1f} … {high * 100:.1f} %" for _, low, high in spans], True, True),
                ]
            )
        paid = "nothing: this was asked before" if self.bill.free else loss(self.synthesis.loss)
        names = ", ".join(self.synthesis.names)
        lines = [
            ("wrote", f"{len(self.synthesis):,} rows of {names} to {out}"),
            ("how", self.synthesis.request.words),
            ("cost", paid),
            ("budget", standing_line(self.bill.standing)),
        ]
        console().print(facts(lines))


def made(settings: Settings, wish: Wish, rows: int | None, compare: str | None) -> Made:
    """The rows; charged, unless the same was asked before."""
    done: list[float] = []
    public: dict[str, list[Any]] | None = None

    def asked(session: Session) -> Synthesis:
        nonlocal public

        def progress() -> float | None:
            return done[-1] if done else None

        if compare is not None:
            # Looked at first: a table that cannot be compared with is told before anything is charged.
            public = session.public_columns(compare, session.price(SyntheticRows(wish.what, **wish.options())).columns)
        with waiting(progress, "making rows"):
            return session.synthesize(wish.what, rows=rows, progress=done.append, **wish.options())

    bill = billed(settings, wish.arguments(settings), asked)
    return Made(bill, public)


def priced(settings: Settings, wish: Wish) -> Priced:
    """What it would cost, from declared facts alone."""
    with connect(**wish.arguments(settings)) as session:
        return Priced(session.price(SyntheticRows(wish.what, **wish.options())), wish.epsilon is None)


def bins(texts: Iterable[str]) -> dict[str, int | list[str]]:
    """Numbers of bins, or their ends, by column."""
    found: dict[str, int | list[str]] = {}
    for name, text in pairs("bins", texts).items():
        parts = [part.strip() for part in text.split(":")]
        if len(parts) == 1 and not parts[0].isdecimal():
            remedy = f"write --bins {name}=0:18:65"
            raise InvalidArgument(f"bins of {name}", text, "a whole number, or ends as 0:18:65", remedy)
        found[name] = int(parts[0]) if len(parts) == 1 else parts
    return found


def queries(texts: Sequence[str]) -> int | list[str | list[str]]:
    """SQL as it is, that of files, and lists of columns; a number alone is of columns in a marginal."""
    if len(texts) == 1 and texts[0].strip().isdecimal():
        return int(texts[0])
    found: list[str | list[str]] = []
    for text in texts:
        if text.strip().upper().startswith(STARTS):
            found.append(text)
        elif Path(text).is_file():
            listed = Path(text).read_text(encoding="utf-8").split(";")
            found += [part.strip() for part in listed if part.strip()]
        elif Path(text).suffix in (".sql", ".txt"):
            raise InvalidArgument("workload", text, "a file that exists", "check its name")
        elif text.strip().isdecimal():
            raise InvalidArgument("workload", text, "alone where it is a number", "list columns: --workload age,city")
        else:
            found.append(_names([text]))
    return found


def _names(texts: Iterable[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]
