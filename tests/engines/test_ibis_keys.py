"""What a warehouse tells apart and Python does not, or the other way round: moments, texts, decimals, zeros."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import pytest
import sqlglot
from sqlglot import exp
from tests.engines import ibis_tables
from tests.engines.ibis_tables import Warehouse

import discreet as dc
from discreet.core.errors import InvalidArgument
from discreet.engines.warehouses.dialect import WAREHOUSES
from discreet.engines.warehouses.engine import Ibis
from discreet.session.sql import SQL

FACTS: dict[str, Any] = {"unit": "who", "budget": dc.ApproxDP(10, "1e-6")}


class Described(Warehouse):
    """A warehouse with one table of these types."""

    def __init__(self, name: str, **kinds: Any) -> None:
        super().__init__(name)
        self.kinds = kinds

    def table(self, name: str, database: Any = None) -> Any:
        return ibis.table(ibis.schema(self.kinds), name=name)


def read(name: str, **kinds: Any) -> tuple[Ibis, dict[str, Any]]:
    """An engine, and how its columns are read, once parsed."""
    engine = Ibis(Described(name, who=dt.int64, **kinds))
    engine.add("t", "t", unit="who")
    inner = sqlglot.parse_one(f"SELECT * FROM {engine.dialect.table('t')}", read=name).find(exp.Subquery)
    assert inner is not None
    return engine, {shown.alias: shown.this for shown in inner.this.expressions}


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("scale", [None, 0, 3, 6, 7, 9])
@pytest.mark.parametrize("name", WAREHOUSES)
def test_moments_are_read_to_the_microsecond(name: str, scale: Any, zone: str | None) -> None:
    engine, columns = read(name, at=dt.Timestamp(timezone=zone, scale=scale))
    if name == "trino" and scale is not None and scale > 6:
        assert [column.name for column in engine.columns("t")] == ["who"]
        assert [column for column, _ in engine.omitted("t")] == ["at"]
    elif name == "bigquery" and zone is not None:
        assert columns["at"].sql(name) == "DATETIME(`at`, 'UTC')"
    else:
        assert isinstance(columns["at"], exp.Cast)
        assert columns["at"].to == exp.DataType.build(WAREHOUSES[name].types[exp.DType.TIMESTAMPNTZ], dialect=name)
        assert name == "bigquery" or columns["at"].to.expressions[0].name == "6"


@pytest.mark.parametrize("name", ["bigquery", "snowflake"])
def test_groups_that_differ_by_nanoseconds_are_one_group(name: str, tmp_path: Path) -> None:
    """Each has its own norm otherwise: one unit would move the total of what Python takes for one by √1000."""
    place = ibis_tables.create("fine", "visits", {"who": "integer"}, [{"who": 1}] * 1000)
    con = ibis_tables.running().con
    con.execute("ALTER TABLE fine.visits ADD COLUMN seen TIMESTAMP_NS")
    con.execute("UPDATE fine.visits SET seen = make_timestamp_ns(1577836800000000000 + rowid % 400)")
    with dc.connect(Warehouse(name), table=place, ledger=tmp_path / "books", **FACTS) as session:
        asked = SQL("SELECT seen, COUNT(*) AS n FROM visits GROUP BY seen", 1).bind(session._context).plan().decided
        rows = [row for row in session._engine.run(asked.statement) if row[0] == 0]
    assert [row[5] for row in rows] == [1000]


def test_moments_finer_than_that_are_no_units() -> None:
    engine = Ibis(Described("snowflake", at=dt.Timestamp(scale=9)))
    with pytest.raises(InvalidArgument, match="read without rounding"):
        engine.add("t", "t", unit="at")
    with pytest.raises(InvalidArgument, match="read without rounding"):
        engine.add("t", "t", links=["at"])


@pytest.mark.parametrize("name", WAREHOUSES)
def test_texts_are_read_by_their_code_points(name: str) -> None:
    engine = Ibis(Described(name, who=dt.String(), s=dt.String(length=3)))
    engine.add("t", "t", unit="who")
    said = engine.dialect.table("t")
    for column in ("who", "s"):
        read = WAREHOUSES[name].text.format(engine.dialect.identifier(column))
        assert f"{read} AS {engine.dialect.identifier(column)}" in said
    assert said.count(WAREHOUSES[name].text.format(engine.dialect.identifier("who"))) == 2


@pytest.mark.parametrize("name", ["bigquery", "trino"])
def test_zeros_of_either_sign_name_one_unit(name: str) -> None:
    engine = Ibis(Described(name, who=dt.float64))
    engine.add("t", "t", unit="who")
    assert f"+ 0e0 END AS {engine.dialect.identifier('discreet unit')}" in engine.dialect.table("t")


class Odd(Warehouse):
    def raw_sql(self, statement: str) -> Any:
        return [{"a": Decimal("1.5")}]


def test_decimals_that_are_no_whole_numbers_are_no_answer() -> None:
    with pytest.raises(ValueError, match="no whole number"):
        Ibis(Odd("trino")).run("SELECT 1")
