"""What ibis connects to: sessions through it; the SQL for BigQuery, Snowflake and Trino, as it is sent, as sqlglot
reads it, and by the totals it gives once translated; and what is refused.

`fixtures/` has what would be sent; to see a change there, delete a file and run the tests twice.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pytest
import sqlglot
from tests.engines import ibis_tables
from tests.engines.contract import CORPORA, DUCKDB, Corpus, Place, statement_for, totals
from tests.engines.ibis_tables import Warehouse
from tests.engines.postgres_tables import create as create_on_server
from tests.engines.test_contract import ASKED, named, refused_by
from tests.ledger.servers import running
from tests.soak import whole_or_share

import discreet as dc
from discreet.core.domains import Bounds
from discreet.core.errors import EngineUnavailable, InvalidArgument, Unsupported
from discreet.engines.postgres.addresses import address_of
from discreet.engines.warehouses.dialect import WAREHOUSES, WarehouseDialect
from discreet.engines.warehouses.engine import Ibis
from discreet.session.sql import SQL
from discreet.sql.aggregates import Sum
from discreet.sql.bounding.sums import Statistic
from discreet.sql.catalog import Catalog, Column, Table
from discreet.sql.functions.registry import call, render
from discreet.sql.measuring.quantiles import Cells
from discreet.sql.plan import Literal, Ref

FIXTURES = Path(__file__).parent / "fixtures"
REFUSED = {"bigquery": 0.35, "trino": 0.35, "snowflake": 0.7}
"""The part of a corpus that may be refused."""
STEPS = {"plans": whole_or_share(2, 4), "analysts": whole_or_share(3, 6), "random": 8, "staff": 1}
"""One question in so many is asked: translating them takes long."""
ROWS = [{"who": place % 5, "city": "ab"[place % 2], "cost": float(place)} for place in range(40)]
KINDS = {"who": "integer", "city": "text", "cost": "real"}
FACTS: dict[str, Any] = {"unit": "who", "budget": dc.ApproxDP(10, "1e-6"), "values": {"city": ["a", "b"]}}
FACTS |= {"bounds": {"cost": (0, 50)}}
QUESTION = "SELECT city, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY city"


def warehouse(name: str) -> Place:
    made = ibis_tables.create_decimals if name == "snowflake" else ibis_tables.create
    return Place(name, lambda: Ibis(Warehouse(name)), made)


def rows_for(name: str, corpus: Corpus) -> Any:
    if name != "snowflake":
        return corpus.rows
    return {
        table: [{column: ibis_tables.decimal(value) for column, value in row.items()} for row in rows]
        for table, rows in corpus.rows.items()
    }


@pytest.mark.parametrize("corpus", [corpus for corpus in CORPORA if corpus.name in STEPS], ids=named)
@pytest.mark.parametrize("name", WAREHOUSES)
def test_what_a_warehouse_is_asked_has_the_totals_it_should(name: str, corpus: Corpus) -> None:
    rows, refused = rows_for(name, corpus), 0
    planned = corpus.planned()[:: STEPS[corpus.name]]
    with (
        DUCKDB.engine("", corpus.catalog, rows) as own,
        warehouse(name).engine(f"{name}_{corpus.name}", corpus.catalog, rows) as there,
    ):
        for text, asked in planned:
            refusal = refused_by(there, asked)
            if refusal is None:
                assert totals(there, asked) == totals(own, asked), text
            else:
                assert WAREHOUSES[name].title in refusal, text
                refused += 1
    assert refused <= REFUSED[name] * len(planned)


@pytest.mark.parametrize("name", WAREHOUSES)
def test_the_sql_of_a_warehouse_is_as_it_was_and_can_be_read(name: str) -> None:
    with warehouse(name).engine(f"fixture_{name}", ASKED.catalog, {"anything": []}) as engine:
        found = [statement_for(engine, asked) for _, asked in ASKED.planned() if refused_by(engine, asked) is None]
    path = FIXTURES / f"{name}.sql"
    if not path.exists():
        path.write_text(";\n\n".join(found) + ";\n")
        pytest.fail(f"{path} is written anew: look at it, and run the tests again")
    assert path.read_text() == ";\n\n".join(found) + ";\n"
    assert len(found) >= (3 if name == "snowflake" else 5)
    for statement in found:
        [parsed] = sqlglot.parse(statement, read=name)
        assert parsed is not None
        assert parsed.find(sqlglot.exp.Command) is None
        anonymous = {node.name.upper() for node in parsed.find_all(sqlglot.exp.Anonymous)}
        assert anonymous <= {"SAFE_ADD", "SAFE_SUBTRACT", "SAFE_MULTIPLY", "DIV", "IS_NAN", "TIMESTAMP_NTZ_FROM_PARTS"}


@pytest.mark.parametrize("name", WAREHOUSES)
def test_what_is_not_known_of_a_warehouse_is_refused_by_name(name: str) -> None:
    dialect, x, s = WarehouseDialect(WAREHOUSES[name]), Ref("x", "real"), Ref("s", "text")
    refused = [call("ln", x), call("round", x), call("trim", s), call("power", x, x), call("dow", Ref("d", "date"))]
    refused += [call("%", x, x), call("like", s, Literal("it\tis", "text"))]
    for expression in refused:
        with pytest.raises(Unsupported, match=WAREHOUSES[name].title):
            dialect.text(render(expression))
    with pytest.raises(Unsupported, match="does not take it"):
        dialect.identifier("a" + WAREHOUSES[name].quote)
    for function in ("SUM", "VAR_SAMP"):
        with pytest.raises(Unsupported, match="in any order"):
            dialect.ordered(function, "x", "real")


def test_snowflake_reads_decimals_instead_of_doubles() -> None:
    """There a CASE may compute all of its arms, and the cast of an infinite double fails."""
    table = Catalog((Table("visits", (Column("who", "integer"), Column("cost", "real")), "who"),))
    kinds = {"visits": [{"who": 1, "cost": 2.5}]}
    with replace(warehouse("snowflake"), made=ibis_tables.create).engine("flt", table, kinds) as one:
        assert [column.name for column in one.columns("visits")] == ["who"]
        assert one.omitted("visits") == (("cost", "float64"),)
    with warehouse("snowflake").engine("dec", table, kinds) as one:
        assert [column.type for column in one.columns("visits")] == ["integer", "real"]


TINY = Bounds(0, Fraction(1, 10**30))
COUNTED = {kind: Statistic(Sum(kind), Ref("x", "real"), TINY).steps for kind in ("raw", "centred", "squares")}


@pytest.mark.parametrize("write", [*COUNTED.values(), Cells.of(TINY, whole=False, keys=1).sql], ids=[*COUNTED, "cells"])
def test_no_arm_fails_on_snowflake_whether_it_is_taken_or_not(write: Callable[..., str]) -> None:
    """The largest numbers that decimals of the reader have, and far too large for what the arm is cast to."""

    def arms(eager: bool) -> list[str]:
        case = sqlglot.parse_one(write("x", eager=eager), read="duckdb")
        assert isinstance(case, sqlglot.exp.Case)
        return [arm.args["true"].sql("duckdb") for arm in case.args["ifs"]]

    with duckdb.connect(config={"threads": 1}) as one:
        rows = "(VALUES (1e18::DOUBLE), (-1e18), (0), (NULL)) AS r(x)"
        for arm in arms(eager=True):
            one.execute(f"SELECT {arm} FROM {rows}").fetchall()
        held = one.execute(f"SELECT {write('x', eager=True)} FROM {rows}").fetchall()
        assert held == one.execute(f"SELECT {write('x')} FROM {rows}").fetchall()
        if "LEAST" not in arms(eager=False)[0]:
            with pytest.raises(duckdb.ConversionException):
                one.execute(f"SELECT {arms(eager=False)[0]} FROM {rows}").fetchall()


def test_only_snowflake_may_compute_arms_that_it_does_not_take() -> None:
    assert [name for name in WAREHOUSES if WarehouseDialect(WAREHOUSES[name]).eager] == ["snowflake"]
    sent = (FIXTURES / "snowflake.sql").read_text()
    assert "FLOOR(LEAST(GREATEST(argument_0, " in sent
    assert not re.search(r"FLOOR\(\(?a\d", sent)


@pytest.fixture
def visits() -> str:
    return ibis_tables.create("hospital", "visits", KINDS, ROWS)


def test_a_session_on_a_connection_of_ibis(visits: str, tmp_path: Path) -> None:
    towns = ibis_tables.create("hospital", "towns", {"city": "text", "people": "integer"}, [{"city": "a", "people": 7}])
    with dc.connect(
        Warehouse("bigquery"), table=visits, public={"towns": towns}, ledger=tmp_path / "books", **FACTS
    ) as session:
        answer = session.sql(QUESTION, epsilon=1)
        assert [row[0] for row in answer.rows] == ["a", "b"]
        assert session.sql(QUESTION, epsilon=1).rows == answer.rows
        joined = session.price("SELECT SUM(people) AS p FROM visits JOIN towns USING (city)", epsilon=1)
        assert "hospital" in joined.statement


def test_postgres_through_ibis_is_postgres(tmp_path: Path) -> None:
    create_on_server("ibis_way.visits", {"who": "int8", "city": "text", "cost": "float8"}, ROWS)
    server = running()
    backend = ibis.postgres.connect(host="127.0.0.1", port=server.port, user="postgres", database="postgres")
    try:
        assert str(address_of(backend)).startswith(server.url())
        books = tmp_path / "books"
        with dc.connect(backend, table="ibis_way.visits", ledger=books, **FACTS) as session:
            session.sql(QUESTION, epsilon=1)
            spent = session.spent
        with dc.connect(server.url(), table="ibis_way.visits", ledger=books, **FACTS) as again:
            assert again.spent == spent
    finally:
        backend.disconnect()


@pytest.mark.parametrize("file", ["data.duckdb", ":memory:"])
def test_duckdb_of_others_is_refused_and_what_to_give_instead_works(file: str, tmp_path: Path) -> None:
    """A macro of theirs would otherwise bound what a row adds."""
    path = tmp_path / file if file != ":memory:" else ":memory:"
    backend = ibis.duckdb.connect(path)
    backend.raw_sql("CREATE TABLE visits AS SELECT range % 5 AS who, 'a' AS city, 1.0::DOUBLE AS cost FROM range(40)")
    backend.raw_sql("CREATE MACRO floor(x) AS x * 1000")
    with pytest.raises(InvalidArgument, match="give the path of the file; or a table of it"):
        dc.connect(backend, table="visits", ledger=tmp_path / "books", **FACTS)
    rows = backend.table("visits").to_pyarrow()
    backend.disconnect()
    instead = rows if file == ":memory:" else path
    with dc.connect(instead, table="visits", ledger=tmp_path / "other", **FACTS) as session:
        asked = SQL("SELECT SUM(cost) AS s FROM visits", 1).bind(session._context).plan().decided
        summed = asked.measurement.statistics[0]
        assert session._engine.run(asked.statement)[0][4] == 40 / summed.step * summed.fineness


def test_what_is_written_down_of_a_connection_is_no_secret(visits: str) -> None:
    engine = Ibis(Warehouse("trino"))
    engine.add("visits", visits, unit="who")
    assert engine.identity("visits") == "ibis:trino:host=warehouse.example/memory.hospital.visits"
    assert "secret" not in repr(engine)


@pytest.mark.parametrize(
    ("name", "server", "given"),
    [
        ("bigquery", "", [{"project_id": "a"}, {"project_id": "b"}]),
        ("snowflake", "HOSPITAL.WARD%2E1", [{"account": "xy123.eu"}, {"account": "hospital-ward"}]),
    ],
)
def test_one_table_has_one_name_in_the_books(name: str, server: str, given: list[dict[str, str]], visits: str) -> None:
    for how in given:
        for written in (visits, f"memory.{visits}"):
            engine = Ibis(Warehouse(name, **how))
            engine.add("visits", written, unit="who")
            assert engine.identity("visits") == f"ibis:{name}:{server}/memory.hospital.visits"
            assert ".".join(map(engine.dialect.identifier, f"memory.{visits}".split("."))) in engine.dialect.table(
                "visits"
            )


def test_trino_does_not_say_which_server_it_is_so_the_data_has_a_name(visits: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"table": visits, "ledger": tmp_path / "books", **FACTS}
    with pytest.raises(InvalidArgument, match=r"dataset=None.*does not say which it is"):
        dc.connect(Warehouse("trino"), **given)
    spent = []
    for host in ("localhost", "127.0.0.1"):
        with dc.connect(Warehouse("trino", host=host), dataset="hospital", **given) as session:
            session.sql(f"SELECT COUNT(*) AS n FROM visits WHERE cost < {len(spent) + 20}", epsilon=1)
            spent.append(session.spent)
    assert spent[0] != spent[1]


def test_a_short_name_needs_a_schema(visits: str) -> None:
    backend = Warehouse("trino")
    backend.current_database = ""
    with pytest.raises(InvalidArgument, match="connected to no schema"):
        Ibis(backend).add("visits", "visits")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"table": "hospital.visit"}, "visits"),
        ({"table": "a.b.c.d"}, "catalog.schema.visits"),
        ({"table": None}, "the name of a table"),
        ({"unit": "whom"}, "who"),
        ({"bounds": {"costs": (0, 1)}}, "cost"),
        ({"types": {"cost": "integer"}}, "real, as it is there"),
        ({"types": {"prize": "integer"}}, "a column of visits"),
        ({"ledger": None}, "named where the data is on a server"),
    ],
)
def test_what_is_wrong_is_said(changed: dict[str, Any], said: str, visits: str, tmp_path: Path) -> None:
    given = {"table": visits, "ledger": tmp_path / "books", **FACTS, **changed}
    with pytest.raises(InvalidArgument, match=said):
        dc.connect(Warehouse("bigquery"), **given)


def test_other_backends_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"sqlite.*bigquery"):
        dc.connect(ibis.sqlite.connect(), table="visits", ledger=tmp_path / "books", **FACTS)


def test_only_a_select_runs_and_a_closed_engine_says_so(visits: str) -> None:
    engine = Ibis(Warehouse("trino"))
    with pytest.raises(InvalidArgument, match="one SELECT"):
        engine.run("DROP TABLE hospital.visits")
    with pytest.raises(InvalidArgument, match="a registered table"):
        engine.columns("visits")
    engine.close()
    with pytest.raises(InvalidArgument, match="closed"):
        engine.run("SELECT 1")


class Lost(Warehouse):
    def raw_sql(self, statement: str) -> Any:
        raise ConnectionResetError("gone")


def test_a_connection_that_is_lost_is_no_answer() -> None:
    with pytest.raises(EngineUnavailable):
        Ibis(Lost("trino")).run("SELECT 1")


class Slow(Warehouse):
    def raw_sql(self, statement: str) -> Any:
        raise TimeoutError("too slow")


def test_want_of_time_is_no_lost_connection() -> None:
    """How long a statement takes may be due to the data: it is a failure like any other, and is stored as one."""
    with pytest.raises(TimeoutError):
        Ibis(Slow("trino")).run("SELECT 1")
