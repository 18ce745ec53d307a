"""What `discreet attack link` does: tables without names in, how many people they give away out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.adversary.findings import Finding
from discreet.adversary.linkage.anonymity import how_anonymous, uniqueness
from discreet.adversary.linkage.intersection import intersect
from discreet.adversary.linkage.matching import ECCENTRICITY, Items, match
from discreet.adversary.linkage.records import Records
from discreet.app.output.finding import telling
from discreet.app.output.verdicts import Output, tell
from discreet.core.errors import InvalidArgument

__all__ = ["Linking", "linked"]


@dataclass(frozen=True)
class Linking:
    """What is known of people, and of the tables."""

    columns: Sequence[str]
    sensitive: str | None
    known: Path | None
    controls: Path | None
    key: str | None
    tolerance: Sequence[str]
    eccentricity: str | None
    largest: int


def linked(released: Sequence[Path], wish: Linking, out: Output) -> None:
    """Groups and uniqueness of one table; with what is known of people, their records and groups by the same columns;
    the intersection of several."""
    columns = [name.strip() for given in wish.columns for name in given.split(",") if name.strip()]
    if len(released) > 1:
        if wish.sensitive is None or not columns:
            raise InvalidArgument("sensitive", wish.sensitive, "given, with columns", "add --sensitive and --columns")
        stems = [path.stem for path in released]
        tables = {path.stem if stems.count(path.stem) == 1 else str(path): path for path in released}
        tell([intersect(tables, columns, wish.sensitive, wish.known)], "What the tables give away together", out)
        return
    table = Records.read(released[0])
    if wish.known is not None:
        tell(_matched(table, columns, wish), "Whose records these are", out)
        return
    found: list[Finding] = []
    if columns:
        found.append(how_anonymous(table, columns, wish.sensitive))
    with telling("trying combinations") as heard:
        tried = columns if len(columns) > 1 else [name for name in table.names if name != wish.sensitive]
        found.append(uniqueness(table, tried, largest=wish.largest, progress=heard.hear))
    tell(found, "How anonymous the table is", out)


def _matched(table: Records, columns: Sequence[str], wish: Linking) -> list[Finding]:
    people = Records.read(wish.known, "known")
    hidden = () if wish.key is None else (wish.key,)
    shared = [name for name in columns or table.names if name in people.columns and name not in hidden]
    if not shared:
        wanted = f"with columns of the release: {', '.join(table.names)}"
        raise InvalidArgument("known", str(wish.known), wanted, "call them as the release does")
    truth = None
    if wish.key is not None:
        at = {value: place for place, value in enumerate(table.column(wish.key))}
        truth = [at.get(value, -1) for value in people.column(wish.key)]
    others = None if wish.controls is None else _rows(Records.read(wish.controls, "controls"), shared)
    scales = {name: _number("tolerance", value) for name, value in map(_pair, wish.tolerance)}
    apart = ECCENTRICITY if wish.eccentricity is None else _number("eccentricity", wish.eccentricity)
    with telling("scoring records") as heard:
        found = match(
            Items.of_table(table, shared),
            _rows(people, shared),
            tolerance=scales,
            eccentricity=apart,
            controls=others,
            truth=truth,
            progress=heard.hear,
        )
    known = [name for name in shared if name != wish.sensitive]
    return [found, how_anonymous(table, known, wish.sensitive)] if known else [found]


def _rows(records: Records, columns: Sequence[str]) -> list[dict[str, Any]]:
    texts = [records.column(name) for name in records.having(columns)]
    pairs = [zip(columns, row, strict=True) for row in zip(*texts, strict=True)]
    return [{name: value for name, value in row if value != ""} for row in pairs]


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidArgument("tolerance", text, "COLUMN=NUMBER", "write age=2 if ages may be off by two years")
    return name.strip(), value


def _number(argument: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidArgument(argument, text, "a number", "write one") from None
