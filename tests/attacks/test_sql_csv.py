"""CSV files are parsed strictly and once: their records are the data, and no question depends on parsing."""

import csv
import io
import json
import os
import random
import shutil
import stat
import threading
import warnings
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.attacks import sql_faults
from tests.attacks.register import attack

import discreet as dc
from discreet.core.errors import AnswerFailed, EngineUnavailable, InvalidArgument
from discreet.engines.duckdb import engine as engine_module
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.snapshots import FaultyRecords
from discreet.session.session import Session
from discreet.sql.decimals import Decimals

NASTY = ["plain", "two\nlines", "two\r\nlines", "\r", 'say "x"', '"', '""', "a,b", ";", "\n\n\n", " ", "#", "é"]
NASTY += ["x" * 9_000, "'", "\\", '\\"', ",", "NULL", "-", "0", "\x0b", "\x85", "\u2028", "\ufeff", "\x00", "end\n"]
COUNT = "SELECT COUNT(*) AS n FROM visits"


def opened(path: Path, **facts: Any) -> Session:
    return dc.connect(path, unit=dc.Row(), budget=dc.PureDP(10**6), **facts)


def counted(session: Session, question: str = COUNT) -> int:
    """A count with noise far below one."""
    return round(session.sql(question, epsilon=1000).rows[0][0])


def written(path: Path, rows: list[list[str]], **how: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, **how).writerows([["who", "note", "more"], *rows])
    return path


def parsed(path: Path, **how: Any) -> list[tuple[Any, ...]]:
    engine = DuckDB(threads=1)
    try:
        engine.add("t", path, **how)
        return engine.run('SELECT * FROM "t"')
    finally:
        engine.close()


@attack(51, finds=[sql_faults.lines_taken_for_records])
def test_line_breaks_inside_quotes_lose_nobody(tmp_path: Path) -> None:
    notes = ["plain", "two\nlines", "plain"]
    path = written(tmp_path / "visits.csv", [[str(i), notes[i % 3], ""] for i in range(6366)])
    with opened(path, values={"note": ["plain", "two\nlines"]}) as session:
        assert counted(session) == 6366
        assert counted(session, "SELECT COUNT(*) AS n FROM visits WHERE note LIKE 'two%'") == 2122


@pytest.mark.parametrize("seed", range(4))
@attack(51, finds=[sql_faults.lines_taken_for_records], seed=0)
def test_what_a_writer_wrote_is_what_is_read(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = [[str(i), rng.choice(NASTY), rng.choice(NASTY)] for i in range(500)]
    how = {"quoting": csv.QUOTE_ALL, "lineterminator": "\n"} if seed % 2 else {}
    path = written(tmp_path / "t.csv", rows, **how)
    assert [list(row) for row in parsed(path)] == rows
    # Another parser, which was written independently, finds the same.
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    strings = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(["who", "note", "more"], "string"))
    table = pyarrow.csv.read_csv(path, parse_options=options, convert_options=strings)
    assert [list(row.values()) for row in table.to_pylist()] == rows


@pytest.mark.parametrize("odd", [*NASTY, "short", "long", "bytes"], ids=lambda odd: repr(odd[:9]))
@attack(51, 11, finds=[sql_faults.lines_taken_for_records], odd="two\nlines")
def test_one_record_leaves_all_others_as_they_are(odd: str, tmp_path: Path) -> None:
    rows = [[str(i), NASTY[i % len(NASTY)], "x"] for i in range(60)]
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerow(["1000", odd, "x"])
    record = {"short": b"1000,1\r\n", "long": b"1000,1,2,3\r\n", "bytes": b"1000,\xff,x\r\n"}.get(odd)
    path = written(tmp_path / "t.csv", rows)
    before = parsed(path)
    path.write_bytes(path.read_bytes() + (record or buffer.getvalue().encode()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FaultyRecords)
        after = parsed(path)
    assert [row for row in after if row[0] != "1000"] == before
    assert [list(row) for row in before] == rows
    assert len(after) == len(before) + (record is None)


@pytest.mark.parametrize("copied", [False, True], ids=["in place", "copied"])
@attack(51, 11, finds=[sql_faults.files_parsed_by_each_question], copied=False)
def test_a_question_never_parses(copied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not copied:
        monkeypatch.setattr(engine_module, "COPIED", 0)
    path = written(tmp_path / "visits.csv", [[str(i), "x", ""] for i in range(300)])
    with opened(path, types={"who": "integer"}) as session:
        for content in (None, b"", b'who,note,more\n1,"open\n', b"\xff\xfe\x00"):
            path.unlink() if content is None else path.write_bytes(content)
            question = f"SELECT COUNT(*) AS n FROM visits WHERE who >= {0 if content is None else len(content)}"
            try:
                count = counted(session, question)
            except (AnswerFailed, EngineUnavailable):
                pytest.fail("what became of the file made a question fail")
            assert count == 300 - len(content or b"")


@attack(51, finds=[sql_faults.files_registered_by_each_session])
def test_a_file_that_changed_is_refused_until_it_is_registered_again(tmp_path: Path) -> None:
    path = written(tmp_path / "visits.csv", [[str(i), "x", ""] for i in range(300)])
    with opened(path) as session:
        assert counted(session) == 300
        spent = session.spent
    written(path, [[str(i), "x", ""] for i in range(200)])
    with pytest.raises(InvalidArgument, match="registered") as caught:
        opened(path)
    assert "data set and budget stay the same" in str(caught.value)
    shutil.rmtree(tmp_path / "visits.csv.records")
    with opened(path) as session:
        assert session.spent == spent
        assert counted(session, f"{COUNT} WHERE who >= '0'") == 200
    # Touched, moved or copied, but not changed, it is the same.
    os.utime(path)
    opened(path).close()
    (tmp_path / "moved").mkdir()
    shutil.copy(path, tmp_path / "moved")
    shutil.copytree(tmp_path / "visits.csv.records", tmp_path / "moved" / "visits.csv.records")
    opened(tmp_path / "moved" / "visits.csv").close()


@attack(51, 31, finds=[sql_faults.files_registered_by_each_session])
def test_what_was_left_out_is_told_once_and_without_values(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_bytes(b'who,note\n1,"a\nb"\n2,secret,3\n4,\xffsecret\n5,x\n6\n')
    with pytest.warns(FaultyRecords) as told:
        opened(path).close()
    (message,) = {str(warning.message) for warning in told}
    assert message == (
        "visits.csv: 3 records were left out: with another number of values than the header has (lines 4, 7); "
        "with bytes that are no text in UTF-8; declare another encoding if it has one (line 5)"
    )
    with warnings.catch_warnings(record=True) as again, opened(path) as session:
        assert counted(session) == 2
    assert [warning for warning in again if warning.category is FaultyRecords] == []


def test_records_are_for_their_owner_alone_and_appear_at_once(tmp_path: Path) -> None:
    path = written(tmp_path / "visits.csv", [["1", "x", ""]])
    opened(path).close()
    folder = tmp_path / "visits.csv.records"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in folder.iterdir()} == {
        "rows": 0o600,
        "registration.json": 0o600,
    }
    left = {entry.name for entry in tmp_path.iterdir()}
    assert not any(name.startswith(".") for name in left)
    record = json.loads((folder / "registration.json").read_text())
    assert (record["encoding"], record["delimiter"]) == ("utf-8", ",")
    assert record["sources"]["visits.csv"]["size"] == path.stat().st_size


@pytest.mark.parametrize("harm", ["rows", "record", "lost"])
def test_records_that_are_not_what_was_registered_are_refused(harm: str, tmp_path: Path) -> None:
    path = written(tmp_path / "visits.csv", [["1", "x", ""]])
    opened(path).close()
    folder = tmp_path / "visits.csv.records"
    if harm == "rows":
        content = bytearray((folder / "rows").read_bytes())
        content[60] ^= 1
        (folder / "rows").write_bytes(content)
    elif harm == "record":
        (folder / "registration.json").write_text("{}")
    else:
        (folder / "rows").unlink()
    with pytest.raises(InvalidArgument, match="registered"):
        opened(path)


def test_sessions_that_begin_at_once_register_a_file_once(tmp_path: Path) -> None:
    path = written(tmp_path / "visits.csv", [[str(i), "x\ny", ""] for i in range(3000)])
    counts: list[int] = []

    def count() -> None:
        engine = DuckDB(threads=1, lasting=True)
        engine.add("visits", path)
        counts.append(engine.run("SELECT COUNT(*) FROM visits")[0][0])
        engine.close()

    threads = [threading.Thread(target=count) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [3000] * 6
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["visits.csv", "visits.csv.records"]


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [("utf-8", None), ("utf-8-sig", None), ("utf-8-sig", "UTF8"), ("utf-16", None), ("latin-1", "latin-1")],
)
def test_encodings_are_declared_or_marked_at_the_start(encoding: str, declared: str | None, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes('who;city\n1;"Zürich\nNord"\n2;Genève\n'.encode(encoding))
    how = {} if declared is None else {"csv": dc.Csv(encoding=declared)}
    assert parsed(path, **how) == [("1", "Zürich\nNord"), ("2", "Genève")]


def test_keys_of_folders_are_columns_of_all_their_records(tmp_path: Path) -> None:
    for key, lines in (("a%20b", "1,x\n"), ("__HIVE_DEFAULT_PARTITION__", '2,"x\ny"\n')):
        (tmp_path / "visits" / f"k={key}").mkdir(parents=True)
        (tmp_path / "visits" / f"k={key}" / "part.csv").write_text(f"who,note\n{lines}")
    with opened(tmp_path / "visits", values={"k": ["a b", None]}) as session:
        assert counted(session) == 2
        assert counted(session, "SELECT COUNT(*) AS n FROM visits WHERE k = 'a b' AND note = 'x'") == 1
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.is_dir()) == ["visits", "visits.records"]
    (tmp_path / "visits" / "k=c").mkdir()
    (tmp_path / "visits" / "k=c" / "part.csv").write_text("who,note\n3,x\n")
    with pytest.raises(InvalidArgument, match="registered"):
        opened(tmp_path / "visits")


def test_a_byte_of_one_person_does_not_change_the_encoding_of_others(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("who,city\n1,Zürich\n".encode() + b"2,Gen\xe8ve\n")
    with pytest.warns(FaultyRecords, match="UTF-8"):
        assert parsed(path) == [("1", "Zürich")]


def test_decimal_commas_and_dates_are_declared(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("who;cost;day;code\n1;1.234,50;31.01.2020;1,5\n2;2;2020-01-31;x\n3;1.5;30.02.2020;\n")
    types = {"cost": "real", "day": "date"}
    rows = parsed(path, types=types, csv=dc.Csv(decimal=",", date="%d.%m.%Y"))
    assert [(row[1], str(row[2]), row[3]) for row in rows] == [
        (1234.5, "2020-01-31", "1,5"),
        (2.0, "None", "x"),
        (None, "None", None),
    ]
    exact = parsed(path, types=types | {"cost": Decimals.of(15, 2)}, csv=dc.Csv(decimal=",", date="%d.%m.%Y"))
    assert [row[1] for row in exact] == [123450, 200, None]
    path.with_name("years.csv").write_text("who,day\n1,01.02.26\n2,1.2.2026\n3,01.02.0026\n4,01.02.20261\n")
    years = parsed(path.with_name("years.csv"), types={"day": "date"}, csv=dc.Csv(date="%d.%m.%Y"))
    assert [str(row[1]) for row in years] == ["None", "2026-02-01", "0026-02-01", "None"]
    for wrong in ({"encoding": "no such"}, {"delimiter": ",,"}, {"decimal": "x"}, {"date": "day"}):
        with pytest.raises(InvalidArgument):
            dc.Csv(**wrong)


def test_what_is_declared_must_be_what_the_file_was_registered_with(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_bytes("who,city\n1,Genève\n".encode("latin-1"))
    opened(path, csv=dc.Csv(encoding="latin-1")).close()
    opened(path).close()
    opened(path, csv={"visits": dc.Csv(delimiter=",")}).close()
    opened(path, csv=dc.Csv(encoding="ISO-8859-1")).close()
    with pytest.raises(InvalidArgument, match="'iso8859-1', as it was"):
        opened(path, csv=dc.Csv(encoding="utf-8"))
    with pytest.raises(InvalidArgument, match="name of a table"):
        opened(path, csv={"visit": dc.Csv()})


def test_records_that_cannot_be_kept_beside_a_file_are_kept_for_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    inside = tmp_path / "data"
    inside.mkdir()
    # No longer name can be beside it, whoever asks.
    path = written(inside / f"{'v' * 251}.csv", [["1", "x", ""]])
    for _ in range(2):
        opened(path, table="visits", ledger=tmp_path / "books").close()
    assert [entry.name for entry in inside.iterdir()] == [path.name]
    assert [entry.suffix for entry in (tmp_path / "home" / "discreet").iterdir()] == [".records"]


def planted_rows(folder: Path, source: Path, rows: Path) -> None:
    """What somebody can write who may write beside a source, but read neither it nor the rows."""
    folder.mkdir()
    (folder / "rows").symlink_to(rows)
    seen = {
        name: {"size": p.stat().st_size, "modified": p.stat().st_mtime_ns} for name, p in (("s", source), ("r", rows))
    }
    said = {"version": 1, "encoding": "utf-8", "delimiter": ",", "rows": seen["r"] | {"sha256": ""}}
    said["sources"] = {source.name: seen["s"] | {"sha256": ""}}
    (folder / "registration.json").write_text(json.dumps(said))


@attack(51, finds=[sql_faults.records_of_anybody])
def test_records_that_somebody_else_put_there_are_not_read(tmp_path: Path) -> None:
    """Rows of other books were answered for, by a link in a folder that was made before the file was registered."""
    secret = tmp_path / "secret.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"who": ["1", "2", "3"], "note": ["x"] * 3, "more": ["y"] * 3}), secret)
    path = written(tmp_path / "visits.csv", [["1", "a", "b"]])
    planted_rows(tmp_path / "visits.csv.records", path, secret)
    with pytest.raises(InvalidArgument, match=r"as they were registered; remove .*visits\.csv\.records"):
        opened(path).close()


@pytest.mark.parametrize("name", ["", "rows", "registration.json"])
@attack(51, finds=[sql_faults.records_of_anybody], name="rows")
def test_records_that_others_may_change_are_not_read(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / "visits.csv", [["1", "a", "b"]])
    with opened(path) as session:
        assert counted(session) == 1
    place = tmp_path / "visits.csv.records" / name
    place.chmod(place.stat().st_mode | stat.S_IWGRP)
    with pytest.raises(InvalidArgument, match="as they were registered"):
        opened(path).close()
    place.chmod(place.stat().st_mode & ~stat.S_IWGRP)
    with opened(path) as session:
        assert counted(session, "SELECT COUNT(*) AS n FROM visits WHERE note = 'a'") == 1
