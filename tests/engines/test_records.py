"""What the parser of CSV files makes of headers, marks, long values and encodings."""

import csv
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.csv_records import LONGEST_VALUE, Csv, Parsed, parse


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def parsed(path: Path, how: Csv | None = None) -> tuple[list[dict[str, Any]], Parsed]:
    rows = path.with_name("rows")
    found = parse((path,), how or Csv(), rows)
    return pyarrow.parquet.read_table(rows).to_pylist(), found


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ('"Name, first, last";age', ["Name, first, last", "age"]),
        ('"a;b;c",d', ["a;b;c", "d"]),
        ('"say ""a|b|c""",d', ['say "a|b|c"', "d"]),
        ('who,"x;y;z"', ["who", "x;y;z"]),
        ("a\x0bb,c", ["a\x0bb", "c"]),
        ('"one"', ["one"]),
    ],
)
def test_delimiters_inside_quotes_of_the_header_do_not_count(header: str, names: list[str], tmp_path: Path) -> None:
    rows, _ = parsed(written(tmp_path / "a.csv", f"{header}\n" + {1: "x", 2: "x,1"}[len(names)] + "\n"))
    if ";age" not in header:
        assert [*rows[0]] == names
    rows, found = parsed(written(tmp_path / "a.csv", header + "\n"))
    assert (rows, found.delimiter) == ([], ";" if ";age" in header else ",")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "utf-32-be"])
def test_byte_order_marks_are_told_apart(encoding: str, tmp_path: Path) -> None:
    mark = "\ufeff" if encoding.endswith("be") else ""
    rows, _ = parsed(written(tmp_path / "a.csv", f"{mark}who,x\n1,ä\n", encoding))
    assert rows == [{"who": "1", "x": "ä"}]


def test_how_long_a_value_may_be_is_told_and_nobody_elses_setting(tmp_path: Path) -> None:
    longest, longer = (written(tmp_path / f"{n}.csv", f"who,x\n1,{'y' * (LONGEST_VALUE + n)}\n") for n in (0, 1))
    before = csv.field_size_limit()
    for theirs in (before, 10, 10**9):
        csv.field_size_limit(theirs)
        try:
            assert len(parsed(longest)[0][0]["x"]) == LONGEST_VALUE
            with pytest.raises(InvalidArgument, match="line 2 on there is a value of more than 131,072 characters"):
                parsed(longer)
            assert csv.field_size_limit() == theirs
        finally:
            csv.field_size_limit(before)


@pytest.mark.parametrize("encoding", ["idna", "punycode", "undefined", "rot13", "base64", "nowhere", "", 7])
def test_encodings_in_which_no_file_can_be_read_are_refused(encoding: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"encoding=.* must be one that Python knows and reads"):
        Csv(encoding=encoding)
