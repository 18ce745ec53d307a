"""Synthetic rows from a session: planned from declared facts, charged before data is touched, free when asked again."""

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.charging.certificate import verify
from discreet.noise import Entropy
from discreet.samples import rand_hie
from discreet.session.session import Session
from discreet.sql.bounding.clipping_norms import G, H
from discreet.synopses import Product, Workload
from discreet.synthesis.question import SyntheticRows
from discreet.synthesis.request import LIMIT

COLUMNS = ["site", "health", "female"]
FACTS: dict[str, Any] = {
    "unit": dc.User("person"),
    "budget": dc.ApproxDP(3, "1e-6"),
    "table": "survey",
    "max_rows": 5,
    "bounds": {"spending": (0, 2000), "age": (0, 69)},
    "values": {"site": [1, 2, 3, 4, 5, 6], "health": ["excellent", "good", "fair", "poor"], "female": [0, 1]},
}
Columns = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def survey() -> Columns:
    return rand_hie()


@pytest.fixture
def session(survey: Columns) -> Iterator[Session]:
    with dc.connect(survey, **FACTS) as opened:
        yield opened


def request(session: Session, what: Any = COLUMNS, epsilon: Any = 1, **asked: Any) -> Any:
    given = {"workload": None, "method": None, "bins": None, "max_rows": None, "check": "0.1", **asked}
    return SyntheticRows(what, epsilon, *given.values()).bind(session._context).request


def watched(session: Session) -> list[str]:
    """The statements that the engine is given from now on."""
    ran: list[str] = []
    original = session._engine.run
    session._engine.run = lambda statement: (ran.append(statement), original(statement))[1]
    return ran


def test_rows_are_like_the_data_and_the_check_says_how_much(session: Session, survey: Columns) -> None:
    made = session.synthesize(COLUMNS, epsilon=2)
    assert made.names == tuple(COLUMNS)
    assert {type(value) for column in made.table.columns.values() for value in column} == {int, str}
    exact = {error.label: error.misplaced()[0] for error in made.compared(survey)}
    assert max(exact.values()) < 0.2
    for error in made.errors:
        _, low, high = error.misplaced(1 - 1e-12)
        same = [exact[e.label] for e in made.errors if e.counts and e.order == error.order]
        true = exact[error.label] if error.counts else sum(same) / len(same)
        # What was compared are plain rows and true totals; the check is against weighed rows and a noisy total.
        assert low - 0.02 <= true <= high + 0.02
    assert abs(len(made) - 20_190) < 4000


def test_a_price_is_made_of_declared_facts_and_costs_nothing(session: Session) -> None:
    ran = watched(session)
    quote = session.price(SyntheticRows(COLUMNS, epsilon=1))
    assert ran == []
    assert session.spent.epsilon == 0
    assert quote.fits
    assert quote.loss.epsilon <= 1
    assert "48 cells" in quote.plan
    assert "5 rows, as declared" in quote.plan
    made = session.synthesize(COLUMNS, epsilon=1)
    assert ran == [quote.statement]
    assert made.loss == quote.loss == session.spent


def test_the_same_again_is_free_and_the_same_whatever_the_number_of_rows(session: Session) -> None:
    first = session.synthesize(COLUMNS, epsilon=1)
    spent, ran = session.spent, watched(session)
    again = session.synthesize("select site, health, female from survey", epsilon="1.0")
    assert again.rows == first.rows
    assert again.errors == first.errors
    fewer = session.synthesize(COLUMNS, epsilon=1, rows=17)
    assert len(fewer) == 17
    assert (session.spent, ran) == (spent, [])
    assert session.synthesize(COLUMNS, epsilon=1, workload=1, rows=5).errors != first.errors
    assert len(ran) == 1


def test_the_books_are_charged_before_the_data_is_touched_and_failures_say_nothing(session: Session) -> None:
    entries = len(list(session._ledger.entries()))
    seen: list[int] = []

    def failing(statement: str) -> Any:
        seen.append(len(list(session._ledger.entries())))
        raise RuntimeError("row 17: Jane Doe")

    session._engine.run = failing
    for _ in range(2):
        with pytest.raises(dc.AnswerFailed) as caught:
            session.synthesize(COLUMNS, epsilon=1)
        assert "Jane" not in str(caught.value)
    assert seen == [entries + 1]


def test_whoever_is_told_of_progress_cannot_end_a_run_that_is_paid_for(session: Session) -> None:
    ran, told = watched(session), list[float]()

    def stop(share: float) -> None:
        told.append(share)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.synthesize(COLUMNS, epsilon=1, method="mwem", progress=stop)
    spent = session.spent
    assert len(session.synthesize(COLUMNS, epsilon=1, method="mwem", progress=stop)) > 1
    assert (len(ran), len(told), session.spent) == (1, 1, spent)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"epsilon": 50}, "exceeds"),
        ({"epsilon": -1}, "epsilon"),
        ({"rows": 0}, "rows"),
        ({"rows": 10**9}, "rows"),
        ({"method": "magic"}, "method"),
        ({"check": 1}, "check"),
        ({"bins": {"site": 3, "nothing": 2}}, "nothing"),
        ({"bins": {"health": 3}}, "numbers only"),
        ({"workload": []}, "at least one"),
        ({"workload": 9}, "at most 3"),
        ({"workload": [["site", "sit"]]}, "workload='sit' must be SQL, or columns of the rows; existing: site"),
        ({"workload": ["site", 2]}, "workload=2 must be SQL or columns"),
        ({"bins": {"site": 0}}, "bins of site=0"),
        ({"what": ["site", "site"]}, "columns='site' must be named once"),
        ({"max_rows": 0}, "max_rows"),
        ({"what": ["income"]}, "declared"),
        ({"what": ["person", "site"]}, "name nobody"),
        ({"what": []}, "columns"),
        ({"what": "nowhere"}, "nowhere"),
        ({"what": "SELECT COUNT(*) FROM survey"}, "aggregates"),
        ({"what": "SELECT site FROM survey LIMIT 3"}, "no order"),
        ({"what": "survey", "bins": {"spending": 1000, "age": 69}, "workload": 1, "method": "boosting"}, "mwem"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_done_is_refused_before_anything_is_charged(
    session: Session, asked: dict[str, Any], words: str
) -> None:
    ran = watched(session)
    with pytest.raises((dc.InvalidArgument, dc.Unsupported, dc.BudgetExceeded), match=words):
        session.synthesize(**{"what": COLUMNS, "epsilon": 1, **asked})
    assert ran == []
    assert session.spent.epsilon == 0


def test_a_domain_that_is_too_large_is_refused_with_its_size_and_what_to_do(session: Session) -> None:
    text = "SELECT spending, spending / 2 AS again, age, site FROM survey"
    with pytest.raises(dc.InvalidArgument, match="GB for one histogram") as caught:
        session.price(SyntheticRows(text, epsilon=1, bins={"spending": 1000, "again": 1000}))
    assert "coarser bins" in caught.value.remedy
    assert "spending 1000" in caught.value.remedy


def test_certificates_hold_for_the_rows_and_seeded_rows_have_none(session: Session) -> None:
    made = session.synthesize(COLUMNS, epsilon=1)
    verified = verify(made.certificate, answer=made)
    assert verified.loss == made.loss
    assert "site × health" in verified.question
    with pytest.raises(dc.InvalidArgument):
        verify(made.certificate, answer=session.synthesize(COLUMNS, epsilon=1, rows=17))
    seeded = session.synthesize(COLUMNS, epsilon=1, test_entropy=Entropy.for_tests(1))
    assert (seeded.private, seeded.certificate) == (False, {})
    assert "NOT PRIVATE" in str(seeded)
    assert "NOT PRIVATE" in seeded.report()
    assert seeded.rows != made.rows
    assert session.synthesize(COLUMNS, epsilon=1).rows == made.rows


def test_one_person_adds_no_more_than_the_limit_whatever_their_rows() -> None:
    steps = G * H
    for rows, limit in ((1, 3), (3, 3), (7, 3), (1000, 3), (1000, None)):
        held = {"who": np.array([1] * rows + [2]), "x": np.array([*(np.arange(rows) % 4), 0])}
        with dc.connect(held, unit="who", budget=dc.PureDP(9), table="t", values={"x": [0, 1, 2, 3]}) as session:
            asked = request(session, ["x"], max_rows=limit)
            cells = asked.histogram(session._engine)
            most = min(rows, LIMIT if limit is None else limit) * steps
            assert most * 0.98 <= cells.sum() - steps <= asked.chosen.terms.unit_weight


def test_values_outside_bounds_count_as_ends_and_rows_without_a_value_are_left_out() -> None:
    held = {"age": [-5.0, 0.0, 14.9, 99.0, None, float("nan")], "city": ["a", "b", "a", None, "a", "z"]}
    facts = {"bounds": {"age": (0, 20)}, "values": {"city": ["a", "b"]}}
    with dc.connect(held, unit=dc.Row(), budget=dc.PureDP(9), table="t", **facts) as session:
        ages = request(session, ["age"], bins={"age": 2})
        assert ages.histogram(session._engine).tolist() == [2, 2]
        both = request(session, ["age", "city"], bins={"age": [0, 10, 20]})
        assert both.histogram(session._engine).tolist() == [1, 1, 1, 0]
        assert request(session, "SELECT city IS NULL AS c FROM t").histogram(session._engine).tolist() == [5, 1]


def test_bins_have_round_ends_unless_others_are_asked_for(session: Session) -> None:
    def edges(name: str, **asked: Any) -> Any:
        return request(session, [name], **asked).domain.attribute(name).edges

    assert edges("age")[:3] == (0, 5, 10)
    assert edges("age")[-2:] == (65, 69)
    assert len(edges("spending")) == 21
    assert edges("age", bins=3) == (0, 23, 46, 69)
    assert edges("age", bins={"AGE": [0, 18, "69"]}) == (0, 18, 69)
    assert request(session, "SELECT age // 10 AS decade FROM survey").domain.shape == (7,)
    dated = {"day": np.array(["2026-01-01", "2026-01-03"], dtype="datetime64[D]")}
    listed = {"day": [d.item() for d in dated["day"]]}
    with dc.connect(dated, unit=dc.Row(), budget=dc.PureDP(50), table="t", values=listed) as days:
        assert {*days.synthesize("t", epsilon=40, rows=50).table.columns["day"]} <= {*listed["day"]}


@pytest.mark.parametrize(
    ("computed", "values"),
    [
        ("FLOOR(age / 10) * 10", [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]),
        ("age // 20 * 20", [0, 20, 40, 60]),
        ("CASE WHEN age < 18 THEN 0.5 ELSE 2.5 END", [0.5, 2.5]),
    ],
)
def test_computed_numbers_have_the_values_they_can_have(
    session: Session, survey: Columns, computed: str, values: list[float]
) -> None:
    asked = request(session, f"SELECT {computed} AS k FROM survey")
    assert list(asked.columns[0].keys) == values
    held = asked.histogram(session._engine) / asked.scale
    step = {7: lambda age: age // 10, 4: lambda age: age // 20, 2: lambda age: age >= 18}[len(values)]
    true = np.bincount(step(np.asarray(survey["age"]).astype(int)), minlength=len(values))
    assert np.allclose(held, true, rtol=0.02)
    made = session.synthesize(f"SELECT {computed} AS k FROM survey", epsilon=1, rows=200)
    assert set(made.table.columns["k"]) <= set(values)
    assert repr(made.table) == "SyntheticTable(200 rows of k)"


QUESTIONS = {
    "SELECT site, health, COUNT(*) FROM survey GROUP BY site, health": (24, True),
    "SELECT health, COUNT(*) AS n FROM survey WHERE site IN (1, 2) AND female = 1 GROUP BY 1 ORDER BY n": (4, True),
    "SELECT COUNT(*) FROM survey WHERE age BETWEEN 20 AND 29": (1, True),
    "SELECT CASE WHEN age < 20 THEN 1 WHEN age < 50 THEN 2 ELSE 3 END AS k, COUNT(*) FROM survey GROUP BY 1": (3, True),
    "SELECT UPPER(health) AS h, age, COUNT(*) FROM survey WHERE age >= 5 GROUP BY 1, 2": (52, True),
    "SELECT COUNT(*) FROM survey WHERE site = 1 OR age < 10": (1, False),
    "SELECT site = 2 AND female = 0 AS k, site, COUNT(*) FROM survey GROUP BY 1, 2": (7, False),
}


def test_workloads_in_sql_are_the_counts_that_sql_gives(session: Session, survey: Columns) -> None:
    asked = request(session, [*COLUMNS, "age"], workload=list(QUESTIONS))
    histogram = np.rint(asked.histogram(session._engine) / asked.scale).astype(np.int64)
    ends = np.cumsum([0, *(block.count(asked.domain) for block in asked.workload.blocks)])
    answers = asked.workload.answers(histogram)
    import duckdb
    import pandas as pd

    frames = {"survey": pd.DataFrame(survey)}
    for place, (text, (many, factored)) in enumerate(QUESTIONS.items()):
        block = asked.workload.blocks[place]
        assert (block.count(asked.domain), isinstance(block, Product)) == (many, factored), text
        told = answers[ends[place] : ends[place + 1]]
        binned = text.replace(" h, age,", " h, LEAST(age // 5, 13) AS band,")
        true = duckdb.query_df(frames["survey"], "survey", binned).fetchall()
        counts = sorted(row[-1] for row in true)
        assert sorted(count for count in told if count) == pytest.approx(counts)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT AVG(age) FROM survey", "COUNT"),
        ("SELECT COUNT(age) FROM survey", "COUNT"),
        ("SELECT site, COUNT(*) AS n FROM survey GROUP BY 1 HAVING n > 5", "HAVING"),
        ("SELECT site, COUNT(*) FROM survey GROUP BY 1 LIMIT 2", "LIMIT"),
        ("SELECT COUNT(*) * 2 FROM survey", "list keys"),
        ("SELECT COUNT(*) FROM survey WHERE age < 18", "ends of bins"),
        ("SELECT COUNT(*) FROM survey WHERE age <= 20", "ends of bins"),
        ("SELECT COUNT(*) FROM survey WHERE age + 1 < 20", "other bins"),
        ("SELECT income, COUNT(*) FROM survey GROUP BY 1", "income"),
        ("SELECT COUNT(*) FROM elsewhere", "elsewhere"),
        ("SELECT COUNT(*) FROM survey WHERE site = 9", "no row can meet"),
        ("SELECT COUNT(*) FROM (SELECT site FROM survey)", "one SELECT"),
        ("SELECT site FROM survey", "rows"),
        ("SELECT nonsense FRM survey", "SQL"),
    ],
)
def test_what_is_no_linear_query_over_the_columns_is_refused_with_what_to_write(
    session: Session, text: str, words: str
) -> None:
    with pytest.raises((dc.InvalidArgument, dc.Unsupported), match=words):
        request(session, [*COLUMNS, "age"], workload=[text])


@pytest.mark.parametrize("method", ["mwem", "projection", "mwem-book", "generator", "boosting", "small-database"])
@pytest.mark.parametrize("budget", [dc.PureDP(4), dc.ApproxDP(4, "1e-6")], ids=["pure", "approximate"])
def test_every_method_makes_rows_within_its_price(survey: Columns, method: str, budget: Any) -> None:
    done: list[float] = []
    with dc.connect(survey, **{**FACTS, "budget": budget}) as session:
        columns = ["female"] if method == "small-database" else ["health", "female"]
        made = session.synthesize(columns, epsilon=2, method=method, progress=done.append)
        assert made.request.chosen.name == method
        assert session.spent.epsilon <= 2
        exact = {error.label: error.misplaced()[0] for error in made.compared(survey)}
        assert exact["female"] < 0.3
        assert done == sorted(done)
        assert made.accuracy(0.05) > 0


def test_no_bound_is_stated_for_rows_that_are_weighed_down() -> None:
    visits = {"who": np.repeat([1, 2], [3, 20_000]), "a": np.repeat([1, 0], [3, 20_000])}
    facts: dict[str, Any] = {"unit": "who", "budget": dc.PureDP(2), "values": {"a": [0, 1]}}
    for max_rows, asked in ((None, None), (30_000, 10), (30_000, None)):
        with dc.connect(visits, max_rows=max_rows, **facts) as session:
            seed = Entropy.for_tests(1)
            made = session.synthesize(["a"], epsilon=1, method="projection", max_rows=asked, test_entropy=seed)
            off = np.abs(made.synopsis.answers(made.workload) - [20_000, 3]).max()
            assert off <= made.accuracy("0.001")
            assert np.isfinite(made.accuracy("0.001")) == (max_rows is not None and asked is None)


def test_the_method_follows_the_size_of_the_domain(session: Session) -> None:
    assert request(session).chosen.name == "projection"
    assert request(session, [*COLUMNS, "age", "spending"]).chosen.name == "mwem"
    assert len(request(session).workload.blocks) == 7
    assert len(request(session, [*COLUMNS, "age", "spending"]).workload.blocks) == 15


def test_workloads_and_lists_of_columns_may_be_given(session: Session) -> None:
    made = request(session, workload=[("SITE", "health"), "female"])
    assert made.labels == ("site × health", "female")
    own = Workload.prefixes(made.domain, "site")
    assert len(request(session, workload=own).workload) == 6
    with pytest.raises(dc.InvalidArgument, match="as declared"):
        request(session, ["site"], workload=own)


def test_of_some_queries_of_a_block_the_whole_block_is_compared(session: Session, survey: Columns) -> None:
    some = Workload.marginals(request(session).domain, ["site", ("site", "female")]).subset([0, 8])
    made = session.synthesize(COLUMNS, epsilon=1, workload=some)
    columns = survey["site"], made.table.columns["site"]
    true, said = (np.bincount(np.asarray(column, dtype=int), minlength=7)[1:] for column in columns)
    assert made.compared(survey)[0].rows == pytest.approx(np.abs(true - said).sum(), abs=7)


def test_row_level_replacement_and_tables_without_people_columns(survey: Columns) -> None:
    facts = {name: value for name, value in FACTS.items() if name not in ("unit", "max_rows")}
    with dc.connect(survey, unit=dc.Row(neighbours="replace"), **facts) as session:
        asked = request(session)
        assert (asked.limit, asked.scale, asked.chosen.terms.changes) == (None, 1, 2)
        assert asked.histogram(session._engine).sum() == len(survey["site"])
        with pytest.raises(dc.InvalidArgument, match="each row is a unit"):
            request(session, max_rows=3)
        assert max(e.misplaced()[0] for e in session.synthesize(COLUMNS, epsilon=2).compared(survey)) < 0.05


def test_public_tables_can_be_read_and_private_ones_never(survey: Columns) -> None:
    open_to_all = {"open": {name: survey[name] for name in COLUMNS}}
    with dc.connect(survey, **FACTS, public=open_to_all) as session:
        public = session.public_columns("open", COLUMNS)
        assert public["site"] == survey["site"].tolist()
        for table in ("survey", "SURVEY"):
            with pytest.raises(dc.InvalidArgument, match="public"):
                session.public_columns(table, COLUMNS)
        made = session.synthesize(COLUMNS, epsilon=1)
        page = made.report(public)
        assert page.count("<circle") == 6 + 4 + 2
        assert "rows that protect nobody" in page
        assert "<circle" not in made.report()
        with pytest.raises(dc.InvalidArgument, match="female"):
            made.report({name: public[name] for name in COLUMNS[:2]})


def test_pages_are_self_contained_and_escape_what_they_show() -> None:
    held = {"x": np.array(["<b>", "&"] * 50)}
    with dc.connect(held, unit=dc.Row(), budget=dc.PureDP(9), table="t", values={"x": ["<b>", "&"]}) as session:
        made = session.synthesize("t", epsilon=2)
        for shown in (made.report(), made._repr_html_()):
            assert "<b>" not in shown
            assert "&lt;b&gt;" in shown
            assert "http" not in shown.replace(json.dumps(made.certificate), "")
        assert session.synthesize("t", epsilon=1, check=0).errors == ()
        assert "No part of the budget" in session.synthesize("t", epsilon=1, check=0).report()


def test_what_the_books_store_is_bound_to_the_domain_the_queries_and_the_price(session: Session) -> None:
    asked = [
        request(session),
        request(session, epsilon=2),
        request(session, workload=1),
        request(session, method="mwem"),
        request(session, max_rows=2),
        request(session, check=0),
        request(session, "SELECT site, health, female FROM survey WHERE site < 3"),
        request(session, ["health", "site", "female"]),
    ]
    identities = {one.identity({}) for one in asked}
    assert len(identities) == len(asked)
    assert math.isclose(float(sum(asked[0].chosen.terms.epsilon for _ in range(2))), 1.9, abs_tol=0.11)
    assert asked[5].chosen.terms.epsilon == Fraction(1)
