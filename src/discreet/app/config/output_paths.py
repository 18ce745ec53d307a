"""Where commands may write: into a folder that exists, each file once, and never over what the steward keeps.

What is kept are the tables, all that is in a folder of data, the records of CSV files, the books with their lock and
key, what this user's programs keep for all of them, and the configuration.
This is told before anything is charged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from discreet.app.config.settings import Settings
from discreet.charging.signing_keys import beside
from discreet.core.errors import InvalidArgument
from discreet.core.folders import data_folder
from discreet.engines.duckdb.snapshots import SUFFIX as RECORDS
from discreet.ledger.stores.sqlite.store import BESIDE

__all__ = ["check_targets"]


def check_targets(settings: Settings, targets: Mapping[str, Path | None]) -> None:
    """Refuses files, by option, that cannot be written, or must not be."""
    taken: dict[Path, str] = {}
    for option, path in targets.items():
        if path is None:
            continue
        place = path.resolve()
        if not place.parent.is_dir():
            raise InvalidArgument(option, str(path), "in a folder that exists", f"there is no folder {path.parent}")
        if place.is_dir():
            raise InvalidArgument(option, str(path), "a file, not a folder", "name a file in it")
        for kept in _kept(settings):
            if place == kept or kept in place.parents or _is_linked(place, kept):
                reason = "another file than those of the tables, the books and the configuration"
                raise InvalidArgument(option, str(path), reason, "it would be lost: name a new file")
        if place in taken:
            raise InvalidArgument(option, str(path), f"another file than that of {taken[place]}", "name two files")
        taken[place] = option


def _is_linked(place: Path, kept: Path) -> bool:
    """Whether a file is what is kept, or in it, by another name."""
    if not place.exists() or not kept.exists():
        return False
    inside = kept.rglob("*") if kept.is_dir() and place.stat().st_nlink > 1 else iter(())
    return place.samefile(kept) or any(place.samefile(path) for path in inside)


def _kept(settings: Settings) -> Iterator[Path]:
    """Files and folders that the steward keeps."""
    yield settings.path.resolve()
    yield data_folder().resolve()
    for table in (settings.first, *settings.others):
        if table is not None and isinstance(table.source, Path):
            source = table.source.resolve()
            yield source
            yield source.with_name(source.name + RECORDS)
    if isinstance(settings.ledger, Path):
        books = settings.ledger.resolve()
        yield from (books.with_name(f"{books.name}{ending}") for ending in ("", *BESIDE))
        yield beside(books)
    if "key" in settings.given:
        yield settings.given["key"].resolve()
