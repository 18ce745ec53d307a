"""Registered CSV files: parsed once, and kept as an immutable table that every question reads.

The first session on a CSV file registers it: its records are written to `FILE.records/rows`, a Parquet file of texts,
beside the source, or where that cannot be written in the folder of this machine, for this user alone. From then on
these records are the data. Neighbours are defined on them, no question parses anything, and so no row can turn success
into failure. What was left out is told once, to whoever registers (`FaultyRecords`); later sessions say nothing of it.

`registration.json` has the digests of the source and of the rows, and how the source was read. A source that changed is
refused until it is registered again: the steward removes the folder and connects; data set and budget stay what they
were. The folder appears all at once, under its name, or not at all.

Whoever can write beside a source could put a folder of theirs there, with a link to rows that are in other books. So
records are read only where nobody but this user, or the administrator, can have made or changed them (`_is_own`).
"""

from __future__ import annotations

import json
import os
import stat
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from discreet.core.errors import InvalidArgument
from discreet.core.folders import data_folder
from discreet.engines.duckdb.csv_records import Csv, FileState, codec, counted_delimiter, marked, parse
from discreet.engines.duckdb.files import Files

__all__ = ["FaultyRecords", "Snapshot", "registered", "taken"]

SUFFIX = ".records"
"""What stands after a source's name in the name of the folder with its records."""
ROWS, REGISTRATION = "rows", "registration.json"
VERSION = 1


class FaultyRecords(UserWarning):
    """Records of a CSV file that were left out when it was registered, by line and kind."""


@dataclass(frozen=True)
class Snapshot:
    """The records of a source."""

    rows: Path
    sources: dict[str, FileState]
    """The files it was made of, by their names below the source."""
    state: FileState
    encoding: str
    delimiter: str

    @classmethod
    def read(cls, folder: Path) -> Snapshot:
        """What a folder holds, if it is whole and nobody else's."""
        try:
            if not _is_own(folder):
                raise ValueError(folder)
            said = json.loads((folder / REGISTRATION).read_text(encoding="utf-8"))
            if said["version"] != VERSION:
                raise ValueError(said["version"])
            sources = {str(name): FileState(**state) for name, state in said["sources"].items()}
            found = cls(folder / ROWS, sources, FileState(**said["rows"]), said["encoding"], said["delimiter"])
            if found.state.is_of(found.rows):
                return found
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise InvalidArgument("source", str(folder), "records as they were registered", _again(folder))

    def check(self, path: Path, files: Files, how: Csv, folder: Path) -> None:
        """That the source, and how it is to be read, are what they were."""
        names = _names(path, files)
        same = list(self.sources) == names
        if not same or not all(s.is_of(p) for s, p in zip(self.sources.values(), files.paths, strict=True)):
            bound = "what it was when it was registered"
            raise InvalidArgument("source", str(path), bound, f"{_again(folder)}; data set and budget stay the same")
        for name, declared, known in (
            ("encoding", how.encoding, self.encoding),
            ("delimiter", how.delimiter, self.delimiter),
        ):
            if declared not in (None, known):
                bound = f"{known!r}, as it was when {path.name} was registered"
                raise InvalidArgument(name, declared, bound, _again(folder))

    def written(self, first: Path, how: Csv) -> str:
        """How the records were read and their texts become values, where the source would be read otherwise by its
        header line alone; empty where it would not. `first` is its first file."""
        said = {
            "encoding": (codec(self.encoding), codec(marked(first))),
            "delimiter": (self.delimiter, counted_delimiter(first, self.encoding)),
            "decimal": (how.decimal, Csv.decimal),
            "date": (how.date, Csv.date),
        }
        other = {name: value for name, (value, usual) in said.items() if value != usual}
        return f"#csv:{json.dumps(other, sort_keys=True)}" if other else ""


def registered(path: Path, files: Files, how: Csv) -> Snapshot:
    """The records of a source, which is registered now if it was not before."""
    for folder in _folders(path):
        # Not asked of pathlib, which raises where a name is too long.
        if os.path.exists(folder):
            known = Snapshot.read(folder)
            known.check(path, files, how, folder)
            return known
    for folder in _folders(path):
        try:
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = Path(mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        except OSError:
            continue
        try:
            told = taken(path, files, how, draft)
            with suppress(OSError):
                # Fails where another session was quicker: then what it registered counts.
                draft.rename(folder)
                _tell(told)
        finally:
            rmtree(draft, ignore_errors=True)
        known = Snapshot.read(folder)
        known.check(path, files, how, folder)
        return known
    remedy = "make its folder writable while it is registered, or save the table as Parquet"
    raise InvalidArgument("source", str(path), "in a folder where its records can be kept", remedy)


def taken(path: Path, files: Files, how: Csv, folder: Path, tell: bool = False) -> str:
    """Parses the source into a folder of its own; what a steward is told of faults."""
    rows = folder / ROWS
    os.close(os.open(rows, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    parsed = parse(files.paths, how, rows, [_keys(p, path, files.keys) for p in files.paths])
    with rows.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
    seen = rows.stat()
    record: dict[str, Any] = {
        "version": VERSION,
        "sources": {name: asdict(state) for name, state in zip(_names(path, files), parsed.states, strict=True)},
        "rows": asdict(FileState(seen.st_size, seen.st_mtime_ns, digest)),
        "encoding": parsed.encoding,
        "delimiter": parsed.delimiter,
    }
    place = os.open(folder / REGISTRATION, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(place, "w", encoding="utf-8") as file_of_record:
        json.dump(record, file_of_record, indent=2)
        file_of_record.flush()
        os.fsync(file_of_record.fileno())
    told = parsed.faults.told(path.name)
    if tell:
        _tell(told)
    return told


def _tell(told: str) -> None:
    if told:
        warnings.warn(told, FaultyRecords, stacklevel=2)


def _folders(path: Path) -> list[Path]:
    """Where the records of a source may be: beside it, or in the folder of this machine."""
    named = f"{sha256(str(path).encode()).hexdigest()[:16]}{SUFFIX}"
    return [path.with_name(path.name + SUFFIX), data_folder() / named]


def _again(folder: Path) -> str:
    return f"remove {folder} and connect, to register it as it is now"


def _is_own(folder: Path) -> bool:
    """Whether the folder and its files are what they seem, no links, and only this user or the administrator owns them
    and may write to them; where systems do not know of owners, it is not asked."""
    if not hasattr(os, "geteuid"):
        return True
    seen = [path.lstat() for path in (folder, folder / ROWS, folder / REGISTRATION)]
    kinds = [stat.S_IFMT(one.st_mode) for one in seen]
    mine = all(one.st_uid in (os.geteuid(), 0) and not one.st_mode & (stat.S_IWGRP | stat.S_IWOTH) for one in seen)
    return mine and kinds == [stat.S_IFDIR, stat.S_IFREG, stat.S_IFREG]


def _names(path: Path, files: Files) -> list[str]:
    return [path.name] if path.is_file() else [p.relative_to(path).as_posix() for p in files.paths]


def _keys(file: Path, path: Path, keys: Sequence[str]) -> dict[str, str]:
    """The values that the names of folders give to columns."""
    below = file.relative_to(path).parts[:-1] if keys else ()
    parts = dict(part.split("=", 1) for part in below if "=" in part)
    return {key: parts[key] for key in keys}
