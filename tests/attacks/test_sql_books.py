"""Getting more answers than were paid for: by replays, renamings, races, crashes and changed declarations.

Lines of the list of known privacy bugs that are tested here: run first and charge later; refunds on failure; several
analysts each with a full budget; a renamed view as a fresh budget; kill -9 while a question runs; processes that race
for the last ε. The ledger alone, with kills at every instruction: tests/ledger. Composition against another
accountant: tests/accounting.
"""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.attacks import sql_faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import opened
from tests.sql import faults as planted

import discreet as dc
import discreet.session.sql_question
from discreet.core.events import Pure
from discreet.ledger import Ledger
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.sql.bounding.clipping_norms import Caps
from discreet.sql.measuring import planner
from discreet.sql.measuring.measurement import Measurement

ROWS = {"who": np.arange(60) // 2, "k": np.array([*"abc"] * 20), "x": np.arange(60.0)}
FACTS: dict[str, Any] = {"bounds": {"x": (0, 60)}, "values": {"k": ["a", "b", "c"]}}
COUNT = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"


def charges(session: Session) -> int:
    return sum(entry.content["kind"] == "charge" for entry in session._ledger.entries())


SAME = [
    "select K , count( * ) from T group by 1",
    "SELECT a.k, COUNT(1) AS other FROM t AS a GROUP BY a.k ORDER BY 2 DESC LIMIT 1",
    "WITH t AS (SELECT k FROM t) SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) > 3",
    'SELECT "K", 2 * COUNT(*) + 1 AS n FROM "T" GROUP BY "k" -- a comment',
]
OTHER = [
    "SELECT k, COUNT(x) AS n FROM t GROUP BY k",
    "SELECT k, COUNT(DISTINCT who) AS n FROM t GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM t WHERE k <> 'a' GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM t WHERE k <> 'A' GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM t WHERE k <> 'a ' GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM t WHERE x = 1 GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM t WHERE CAST(x AS VARCHAR) = '1' GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM t WHERE x > 1 GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM t WHERE NOT x > 1 GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM t WHERE x > 1 OR x < 0 AND x > 1 GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM t WHERE (x > 1 OR x < 0) AND x > 1 GROUP BY k",
    "SELECT k, SUM(x) AS n FROM t GROUP BY k",
    "SELECT k, SUM(-x) AS n FROM t GROUP BY k",
    "SELECT k, SUM(CLAMP(x, 0, 59)) AS n FROM t GROUP BY k",
    "SELECT k, AVG(x) AS n FROM t GROUP BY k",
    "SELECT k, MEDIAN(x) AS n FROM t GROUP BY k",
    "SELECT k, QUANTILE(x, 0.49) AS n FROM t GROUP BY k",
    "SELECT k, MIN(x) AS n FROM t GROUP BY k",
    "SELECT UPPER(k) AS k, COUNT(*) AS n FROM t GROUP BY 1",
    "SELECT k, COUNT(*) AS n FROM (SELECT k FROM t UNION ALL SELECT k FROM t) GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM (SELECT who, k FROM t GROUP BY who, k) GROUP BY k",
    "SELECT a.k, COUNT(*) AS n FROM t a JOIN t b ON a.who = b.who GROUP BY a.k",
    "SELECT b.k, COUNT(*) AS n FROM t a JOIN t b ON a.who = b.who WHERE a.k = 'a' GROUP BY b.k",
    "SELECT b.k, COUNT(*) AS n FROM t a JOIN t b ON a.who = b.who WHERE b.k = 'a' GROUP BY b.k",
]


def test_the_same_question_in_other_words_is_paid_for_once() -> None:
    with opened(ROWS, **FACTS) as session:
        first = session.sql(COUNT, epsilon=1)
        for text in SAME:
            answer = session.sql(text, epsilon=1)
            assert charges(session) == 1, text
            assert {row[0] for row in answer.rows} <= {row[0] for row in first.rows}


def test_another_question_is_never_answered_from_its_neighbours_answer() -> None:
    with opened(ROWS, **FACTS) as session:
        for epsilon in ("1", "1.0000000001"):
            asked = [SQL(text, epsilon).bind(session._context).parsed.identity for text in (COUNT, *OTHER)]
            for (one, first), (other, second) in combinations(enumerate(asked), 2):
                assert first != second, (one, other)
        one, other = (SQL(COUNT, epsilon).bind(session._context).parsed.identity for epsilon in (1, "1.0000000001"))
        assert one != other


@pytest.mark.parametrize(
    "changed",
    [
        {"bounds": {"x": (0, 61)}},
        {"values": {"k": ["a", "b"]}},
        {"values": {"k": ["b", "a", "c"]}},
        {"values": {"k": ["a", "b", "c", None]}},
        {"max_rows": 2},
        {"max_rows": 3},
        {"types": {"x": "integer"}},
    ],
    ids=str,
)
def test_changed_declarations_ask_another_question(changed: dict[str, Any], tmp_path: Path) -> None:
    question = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY k"
    asked = []
    for facts in (FACTS, FACTS | changed):
        with opened(ROWS, ledger=tmp_path / "books", **facts) as session:
            session.sql(question, epsilon=1)
            asked.append(charges(session))
    assert asked == [1, 2]


@pytest.mark.parametrize(
    "changed",
    [
        {"budget": dc.ApproxDP(51, "1e-6")},
        {"budget": dc.ApproxDP(50, "1e-5")},
        {"budget": dc.PureDP(50)},
        {"unit": dc.Row()},
        {"unit": dc.User("who", neighbours="replace")},
        {"unit": dc.User("k")},
    ],
    ids=str,
)
def test_books_are_not_continued_with_another_promise(changed: dict[str, Any], tmp_path: Path) -> None:
    opened(ROWS, ledger=tmp_path / "books").close()
    with pytest.raises(dc.InvalidArgument):
        opened(ROWS, **{"ledger": tmp_path / "books", **changed})


def parquet(folder: Path, name: str = "people.parquet") -> Path:
    path = folder / name
    pyarrow.parquet.write_table(pa.table(ROWS), path)
    return path


@attack(31, finds=[sql_faults.books_by_the_name_given])
def test_no_other_name_of_a_file_has_a_fresh_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path)
    (tmp_path / "link.parquet").symlink_to(path)
    (tmp_path / "inner").mkdir()
    (tmp_path / "there").symlink_to(tmp_path, target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    names = [path, str(path), "people.parquet", "./inner/../people.parquet", "link.parquet", "there/people.parquet"]
    budget = dc.PureDP(1)
    with opened(path, budget=budget) as session:
        session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
    for place, name in enumerate(names):
        for table in ("t", f"t{place}", "T"):
            with opened(name, budget=budget, table=table, analyst=f"analyst {place}") as session:
                assert session.remaining == dc.PureDP(0)
                with pytest.raises(dc.BudgetExceeded):
                    session.sql(f"SELECT COUNT(*) AS n FROM {table} WHERE x > 3", epsilon="0.001")


@attack(31, finds=[sql_faults.a_full_budget_for_each_analyst])
def test_analysts_and_studies_share_what_the_data_set_has(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    answered = 0
    for place in range(8):
        with opened(path, budget=dc.PureDP(1), study=f"s{place % 2}", analyst=f"a{place}") as session:
            try:
                session.sql(f"SELECT COUNT(*) AS n FROM t WHERE x > {place}", epsilon="0.3")
                answered += 1
            except dc.BudgetExceeded:
                pass
    assert answered == 3


@attack(31, finds=[sql_faults.refunded, sql_faults.failures_not_stored])
def test_failures_are_charged_and_never_drawn_again() -> None:
    with opened(ROWS, **FACTS) as session:
        calls = []

        def failing(statement: str) -> Any:
            calls.append(statement)
            raise MemoryError("no room")

        honest, session._engine.run = session._engine.run, failing
        for _ in range(3):
            with pytest.raises(dc.AnswerFailed):
                session.sql(COUNT, epsilon=1)
        session._engine.run = honest
        with pytest.raises(dc.AnswerFailed):
            session.sql(COUNT, epsilon=1)
        assert len(calls) == 1
        assert charges(session) == 1


@attack(44, finds=[sql_faults.identities_of_classes, sql_faults.identities_of_plans])
def test_a_renamed_class_or_a_better_planner_sells_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a question is known by has neither names of ours in it nor what was chosen for it."""
    with opened(ROWS, **FACTS) as session:
        asked = [COUNT, "SELECT AVG(x) AS mean FROM t", "SELECT MEDIAN(x) AS middle FROM t"]
        first = [session.sql(text, epsilon=1).rows for text in asked]
        spent, plan = session.spent, planner.plan
        monkeypatch.setattr(Caps, "__repr__", lambda self: f"ClippingNorms({self.norms})")

        def better(*given: Any, epsilon: Fraction, **named: Any) -> Measurement:
            return plan(*given, epsilon=epsilon * 9 / 10, **named)

        monkeypatch.setattr(discreet.session.sql_question, "plan", better)
        assert [session.sql(text, epsilon=1).rows for text in asked] == first
        assert session.spent == spent


@attack(31, finds=[planted.run_before_charge])
def test_the_data_is_touched_after_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(ROWS, **FACTS) as session:
        order: list[str] = []
        honest, charge = session._engine.run, Ledger._charge

        def run(statement: str) -> Any:
            order.append("run")
            return honest(statement)

        def charged(self: Ledger, *given: Any, **named: Any) -> Any:
            made = charge(self, *given, **named)
            order.append("charge")
            return made

        session._engine.run = run
        monkeypatch.setattr(Ledger, "_charge", charged)
        session.sql(COUNT, epsilon=1)
        assert order == ["charge", "run"]


@attack(31, finds=[sql_faults.sums_remembered])
def test_handles_that_ask_for_the_last_epsilon_get_no_more_than_there_is(tmp_path: Path) -> None:
    def ask(who: int) -> int:
        with Ledger.at(tmp_path / "books") as ledger:
            try:
                ledger.charge(("t",), [Pure(Fraction(3, 10))], f"question {who}")
            except dc.BudgetExceeded:
                return 0
            return 1

    with Ledger.at(tmp_path / "books") as ledger:
        ledger.open(("t",), budget=dc.PureDP(1), unit=dc.User("who"), source="memory:t")
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(ask, range(8))) == 3
        assert ledger.spent(("t",)) == dc.PureDP("0.9")


@attack(31, finds=[sql_faults.charges_written_at_the_end])
def test_a_charge_is_on_the_disk_before_anything_else_happens(tmp_path: Path) -> None:
    with Ledger.at(tmp_path / "books") as ledger:
        ledger.open(("t",), budget=dc.PureDP(1), unit=dc.User("who"), source="memory:t")
    child = os.fork()
    if child == 0:
        try:
            Ledger.at(tmp_path / "books").charge(("t",), [Pure(Fraction(1, 2))], "question")
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    with Ledger.at(tmp_path / "books") as ledger:
        assert ledger.spent(("t",)) == dc.PureDP("0.5")
        assert ledger.check().sound


OPEN = """
import sys, time
import discreet as dc
path = sys.argv[1]
session = dc.connect(path, unit=dc.User("who"), budget=dc.PureDP(1), table="t")
"""
RACE = (
    OPEN
    + """
answered = 0
for place in range(6):
    try:
        session.sql(f"SELECT COUNT(*) AS n FROM t WHERE x > {sys.argv[2]} + {place}", epsilon="0.1")
        answered += 1
    except dc.BudgetExceeded:
        pass
print(answered)
"""
)
KILLED = (
    OPEN
    + """
honest = session._engine.run
def slow(statement):
    rows = honest(statement)
    print("ran", flush=True)
    time.sleep(60)
    return rows
session._engine.run = slow
session.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.5")
"""
)


def test_processes_that_race_for_the_last_epsilon_get_no_more_than_there_is(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    started = [
        subprocess.Popen([sys.executable, "-c", RACE, str(path), str(place * 100)], stdout=subprocess.PIPE, text=True)
        for place in range(3)
    ]
    answered = [int(process.communicate(timeout=900)[0]) for process in started]
    assert sum(answered) == 10
    with opened(path, budget=dc.PureDP(1)) as session:
        assert session.spent == dc.PureDP(1)
        assert session._ledger.check().sound


def test_a_process_killed_while_a_question_runs_leaves_its_charge_and_no_second_answer(tmp_path: Path) -> None:
    path = parquet(tmp_path)
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ran\n"
        os.kill(process.pid, signal.SIGKILL)
    with opened(path, budget=dc.PureDP(1)) as session:
        assert session.spent == dc.PureDP(Fraction(1, 2))
        first = session.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.5").rows
        assert session.spent == dc.PureDP(1)
    with opened(path, budget=dc.PureDP(1)) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.5").rows == first
        with pytest.raises(dc.BudgetExceeded):
            session.sql("SELECT COUNT(*) AS n FROM t", epsilon="0.01")


@pytest.mark.parametrize(
    "epsilon", [0, -1, "nan", "inf", float("nan"), float("inf"), None, "1/0", True, "one", [1], 1j]
)
def test_an_epsilon_that_is_no_price_is_refused(epsilon: Any) -> None:
    with opened(ROWS, **FACTS) as session:
        with pytest.raises(dc.InvalidArgument):
            session.sql(COUNT, epsilon=epsilon)
        assert charges(session) == 0


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-7", "1e-5"])
@pytest.mark.parametrize("question", [COUNT, "SELECT SUM(x) AS s FROM t", "SELECT MEDIAN(x) AS m FROM t"])
def test_the_smallest_prices_are_answered_or_refused_before_the_charge(epsilon: str, question: str) -> None:
    with opened(ROWS, budget=dc.PureDP(1), **FACTS) as session:
        try:
            session.sql(question, epsilon=epsilon)
        except dc.InvalidArgument:
            assert charges(session) == 0
        else:
            assert charges(session) == 1


def test_two_tables_of_one_name_do_not_answer_for_each_other(tmp_path: Path) -> None:
    small, large = (tmp_path / f"{name}.parquet" for name in ("small", "large"))
    pyarrow.parquet.write_table(pa.table({"who": np.arange(5)}), small)
    pyarrow.parquet.write_table(pa.table({"who": np.arange(5000)}), large)
    found = []
    for path in (small, large):
        with opened(ROWS, private={"labs": path}, ledger=tmp_path / "books") as session:
            found.append(session.sql("SELECT COUNT(*) AS n FROM labs", epsilon=1).rows[0][0])
    assert abs(found[0] - 5) < 500
    assert abs(found[1] - 5000) < 500
