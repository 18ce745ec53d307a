"""Identities, payloads and books of earlier versions: what was paid for stays free, whatever is renamed or planned."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.golden.questions import BUDGETS, CATALOGS, SOURCES

import discreet as dc
from discreet.core.events import to_json
from discreet.engines.duckdb.engine import DuckDB
from discreet.ledger import Ledger
from discreet.session import session
from discreet.session import sql_question as asked
from discreet.session.sql import SQL
from discreet.session.sql_question import Parsed
from discreet.sql.analysis.canonical import canonical
from discreet.sql.bounding.clipping_norms import Caps
from discreet.sql.measuring import planner
from discreet.sql.parsing.select import parse
from discreet.synthesis import request
from discreet.synthesis.question import SyntheticRows

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "questions.json").read_text())
STORED = json.loads((HERE / "session" / "answers.json").read_text())
FACTS: dict[str, Any] = {
    "table": "visits",
    "unit": dc.User("who"),
    "budget": dc.ApproxDP(20, "1e-6"),
    "bounds": {"age": (0, 110), "grade": (1, 4)},
    "values": {"city": ["Ulm", "Trier", "Köln"], "grade": [1, 2, 3, 4]},
}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def question(golden: dict[str, str], epsilon: Fraction | None = None) -> Parsed:
    query = parse(golden["text"], CATALOGS[golden["catalog"]])
    price = Fraction(golden["epsilon"]) if epsilon is None else epsilon
    return Parsed(query, SOURCES, price, None, 1, BUDGETS[golden["budget"]], DuckDB().dialect)


def test_questions_keep_their_identities_of_both_formats() -> None:
    for golden in GOLDEN:
        one = question(golden)
        found = canonical(one.query.aggregate), one.planned().former_identity, one.identity
        assert tuple(map(digest, found)) == (golden["canonical"], golden["first"], golden["second"]), golden["text"]


def test_the_golden_questions_are_many_and_all_different() -> None:
    assert len(GOLDEN) == 70
    # What a planner makes of a budget is no part of a question.
    assert len({each["second"] for each in GOLDEN}) == len({(each["catalog"], each["text"]) for each in GOLDEN}) == 38


def test_the_names_of_our_classes_are_in_no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    golden = GOLDEN[1]
    before = question(golden)
    identities = before.identity, before.planned().former_identity
    for kind in (Caps, dc.Bounds, type(before.planned().measurement)):
        monkeypatch.setattr(kind, "__repr__", lambda self: f"Renamed({vars(self)})")
    after = question(golden)
    assert (after.identity, after.planned().former_identity) == identities


def test_what_is_declared_or_asked_otherwise_is_another_question() -> None:
    identities = {question(GOLDEN[1]).identity, question(GOLDEN[1], Fraction(1, 2)).identity}
    one = question(GOLDEN[1])
    identities |= {
        Parsed(one.query, {"sites": "elsewhere"}, one.epsilon, None, 1, one.budget, one.dialect).identity,
        Parsed(one.query, SOURCES, one.epsilon, None, 2, one.budget, one.dialect).identity,
        Parsed(one.query, SOURCES, None, Fraction(1, 3), 1, one.budget, one.dialect).identity,
        question(GOLDEN[1] | {"catalog": "few"}).identity,
        question(GOLDEN[1] | {"catalog": "rows"}).identity,
    }
    assert len(identities) == 7


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[session.Session]:
    """A session on a table whose books an earlier version kept."""
    for name in ("visits.parquet", "books.db", "books.db.key"):
        shutil.copyfile(HERE / "session" / name, tmp_path / name)
        (tmp_path / name).chmod(0o600)
    with Ledger.at(tmp_path / "books.db") as books:
        books.attach(("visits",), f"file:{(tmp_path / 'visits.parquet').resolve()}", note="moved here")
    with dc.connect(tmp_path / "visits.parquet", ledger=tmp_path / "books.db", **FACTS) as opened:
        yield opened


def test_books_of_an_earlier_version_answer_for_free(opened: session.Session) -> None:
    spent = opened.spent
    for stored in STORED["answers"]:
        answer = opened.sql(stored["text"], epsilon=1)
        assert [[*row] for row in answer.rows] == stored["rows"]
        intervals = {name: [[*ends] for ends in each] for name, each in answer.intervals(0.9).items()}
        assert intervals == stored["intervals"]
        assert answer.certificate["events"] == stored["certificate"]["events"]
        assert answer.certificate["ledger"] == stored["certificate"]["ledger"]
        opened._ledger.confirm(answer.certificate, keys=[answer.certificate["key"]])
        opened._ledger.confirm(stored["certificate"], keys=[answer.certificate["key"]])
    rows = opened.synthesize(["city", "grade"], epsilon=1).rows[:40]
    assert [[*row] for row in rows] == STORED["synthesis"]
    assert opened.spent == spent
    assert opened._ledger.check().sound


def test_another_planner_leaves_stored_answers_free_and_readable(
    opened: session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [stored["text"] for stored in STORED["answers"]]
    before = [opened.sql(text, epsilon="0.9") for text in texts]
    spent, plan = opened.spent, planner.plan

    def another(statistics: Any, **given: Any) -> Any:
        """Tries less, and so gives other events, limits and noise."""
        given["epsilon"] *= Fraction(9, 10)
        return plan(tuple(statistic.plain for statistic in statistics), **given | {"whole": True})

    monkeypatch.setattr(asked, "plan", another)
    fresh = SQL(texts[0], "0.9").bind(opened._context).parsed.planned()
    assert [to_json(event) for event in fresh.measurement.events] != before[0].certificate["events"]
    after = [opened.sql(text, epsilon="0.9") for text in texts]
    assert opened.spent == spent
    for one, other in zip(before, after, strict=True):
        assert one.rows == other.rows
        assert one.intervals(0.9) == other.intervals(0.9)
        assert one.notes == other.notes
        assert one.certificate == other.certificate


def test_another_choice_of_mechanism_leaves_stored_rows_free_and_readable(
    opened: session.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = opened.synthesize(["city", "grade"], epsilon="0.9")
    spent, chosen = opened.spent, request.choose
    monkeypatch.setattr(request, "choose", lambda name, *given, **named: chosen(name or "mwem", *given, **named))
    after = opened.synthesize(["city", "grade"], epsilon="0.9")
    assert opened.spent == spent
    assert (after.rows, after.errors, after.certificate) == (before.rows, before.errors, before.certificate)
    assert after.report() == before.report()
    assert opened.price(SyntheticRows(["city", "grade"], epsilon="0.9")).plan != before.certificate["plan"]
