"""Any function of private rows from a session: charged before data is touched, silent about blocks that fail."""

import datetime
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from tests.engines import postgres_tables, spark_tables
from tests.ledger import servers

import discreet as dc
from discreet.charging.certificate import verify
from discreet.estimation.question import Estimate
from discreet.estimation.result import Estimation, column_of
from discreet.ledger import LedgerUnavailable
from discreet.noise import Entropy
from discreet.robust import Limits, Unstable
from discreet.session.session import Session

PEOPLE = 120
QUICK = Limits(seconds=60, workers=2)
"""Two side by side, with more time than a block takes on the busiest machine."""
ROWS = [
    {
        "who": who,
        "age": 20 + place % 50 if place % 10 else None,
        "day": datetime.date(2020, 1, 1 + visit),
        "town": "ab"[place % 2],
    }
    for place, who in enumerate([None, *range(1, PEOPLE + 1)])
    for visit in range(2)
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
TYPES = {"who": pa.int64(), "age": pa.int64(), "day": pa.date32(), "town": pa.string()}
BUDGET = dc.ApproxDP(20, "1e-6")


@pytest.fixture
def session() -> Iterator[Session]:
    table = pa.table({name: pa.array(values, TYPES[name]) for name, values in COLUMNS.items()})
    with dc.connect(table, table="visits", unit=dc.User("who"), budget=BUDGET) as opened:
        yield opened


def ask(session: Session, function: Any, what: Any = "visits", **asked: Any) -> Estimation:
    return session.estimate(
        function, what, **{"epsilon": 4, "bounds": (0, 100), "limits": QUICK, "form": "numpy", "blocks": 20, **asked}
    )


def mean_age(rows: Any) -> float:
    return float(np.nanmean(rows["age"]))


def watched(session: Session) -> list[str]:
    """The statements that the engine is given from now on."""
    ran: list[str] = []
    original = session._engine.run
    session._engine.run = lambda statement: (ran.append(statement), original(statement))[1]
    return ran


def test_a_price_costs_nothing_and_an_estimate_what_it_said(session: Session) -> None:
    ran = watched(session)
    quote = session.price(Estimate(mean_age, ["age"], epsilon=1, bounds=(0, 100)))
    assert ran == []
    assert session.spent.epsilon == 0
    assert "the median of the answers of 60 blocks" in quote.plan
    assert "in steps of 0.01; beyond all answers with probability 0.005 at most" in str(quote)
    assert "all rows of a unit are in one block" in quote.plan
    made = ask(session, mean_age, ["age"], epsilon=1, blocks=None)
    assert ran == [quote.statement]
    assert made.loss == quote.loss == session.spent
    assert isinstance(made.values, float)
    assert verify(made.certificate, answer=made).question == 'estimate of mean_age on SELECT "age" FROM "visits"'
    assert "the median of the answers of" in made._repr_html_()
    assert "cost ε = 1" in str(made)


@pytest.mark.parametrize(
    ("function", "asked", "said"),
    [
        (mean_age, {}, "it gives a number within the bounds"),
        (lambda rows: rows["agee"].mean(), {}, "it raises KeyError; its columns are who, age, day, town"),
        (lambda rows: [1, 2, 3], {}, "it gives something else than a number"),
        (lambda rows: "old", {}, "it gives something else than a number"),
        (lambda rows: math.nan, {}, "it gives a number, but not finite"),
        (lambda rows: [5.0, 200], {"bounds": {"a": (0, 10), "b": (0, 10)}}, "beyond the bounds"),
        (lambda rows: os._exit(3), {}, "or ends its process"),
        (lambda rows: "c", {"bounds": None, "values": ["a", "b"]}, "not among the values"),
        (lambda rows: ["c"], {"bounds": None}, "no text, number or tuple"),
        (lambda rows: {"<M8[s]100": 50}[f"{rows['day'].dtype.str}{len(set(rows['who']))}"], {}, "within the bounds"),
    ],
    ids=["right", "raises", "three", "text", "nan", "beyond", "dies", "unlisted", "list", "rows"],
)
def test_a_price_tells_what_the_function_does_on_made_up_rows(
    session: Session, function: Any, asked: dict[str, Any], said: str
) -> None:
    ran = watched(session)
    given = {"epsilon": 1, "bounds": (0, 100), "form": "numpy", "limits": QUICK, **asked}
    quote = session.price(Estimate(function, "visits", **given))
    assert said in quote.notes[-1]
    assert quote.notes[-1] in str(quote)
    assert ran == []
    assert session.spent.epsilon == 0


@pytest.mark.parametrize("label", ["a" * 100_000, math.inf, math.nan, ("b", math.inf), [1]])
def test_values_that_no_block_can_give_are_refused(session: Session, label: Any) -> None:
    with pytest.raises(dc.InvalidArgument, match="an answer that a block can give"):
        ask(session, lambda rows: label, bounds=None, values=[label, "b"])
    assert session.spent.epsilon == 0


def test_a_price_warns_of_too_few_blocks(session: Session) -> None:
    asked = {"epsilon": 1, "bounds": (0, 100), "form": "numpy", "limits": QUICK}
    for given in ({"blocks": 10}, {"blocks": 1, "method": "median"}, {"blocks": 60, "method": "winsorized"}):
        quote = session.price(Estimate(mean_age, ["age"], **asked, **given))
        assert "38 or more for a median" in quote.notes[0]
        assert "1 blocks" not in str(quote)
        assert "few" in quote._repr_html_()
    assert len(session.price(Estimate(mean_age, ["age"], **asked)).notes) == 1


def test_asked_again_it_is_charged_again(session: Session) -> None:
    first, second = (ask(session, mean_age, epsilon=1) for _ in range(2))
    assert session.spent.epsilon == 2
    assert first.certificate["ledger"]["entry"] != second.certificate["ledger"]["entry"]


def test_the_books_are_charged_before_the_data_is_touched_and_failures_say_nothing(session: Session) -> None:
    entries, seen = len(list(session._ledger.entries())), list[int]()

    def failing(statement: str) -> Any:
        seen.append(len(list(session._ledger.entries())))
        raise RuntimeError("row 17: Jane Doe")

    session._engine.run = failing
    with pytest.raises(dc.AnswerFailed) as caught:
        ask(session, mean_age)
    assert "Jane" not in str(caught.value)
    assert seen == [entries + 1]
    used = session.spent.epsilon
    with pytest.raises(dc.AnswerFailed):
        ask(session, mean_age)
    assert session.spent.epsilon == 2 * used


def test_a_run_that_was_lost_is_charged_again(session: Session) -> None:
    original = session._engine.run

    def interrupted(statement: str) -> Any:
        raise KeyboardInterrupt

    session._engine.run = interrupted
    with pytest.raises(KeyboardInterrupt):
        ask(session, mean_age, epsilon=1)
    session._engine.run = original
    ask(session, mean_age, epsilon=1)
    assert session.spent.epsilon == 2


def test_rows_come_by_type_with_all_rows_of_a_person_together(session: Session) -> None:
    def wrong(rows: Any) -> str:
        kinds = {name: values.dtype.str if hasattr(values, "dtype") else "" for name, values in rows.items()}
        expected = {"who": "<f8", "age": "<f8", "day": "<M8[s]", "town": "|O"}
        counts = np.unique(rows["who"], return_counts=True)[1]
        nulls = bool((np.isnan(rows["age"]) == (rows["who"] % 10 == 0)).all())
        return "right" if kinds == expected and set(counts) == {2} and nulls else f"{kinds}{counts}{nulls}"

    assert ask(session, wrong, bounds=None, epsilon=8, blocks=20).values == "right"

    def framed(rows: Any) -> str:
        kinds = [str(kind) for kind in rows.dtypes]
        return "right" if kinds == ["float64", "float64", "datetime64[s]", "object"] else str(kinds)

    assert ask(session, framed, bounds=None, epsilon=8, form="pandas").values == "right"


def test_no_rows_and_fewer_people_than_blocks_have_defined_answers(session: Session) -> None:
    empty = ask(session, mean_age, "SELECT age FROM visits WHERE age > 1000", default=33, epsilon=1)
    assert 0 <= empty.values <= 100
    few = ask(
        session, mean_age, "SELECT age FROM visits WHERE who < 3", default=33, blocks=400, epsilon=8, method="median"
    )
    assert abs(few.values - 33) < 1e-6


def test_blocks_that_misbehave_count_as_the_default(session: Session) -> None:
    def spoiled(rows: Any) -> float:
        if (rows["who"] == 7).any():
            while True:
                time.sleep(1)
        if (rows["who"] == 8).any():
            os._exit(1)
        return 60.0

    # Blocks that answer have as little time as the two that never do, so it is not less.
    limits = Limits(seconds=4, workers=2)
    assert abs(ask(session, spoiled, epsilon=8, blocks=30, limits=limits, method="median").values - 60) < 1e-6


def test_vectors_have_names_and_labels_may_be_unstable(session: Session) -> None:
    def both(rows: Any) -> Any:
        return [np.nanmean(rows["age"]), np.nanstd(rows["age"])]

    made = ask(session, both, bounds={"mean": (0, 100), "sd": (0, 50)}, method="mean", epsilon=8)
    assert made.names == ("mean", "sd")
    assert (made.intervals(0.999)[:, 0] < made.values).all()
    assert "± 95 %, noise" in made._repr_html_()
    voted = ask(session, lambda rows: max(rows["town"]), bounds=None, values=["a", "b"])
    assert voted.values == "b"
    torn = ask(session, lambda rows: float(rows["who"][0]), bounds=None, epsilon=1, blocks=60)
    assert isinstance(torn.values, Unstable)
    assert not torn.values
    assert verify(torn.certificate, answer=torn).loss == torn.loss


def test_an_estimate_that_was_paid_for_is_shown_whatever_the_books_do_next(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never asked again, so what is not shown now is lost: one write stores it with what its certificate says."""
    ledger = session._ledger
    honest = ledger._store.writing

    def writing(*look: Any) -> Any:
        if any(entry.content["kind"] == "release" for entry in ledger.entries()):
            raise LedgerUnavailable("others have been writing for 30 s", "ask again")
        return honest(*look)

    monkeypatch.setattr(ledger._store, "writing", writing)
    estimate = ask(session, mean_age)
    assert verify(estimate.certificate, answer=estimate).loss == estimate.loss
    assert ledger.confirm(estimate.certificate, keys=[estimate.certificate["key"]]) == ()


def test_seeded_estimates_say_so_and_have_no_certificate(session: Session) -> None:
    made = ask(session, mean_age, test_entropy=Entropy.for_tests(1))
    assert (made.private, made.certificate) == (False, {})
    assert "NOT PRIVATE" in str(made)
    assert "NOT PRIVATE" in made._repr_html_()


def test_whoever_is_told_of_progress_cannot_end_a_run_that_is_paid_for(session: Session) -> None:
    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(session, mean_age, progress=stop)
    assert session._ledger.standing(session.account)[0].used > 0
    last = session._ledger.entries(since=session._ledger.head().sequence - 2)
    assert [entry.content["kind"] for entry in last] == ["release", "certify"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_functions_do_not_find_the_files_of_the_data(tmp_path: Path, kind: str) -> None:
    source = tmp_path / ("visits.parquet" if kind == "file" else "visits")
    place = source if kind == "file" else source / "part.parquet"
    place.parent.mkdir(exist_ok=True)
    parquet.write_table(pa.table({"who": list(range(200))}), place)
    alone = "import ctypes, sys; u = ctypes.CDLL(None).unshare; sys.exit(u(0x20000) and u(0x10020000))"
    allowed = subprocess.run([sys.executable, "-c", alone], timeout=900, check=False).returncode == 0

    def peeks(rows: Any) -> str:
        return "seen" if place.exists() and place.read_bytes() else "nothing"

    with dc.connect(source, table="visits", unit=dc.User("who"), budget=BUDGET, ledger=tmp_path / "books") as opened:
        assert ask(opened, peeks, bounds=None, epsilon=8).values == ("nothing" if allowed else "seen")
        assert opened.sql("SELECT COUNT(*) AS n FROM visits", epsilon=9).rows[0][0] > 150


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"function": 3}, "function=3 must be callable"),
        ({"function": (i for i in [1]).send}, "another process can be given it"),
        ({"epsilon": 50}, "exceeds"),
        ({"epsilon": 0}, "epsilon"),
        ({"bounds": 3}, "bounds=3 must be a pair"),
        ({"bounds": (1, 0)}, "lower"),
        ({"bounds": {}}, "by name"),
        ({"values": ["a"]}, "left out where there are bounds"),
        ({"bounds": None, "method": "median"}, "left out where answers are anything"),
        ({"bounds": None, "blocks": 3}, "or more for any answer"),
        ({"method": "mode"}, "method"),
        ({"blocks": 0}, "blocks"),
        ({"rounds": 0}, "rounds"),
        ({"default": 101}, "default"),
        ({"form": "rows"}, "form"),
        ({"form": "polars"}, "form"),
        ({"limits": 3}, "limits"),
        ({"what": "SELECT COUNT(*) FROM visits"}, "aggregates"),
        ({"what": "SELECT age, age FROM visits"}, "named once"),
        ({"what": []}, "columns"),
        ({"what": ["agee"]}, "agee"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_done_is_refused_before_anything_is_charged(
    session: Session, asked: dict[str, Any], words: str
) -> None:
    ran = watched(session)
    with pytest.raises((dc.InvalidArgument, dc.Unsupported, dc.BudgetExceeded), match=words):
        ask(session, **{"function": mean_age, **asked})
    assert ran == []
    assert session.spent.epsilon == 0


def test_a_pure_budget_has_no_labels_without_a_list() -> None:
    with dc.connect({"x": np.arange(9)}, unit=dc.Row(), budget=dc.PureDP(3), table="t") as session:
        with pytest.raises(dc.InvalidArgument, match="under a PureDP budget"):
            ask(session, lambda rows: "a", "t", bounds=None, epsilon=1)
        assert abs(ask(session, lambda rows: 7.0, "t", epsilon=3, blocks=90, default=7).values - 7) < 1e-6


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"])
def test_engines_give_functions_the_same_rows(engine: str, tmp_path: Path) -> None:
    facts = {"unit": dc.User("who"), "budget": BUDGET, "ledger": tmp_path / "books.db"}
    if engine == "postgres":
        postgres_tables.create("hospital.asked", {"who": "int4", "age": "int2", "day": "date", "town": "text"}, ROWS)
        opened = dc.connect(servers.running().url(), table="hospital.asked", **facts)
    elif engine == "spark":
        opened = dc.connect(spark_tables.frame(TYPES, ROWS), table="asked", **facts)
    else:
        table = pa.table({name: pa.array(values, TYPES[name]) for name, values in COLUMNS.items()})
        opened = dc.connect(table, table="asked", **facts)

    text = "SELECT age / 2 AS a, day AS d, town FROM asked WHERE town <> 'c'"
    with opened as session:
        request = Estimate(mean_age, text, 1, (0, 100)).bind(session._context).request
        found = session._engine.run(request.statement)
        made = ask(session, lambda rows: np.nanmean(rows["a"]), text)
    listed = list(zip(*found, strict=True))
    held = [column_of(listed[place], field.type) for place, field in enumerate(request.rows.visible)]
    assert [str(column.dtype) for column in held] == ["float64", "datetime64[s]", "object"]
    whose = [row[3] for row in found]
    expected = [
        (row["who"], row["age"] and row["age"] / 2, row["day"], row["town"]) for row in ROWS if row["who"] is not None
    ]
    columns = [[None if math.isnan(a) else a for a in held[0]], held[1].astype("datetime64[D]").tolist(), held[2]]
    assert sorted(zip(map(int, whose), *columns, strict=True), key=str) == sorted(expected, key=str)
    assert 0 <= made.values <= 100
