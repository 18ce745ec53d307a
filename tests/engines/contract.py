"""All engines, and the corpora of questions that all of them answer alike.

A `Place` is an engine with a way to put rows into it; `PLACES` has them all. A corpus is a catalog with rows and
questions; each is planned once, and its statement is written in the dialect of every engine.
"""

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.engines import spark_tables
from tests.engines.postgres_tables import KINDS as POSTGRES
from tests.engines.postgres_tables import create
from tests.ledger.servers import running
from tests.soak import SOAK, third, whole_or_share
from tests.sql import tables, test_analysts
from tests.sql.fixtures import cases
from tests.sql.questions import Asker
from tests.sql.worlds import ARROW, ODD_INTEGERS, ODD_REALS, ODD_TEXTS, Data, World
from tests.sql.worlds import VISITS as WORLDLY

import discreet as dc
from discreet.core.domains import Bounds, Categories
from discreet.core.errors import DiscreetError
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.engine import Engine
from discreet.engines.postgres.engine import Postgres
from discreet.engines.spark.engine import Spark
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.sql.catalog import Catalog, Column, Table
from discreet.sql.decimals import Decimals

Kinds = Mapping[str, str]
Rows = list[dict[str, Any]]
BUDGET = dc.ApproxDP(10**6, "1e-6")
ODD = {"integer": ODD_INTEGERS, "real": ODD_REALS, "text": ODD_TEXTS}
ODD |= {"date": WORLDLY["day"].odd, "timestamp": WORLDLY["seen"].odd, "boolean": (True, False)}
WORDS = ("E11.9", "HbA1c", "LDL", "glucose", "Oslo", "Rome", "a", "b", "x", "north", "paid", "Private", "12", "")
SIZE = 60


@dataclass(frozen=True)
class Place:
    """An engine: how it is opened, how a table is made for it, its address if it has one, and how what it cannot do is
    refused. Slow ones are asked less: `worlds` and `questions` about each, one in `step` questions of a corpus, and
    `examples` of tables with odd rows, which then have more of them."""

    name: str
    opened: Callable[[], Any]
    made: Callable[[str, str, Kinds, Rows], Any]
    address: Callable[[], Any] | None = None
    refusals: tuple[str, ...] = ()
    worlds: Sequence[int] = ()
    questions: int = 30
    step: int = 1
    examples: int = 15

    @contextmanager
    def engine(self, schema: str, catalog: Catalog, rows: Data) -> Iterator[Engine]:
        """An engine that holds all tables of a catalog."""
        with closing(self.opened()) as engine:
            for table in catalog.tables:
                kinds = {column.name: column.type for column in table.columns}
                source = self.made(schema, table.name, kinds, rows[table.name])
                links = [one.link.column for one in (table,) if one.link is not None]
                links += [t.link.key for t in catalog.tables if t.link is not None and t.link.table == table.name]
                engine.add(table.name, source, unit=table.unit, links=links, private=table.private)
            engine.seal()
            yield engine

    @contextmanager
    def session(self, world: World, data: Data, schema: str) -> Iterator[Session]:
        """A session on the rows of a world."""
        made = {
            table: self.made(schema, table, {n: h.kind for n, h in world.held(table).items()}, data[table])
            for table in (*world.private, "towns")
        }
        labs = dc.Private(made["labs"], None if world.by_row else world.pid, max_rows=world.labs_max)
        private: dict[str, Any] = {"labs": dc.Private(made["labs"]) if world.by_row else labs}
        if world.linked:
            private["items"] = dc.Private(made["items"], link=("visit", "visits", "id"))
        facts = world.facts | ({} if self.address is None else {"table": made["visits"]})
        source = made["visits"] if self.address is None else self.address()
        with tempfile.TemporaryDirectory() as folder:
            books = Path(folder) / "books"
            with dc.connect(source, **facts, private=private, public={"towns": made["towns"]}, ledger=books) as session:
                yield session


def arrow(schema: str, name: str, kinds: Kinds, rows: Rows) -> pa.Table:
    return pa.table({column: pa.array([r[column] for r in rows], _arrow(kind)) for column, kind in kinds.items()})


def _arrow(kind: str) -> Any:
    return pa.decimal128(kind.precision, kind.scale) if isinstance(kind, Decimals) else ARROW[kind]


def on_server(schema: str, name: str, kinds: Kinds, rows: Rows) -> str:
    create(f"{schema}.{name}", {column: POSTGRES.get(kind, kind) for column, kind in kinds.items()}, rows)
    return f"{schema}.{name}"


def frame(schema: str, name: str, kinds: Kinds, rows: Rows) -> Any:
    return spark_tables.framed(arrow(schema, name, kinds, rows))


def url() -> str:
    return running().url()


DUCKDB = Place("duckdb", lambda: DuckDB(threads=1), arrow)
POSTGRESQL = Place("postgres", lambda: Postgres(url()), on_server, url, refusals=("% of reals",))
POSTGRESQL = replace(POSTGRESQL, worlds=range(12, 22) if SOAK else (14, 15, 18), examples=third(15))
SPARK = Place("spark", lambda: Spark(spark_tables.running()), frame, refusals=("a real as text",), worlds=(12,))
# A slow engine is asked as much as the others in `make soak`.
SPARK = SPARK if SOAK else replace(SPARK, questions=6, step=35, examples=1)
PLACES = (DUCKDB, POSTGRESQL, SPARK)


@dataclass(frozen=True)
class Corpus:
    """Questions about the tables of a catalog, with rows for them."""

    name: str
    catalog: Catalog
    rows: Data
    questions: tuple[str, ...]

    def planned(self) -> list[tuple[str, Any]]:
        """Those that can be answered, with everything decided."""
        return _planned(self)

    def __hash__(self) -> int:
        return hash(self.name)


@lru_cache(maxsize=4)
def _planned(corpus: Corpus) -> list[tuple[str, Any]]:
    found = []
    with DUCKDB.engine("", corpus.catalog, {table.name: [] for table in corpus.catalog.tables}) as engine:
        unit = dc.User(corpus.catalog.tables[0].unit or "")
        with closing(Session(engine, corpus.catalog, unit, BUDGET, None, "corpus", ["corpus"], None, None)) as session:
            for text in corpus.questions:
                try:
                    found.append((text, SQL(text, 1).bind(session._context).plan().decided))
                except DiscreetError:
                    continue
    return found


def statement_for(engine: Engine, asked: Any) -> str:
    """The statement of a planned question in the words of an engine."""
    return str(replace(asked, dialect=engine.dialect).statement)


def totals(engine: Engine, asked: Any) -> Counter[tuple[Any, ...]]:
    """What the statement of a planned question returns, in any order."""
    return Counter(engine.run(statement_for(engine, asked)))


def made_up(catalog: Catalog, seed: int) -> Data:
    """Rows for the tables of a catalog, one value in eight missing and one in eight odd."""
    rng = random.Random(seed)
    return {table.name: [_row(table, rng, place) for place in range(SIZE)] for table in catalog.tables}


def _row(table: Table, rng: random.Random, place: int) -> dict[str, Any]:
    return {column.name: _value(table, column, rng, place) for column in table.columns}


def _value(table: Table, column: Column, rng: random.Random, place: int) -> Any:
    if column.name in table.unique:
        return f"{WORDS[place % len(WORDS)]}{place}" if column.type == "text" else place
    if column.name.endswith(("_id", "patient")):
        return rng.choice((None, *range(12)))
    luck = rng.random()
    if luck < 0.125:
        return None
    if isinstance(column.type, Decimals):
        most = 10**column.type.precision - 1
        units = rng.choice((0, most, -most)) if luck < 0.25 else rng.randrange(-20, 12_000_000) % most
        return Decimal(f"{units}E-{column.type.scale}")
    if luck < 0.25 and table.private:
        return rng.choice(ODD[column.type])
    if column.values is not None:
        return rng.choice(column.values.values)
    if column.type == "text":
        return rng.choice(WORDS)
    high = 100 if column.bounds is None else int(column.bounds.upper)
    plain: dict[str, Any] = {"integer": rng.randrange(high + 1), "real": rng.randrange(8 * high + 1) / 8}
    tame = {"date": WORLDLY["day"], "timestamp": WORLDLY["seen"], "boolean": WORLDLY["urgent"]}
    return plain[column.type] if column.type in plain else tame[column.type].tame(_Dice(rng))


class _Dice:
    """The little that values of worlds want of dice."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def below(self, end: int) -> int:
        return self._rng.randrange(end)

    def chance(self, probability: float) -> bool:
        return self._rng.random() < probability


def _asked(number: int) -> tuple[str, ...]:
    asker = Asker(random.Random(7))
    return tuple(asker.question() for _ in range(number))


STAFF = Catalog(
    (
        Table(
            "staff",
            (
                Column("person_id", "integer"),
                Column("team", "text", values=Categories(("a", "b"))),
                Column("bonus", "integer", Bounds(0, 10_000), Categories((0, 500, 10_000))),
                Column("fee", "real", Bounds("-0.5", "99.9"), Categories((-0.5, 0.1, 99.9))),
            ),
            "person_id",
            max_rows=1,
        ),
    )
)
"""People whose sums have noise by declared values: each value is moved to the nearest."""
PAID = (
    "SELECT team, SUM(fee) AS f FROM staff GROUP BY team",
    "SELECT SUM(bonus) AS b FROM staff",
    "SELECT SUM(CASE WHEN team = 'a' THEN fee ELSE 0 END) AS f FROM staff WHERE bonus > 0",
)

SALES = Catalog(
    (
        Table(
            "sales",
            (
                Column("person_id", "integer"),
                Column("price", Decimals.of(15, 2), Bounds(0, 105_000)),
                Column("discount", Decimals.of(3, 2), Bounds(0, "0.1")),
                Column("quantity", "integer", Bounds(0, 50)),
                Column("rate", "real", Bounds(0, 1)),
                Column("total", Decimals.of(38, 6), Bounds(-1_000, 1_000)),
            ),
            "person_id",
        ),
    )
)
"""Decimals, with ends of their types among them."""
SOLD = (
    "SELECT SUM(price * discount) AS r FROM sales WHERE discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND quantity < 24",
    "SELECT COUNT(*) AS n FROM sales WHERE rate BETWEEN 0.06 - 0.01 AND 0.06 + 0.01",
    "SELECT SUM(price) AS p, AVG(price) AS a, STDDEV(price) AS s, MEDIAN(total) AS m, SUM(total) AS t FROM sales",
    "SELECT quantity, SUM(price * (1 - discount)) AS net FROM sales WHERE quantity IN (1, 2, 3) GROUP BY quantity",
    "SELECT AVG(CLAMP(paid, -10.25, 99999.5)) AS a FROM (SELECT person_id, SUM(price * 1.1) AS paid FROM sales"
    " GROUP BY person_id)",
    "SELECT SUM(CLAMP(s, 0, 10)) AS s FROM (SELECT person_id, SUM(total * 2) AS s FROM sales GROUP BY person_id)",
    "SELECT discount, COUNT(*) AS n FROM sales WHERE discount IN (0.05, 0.06, 0.07) GROUP BY discount",
    "SELECT SUM(quantity * 0.25) AS q, SUM(CLAMP(ROUND(total, 2) * 3, 0, 50)) AS r FROM sales WHERE total % 2 <> 0.5",
    "SELECT COUNT(*) AS n FROM sales WHERE total * total * total > price OR CAST(price AS VARCHAR) = '0.00'",
)

CORPORA = (
    Corpus("plans", tables.CATALOG, made_up(tables.CATALOG, 1), tuple(case.sql for case in cases("plans.txt"))),
    Corpus("analysts", test_analysts.CATALOG, made_up(test_analysts.CATALOG, 2), tuple(test_analysts.QUESTIONS)),
    Corpus("random", tables.CATALOG, made_up(tables.CATALOG, 3), _asked(whole_or_share(170, 60))),
    Corpus("staff", STAFF, made_up(STAFF, 4), PAID),
    Corpus("sales", SALES, made_up(SALES, 5), SOLD),
)
