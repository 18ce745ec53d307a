"""Decimals are exact: without noise, answers are those of exact arithmetic on the bounded rows, whatever the rows hold.

Guarded: what is written as 0.06 and what a DECIMAL column holds is never computed with as a double; a row whose product
has too many digits changes no success into a failure. On PostgreSQL and Spark the same totals are compared with those
of DuckDB (`tests/engines/test_contract.py`), and expressions with Fractions (`tests/engines/test_decimals.py`).
"""

import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.attacks import sql_faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import largest_cuts, opened

import discreet as dc
from discreet.session.sql import SQL
from discreet.sql.bounding.clipping_norms import G, H
from discreet.sql.statement.results import Groups

BETWEEN = "BETWEEN 0.06 - 0.01 AND 0.06 + 0.01"
MOST = Decimal("99999999999999999999999999.99")


def sold(discounts: list[str], prices: list[Decimal]) -> pa.Table:
    """One sale of each person."""
    return pa.table(
        {
            "who": np.arange(len(discounts)),
            "discount": pa.array([Decimal(discount) for discount in discounts], pa.decimal128(15, 2)),
            "rate": pa.array([float(discount) for discount in discounts]),
            "price": pa.array(prices, pa.decimal128(28, 2)),
        }
    )


def total(data: Any, question: str) -> Fraction:
    """The first sum of a question without noise, from which nothing was clipped."""
    with opened(data, bounds={"price": (0, 105_000), "discount": (0, "0.1")}) as session:
        asked = SQL(question, 1).bind(session._context).plan().decided
        measurement = asked.measurement
        groups = Groups.read(session._engine.run(asked.statement), 0, measurement.statistics, True)
        steps = measurement.totals(groups, [()], largest_cuts(measurement))[0][0]
        return steps * measurement.statistics[0].step / (G * H)


@attack(47, finds=[sql_faults.decimals_in_doubles])
def test_numbers_that_are_written_are_the_numbers_that_are_meant() -> None:
    """0.06 + 0.01 is less than 0.07 in doubles: of 1,000 rows none was counted."""
    data = sold(["0.07"] * 1_000, [Decimal(1)] * 1_000)
    for column in ("discount", "rate"):
        assert total(data, f"SELECT COUNT(*) AS n FROM t WHERE {column} {BETWEEN}") == 1_000
    assert total(data, "SELECT COUNT(*) AS n FROM t WHERE discount * 100 = 7 AND discount + 0.1 = 0.17") == 1_000
    assert total(data, "SELECT COUNT(*) AS n FROM t WHERE discount IN (0.01 * 7) AND discount - 0.07 = 0") == 1_000


@attack(47, finds=[sql_faults.decimals_on_a_grid_of_two, sql_faults.decimals_in_doubles])
def test_sums_of_decimals_are_exact() -> None:
    discounts = [f"0.{place % 11:02d}" for place in range(2_000)]
    prices = [Decimal(90_000 + 7_919 * place % 10_400_001) / 100 for place in range(2_000)]
    data = sold(discounts, prices)
    pairs = [(Fraction(discount), Fraction(price)) for discount, price in zip(discounts, prices, strict=True)]
    kept = [price * discount for discount, price in pairs if Fraction(5, 100) <= discount <= Fraction(7, 100)]
    assert len(kept) > 500
    assert total(data, f"SELECT SUM(price * discount) AS r FROM t WHERE discount {BETWEEN}") == sum(kept)
    assert total(data, "SELECT SUM(price) AS p FROM t") == sum(price for _, price in pairs)


@attack(47, finds=[sql_faults.decimals_of_any_size])
def test_a_product_with_too_many_digits_is_null_and_no_failure() -> None:
    """Such a row is left out, as is one whose whole number leaves 64 bits; the others are what they were."""
    question = "SELECT SUM(CLAMP(price * price, 0, 100)) AS s FROM t"
    assert total(sold(["0.05"] * 3, [Decimal("1.25")] * 3), question) == 3 * Fraction(25, 16)
    try:
        beside = total(sold(["0.05"] * 4, [*[Decimal("1.25")] * 3, MOST]), question)
    except duckdb.Error:
        pytest.fail("one row made the statement fail")
    assert beside == 3 * Fraction(25, 16)


@pytest.mark.parametrize("units", [2**30 - 1, 2**30, 2**31 - 1, 2**31])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_row_at_the_bound_of_a_decimal_fails_nothing(units: int, sign: int) -> None:
    """Bounds where whole numbers of units just fit 32 bits: one row there must be added like any other."""
    most = Decimal(units).scaleb(-2)
    rows = [most * sign] + [Decimal("1.00")] * 9
    table = pa.table({"who": range(10), "p": pa.array(rows, type=pa.decimal128(15, 2))})
    facts: dict[str, Any] = {"bounds": {"p": (-most, most)}, "table": "t", "budget": dc.ApproxDP(10**9, "1e-6")}
    for unit in (dc.User("who"), dc.Row()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with dc.connect(table, unit=unit, **facts) as session:
                [[total]] = session.sql("SELECT SUM(p) AS s FROM t", epsilon=10**6).rows
        assert abs(total - float(sum(rows))) <= float(most) / 1000
