"""What a price takes, which anybody may ask for: counted, not timed."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from tests.attacks import statement_faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import opened

import discreet as dc
from discreet.accounting import budgets
from discreet.core.domains import Bounds
from discreet.core.errors import Unsupported
from discreet.mechanisms import Laplace
from discreet.session.session import Session
from discreet.sql.bounding import declared_values as bands
from discreet.sql.bounding.sums import Statistic
from discreet.sql.catalog import Catalog, Column, Table
from discreet.sql.functions.registry import weight
from discreet.sql.measuring import planner
from discreet.sql.parsing import effort
from discreet.sql.parsing import expressions as parse_expressions
from discreet.sql.parsing import key_values as keys
from discreet.sql.parsing.effort import (
    MOST_LAWS,
    MOST_MEASURES,
    MOST_NODES,
    MOST_RANKS,
    MOST_SEARCHES,
    MOST_SUMS,
)
from discreet.sql.parsing.expressions import HEAVIEST
from discreet.sql.parsing.select import parse

PEOPLE = {"who": np.arange(9), "x": np.ones(9), "k": np.arange(9) % 3, "c": np.array(list("abc") * 3)}
FACTS: dict[str, Any] = {"bounds": {"x": (0, 5)}, "values": {"k": [0, 1, 2], "c": ["a", "b", "c"]}, "max_rows": 1}


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """How often noise is calibrated, and sums are looked at to share the accuracy among them."""
    work: Counter[str] = Counter()
    share = Statistic.share.fget
    assert share is not None

    def counting(name: str, function: Any) -> Any:
        def called(*given: Any, **more: Any) -> Any:
            work[name] += 1
            return function(*given, **more)

        return called

    budgets.noise_multiplier.cache_clear()
    planner.plan.cache_clear()
    bands.noise.cache_clear()
    with (
        patch.object(budgets, "gaussian_sigma", counting("calibrations", budgets.gaussian_sigma)),
        patch.object(bands, "NeighbourSet", counting("calibrations", bands.NeighbourSet)),
        patch.object(Statistic, "share", property(counting("shares", share))),
    ):
        yield work


def aggregates(shape: str, number: int) -> str:
    return f"SELECT {', '.join(f'{shape.format(i)} AS a{i}' for i in range(number))} FROM t"


def price(session: Session, text: str) -> Counter[str]:
    with counted() as work:
        session.price(text, epsilon=1)
    return work


@attack(42, finds=[statement_faults.shares_added_up_for_each_sum])
def test_a_price_takes_work_in_proportion_to_the_question() -> None:
    with opened(PEOPLE, bounds={"x": (0, 5)}) as session:
        few, many = (price(session, aggregates("AVG(x + {})", number)) for number in (20, 200))
    assert many["shares"] <= 15 * few["shares"]
    assert many["calibrations"] <= few["calibrations"] <= 20


@attack(42, finds=[statement_faults.plans_of_any_size])
def test_what_would_take_long_to_plan_is_refused_before_anything_is_calibrated() -> None:
    laws = "SUM(CASE WHEN c = 'a' THEN 1{:03d} WHEN c = 'b' THEN 7 ELSE 0 END)"
    conditions = " AND ".join(f"x <> {number}" for number in range(MOST_NODES // 3))
    searched = ", ".join(f"COUNT_IF(a AND {place} < 30) AS n{place}" for place in range(MOST_SEARCHES + 1))
    questions = {
        "different aggregates": aggregates("SUM(x + {0}) + SUM(x - {0})", MOST_MEASURES // 2 + 1),
        "sums and quantiles": aggregates("STDDEV(x + {})", MOST_SUMS // 3 + 1),
        "quantiles and modes": aggregates("MEDIAN(CLAMP(x + {}, 0, 9))", MOST_RANKS + 1),
        "declared values": aggregates(laws, MOST_LAWS + 1),
        "parts": f"SELECT COUNT(*) AS n FROM t WHERE {conditions}",
        "looks for": aggregates("COUNT_IF(c LIKE '%{}_b%')", MOST_SEARCHES + 1),
        "unwritten texts": f"SELECT {searched} FROM (SELECT CONTAINS(c, UPPER(c)) AS a FROM t)",
    }
    for reason, text in questions.items():
        with opened(PEOPLE, dc.Row(), **{**FACTS, "max_rows": None}) as session, counted() as work:
            with pytest.raises(Unsupported, match=reason):
                session.price(text, epsilon=1)
            with pytest.raises(Unsupported, match=reason):
                session.sql(text, epsilon=1)
            assert session.spent.epsilon == 0
        assert work["calibrations"] == 0


@attack(30, 42, finds=[statement_faults.rows_of_any_size, statement_faults.counts_of_any_size])
def test_rows_and_counts_that_are_no_answers_are_bounded_alike() -> None:
    """What synthetic rows, functions and mechanisms are run on makes no more searches than an answer does."""
    searches = " AND ".join(f"c NOT LIKE '%{number}_b%'" for number in range(MOST_SEARCHES + 1))
    rows = f"SELECT c FROM t WHERE {searches}"
    with opened(PEOPLE, dc.Row(), **{**FACTS, "max_rows": None}) as session:
        questions: list[dc.Question[Any]] = [
            dc.RunMechanism(Laplace.for_epsilon(1), f"SELECT COUNT(*) AS n FROM t WHERE {searches}"),
            dc.SyntheticRows(rows, epsilon=1),
            dc.Estimate(len, rows, epsilon=1, bounds=(0, 9)),
        ]
        for question in questions:
            with pytest.raises(Unsupported, match="looks for"):
                session.price(question)


@attack(49, finds=[statement_faults.writers_of_any_depth])
def test_what_is_nested_too_deeply_to_be_written_is_refused() -> None:
    columns = {f"c{number}": ["a"] for number in range(320)}
    with opened({"who": [1]} | columns) as session:
        for many in (180, 240, 320):
            text = f"SELECT COUNT(*) AS n FROM t WHERE CONCAT({', '.join([*columns][:many])}) = 'x'"
            try:
                with suppress(Unsupported):
                    session.price(text, epsilon=1)
            except RecursionError:
                pytest.fail("an error that is none of ours")


CONSTANTS = ("'z'", "DATE '2020-01-01'", "NULL", "TRUE", "1.5", "2e0", "-1", "'a' || 'b'", "CAST('1' AS BIGINT)")


@attack(49, finds=[statement_faults.sorted_by_constants])
def test_a_constant_sorts_nothing_and_fails_nothing() -> None:
    with opened(PEOPLE, values={"c": ["a", "b"]}) as session:
        for place, order in enumerate(CONSTANTS):
            text = f"SELECT c, COUNT(*) AS n FROM t GROUP BY c ORDER BY {order}, c DESC"
            try:
                assert [row[0] for row in session.sql(text, epsilon=f"0.{place + 1}").rows] == ["b", "a"]
            except Unsupported as refusal:
                pytest.fail(f"{order}: {refusal}")


@contextmanager
def evaluated() -> Iterator[list[int]]:
    """How large the expressions are that are computed to list the values of keys, one number for each statement."""
    weights: list[int] = []

    def weighed(expressions: Any, columns: Any) -> Any:
        weights.append(sum(map(weight, expressions)))
        if weights[-1] > HEAVIEST:
            return [(None,) * len(expressions) for _ in next(iter(columns.values()))]
        return computed(expressions, columns)

    computed = keys.computed
    keys.listed.cache_clear()
    with patch.object(keys, "computed", weighed):
        yield weights


def nested(shape: str, innermost: str, depth: int) -> str:
    """An expression in itself, again and again."""
    for level in range(depth):
        innermost = shape.format(innermost, level)
    return innermost


def chained(shape: str, depth: int) -> str:
    """A question whose subqueries stand on each other; the columns of the last are the first's."""
    steps = ", ".join(f"a{level + 1} AS ({shape.format(f'a{level}')})" for level in range(depth))
    return f"WITH a0 AS (SELECT who, k, j FROM t), {steps} SELECT k, COUNT(*) AS n FROM a{depth} GROUP BY k"


CHOICES = [("COALESCE({}, '{}')", "d"), ("CASE WHEN x > {1} THEN '{1}' ELSE {0} END", "d")]
TWICE = "SELECT who, k, j FROM {} WHERE k > 0 AND j > 0 AND k + j > 0 UNION ALL SELECT who, k, j FROM t"
UNLISTED = {**PEOPLE, "d": np.array(list("abc") * 3), "j": np.arange(9) % 3}
WHOLE: dict[str, Any] = {"bounds": {"x": (0, 5), "k": (0, 2), "j": (0, 2)}}


@attack(42, finds=[statement_faults.lists_made_again])
def test_every_part_of_a_question_is_listed_once() -> None:
    """Choices within choices tripled the work, filters of unions in each other multiplied it."""
    questions = [
        f"SELECT {nested(shape, innermost, 4)} AS chosen, COUNT(*) AS n FROM t GROUP BY chosen"
        for shape, innermost in CHOICES
    ]
    with opened(UNLISTED, **WHOLE) as session:
        for question in (*questions, chained(TWICE, 4)):
            with evaluated() as work:
                session.price(question, epsilon=1)
            assert len(work) <= 20


@attack(42, finds=[statement_faults.lists_of_any_size])
def test_what_is_computed_to_list_values_is_no_larger_than_what_may_be_written() -> None:
    """Each subquery alone is small; put into each other, as SQL they are eighteen times as long with every one."""
    step = "SELECT who, CAST(ROUND(CAST(k AS DECIMAL(9, 2)), 0) AS BIGINT) AS k, j FROM {}"
    with opened(UNLISTED, **WHOLE) as session, evaluated() as work:
        session.price(chained(step, 1), epsilon=1)
        with patch.object(effort, "written_out", lambda aggregate: 1):
            for depth in (3, 40):
                session.price(chained(step, depth), epsilon=1)
    assert work
    assert max(work) <= HEAVIEST


@attack(42, finds=[statement_faults.lists_of_any_size])
def test_all_lists_of_a_question_are_counted_together() -> None:
    modes, groups = aggregates("MODE(k + {})", 40), ", ".join(f"k * {number} AS k{number}" for number in range(40))
    by = f"SELECT {groups}, COUNT(*) AS n FROM t GROUP BY ALL"
    with opened(UNLISTED, **WHOLE) as session, patch.object(keys, "MOST_COMPUTED", 100):
        assert session.price(aggregates("MODE(k + {})", 20), epsilon=1).fits
        for question in (modes, by):
            keys.listed.cache_clear()
            with pytest.raises(Unsupported, match="combinations"):
                session.price(question, epsilon=1)


def test_averages_by_the_hundred_are_answered() -> None:
    with opened(PEOPLE, **FACTS) as session:
        assert len(session.price(aggregates("AVG(x + {})", MOST_SUMS // 2), epsilon=1).errors) == MOST_SUMS // 2


def test_equal_sums_share_their_noise() -> None:
    with opened(PEOPLE, **FACTS) as session:
        alone, repeated = (price(session, aggregates("AVG(x)", number)) for number in (1, 900))
    assert alone == repeated


@pytest.mark.parametrize("sign", "+-*")
def test_each_part_of_an_expression_is_read_once(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[int] = Counter()
    honest = parse_expressions._read

    def counted(node: Any, deeper: Any) -> Any:
        reads[id(node)] += 1
        return honest(node, deeper)

    monkeypatch.setattr(parse_expressions, "_read", counted)
    table = Table("t", (Column("who", "integer"), Column("i", "integer", Bounds(0, 9))), "who")
    text = f"SELECT COUNT({'(' * 14}i{f'{sign}1)' * 14}) AS n FROM t"
    parse(text, Catalog((table,)))
    assert len(reads) >= 14
    assert set(reads.values()) == {1}
