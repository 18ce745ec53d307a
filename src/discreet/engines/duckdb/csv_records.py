"""The records of CSV files, parsed strictly and once, as the rows of a Parquet file.

A record ends where a line ends outside quotes; inside them line breaks, delimiters and doubled quotes are part of the
value. All values are text, an empty one is NULL, and no value decides how another is read: the delimiter is that of the
header line outside quotes, and the encoding is declared, or else named by the byte order mark at the start of the file,
or UTF-8.

Faults come in two kinds. A record with another number of values than the header, or with bytes that are no text, is
left out, and `Faults` says where it was: all others stay as they are. Where a quote is never closed, or something
follows a quote that was, nobody can say where records end: the file is refused. So is one with a value that is longer
than `LONGEST_VALUE`, a bound of ours alone (`_parser`). No message has a value in it.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     source = Path(folder) / "visits.csv"
...     _ = source.write_bytes(b'who,note\\n1,"two\\nlines"\\n2\\n3,x\\n')
...     parsed = parse((source,), Csv(), Path(folder) / "rows")
...     print(parsed.faults.told(source.name))
visits.csv: 1 record was left out: with another number of values than the header has (line 4)
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from discreet.core.errors import InvalidArgument
from discreet.sql.catalog import nearest

__all__ = ["Csv", "Faults", "FileState", "Parsed", "codec", "counted_delimiter", "csv_by_table", "marked", "parse"]

DELIMITERS = ",;\t|"
LONGEST_HEADER = 1 << 20
LONGEST_VALUE = 1 << 17
"""So many characters a value may have."""
AT_ONCE = 1 << 12
"""So many records are brought into columns together: few, for the garbage collector walks over all that are there."""
GROUP = 1 << 17
"""So many rows, at least, are written together."""
SHOWN = 10
"""So many lines with faults of a kind are named."""
MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
"""How files begin that say what they are encoded in, the longer marks first; the mark of UTF-8 is passed over."""
WIDTH = "with another number of values than the header has"
BYTES = "with bytes that are no text in {}; declare another encoding if it has one"
MISSING = "__HIVE_DEFAULT_PARTITION__"
"""What folders are called whose key is NULL."""
KINDS = {
    "expected after": "something after a closing quote",
    "end of data": "a quote that is never closed",
    "field limit": f"a value of more than {LONGEST_VALUE:,} characters",
}
"""What the parser's messages are about."""


@dataclass(frozen=True)
class Csv:
    """How CSV files are written, where it is declared: their `encoding`, such as "latin-1", and the `delimiter` between
    values. `decimal` is the mark before the digits of a fraction, "." or ",", and `date` how dates are written, as
    "%d.%m.%Y"; both are for columns whose type is declared."""

    encoding: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    date: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                # One name for all that mean the same.
                object.__setattr__(self, "encoding", _read_in_parts(self.encoding))
            except (LookupError, TypeError, ValueError):
                bound, remedy = "one that Python knows and reads long texts in", 'write for example encoding="latin-1"'
                raise InvalidArgument("encoding", self.encoding, bound, remedy) from None
        delimiter = self.delimiter
        if delimiter is not None and (not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n'):
            raise InvalidArgument("delimiter", delimiter, "one character", 'write for example delimiter=";"')
        if self.decimal not in (".", ","):
            raise InvalidArgument("decimal", self.decimal, '"." or ","', "write the mark before the digits")
        if self.date is not None and (not isinstance(self.date, str) or "%" not in self.date):
            raise InvalidArgument("date", self.date, "a pattern", 'write for example date="%d.%m.%Y"')


def csv_by_table(given: Csv | Mapping[str, Csv] | None, first: str, names: Sequence[str]) -> dict[str, Csv]:
    """How CSV files are written, by the `names` of their tables in lower case: of the first one, or by table."""
    stated = {first: given} if isinstance(given, Csv) else given or {}
    if not isinstance(stated, Mapping) or not all(isinstance(how, Csv) for how in stated.values()):
        raise InvalidArgument("csv", given, "Csv(…), or a dict of them by table", 'write csv=Csv(encoding="latin-1")')
    for table in stated:
        if table.lower() not in names:
            raise InvalidArgument("csv", table, "the name of a table", nearest(table, names))
    return {table.lower(): how for table, how in stated.items()}


@dataclass(frozen=True)
class FileState:
    """What a file was: its size and time, and its digest for where the time is another. A file written anew with the
    same size and time is taken for unchanged; questions read the rows that were registered either way."""

    size: int
    modified: int
    sha256: str

    def is_of(self, path: Path) -> bool:
        """Whether the file still holds the same bytes."""
        seen = path.stat()
        if (seen.st_size, seen.st_mtime_ns) == (self.size, self.modified):
            return True
        with path.open("rb") as file:
            return seen.st_size == self.size and hashlib.file_digest(file, "sha256").hexdigest() == self.sha256


@dataclass
class Faults:
    """Records that were left out: for each kind the numbers of the lines where they end, the first of many."""

    lines: dict[str, list[int]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, line: int) -> None:
        """One more."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(found := self.lines.setdefault(kind, [])) < SHOWN:
            found.append(line)

    def told(self, name: str) -> str:
        """What a steward is told of them; empty if there are none."""
        if not self.counts:
            return ""
        many = sum(self.counts.values())
        said = [f"{kind} ({self._places(kind)})" for kind in self.counts]
        return f"{name}: {many:,} record{'s were' if many > 1 else ' was'} left out: {'; '.join(said)}"

    def _places(self, kind: str) -> str:
        lines, more = self.lines[kind], self.counts[kind] - len(self.lines[kind])
        said = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
        return f"{said} and {more:,} more" if more else said


@dataclass(frozen=True)
class Parsed:
    """What was found: the states of the files, how they were read, and what was left out."""

    states: tuple[FileState, ...]
    encoding: str
    delimiter: str
    faults: Faults


def parse(paths: Sequence[Path], how: Csv, rows: Path, keys: Sequence[Mapping[str, str]] = ()) -> Parsed:
    """Writes all records of the files, one after another, to the Parquet file `rows`.

    `keys` are for each file the columns that the names of its folders give.
    """
    import pyarrow
    import pyarrow.parquet

    encoding = how.encoding or marked(paths[0])
    delimiter, faults, states = how.delimiter or _delimiter(paths[0], encoding), Faults(), []
    header: list[str] | None = None
    writer: Any = None
    waiting: list[Any] = []
    try:
        for path, named in zip(paths, keys or [{}] * len(paths), strict=True):
            with _Hashed(path) as source:
                found = _records(source.text(encoding), delimiter, path)
                names = _named(next(found, ([], 0))[0], path)
                if header is None:
                    header = names
                    kept = [place for place, name in enumerate(names) if name.lower() not in {*map(str.lower, named)}]
                    schema = pyarrow.schema([(n, pyarrow.string()) for n in (*(names[i] for i in kept), *named)])
                    writer = pyarrow.parquet.ParquetWriter(rows, schema, compression="zstd")
                if names != header:
                    bound = "files with one header line"
                    raise InvalidArgument("source", str(path), bound, "give all of them the same columns")
                values = [None if value == MISSING else unquote(value) for value in named.values()]
                for columns in _columns(found, len(names), faults, encoding):
                    many = len(columns[0])
                    arrays = [columns[i] for i in kept] + [pyarrow.array([v] * many, pyarrow.string()) for v in values]
                    waiting.append(pyarrow.record_batch(arrays, schema=schema))
                    if len(waiting) * AT_ONCE >= GROUP:
                        writer.write_table(pyarrow.Table.from_batches(waiting))
                        waiting.clear()
                states.append(source.state())
        writer.write_table(pyarrow.Table.from_batches(waiting, schema=schema))
    finally:
        if writer is not None:
            writer.close()
    return Parsed(tuple(states), encoding, delimiter, faults)


class _Hashed(io.RawIOBase):
    """A file whose digest is of the very bytes that were read from it."""

    def __init__(self, path: Path) -> None:
        self._path, self._file, self._digest = path, path.open("rb", buffering=0), hashlib.sha256()
        self._seen = os.fstat(self._file.fileno())

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        self._digest.update(memoryview(buffer)[:count])
        return count

    def text(self, encoding: str) -> IO[str]:
        """Its text, line by line; bytes that are none become lone surrogates where the encoding allows."""
        plain: Any = io.BufferedReader(self, 1 << 20)
        opened: Any = gzip.GzipFile(fileobj=plain) if self._path.name.lower().endswith(".gz") else plain
        # Kept, for a wrapper that is let go of closes what it reads.
        self._text = _text(opened, encoding)
        return self._text

    def state(self) -> FileState:
        """Of all the file, to its end."""
        while self.readinto(bytearray(1 << 20)):
            pass
        return FileState(self._seen.st_size, self._seen.st_mtime_ns, self._digest.hexdigest())

    def close(self) -> None:
        self._file.close()
        super().close()


def _records(lines: IO[str], delimiter: str, path: Path) -> Iterator[tuple[list[str], int]]:
    """Each record, and the number of the line where it ends; lines without anything are none."""
    parser = _parser()
    reader = parser.reader(lines, delimiter=delimiter, strict=True)
    before = 0
    try:
        for record in reader:
            before = reader.line_num
            if record:
                yield record, before
        return
    except parser.Error as error:
        kind = next((said for word, said in KINDS.items() if word in str(error)), "a record that cannot be parsed")
    except (UnicodeError, EOFError, OSError):
        kind = "bytes that cannot be read"
    # Raised out here, the error does not carry the other one along, which may quote values.
    remedy = "mend or shorten that record, or save the table as Parquet"
    bound = f"a file whose records can be told apart; from line {before + 1} on there is {kind}"
    raise InvalidArgument("source", str(path), bound, remedy)


def _columns(
    records: Iterator[tuple[list[str], int]], width: int, faults: Faults, encoding: str
) -> Iterator[list[Any]]:
    """The values of many records at a time, by column; what has a fault is left out."""
    import pyarrow

    while True:
        kept: list[list[str]] = []
        lines: list[int] = []
        for record, line in records:
            if len(record) == width:
                kept.append(record)
                lines.append(line)
                if len(kept) == AT_ONCE:
                    break
            else:
                faults.add(WIDTH, line)
        if not kept:
            return
        try:
            yield _arrays(kept)
        except (UnicodeEncodeError, pyarrow.ArrowException):
            whole = [_is_text(record) for record in kept]
            for line, good in zip(lines, whole, strict=True):
                if not good:
                    faults.add(BYTES.format(encoding.upper()), line)
            if good_ones := [record for record, good in zip(kept, whole, strict=True) if good]:
                yield _arrays(good_ones)


def _arrays(records: list[list[str]]) -> list[Any]:
    import pyarrow

    columns = zip(*records, strict=True)
    return [pyarrow.array([value or None for value in column], pyarrow.string()) for column in columns]


def _is_text(record: list[str]) -> bool:
    try:
        "".join(record).encode()
    except UnicodeEncodeError:
        return False
    return True


def _named(names: Sequence[str], path: Path) -> list[str]:
    named = [name.strip() or f"column{place}" for place, name in enumerate(names, 1)]
    if not names or any(mark in name for name in named for mark in "\r\n") or not _is_text([*names]):
        raise InvalidArgument("source", str(path), "a file that begins with one line of names", "add it")
    if len({name.lower() for name in named}) != len(named):
        raise InvalidArgument("source", named, "names that are distinct whatever the case", "rename one of them")
    return named


@lru_cache(maxsize=1)
def _parser() -> Any:
    """Python's parser of CSV, a copy of its own: how long a value may be is one number for all who import the module,
    and whoever sets it would decide which files can be read here."""
    spec = find_spec("_csv")
    assert spec is not None
    assert spec.loader is not None
    own = module_from_spec(spec)
    spec.loader.exec_module(own)
    own.field_size_limit(LONGEST_VALUE)
    return own


def _text(opened: Any, encoding: str) -> io.TextIOWrapper:
    """A file of bytes as text; bytes that are none become lone surrogates where the encoding allows."""
    known = codec(encoding)
    escaped = "strict" if known.startswith(("utf-16", "utf-32")) else "surrogateescape"
    return io.TextIOWrapper(opened, known, escaped, newline="")


def _read_in_parts(encoding: str) -> str:
    """The name of an encoding in which files can be read: some of Python's take no bad bytes, or no text of many lines
    a part at a time."""
    lines = "who,x\n" * 3
    read = _text(io.BytesIO(lines.encode(encoding)), encoding)
    if [*read] != lines.splitlines(keepends=True):
        raise ValueError(encoding)
    return codecs.lookup(encoding).name


def codec(encoding: str) -> str:
    """What decodes an encoding: one name for all that are read alike."""
    known = codecs.lookup(encoding).name
    return "utf-8-sig" if known == "utf-8" else known


def _start(path: Path) -> bytes:
    with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as file:
        start: bytes = file.read(LONGEST_HEADER)
    return start


def marked(path: Path) -> str:
    """The encoding that the start of a file names, or UTF-8."""
    start = _start(path)
    return next((name for mark, name in MARKS.items() if start.startswith(mark)), "utf-8")


def _delimiter(path: Path, encoding: str) -> str:
    found = counted_delimiter(path, encoding)
    if found is None:
        raise InvalidArgument("source", str(path), "a file that begins with one line of names", "add it")
    return found


def counted_delimiter(path: Path, encoding: str) -> str | None:
    """The one of the usual delimiters that the header line has most of outside quotes; None if it is empty.

    >>> _outside_quotes('"Name, first, last";age')
    '";age'
    """
    line = _outside_quotes(_start(path).decode(codec(encoding), "replace"))
    if not line.strip():
        return None
    return max(DELIMITERS, key=lambda mark: (line.count(mark), -DELIMITERS.index(mark)))


def _outside_quotes(text: str) -> str:
    """The first line with a quote in place of each quoted value; quotes begin where a value does."""
    kept: list[str] = []
    place = 0
    while place < len(text) and text[place] not in "\r\n":
        if text[place] == '"' and (not kept or kept[-1] in DELIMITERS):
            closing = text.find('"', place + 1)
            while closing >= 0 and text.startswith('"', closing + 1):
                closing = text.find('"', closing + 2)
            if closing < 0:
                break
            place = closing
        kept.append(text[place])
        place += 1
    return "".join(kept)
