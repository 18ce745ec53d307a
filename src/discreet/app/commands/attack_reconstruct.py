"""What `discreet attack reconstruct` does: answers, tables or a database in, a verdict out."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from discreet.adversary.reconstruction.answerers import Answerer, FromConnection, FromFile, FromSession
from discreet.adversary.reconstruction.attack import Method, Reconstruction, reconstruct
from discreet.adversary.reconstruction.census import reconstruct_tables
from discreet.adversary.reconstruction.subset_queries import Listed, Queries
from discreet.app.output.finding import print_json, show, telling, write
from discreet.app.output.printing import say
from discreet.app.output.verdicts import Output
from discreet.core.display.columns import Cells
from discreet.core.errors import InvalidArgument

__all__ = ["Asking", "Output", "from_answers", "from_database", "from_tables"]

PER_PERSON = 4
MOST_SHOWN = 1000
"""Secrets that are printed, at most; all of them are in JSON."""


@dataclass(frozen=True)
class Asking:
    """Whom to ask about whom."""

    template: str
    people: Path | None
    key: str
    database: str | None
    epsilon: str | None
    questions: int | None
    config: Path | None


def from_answers(answers: Path, queries: Path | None, method: str | None, truth: Path | None, out: Output) -> None:
    """Answers in a file."""
    asked = FromFile.queries(queries or answers)
    _tell(_attacked(FromFile(answers), asked, method, truth), out)


def from_database(asking: Asking, method: str | None, truth: Path | None, out: Output) -> None:
    """A database, or a session of ours, that answers while we ask."""
    if asking.people is None:
        raise InvalidArgument("people", None, "a file with the keys of the people", "add --people FILE")
    keys = [_key(value) for value in _column(asking.people, asking.key)]
    queries = Listed.drawn(len(keys), asking.questions or PER_PERSON * len(keys))
    if asking.database is not None:
        found = FromConnection(asking.database, asking.template, asking.key, keys)
        _tell(_attacked(found, queries, method, truth), out)
        return
    if asking.epsilon is None:
        raise InvalidArgument("epsilon", None, "what each question may cost", "add --epsilon, or --database")
    from discreet.app.config.settings import Settings, find
    from discreet.session.connect import connect

    settings = Settings.read(find(Path.cwd(), asking.config))
    with connect(**settings.arguments(study=None, analyst=None)) as session:
        ours = FromSession(session, asking.template, asking.key, keys, asking.epsilon)
        _tell(_attacked(ours, queries, method, truth), out)


def from_tables(tables: Sequence[str], block: str, count: str, truth: Path | None, out: Output) -> None:
    """Published tables, in files."""
    named = {}
    for given in tables:
        name, equals, path = given.partition("=")
        if not equals:
            name, path = Path(given).stem, given
        if name in named:
            raise InvalidArgument("table", given, "of a name that is not taken", "write NAME=FILE")
        named[name] = Path(path)
    with nullcontext() if out.as_json else telling("solving blocks") as heard:
        told = None if heard is None else heard.hear
        found = reconstruct_tables(named, block=block, count=count, truth=truth, progress=told)
    write(found, "What the tables give away", out.html, out.plot)
    if out.as_json:
        print_json(found.as_record(reveal=out.reveal))
        return
    show(found, found.columns(), (), found.notes())
    if out.reveal:
        records = found.records()
        _print([Cells(name, [str(value) for value in column[:MOST_SHOWN]]) for name, column in records.items()])


def _attacked(answerer: Answerer, queries: Queries, method: str | None, truth: Path | None) -> Reconstruction:
    known = None if truth is None else [float(value) for value in _column(truth, "bit")]
    with telling("reading answers") as heard:
        chosen = cast("Method | None", method)
        return reconstruct(answerer, queries, method=chosen, truth=known, progress=heard.hear)


def _tell(found: Reconstruction, out: Output) -> None:
    write(found, "What the answers give away", out.html, out.plot)
    if out.as_json:
        print_json(found.as_record(reveal=out.reveal))
        return
    show(found, (), found.lines())
    if out.reveal:
        bits, chances = found.bits[:MOST_SHOWN].tolist(), found.chances[:MOST_SHOWN].tolist()
        sure = [f"{max(chance, 1 - chance) * 100:.1f} %" for chance in chances]
        _print(
            [
                Cells("person", [str(place + 1) for place in range(len(bits))], True, True),
                Cells("bit", [str(bit) for bit in bits], True, True),
                Cells("chance", sure, True, True),
            ]
        )


def _print(columns: list[Cells]) -> None:
    from discreet.app.output.terminal import show_grid

    show_grid(columns)
    if columns and len(columns[0].texts) == MOST_SHOWN:
        say(f"The first {MOST_SHOWN:,}; --json prints all.")


def _column(path: Path, name: str) -> list[Any]:
    with path.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.DictReader(lines)
        heads = [head.strip() for head in reader.fieldnames or ()]
        if name not in heads:
            raise InvalidArgument("file", str(path), f"with a column {name!r}; it has {heads}", "name the column")
        return [record[name] for record in reader]


def _key(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdigit() else text
