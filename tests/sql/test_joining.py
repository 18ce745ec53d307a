"""Joins: what is allowed, what is refused, and that no unit's rows meet another's."""

import random
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import duckdb
import pytest

from discreet.core.domains import Bounds
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.sql.catalog import Catalog, Column, Link, Table
from discreet.sql.parsing.join_limits import DEFAULT_MATCHES
from discreet.sql.parsing.select import parse
from discreet.sql.plan import Join, Relation, Scan, Union
from discreet.sql.relations import columns_of
from discreet.sql.statement.naming import OWNER, renamed
from discreet.sql.statement.selection import Selection

CUSTOMERS = Table("customers", (Column("id", "integer"), Column("town", "text")), "id", max_rows=1)
ORDERS = Table(
    "orders",
    (Column("number", "integer"), Column("customer", "integer"), Column("day", "integer")),
    link=Link("customer", "customers", "id"),
    max_matches=3,
)
ITEMS = Table(
    "items",
    (Column("order_number", "integer"), Column("product", "integer"), Column("pieces", "integer", Bounds(0, 9))),
    link=Link("order_number", "orders", "number"),
    max_matches=2,
)
LETTERS = Table("letters", (Column("customer", "integer"), Column("order_number", "integer")), "customer", max_rows=5)
PRODUCTS = Table("products", (Column("id", "integer"), Column("kind", "text")), private=False, unique=("id",))
OFFERS = Table("offers", (Column("product", "integer"), Column("shop", "text")), private=False, max_matches=2)
SCANS = Table("scans", (Column("product", "integer"), Column("till", "integer")))
SHOP = Catalog((CUSTOMERS, ORDERS, ITEMS, LETTERS, PRODUCTS, OFFERS, SCANS))

Rows = dict[str, list[tuple[Any, ...]]]

ALLOWED = {
    "a link": "customers JOIN orders ON orders.customer = customers.id",
    "a link from the other side": "orders o JOIN customers c ON o.customer = c.id",
    "a chain": "customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_number = o.number",
    "a chain upwards": "items i JOIN orders o ON i.order_number = o.number JOIN customers c ON c.id = o.customer",
    "a chain with a join inside": "customers c JOIN (SELECT o.customer AS who, i.pieces FROM orders o JOIN items i"
    " ON i.order_number = o.number WHERE i.pieces > 1) AS x ON x.who = c.id",
    "an optional link": "customers c LEFT JOIN orders o ON o.customer = c.id LEFT JOIN items i"
    " ON i.order_number = o.number AND i.pieces > 2",
    "more columns equated": "customers c JOIN orders o ON o.customer = c.id AND o.day = LENGTH(c.town)",
    "linked rows with public ones first": "items i JOIN products p ON p.id = i.product JOIN orders o"
    " ON o.number = i.order_number JOIN customers c ON c.id = o.customer",
    "filtered linked rows": "customers c JOIN (SELECT customer AS k, day * 2 AS d FROM orders WHERE day > 1) AS o"
    " ON c.id = o.k",
    "a semi-join along a link": "customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id AND day > 2)",
    "IN along a link": "customers WHERE id NOT IN (1, 2) AND id IN (SELECT customer FROM orders)",
    "linked rows and rows with units": "customers c JOIN orders o ON o.customer = c.id JOIN letters l"
    " ON l.customer = c.id AND l.order_number = o.number",
    "linked rows twice": "customers c JOIN orders a ON a.customer = c.id JOIN orders b ON b.customer = c.id",
    "keys of each unit's own rows": "(SELECT id, COUNT(*) AS n FROM customers GROUP BY id) AS c JOIN orders o"
    " ON o.customer = c.id",
    "a limited public table": "customers c JOIN orders o ON o.customer = c.id JOIN offers f ON f.product = o.day",
}
REFUSED = {
    "linked rows alone": "SELECT COUNT(*) FROM items",
    "linked rows with each other": "SELECT COUNT(*) FROM items a JOIN items b ON a.order_number = b.order_number",
    "linked rows with linked ones": "SELECT COUNT(*) FROM orders JOIN items ON order_number = number",
    "another column": "SELECT COUNT(*) FROM customers JOIN orders ON orders.number = customers.id",
    "a computed key": "SELECT COUNT(*) FROM customers c JOIN orders o ON o.customer = c.id + 0",
    "a computed link": "SELECT COUNT(*) FROM customers c JOIN orders o ON o.customer + 1 = c.id",
    "a key behind an expression": "SELECT COUNT(*) FROM (SELECT id + 1 AS id FROM customers) AS c JOIN orders o"
    " ON o.customer = c.id",
    "the same value from another table": "SELECT COUNT(*) FROM letters l JOIN orders o ON o.customer = l.customer",
    "a step left out": "SELECT COUNT(*) FROM letters l JOIN items i ON i.order_number = l.order_number",
    "a left join from the linked side": "SELECT COUNT(*) FROM orders o LEFT JOIN customers c ON o.customer = c.id",
    "linked rows filtered by people": "SELECT COUNT(*) FROM customers c JOIN (SELECT * FROM orders WHERE customer IN"
    " (SELECT id FROM customers)) AS o ON o.customer = c.id",
    "people filtered by other columns": "SELECT COUNT(*) FROM customers WHERE id IN (SELECT number FROM orders)",
    "linked rows grouped": "SELECT COUNT(*) FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS o"
    " JOIN customers c ON c.id = o.customer",
    "linked rows made distinct": "SELECT COUNT(*) FROM (SELECT DISTINCT customer FROM orders)",
    "linked rows united": "SELECT COUNT(*) FROM customers c JOIN (SELECT customer FROM orders UNION ALL"
    " SELECT customer FROM orders) AS o ON o.customer = c.id",
    "a union that mixes keys": "SELECT COUNT(*) FROM (SELECT id FROM customers UNION ALL SELECT order_number"
    " FROM letters) AS c JOIN orders o ON o.customer = c.id",
    "a row that is a unit, repeated": "SELECT COUNT(*) FROM scans JOIN offers ON scans.product = offers.product",
    "a row that is a unit, by a column that is not unique": "SELECT COUNT(*) FROM scans JOIN products"
    " ON CAST(scans.till AS VARCHAR) = products.kind",
    "a unique column that was computed": "SELECT COUNT(*) FROM scans JOIN products ON scans.product = products.id % 3",
    "a unique column no more": "SELECT COUNT(*) FROM scans s JOIN (SELECT p.id FROM products p JOIN offers o"
    " ON o.product = p.id) AS x ON x.id = s.product",
    "a unique column in two tables": "SELECT COUNT(*) FROM scans s JOIN (SELECT id FROM products UNION ALL"
    " SELECT id FROM products) AS x ON x.id = s.product",
}


def rows(rng: random.Random) -> Rows:
    """A shop in which order numbers and customers' keys are sometimes shared, missing or unknown."""

    def some(most: int) -> int | None:
        return None if rng.random() < 0.05 else rng.randrange(most)

    return {
        "customers": [(who, rng.choice(["a", "bb", "ccc"])) for who in range(6) for _ in range(rng.choice([1, 1, 2]))],
        "orders": [(rng.randrange(14), some(8), rng.randrange(4)) for _ in range(20)],
        "items": [(some(16), rng.randrange(5), rng.randrange(10)) for _ in range(60)],
        "letters": [(rng.randrange(7), some(15)) for _ in range(12)],
        "products": [(number, rng.choice(["x", "y"])) for number in range(4)],
        "offers": [(rng.randrange(5), rng.choice("pqr")) for _ in range(15)],
        "scans": [(some(6), rng.randrange(3)) for _ in range(15)],
    }


def without(data: Rows, who: int) -> Rows:
    """The shop without one customer: rows that now belong to nobody are gone, those that others share stay."""
    left = dict(data)
    left["customers"] = [row for row in data["customers"] if row[0] != who]
    left["letters"] = [row for row in data["letters"] if row[0] != who]
    left["orders"] = [row for row in data["orders"] if row[1] != who]
    gone = {row[0] for row in data["orders"]} - {row[0] for row in left["orders"]}
    left["items"] = [row for row in data["items"] if row[0] not in gone]
    return left


KINDS_OF = {"integer": "BIGINT", "text": "VARCHAR"}


@cache
def engine() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def filled(schema: str, data: Rows, rng: random.Random) -> str:
    """The name of a schema with these rows, the tables filled in some order."""
    engine().execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE; CREATE SCHEMA "{schema}"')
    for table in SHOP.tables:
        columns = ", ".join(f"{column.name} {KINDS_OF[column.type]}" for column in table.columns)
        engine().execute(f'CREATE TABLE "{schema}".{table.name} ({columns})')
        rows = rng.sample(data[table.name], len(data[table.name]))
        if rows:
            place = f"({', '.join('?' for _ in table.columns)})"
            values = [value for row in rows for value in row]
            engine().execute(f'INSERT INTO "{schema}".{table.name} VALUES {", ".join([place] * len(rows))}', values)
    return schema


@cache
def shop(seed: int) -> tuple[str, tuple[str, ...]]:
    """A shop, and the same without each of its customers: made once for all relations, which only read."""
    rng = random.Random(seed)
    data = rows(rng)
    whole = filled(f"{seed}", data, rng)
    return whole, tuple(filled(f"{seed} without {who}", without(data, who), rng) for who in range(6))


def held_in(schema: str, relation: Relation) -> dict[Any, Counter[Any]]:
    """What each unit's rows are."""
    engine().execute(f'USE "{schema}"')
    found = engine().execute(Selection().select(renamed(relation)[0]))
    names = [name for name, *_ in found.description]
    held: dict[Any, Counter[Any]] = {}
    for row in found.fetchall():
        shown = tuple(value for name, value in zip(names, row, strict=True) if not name.startswith("discreet"))
        held.setdefault(row[names.index(OWNER)] if OWNER in names else None, Counter())[shown] += 1
    return held


def owned_rows(relation: Relation, data: Rows, rng: random.Random) -> dict[Any, Counter[Any]]:
    """The same for rows of one's own."""
    engine().execute("USE main")
    return held_in(filled("own", data, rng), relation)


def meetings(relation: Relation) -> tuple[int, int]:
    """How often units have rows, and how often taking one customer away changes more than that customer's rows."""
    seen = changed = 0
    for seed in range(6):
        whole, others = shop(seed)
        before = held_in(whole, relation)
        seen += len(before)
        for who, other in enumerate(others):
            changed += held_in(other, relation) != {owner: held for owner, held in before.items() if owner != who}
    return seen, changed


@pytest.mark.parametrize("source", ALLOWED.values(), ids=ALLOWED.keys())
def test_no_unit_sees_another_leave(source: str) -> None:
    seen, changed = meetings(parse(f"SELECT COUNT(*) FROM {source}", SHOP).aggregate.input)
    assert seen > 3
    assert changed == 0


def test_the_check_sees_units_that_meet() -> None:
    met = Join(Scan(CUSTOMERS), Scan(ORDERS), (("id", "number"),))
    assert meetings(met)[1] > 10


@pytest.mark.parametrize("sql", REFUSED.values(), ids=REFUSED.keys())
def test_joins_in_which_units_could_meet_or_multiply_are_refused(sql: str) -> None:
    with pytest.raises(Unsupported):
        parse(sql, SHOP)


def test_the_refusal_of_linked_rows_says_what_to_write() -> None:
    with pytest.raises(Unsupported) as caught:
        parse("SELECT COUNT(*) FROM items", SHOP)
    assert caught.value.reason == "rows of items have owners only through orders"
    assert caught.value.remedy == "write FROM orders JOIN items ON items.order_number = orders.number"


def test_rows_that_are_units_meet_one_public_row_at_most_whatever_was_declared() -> None:
    """`products.id` is said to be unique; if it is not, a row is still not repeated."""
    sql = "SELECT kind, COUNT(*) FROM scans LEFT JOIN products ON scans.product = products.id GROUP BY kind"
    data = rows(random.Random(2))
    data["products"] *= 3
    (held,) = owned_rows(parse(sql, SHOP).aggregate.input, data, random.Random(2)).values()
    assert held.total() == len(data["scans"])


def test_a_limit_of_one_makes_a_public_table_joinable_to_rows() -> None:
    offers = Table("offers", OFFERS.columns, private=False, max_matches=1)
    query = parse("SELECT COUNT(*) FROM scans JOIN offers ON scans.product = offers.product", Catalog((SCANS, offers)))
    assert isinstance(query.aggregate.input, Join)
    assert query.aggregate.input.most == 1


@pytest.mark.parametrize(
    ("source", "most"),
    [
        ("customers", 1),
        ("customers c JOIN orders o ON o.customer = c.id", 3),
        ("customers c JOIN orders o ON o.customer = c.id JOIN items i ON i.order_number = o.number", 6),
        ("customers c JOIN letters l ON l.customer = c.id", 5),
        ("letters l JOIN products p ON p.id = l.order_number", 5),
        ("letters l JOIN offers f ON f.product = l.order_number", 10),
        ("letters l LEFT JOIN (SELECT * FROM offers WHERE shop <> 'p') f ON f.product = l.order_number", 10),
        ("letters l JOIN products p ON p.kind = CAST(l.order_number AS VARCHAR)", None),
        ("letters a JOIN letters b USING (customer)", 25),
    ],
)
def test_how_many_rows_a_unit_can_have_after_a_join(source: str, most: int | None) -> None:
    query = parse(f"SELECT COUNT(*) FROM {source}", SHOP)
    assert query.aggregate.max_rows == most


def test_limits_hold_in_the_engine() -> None:
    relation = parse(f"SELECT COUNT(*) FROM {ALLOWED['a chain']}", SHOP).aggregate.input
    most = 0
    for seed in range(20):
        data = rows(random.Random(seed))
        data["customers"] = sorted({row[0]: row for row in data["customers"]}.values())
        data["orders"] = [(number, 1, 0) for number in range(5)]
        found = owned_rows(relation, data, random.Random(seed))
        most = max([most, *(held.total() for held in found.values())])
    assert most == 6


def joins(relation: Relation) -> list[Join]:
    """All joins below, the last one first."""
    match relation:
        case Join(left, right):
            return [relation, *joins(left), *joins(right)]
        case Scan():
            return []
        case Union(inputs):
            return [join for part in inputs for join in joins(part)]
        case _:
            return joins(relation.input)


BY_KIND = "letters l JOIN products p ON p.kind = CAST(l.order_number AS VARCHAR)"


def test_without_a_declared_limit_a_row_meets_the_first_thousand() -> None:
    """One row of one unit would otherwise become as many as the public table has."""
    relation = parse(f"SELECT COUNT(*) FROM {BY_KIND}", SHOP).aggregate.input
    assert [join.most for join in joins(relation)] == [DEFAULT_MATCHES]
    data: Rows = {name: [] for name in rows(random.Random(0))}
    data |= {"letters": [(1, 5), (1, 6), (2, 6)], "products": [(n, "5") for n in range(3_000)] + [(1, "6")] * 999}
    found = owned_rows(relation, data, random.Random(0))
    assert {who: held.total() for who, held in found.items()} == {1: DEFAULT_MATCHES + 999, 2: 999}
    place = columns_of(relation).index("id")
    kept = [row[place] for row in found[1] if row[1] == 5]
    assert sorted(kept) == list(range(DEFAULT_MATCHES))


@pytest.mark.parametrize(
    "source", ["letters l JOIN products p ON p.id = l.order_number", ALLOWED["a semi-join along a link"]]
)
def test_where_no_row_is_repeated_nothing_is_looked_for(source: str) -> None:
    relation = parse(f"SELECT COUNT(*) FROM {source}", SHOP).aggregate.input
    assert [join.most for join in joins(relation)] == [None]
    assert "ROW_NUMBER" not in Selection().select(renamed(relation)[0])


@pytest.mark.parametrize("seed", range(5))
def test_the_rows_that_are_kept_are_the_first(seed: int) -> None:
    rng = random.Random(seed)
    data = rows(rng)
    data["offers"] = [(rng.choice([0, 1, 2, 3, None]), rng.choice(["p", "q", "r", None])) for _ in range(30)]
    relation = parse("SELECT COUNT(*) FROM letters l JOIN offers f ON f.product = l.order_number", SHOP).aggregate.input
    by_product: dict[Any, list[tuple[Any, ...]]] = {}
    for offer in sorted(data["offers"], key=lambda offer: (offer[1] is None, offer[1] or "")):
        by_product.setdefault(offer[0], []).append(offer)
    wanted: dict[Any, Counter[Any]] = {}
    for letter in data["letters"]:
        for offer in by_product.get(letter[1], [])[:2] if letter[1] is not None else []:
            wanted.setdefault(letter[0], Counter())[(*letter, *offer)] += 1
    assert owned_rows(relation, data, rng) == wanted


SELF = " ".join(f"JOIN letters l{n} ON l{n}.customer = l.customer" for n in range(16))
PRODUCTS_16 = " ".join(f"JOIN products p{n} ON p{n}.id = l.order_number" for n in range(16))
UNLIMITED = Table("calls", (Column("customer", "integer"), Column("product", "integer")), "customer")
CALLS = Catalog((*SHOP.tables, UNLIMITED))
PAIRS = "calls a JOIN calls b ON b.customer = a.customer"
PER_PERSON = "(SELECT customer, COUNT(*) AS n FROM calls GROUP BY customer) AS c ON c.customer = a.customer"
KINDS = "JOIN products p{} ON p{}.kind = CAST(a.product AS VARCHAR)"
WITHIN = {
    "pairs of many rows": PAIRS,
    "pairs and one row of each": f"{PAIRS} JOIN {PER_PERSON}",
    "pairs and few rows of each": f"{PAIRS} JOIN letters c ON c.customer = a.customer",
    "pairs, tested for others": f"{PAIRS} WHERE EXISTS (SELECT 1 FROM calls c WHERE c.customer = a.customer)",
    "one of two sides with few rows": "calls a JOIN letters b ON b.customer = a.customer JOIN letters c"
    " ON c.customer = a.customer",
    "five rows, ten times": "letters l " + SELF[: SELF.index("JOIN letters l9")],
    "sixteen joins that repeat nothing": "letters l " + PRODUCTS_16,
    "two tables without a limit": f"calls a {KINDS.format(1, 1)} {KINDS.format(2, 2)}",
    "parts beside each other": f"({' UNION ALL '.join([f'SELECT customer FROM calls a {KINDS.format(1, 1)}'] * 3)})",
}
BEYOND = {
    "pairs of pairs": (f"{PAIRS} JOIN calls c ON c.customer = a.customer", "max_rows"),
    "pairs inside": (f"(SELECT a.customer FROM {PAIRS}) AS x JOIN calls c ON c.customer = x.customer", "max_rows"),
    "pairs of features of pairs": (
        f"(SELECT a.customer FROM {PAIRS}) AS x JOIN (SELECT a.customer, b.product, COUNT(*) AS n FROM {PAIRS}"
        " GROUP BY 1, 2) AS y ON x.customer = y.customer",
        "max_rows",
    ),
    "five rows, eleven times": ("letters l " + SELF[: SELF.index("JOIN letters l10")], "max_rows"),
    "seventeen joins": (f"letters l {PRODUCTS_16} JOIN products q ON q.id = l.order_number", "several questions"),
    "three tables without a limit": (
        f"calls a {KINDS.format(1, 1)} {KINDS.format(2, 2)} {KINDS.format(3, 3)}",
        "max_matches",
    ),
    "two without and one with": (
        f"calls a {KINDS.format(1, 1)} {KINDS.format(2, 2)} JOIN offers f ON f.product = a.product",
        "max_matches",
    ),
    "public tables with each other": (
        "calls a JOIN (SELECT x.kind FROM products x JOIN products y USING (kind) JOIN products z ON z.kind = x.kind)"
        " AS p ON p.kind = CAST(a.product AS VARCHAR)",
        "max_matches",
    ),
}


@pytest.mark.parametrize("source", WITHIN.values(), ids=WITHIN.keys())
def test_joins_that_repeat_rows_within_measure(source: str) -> None:
    parse(f"SELECT COUNT(*) FROM {source}", CALLS)


@pytest.mark.parametrize(("source", "remedy"), BEYOND.values(), ids=BEYOND.keys())
def test_joins_that_one_unit_could_keep_busy_for_ever_are_refused(source: str, remedy: str) -> None:
    with pytest.raises(Unsupported) as caught:
        parse(f"SELECT COUNT(*) FROM {source}", CALLS)
    assert remedy in caught.value.remedy


def chained(*links: tuple[str, str]) -> Iterable[Table]:
    columns = (Column("k", "integer"),)
    return [Table(name, columns, link=Link("k", parent, "k")) for name, parent in links]


def test_links_that_lead_to_nobody_are_no_declaration() -> None:
    root = Table("root", (Column("k", "integer"),), "k")
    Catalog((root, *chained(("a", "root"), ("b", "a"), ("c", "b"))))
    with pytest.raises(InvalidArgument, match="circle"):
        Catalog((root, *chained(("a", "b"), ("b", "a"))))
    with pytest.raises(InvalidArgument, match="unit column or a link"):
        Catalog((SCANS, Table("a", (Column("k", "integer"),), link=Link("k", "scans", "till"))))


def test_limits_are_of_tables_whose_rows_follow_others() -> None:
    with pytest.raises(InvalidArgument, match="max_matches"):
        Table("t", (Column("k", "integer"),), "k", max_matches=2)
    with pytest.raises(InvalidArgument, match="max_matches"):
        Table("t", (Column("k", "integer"),), private=False, max_matches=0)
