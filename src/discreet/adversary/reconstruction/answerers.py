"""Whoever answers subset questions: a function, a session of ours, a file of answers, a database.

An `Answerer` is given queries and returns `Answers`: a number for each, or none with the reason. Errors and refusals
are what an attack has to expect: they are counted and never raised, and what was answered is used.

>>> queries = Listed.all_subsets(3)
>>> def curator(weights):
...     if weights.sum() < 2:
...         raise PermissionError("too few people")
...     return weights @ [1, 0, 1]
>>> answers = FromFunction(curator).ask(queries)
>>> answers.given, answers.reasons
(4, {'PermissionError: too few people': 4})

SQL endpoints are asked statements made from a template that says how many of a subset have the bit: `SELECT COUNT(*)
FROM patients WHERE flu = 1 AND {subset}`; `{subset}` becomes `id IN (3, 5, …)`. A query with weights −1 and 1 is asked
as two. A session of ours is asked through its front door: every statement is priced and charged.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.adversary.reconstruction.subset_queries import Listed, Queries
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural

if TYPE_CHECKING:
    from discreet.session.session import Session

__all__ = ["Answerer", "Answers", "FromConnection", "FromFile", "FromFunction", "FromSession", "connected", "reason"]

Doubles = NDArray[np.float64]
PATIENCE = 50
"""Refusals in a row after which an answerer is not asked again."""
UNASKED = "not asked: too many refusals in a row"
LONGEST_REASON = 160
LISTED = re.compile(r"\bIN \([^()]*?(?:\)|…)")


@dataclass(frozen=True)
class Answers:
    """A number for each query, NaN where there is none, and why."""

    values: Doubles = field(repr=False)
    reasons: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, values: ArrayLike) -> Answers:
        """Numbers at hand; what is not finite counts as not answered."""
        given = np.array(values, dtype=np.float64).reshape(-1)
        missing = int((~np.isfinite(given)).sum())
        given[~np.isfinite(given)] = np.nan
        return cls(given, {"no number": missing} if missing else {})

    @property
    def given(self) -> int:
        """How many queries were answered."""
        return int(np.isfinite(self.values).sum())


@runtime_checkable
class Answerer(Protocol):
    """Anything that answers."""

    def ask(self, queries: Queries, progress: Callable[[float], None] | None = None) -> Answers:
        """An answer for each query, or the reason why there is none."""


@dataclass(frozen=True)
class FromFunction:
    """`function(weights)` answers one query; with `batch=True`, `function(queries)` answers all of them at once."""

    function: Callable[[Any], Any]
    batch: bool = False
    patience: int = PATIENCE

    def ask(self, queries: Queries, progress: Callable[[float], None] | None = None) -> Answers:
        """One call for each query, or one for all."""
        if not self.batch:
            return _one_by_one(queries, self.function, self.patience, progress)
        try:
            found = Answers.of(self.function(queries))
        except Exception as error:
            return Answers(np.full(len(queries), np.nan), {reason(error): len(queries)})
        if found.values.size != len(queries):
            many = f"{found.values.size} answers"
            raise InvalidArgument("function", many, f"{len(queries)}, one for each query", "answer all, or NaN")
        return found


@dataclass(frozen=True)
class FromFile:
    """A CSV file whose column `column` holds the answers, in the order of the queries; no number is a refusal."""

    path: str | Path
    column: str = "answer"

    def ask(self, queries: Queries, progress: Callable[[float], None] | None = None) -> Answers:
        """What the file says."""
        with Path(self.path).open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.DictReader(lines)
            if self.column not in (reader.fieldnames or ()):
                wanted = f"a file with a column {self.column!r}; it has {list(reader.fieldnames or ())}"
                raise InvalidArgument("path", str(self.path), wanted, "name the column of the answers")
            read = [_number(record[self.column]) for record in reader]
        if len(read) != len(queries):
            wanted = f"{len(queries)}, one for each query"
            raise InvalidArgument("path", f"{len(read)} answers", wanted, "leave refused answers empty")
        return Answers.of(read)

    @staticmethod
    def queries(path: str | Path, answer: str = "answer") -> Listed:
        """Weights from a CSV file: one query a row, one person a column; columns `query` and `answer` are left out."""
        with Path(path).open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.reader(lines)
            names = next(reader, [])
            kept = [place for place, name in enumerate(names) if name.strip() not in ("query", answer)]
            rows = [[_number(row[place]) if place < len(row) else np.nan for place in kept] for row in reader]
        if not kept or not rows or not np.isfinite(rows).all():
            wanted = "a header, then one row of numbers for each query, one column for each person"
            raise InvalidArgument("queries", str(path), wanted, "name the file of weights, with 0 for people left out")
        return Listed(np.array(rows))


@dataclass(frozen=True)
class Subsets:
    """Statements for subsets of people: a template with `{subset}`, and what the people are called in a column."""

    template: str
    column: str
    people: Sequence[Any]

    def __post_init__(self) -> None:
        if not isinstance(self.template, str) or "{subset}" not in self.template:
            remedy = "write … WHERE flu = 1 AND {subset}"
            raise InvalidArgument("template", self.template, "a SELECT with {subset} in it", remedy)
        if not self.people or not all(isinstance(name, str | int | np.integer) for name in self.people):
            raise InvalidArgument("people", self.people, "numbers or texts, one for each person", "list their keys")

    def statement(self, chosen: ArrayLike) -> str:
        """The question about these people."""
        keys = ", ".join(_literal(self.people[place]) for place in np.flatnonzero(chosen).tolist())
        return self.template.replace("{subset}", f"{self.column} IN ({keys})" if keys else "1 = 0")

    def check(self, queries: Queries) -> None:
        """Refuses queries about other people."""
        if queries.people != len(self.people):
            many = f"{len(self.people)} people"
            raise InvalidArgument("people", many, f"{queries.people}, as the queries have", "list all of them")

    def answer(self, weights: Doubles, count: Callable[[str], float]) -> float:
        """One query by the counts of those with weight 1, less the counts of those with weight −1."""
        if not np.isin(weights, (-1.0, 0.0, 1.0)).all():
            raise InvalidArgument("weights", "other numbers", "0 and 1, or −1 and 1", "ask for subsets")
        total = count(self.statement(weights == 1))
        return total - count(self.statement(weights == -1)) if (weights == -1).any() else total


@dataclass(frozen=True)
class FromSession:
    """A session of ours, asked in SQL at `epsilon` a statement; its refusals are refusals."""

    session: Session
    template: str
    column: str
    people: Sequence[Any]
    epsilon: Exactable
    patience: int = PATIENCE

    def ask(self, queries: Queries, progress: Callable[[float], None] | None = None) -> Answers:
        """Every query is one statement, or two, charged to the session."""
        subsets = Subsets(self.template, self.column, self.people)
        subsets.check(queries)

        def count(statement: str) -> float:
            return float(self.session.sql(statement, epsilon=self.epsilon).rows[0][0])

        return _one_by_one(queries, lambda weights: subsets.answer(weights, count), self.patience, progress)


@dataclass(frozen=True)
class FromConnection:
    """A live database: a connection (DB-API 2.0, ADBC, DuckDB, psycopg), or `postgresql://…`, or a DuckDB file."""

    connection: Any
    template: str
    column: str
    people: Sequence[Any]
    patience: int = PATIENCE

    def ask(self, queries: Queries, progress: Callable[[float], None] | None = None) -> Answers:
        """Every query is one statement, or two; a connection made here is closed again."""
        subsets = Subsets(self.template, self.column, self.people)
        subsets.check(queries)
        opened, ours = connected(self.connection)

        def count(statement: str) -> float:
            cursor = opened.cursor()
            try:
                cursor.execute(statement)
                found = cursor.fetchall()
            except Exception:
                if callable(getattr(opened, "rollback", None)):
                    _quietly(opened.rollback)
                raise
            finally:
                _quietly(cursor.close)
            return float(found[0][0] if found[0][0] is not None else 0)

        try:
            return _one_by_one(queries, lambda weights: subsets.answer(weights, count), self.patience, progress)
        finally:
            if ours:
                _quietly(opened.close)


def _one_by_one(
    queries: Queries, answer: Callable[[Any], Any], patience: int, progress: Callable[[float], None] | None
) -> Answers:
    values, reasons, in_a_row = np.full(len(queries), np.nan), Counter[str](), 0
    most = natural("patience", patience)
    for index in range(len(queries)):
        if in_a_row >= most:
            reasons[UNASKED] = len(queries) - index
            break
        try:
            values[index] = float(answer(queries.row(index)))
        except Exception as error:
            reasons[reason(error)] += 1
        else:
            if not np.isfinite(values[index]):
                values[index], reasons["no number"] = np.nan, reasons["no number"] + 1
        in_a_row = in_a_row + 1 if np.isnan(values[index]) else 0
        if progress is not None:
            progress((index + 1) / len(queries))
    return Answers(values, dict(reasons))


def connected(connection: Any) -> tuple[Any, bool]:
    """An open connection, and whether it is ours to close."""
    if not isinstance(connection, str | Path):
        if not callable(getattr(connection, "cursor", None)):
            wanted = "a connection with cursors, postgresql://… or a DuckDB file"
            raise InvalidArgument("connection", connection, wanted, "open one")
        return connection, False
    address = str(connection)
    if address.startswith(("postgresql://", "postgres://")):
        import psycopg

        return psycopg.connect(address, autocommit=True), True
    import duckdb

    return duckdb.connect(address, read_only=address != ":memory:"), True


def _literal(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(int(value))


def _number(text: str | None) -> float:
    try:
        return float(text) if text else np.nan
    except ValueError:
        return np.nan


def reason(error: Exception) -> str:
    """In one short line, without the people asked about; what else differs is mostly at its end."""
    words = LISTED.sub("IN (…)", " ".join(str(error).split()))
    short = words if len(words) <= LONGEST_REASON else words[: LONGEST_REASON - 1] + "…"
    return f"{type(error).__name__}: {short}" if short else type(error).__name__


def _quietly(action: Callable[[], Iterable[Any] | None]) -> None:
    try:
        action()
    except Exception:
        return
