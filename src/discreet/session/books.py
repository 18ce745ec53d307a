"""Where the books of a source are kept, unless it is said: beside files, by the name of rows that lie in no file.

>>> beside(Path("/data/visits.csv"))
PosixPath('/data/visits.csv.ledger')
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from discreet.core.errors import InvalidArgument
from discreet.core.losses import Loss
from discreet.core.units import Unit
from discreet.engines.duckdb.files import marks
from discreet.ledger import Ledger
from discreet.ledger.stores.addresses import is_address as keeps_books
from discreet.ledger.stores.addresses import named_after

__all__ = ["FLEETING", "beside", "books_of", "files_apart", "opened_account"]

BESIDE = ".ledger"
"""What stands after a source's name in the name of the books beside it."""
FLEETING = (
    "the books of these rows end with this session: every later one begins with the whole budget again, and nothing"
    ' holds for all of them together; give dataset="…", by which they are found again, or ledger="…", a file for them'
)
"""What is said of rows that lie nowhere, unless it is said where their books are."""


def beside(path: Path) -> Path:
    """The books beside a file or a folder."""
    return path.with_name(path.name + BESIDE)


def books_of(
    source: Path | None, dataset: str | None, ledger: str | os.PathLike[str] | None, paths: Iterable[Path]
) -> str | Path | None:
    """Where the books are of a source whose rows lie at `paths`; None if they end with the session, with a warning.

    `source` is the file or folder that it is, if it is one. At their place beside it they must be the only ones of that
    kind for these files.
    """
    books = _said(source, ledger, paths)
    if books is None and dataset is not None:
        return named_after(dataset)
    if books is None:
        warnings.warn(FLEETING, stacklevel=3)
    return books


def _said(source: Path | None, ledger: str | os.PathLike[str] | None, paths: Iterable[Path]) -> str | Path | None:
    """Where the books are, if it is said or the source lies somewhere."""
    if keeps_books(ledger):
        return ledger
    near_source = None if source is None else beside(source.expanduser().resolve())
    books = near_source if ledger is None else Path(ledger)
    if books is None or near_source is None or books.expanduser().resolve() != near_source:
        return books
    held = frozenset[tuple[int, int]]().union(*map(marks, paths))
    near = {place for path in paths for place in (path, *path.parents) if place.name}
    for place in sorted(near):
        if beside(place) != near_source and beside(place).exists() and held & marks(place):
            remedy = f"give ledger={str(beside(place))!r} to go on with those, or another ledger for all of them"
            raise InvalidArgument("ledger", str(near_source), "the only books of these files; there are others", remedy)
    return books


def opened_account(
    ledger: Ledger,
    dataset: str,
    budget: Loss,
    unit: Unit,
    sources: Sequence[str],
    below: Sequence[str],
    new: bool,
) -> tuple[str, ...]:
    """The account of a data set, or of the study and analyst `below` it, with all sources attached to the data set."""
    opened = ledger.open((dataset,), budget=budget, unit=unit, source=sources[0])
    known = ledger.sources() if sources[1:] else {}
    for source in sources[1:]:
        if known.get(source) != opened[0]:
            ledger.attach(opened, source)
    for part in below:
        opened = ledger.open((*opened, part), new=new)
    return opened


def files_apart(ledger: Ledger, dataset: str, own: Sequence[str]) -> str:
    """The files of a table, `own` are its sources, where a data set is in several and this table is not all of it: what
    was asked of a folder was not asked of a file in it. Decided by what the books say, not by what lies there now."""
    files = [source for source in own if source.startswith("file:")]
    if not files or [*ledger.sources().values()].count(dataset) < 2:
        return ""
    # Files that are given one by one, as by an Arrow dataset, may be others the next time.
    is_whole = own[0] == files[0] and own[0] in ledger.same_files(dataset)
    return "" if is_whole else json.dumps(files)
