"""How a CSV file is read is part of what is asked of it, whichever way it is asked."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.core.errors import InvalidArgument
from discreet.engines.duckdb.csv_records import Csv
from discreet.estimation.question import Estimate
from discreet.robust import Limits
from discreet.session.session import Session
from discreet.session.sql import SQL

SUM = "SELECT SUM(x) AS s FROM v"


def written(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def opened(path: Path, how: Csv | None = None, **facts: Any) -> Session:
    given: dict[str, Any] = {"bounds": {"x": (0, 10)}, "budget": dc.PureDP(10**6)} | facts
    return dc.connect(path, unit=dc.Row(), csv=how, **given)


def summed(path: Path, how: Csv | None = None, **facts: Any) -> tuple[float, float]:
    """A sum with noise far below one, and what all questions cost so far."""
    with opened(path, how, **facts) as session:
        return float(session.sql(SUM, epsilon=1000).rows[0][0]), float(session.spent.epsilon)


def test_a_corrected_decimal_mark_is_another_question(tmp_path: Path) -> None:
    path = written(tmp_path / "v.csv", "who;x\n" + "".join(f"{i};1,5\n" for i in range(100)))
    assert summed(path)[0] == pytest.approx(0, abs=1)
    right, spent = summed(path, Csv(decimal=","))
    assert right == pytest.approx(150, abs=1)
    assert spent == 2000
    # Asked again in either way, it is free.
    assert summed(path, Csv(decimal=",")) == (right, spent)
    assert summed(path, Csv(delimiter=";"))[1] == spent


def test_dates_that_are_written_otherwise_are_other_questions(tmp_path: Path) -> None:
    path = written(tmp_path / "v.csv", "who,day,x\n" + "".join(f"{i},31.01.2026,1\n" for i in range(100)))
    answers = []
    for how in (None, Csv(date="%d.%m.%Y"), Csv(date="%d.%d.%Y")):
        with opened(path, how, types={"day": "date"}) as session:
            answers.append(session.sql("SELECT COUNT(*) AS n FROM v WHERE day > '2026-01-01'", epsilon=1000).rows[0][0])
            assert session.spent.epsilon == 1000 * len(answers)
    assert [round(answer) for answer in answers] == [0, 100, 0]


@pytest.mark.parametrize("private", [True, False])
def test_so_it_is_with_further_tables(private: bool, tmp_path: Path) -> None:
    first = written(tmp_path / "v.csv", "who,x\n1,1\n2,2\n")
    second = written(tmp_path / "more.csv", "who;y\n1;1,5\n2;7,5\n")
    asked = "SELECT SUM(y) AS s FROM " + ("more" if private else "v JOIN more ON more.who = v.who")
    answers = []
    for mark in (".", ",", ","):
        places: Any = {"private" if private else "public": {"more": second}}
        facts: dict[str, Any] = {"bounds": {"more.y": (0, 10)}, "unit": dc.User("who"), "max_rows": 1}
        public = {"max_matches": {"more": 1}, "types": {"who": "integer", "more.y": "real"}}
        facts |= places if private else public | places
        given = {"more": Csv(decimal=mark)}
        with dc.connect(first, budget=dc.PureDP(10**6), csv=given, **facts) as session:
            answers.append(session.sql(asked, epsilon=10**5).rows[0][0])
            assert {*session.sources} <= {f"file:{path}" for path in (first, second)}
            spent = session.spent.epsilon
    assert [round(answer) for answer in answers] == [0, 9, 9]
    assert spent == 2 * 10**5


def test_synthetic_rows_and_functions_know_how_a_file_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "v.csv", "who;x\n" + "".join(f"{i};1,5\n" for i in range(100)))
    estimates, spent = set(), []
    for how in (None, Csv(decimal=","), Csv(decimal=",")):
        with opened(path, how) as session:
            session.synthesize(["x"], epsilon=1, bins={"x": 4})
            spent.append(session.spent.epsilon)
            given = (1, (0, 10), None, 2, 1, None, 5, "numpy", Limits(trusted=True))
            bound = Estimate(_mean, ["x"], *given).bind(session._context)
            estimates.add(replace(bound, number="drawn").identity)
    assert spent == [1, 2, 2]
    assert len(estimates) == 2


def _mean(rows: Any) -> float:
    return float(rows["x"].mean())


def _relation(session: Session) -> Any:
    return SQL(SUM, 1).bind(session._context).parsed.query.aggregate.input


def test_what_the_file_says_itself_is_no_other_question(tmp_path: Path) -> None:
    path = written(tmp_path / "v.csv", "who;x\n1;2\n")
    for how in (None, Csv(), Csv(delimiter=";"), Csv(encoding="utf-8"), Csv("UTF8", ";", ".")):
        with opened(path, how) as session:
            assert session._sources(_relation(session)) == {}
            assert session._engine.identity("v") == f"file:{path}"


def test_a_file_that_is_registered_in_another_encoding_has_other_questions(tmp_path: Path) -> None:
    path = written(tmp_path / "v.csv", "who,place,x\n" + "1,Malmö,1\n" * 100, "cp1252")
    asked = "SELECT COUNT(*) AS n FROM v WHERE place = 'Malmö'"

    def counted(how: Csv | None) -> tuple[int, float]:
        with opened(path, how) as session:
            return round(session.sql(asked, epsilon=1000).rows[0][0]), float(session.spent.epsilon)

    assert counted(Csv("cp437")) == (0, 1000)
    with pytest.raises(InvalidArgument, match=r"encoding='cp1252' must be 'cp437', as it was when v\.csv was"):
        counted(Csv("cp1252"))
    # What is not said is as it was registered: the same question.
    assert counted(None) == (0, 1000)
    shutil.rmtree(tmp_path / "v.csv.records")
    assert counted(Csv("cp1252")) == (100, 2000)
    assert counted(None) == (100, 2000)


def test_how_a_file_is_read_is_written_in_one_way(tmp_path: Path) -> None:
    path = written(tmp_path / "v.csv", "who,x|y\n1,2|3\n", "latin-1")
    how = Csv("latin-1", "|", ",", "%d.%m.%Y")
    with opened(path, how, bounds={}) as session:
        said = session._engine.definition("v")
    expected = {"date": "%d.%m.%Y", "decimal": ",", "delimiter": "|", "encoding": "iso8859-1"}
    assert said == f"#csv:{json.dumps(expected)}"
