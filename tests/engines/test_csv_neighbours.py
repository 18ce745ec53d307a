"""One odd record of a CSV file changes no other record, and no value stops it from being read."""

import datetime
import gzip
from pathlib import Path
from typing import Any

import pytest
from tests.engines.readings import read

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.engine import DuckDB

PLAIN = [(1, 30, "2020-01-01", "a"), (2, 40, "2021-12-31", "b, c"), (3, 50, "", 'say "d"')]
TYPES = {"age": "integer", "day": "date", "who": "integer"}


def line(row: tuple[Any, ...]) -> bytes:
    return ",".join('"' + str(value).replace('"', '""') + '"' for value in row).encode()


HEADER = b"who,age,day,note\n"
OPEN = [
    b'4,1,2020-01-01,"open',
    b'4,"1,2020-01-01,x',
    b'"',
    b'"""',
    b',"',
    b'4,1,2020-01-01,"a"b',
    b"x" * 5_000_000,
]
MALFORMED = [
    b"4,1",
    b"4,1,2,3,4,5",
    b"4,1,2020-01-01,\xff\xfe",
    b"\xff" * 100,
    b"",
    b"\x00",
    b"4,1,2020-01-01,a\rb",
    b"\r\r",
]
ODD = [
    b"4,old,2020-01-01,x",
    b"4,9223372036854775808,2020-01-01,x",
    b"4,1e400,yesterday,x",
    b"4,nan,300000-01-01,x",
    b"x,1,0000-00-00,x",
    b"NULL,inf,infinity,\x00",
    b"4,-,2020-02-30,\xe2\x82\xac",
    b"4,1,2020-01-01,\x1f,".replace(b"\x1f,", b'"\x1f"'),
    b',,,""',
]


@pytest.mark.parametrize("gz", [False, True])
@pytest.mark.parametrize("bad", MALFORMED, ids=lambda bad: repr(bad[:20]))
@pytest.mark.parametrize("place", [0, 2, 3])
@pytest.mark.filterwarnings("ignore::discreet.engines.duckdb.snapshots.FaultyRecords")
def test_a_malformed_record_is_left_out_and_changes_no_other(bad: bytes, place: int, gz: bool, tmp_path: Path) -> None:
    lines = [line(row) for row in PLAIN]
    path = tmp_path / ("t.csv.gz" if gz else "t.csv")
    results = []
    for content in (lines, [*lines[:place], bad, *lines[place:]]):
        data = HEADER + b"\n".join(content) + b"\n"
        path.write_bytes(gzip.compress(data) if gz else data)
        results.append(read(path, types=TYPES))
    (columns, rows), (other_columns, other_rows) = results
    assert columns == other_columns
    kept = [row for row in other_rows if row[0] != 4]
    assert kept == rows
    assert len(rows) == 3
    assert rows[1] == (2, 40, datetime.date(2021, 12, 31), "b, c")
    assert rows[2] == (3, 50, None, 'say "d"')


@pytest.mark.parametrize("gz", [False, True])
@pytest.mark.parametrize("bad", OPEN, ids=lambda bad: repr(bad[:20]))
@pytest.mark.parametrize("place", [0, 2, 3])
def test_a_file_is_refused_where_nobody_can_say_where_records_end(
    bad: bytes, place: int, gz: bool, tmp_path: Path
) -> None:
    lines = [line(row) for row in PLAIN]
    data = HEADER + b"\n".join([*lines[:place], bad, *lines[place:]]) + b"\n"
    path = tmp_path / ("t.csv.gz" if gz else "t.csv")
    path.write_bytes(gzip.compress(data) if gz else data)
    with pytest.raises(InvalidArgument, match=r"from line [1-5] on") as caught:
        read(path, types=TYPES)
    assert caught.value.__context__ is None
    said = caught.value.bound + caught.value.remedy
    assert not any(str(value) in said for row in PLAIN for value in row if len(str(value)) > 1)


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_odd_values_in_a_csv_become_null_in_their_own_row(odd: bytes, end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    results = []
    for content in ([], [odd]):
        lines = [*content, *(line(row) for row in PLAIN)]
        path.write_bytes(HEADER.strip() + end + end.join(lines))
        results.append(read(path, types=TYPES))
    (columns, rows), (other_columns, other_rows) = results
    assert columns == other_columns
    assert len(other_rows) == len(rows) + 1
    assert set(rows) < set(other_rows)


def test_the_header_alone_says_how_a_csv_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for header, names in [
        (b"\xef\xbb\xbfwho;a,b;c\n1;2;3\n", ["who", "a,b", "c"]),
        (b'"who","a ""x""",\n1,2,3\n', ["who", 'a "x"', "column3"]),
        (b"who|x\r\n1|2\r\n", ["who", "x"]),
        (b"who\n1\n", ["who"]),
        (b"who,x", ["who", "x"]),
    ]:
        path.write_bytes(header)
        columns, rows = read(path, sealed=True)
        assert [column.name for column in columns] == names
        assert all(column.type == "text" for column in columns)
        assert len(rows) <= 1
    for header in (b"", b"\nwho\n", b"who,Who\n", b'who,"x\ny"\n'):
        path.write_bytes(header)
        with pytest.raises(InvalidArgument):
            read(path, sealed=True)


def test_a_large_csv_is_read_by_many_threads_alike(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    count = 400_000
    body = b"".join(b'%d,%d,2020-01-01,"x, %d"\n' % (i, i % 90, i) for i in range(count))
    path.write_bytes(HEADER + body + b'7,1,2020-01-01,"two\nlines"\n' + body)
    engine = DuckDB(threads=4)
    engine.add("t", path, types=TYPES)
    assert engine.run("SELECT COUNT(*), SUM(who), COUNT(DISTINCT note) FROM t") == [
        (2 * count + 1, count * (count - 1) + 7, count + 1)
    ]
