"""Names that an analyst or a steward could choose to be taken for ours, and questions with room for them."""

import re
from collections.abc import Sequence

from hypothesis import strategies as st

from discreet.core.domains import Bounds, Categories
from discreet.sql.catalog import Catalog, Column, Table

ODD = (
    *("discreet place", "discreet unit", "discreet raw v1", "discreet a", "discreet b", "discreet v", "discreet rows"),
    *("Discreet Place", "DISCREET UNIT", "dıscreet unıt", "diſcreet place", "dİscreet unit", "discreet  place"),
    *("select", "from", "order", "user", "end", "null", "true", "count", "sum", "left", "rowid", "ctid", "_metadata"),
    *("a b", "a.b", 'a"b', "a`b", "a'b", "a\\b", "a;--", "/*", "é", "É", "k", "ſ", "ı", "İ", "١", "v١", "𝐯1", "v₁"),
    *("released", "one", "once", "i", "l", "r", "s", "h", "w", "v", "V1", "vv1", "v", "v1", "v2", "v3", "v10", "VV2"),
    *(
        "unit",
        "units",
        "bounded_rows",
        "group_key_0",
        "row_parts_1",
        "subquery",
        "left_rows",
        "joined_rows",
        "per_unit",
    ),
    *("x" * 64, "x" * 63 + "y", "x" * 70, "é" * 40, "é" * 41),
)
"""Names of ours as they are or were, in any case and in letters that some engines take for others; words of SQL;
quotes, signs and digits of several kinds; names that a server cuts off."""

VISITS = ("who", "city", "cost", "dose", "day")
CODES = ("code", "weight")
QUESTIONS = (
    "SELECT {city} AS {0}, COUNT(*) AS {1}, SUM({cost}) AS {2} FROM {visits} AS {3} GROUP BY 1",
    "SELECT {0}, COUNT(*) AS {1}, AVG({2}) AS {3} FROM (SELECT {who}, {city} AS {0}, {cost} * 2 AS {2} FROM {visits})"
    " AS {4} WHERE {2} > 1 GROUP BY {0} HAVING COUNT(*) > 2 ORDER BY {3} DESC",
    "WITH {0} AS (SELECT {who}, {city} AS {1}, {cost} AS {2} FROM {visits}) SELECT COUNT(*) AS {3}, SUM({2}) AS {6}"
    " FROM {0} AS {4} JOIN (SELECT {code} AS {1}, {weight} AS {5} FROM {codes}) AS {6} ON {6}.{1} = {4}.{1}"
    " WHERE {5} > 2",
    "SELECT COUNT(*) AS {0} FROM (SELECT {who}, {city} AS {1} FROM {visits}) AS {2}"
    " WHERE {1} IN (SELECT {code} AS {0} FROM {codes} WHERE {weight} < 5)",
    "SELECT AVG(CLAMP({0}, 0, 9)) AS {1}, MEDIAN(CLAMP({2}, 0, 9)) AS {3} FROM (SELECT {who}, AVG({cost}) AS {0},"
    " COUNT(*) AS {2}, STDDEV({cost}) AS {4} FROM {visits} GROUP BY {who} HAVING COUNT(*) > 1) WHERE {4} > 0",
    "SELECT SUM(CLAMP({0} * ({1} * 3.5 + {0} / {1}) - {1} / ({0} * {0} * {1}), 0, 1)) AS {2}"
    " FROM (SELECT {who}, {cost} * 1.5 AS {0}, {dose} + 0.5 AS {1} FROM {visits}) AS {3}",
    "SELECT COUNT(*) AS {0} FROM (SELECT {who} AS {1}, {city} AS {2} FROM {visits} UNION ALL SELECT {who}, {city}"
    " FROM {visits}) AS {3} JOIN (SELECT {who} AS {4}, {dose} AS {1} FROM {visits}) AS {5} ON {5}.{4} = {3}.{1}"
    " WHERE {5}.{1} > 1",
    "SELECT {city} AS {0}, COUNT(DISTINCT {who}) AS {1} FROM {visits} AS {2} LEFT JOIN {codes} AS {3}"
    " ON {2}.{city} = {3}.{code} WHERE EXTRACT(YEAR FROM {day}) > 2000 GROUP BY {city}",
)
"""Questions about visits and codes: {0} to {6} are the analyst's names, {who} and the like the steward's."""
ROOM = 7


def sql(name: str) -> str:
    """A name as it is written in a question."""
    return '"' + name.replace('"', '""') + '"'


def asked(
    question: str, analysts: Sequence[str], stewards: Sequence[str] = ("visits", *VISITS, "codes", *CODES)
) -> str:
    """The question with these names."""
    words = dict(zip(("visits", *VISITS, "codes", *CODES), map(sql, stewards), strict=True))
    return question.format(*map(sql, analysts), **words)


def catalog(stewards: Sequence[str]) -> Catalog:
    """The tables by these names: visits, its columns, codes, its columns."""
    visits, who, city, cost, dose, day, codes, code, weight = stewards
    columns = (
        Column(who, "integer"),
        Column(city, "text", values=Categories(("a", "b", "c"))),
        Column(cost, "real", Bounds(0, 50)),
        Column(dose, "real", Bounds(0, 9)),
        Column(day, "date"),
    )
    coded = (Column(code, "text"), Column(weight, "integer"))
    return Catalog((Table(visits, columns, who), Table(codes, coded, private=False, max_matches=2)))


def identifiers(statements: Sequence[str]) -> list[str]:
    """Every name in the text of statements, and some words of SQL with them."""
    return sorted({name for text in statements for name in re.findall(r"[A-Za-z_][A-Za-z_0-9]*", text)})


def distinct(names: Sequence[str], count: int) -> st.SearchStrategy[list[str]]:
    """So many of the names in some case, different from each other."""
    cased = st.sampled_from(names).flatmap(lambda name: st.sampled_from((name, name.upper(), name.lower())))
    return st.lists(cased, min_size=count, max_size=count, unique_by=str.lower)
