"""How a session begins: sources become tables, and what the steward declares about them becomes a catalog.

>>> import numpy as np
>>> visits = {"patient": np.array([1, 1, 2]), "cost": np.array([10.0, 20.0, 5.0])}
>>> labs = {"pid": np.array([1, 2]), "result": ["4.1", "low"]}
>>> with connect(
...     visits,
...     unit=User("patient"),
...     budget=ApproxDP(1, "1e-6"),
...     table="visits",
...     bounds={"cost": (0, 100), "labs.result": (0, 10)},
...     private={"labs": Private(labs, unit="pid")},
... ) as session:
...     session.price("SELECT SUM(result) FROM visits JOIN labs ON patient = pid", epsilon="0.5").loss.epsilon <= 1
True
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import InvalidArgument, known_place
from discreet.core.exact import Exactable, natural
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.core.units import Row, Unit, User
from discreet.engines.duckdb.csv_records import Csv, csv_by_table
from discreet.engines.duckdb.types import type_of
from discreet.engines.engine import Engine
from discreet.engines.overlaps import check_apart, check_disjoint
from discreet.engines.registry import engine_for, schemes
from discreet.engines.tables import FLEETING
from discreet.ledger import Ledger
from discreet.session.books import books_of
from discreet.session.session import Session
from discreet.sql.catalog import Catalog, Column, Link, Table, Type, is_number
from discreet.sql.functions.ranges import Interval
from discreet.sql.held_values import held

__all__ = ["Private", "connect"]

Limits = Bounds | tuple[Exactable, Exactable]
EXAMPLES = ('{"age": (0, 120)}', '{"city": ["A", "B"]}', '{"age": "integer"}')
"""How facts about columns are written."""
ALIASES: dict[str, Type] = {
    "int": "integer",
    "float": "real",
    "bool": "boolean",
    "str": "text",
    "datetime": "timestamp",
}
"""Types by the names that Python has for them."""


@dataclass(frozen=True)
class Private:
    """One more table about the same people.

    `unit` is its unit column, by default called as in the first table. A table without one can be linked:
    `link=("order_id", "orders", "id")` says that a row belongs to whoever owns a row of `orders` whose `id` is its
    `order_id`. `disjoint` says, under `Row()`, that none of its rows is a row of another private table too; otherwise a
    question that unites tables costs as much as a row that is in all of them.
    """

    source: object
    unit: str | None = None
    link: tuple[str, str, str] | None = None
    bounds: Mapping[str, Limits] = field(default_factory=dict)
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    max_rows: int | None = None
    disjoint: bool = False

    def __post_init__(self) -> None:
        _check_mappings(self.bounds, self.values, self.types)
        if self.link is not None and (not isinstance(self.link, tuple) or len(self.link) != 3):
            remedy = 'write link=("order_id", "orders", "id")'
            raise InvalidArgument("link", self.link, "its column, the table with owners and the key there", remedy)
        if self.link is not None and self.unit is not None:
            raise InvalidArgument("link", self.link, "of a table without a unit column", "leave out one of the two")


def connect(
    source: object,
    *,
    unit: Unit | str,
    budget: PureDP | ApproxDP | ZCDP,
    table: str | None = None,
    dataset: str | None = None,
    bounds: Mapping[str, Limits] | None = None,
    values: Mapping[str, Sequence[Any]] | None = None,
    types: Mapping[str, str] | None = None,
    csv: Csv | Mapping[str, Csv] | None = None,
    private: Mapping[str, object] | None = None,
    public: Mapping[str, object] | None = None,
    max_rows: int | None = None,
    max_matches: Mapping[str, int] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    study: str | None = None,
    analyst: str | None = None,
    new: bool = False,
    key: str | os.PathLike[str] | None = None,
) -> Session:
    """A session on a file, a folder, a DuckDB database, a frame, an Arrow table, a dict of arrays, or a table of a
    PostgreSQL server: then `source` is its address, and `table`, `private` and `public` have names of tables there. So
    it is with a session of Spark or its address, and a connection of ibis; a frame of Spark is read on Spark too.

    `unit` is `User(column)`, for which the name of the column is enough, or `Row()`.
    `bounds`, `values` and `types` declare what columns hold, those of other tables as "table.column"; `private` has
    further tables about the same people, `public` tables that protect nobody; `csv` says how CSV files are written, the
    first table's or by table, where their header line does not; the first session parses them, and later ones read the
    records that it kept beside the file; `max_matches` names, for a linked or
    public table, how many of its rows a join lets one row meet. The books are kept in `ledger`, by
    default beside a file, and for frames by the name of the `dataset`, or without one in a temporary file that ends
    with the session; for a server, and on Spark, it must be named.
    It is a file, or the address of a PostgreSQL server that keeps the books of many; `key` is then the file of the key
    that signs certificates, by default one for this machine. `dataset` names the data in the books, wherever it is.
    `study` and `analyst` are whom questions are charged to, within the data set; where the steward has given some of
    these a budget of their own, a name that the books do not know needs `new`.
    """
    if not isinstance(budget, PureDP | ApproxDP | ZCDP) or (isinstance(budget, ApproxDP) and not 0 < budget.delta < 1):
        bound = "PureDP(ε), ApproxDP(ε, δ) with 0 < δ < 1, or ZCDP(ρ)"
        raise InvalidArgument("budget", budget, bound, "state it as one of these")
    unit = User(unit) if isinstance(unit, str) else unit
    if not isinstance(unit, User | Row):
        raise InvalidArgument("unit", unit, "User(column) or Row()", "tables have users or rows")
    if isinstance(source, str) and not os.path.exists(source):
        source = known_place("source", source, *schemes())
    if isinstance(ledger, str):
        ledger = known_place("ledger", ledger, "postgresql", "postgres", "words")
    kind = engine_for(source)
    place, name = kind.first_table(source, table)
    if kind.on_server and ledger is None:
        remedy = 'write ledger="visits.ledger", the path of a file for the books, or the address of a server for them'
        raise InvalidArgument("ledger", ledger, "named where the data is on a server", remedy)
    column = unit.column if isinstance(unit, User) else None
    others = {other: one if isinstance(one, Private) else Private(one) for other, one in (private or {}).items()}
    open_to_all = public or {}
    names = [called.lower() for called in (name, *others, *open_to_all)]
    if len(set(names)) != len(names):
        raise InvalidArgument("tables", names, "distinct whatever the case", "rename one of them")
    _check_together(kind, {**{called: one.source for called, one in others.items()}, **open_to_all})
    _check_mappings(bounds or {}, values or {}, types or {})
    spread = [_spread(facts or {}, name, (*others, *open_to_all)) for facts in (bounds, values, types)]
    written = csv_by_table(csv, name, names)
    engine = kind.opened(source)
    if engine.nameless and dataset is None:
        remedy = 'write dataset="visits", the same whatever the server is called'
        raise InvalidArgument("dataset", dataset, "named, for the server does not say which it is", remedy)
    try:
        tables = []
        for called, given in {name: Private(place, column, max_rows=max_rows), **others}.items():
            facts = _Facts(*({**own, **said[called]} for own, said in zip(_own(given), spread, strict=True)))
            links = _links(called, given, others)
            tables.append(_private(engine, called, given, column, facts, links, written.get(called.lower())))
        for called, data in open_to_all.items():
            facts = _Facts(*(said[called] for said in spread))
            tables.append(_public(engine, called, data, facts, written.get(called.lower())))
        catalog = _limited(Catalog(tuple(tables)), max_matches or {})
        engine.seal()
        owned = (name, *others)
        check_apart(engine, owned, open_to_all)
        disjoint = [table.name for table in tables if table.disjoint]
        check_disjoint(engine, {name: place, **{called: one.source for called, one in others.items()}}, disjoint)
        _check_seen(engine, owned, dataset)
        on_disk = None if kind.on_server or not isinstance(source, str | os.PathLike) else Path(source)
        books = books_of(on_disk, dataset, ledger, [path for called in owned for path in engine.paths(called)])
        claims = _claims(engine, owned, tuple(open_to_all), _known(books))
        # A frame has only its table's name: as a further source it would claim that name for this data set alone.
        lasting = [text for claim in claims for text in claim if not text.startswith(FLEETING)]
        lead = claims[0][0] if dataset is None else f"dataset:{dataset}"
        sources = tuple(dict.fromkeys([lead, *lasting]))
        # A data set with a name of its own is the same wherever it is kept.
        own = engine.shared_sources(name) if dataset is None else ()
        called = dataset or name
        session = Session(engine, catalog, unit, budget, books, called, sources, study, analyst, key, new, own)
        known = session.sources
        _check_claims(session, _claims(engine, owned, tuple(open_to_all), known), known)
        return session
    except BaseException:
        engine.close()
        raise


@dataclass(frozen=True)
class _Facts:
    """What is declared of one table's columns."""

    bounds: Mapping[str, Limits]
    values: Mapping[str, Sequence[Any]]
    given: Mapping[str, str]
    """Types as they are given."""

    def __post_init__(self) -> None:
        for name, ends in self.bounds.items():
            if not isinstance(ends, Bounds) and (not isinstance(ends, tuple | list | np.ndarray) or len(ends) != 2):
                remedy = f'write bounds={{"{name}": (low, high)}}'
                raise InvalidArgument("bounds", {name: ends}, "two ends for each column", remedy)
        for name, listed in self.values.items():
            if isinstance(listed, str) or not isinstance(listed, Iterable):
                remedy = f'write values={{"{name}": [{listed!r}]}}'
                raise InvalidArgument("values", {name: listed}, "a list of values for each column", remedy)

    @property
    def types(self) -> dict[str, Type]:
        """Types by our names; what is none of them is refused where columns are read."""
        return {name: ALIASES.get(str(kind), cast("Type", kind)) for name, kind in self.given.items()}

    @property
    def hints(self) -> dict[str, Type]:
        """Types for columns that have none of their own."""
        listed = {name: kind for name, values in self.values.items() if (kind := type_of(_plain(values))) is not None}
        return {**dict.fromkeys(self.bounds, "real"), **listed}

    def declared(
        self, name: str, columns: Iterable[Column], omitted: tuple[tuple[str, str], ...]
    ) -> tuple[Column, ...]:
        """The columns of a table with their bounds and values; every value is one that its column can hold."""
        table = Table(name, tuple(columns), omitted=omitted)
        facts = {column.name: column for column in table.columns}
        for name, ends in self.bounds.items():
            column = facts[table.column(name).name]
            facts[column.name] = replace(column, bounds=ends if isinstance(ends, Bounds) else Bounds(*ends))
        for name, listed in self.values.items():
            column = facts[table.column(name).name]
            plain = _plain(listed)
            if not plain:
                raise InvalidArgument("values", {name: listed}, "one value or more", "list all, or leave it out")
            kinds = {type_of(plain), column.type}
            if len(kinds) > 1 and not all(kind is not None and is_number(kind) for kind in kinds):
                remedy = "write them in the type of the column, or declare another in `types`"
                raise InvalidArgument("values", name, f"{column.type}, as the column is", remedy)
            values = Categories(tuple(_held(column, value) for value in plain))
            facts[column.name] = replace(column, bounds=_spanned(column, values), values=values, found=False)
        return tuple(facts.values())


def _held(column: Column, value: Any) -> Any:
    """A listed value as the column holds it; one that it cannot hold would make statements fail, by what rows hold."""
    try:
        return held(value, column.type)
    except ValueError:
        remedy = "leave it out, or declare another type in `types`"
    bound = f"of values that the column can hold, which is {column.type}"
    raise InvalidArgument("values", {column.name: value}, bound, remedy)


def _spanned(column: Column, values: Categories) -> Bounds | None:
    """The bounds of a column: those declared, or those of its values if they are numbers."""
    numbers = values.numbers if is_number(column.type) else None
    if column.bounds is not None or not numbers:
        return column.bounds
    return Interval(numbers[0], numbers[-1]).bounds()


def _check_together(first: type[Engine], others: Mapping[str, object]) -> None:
    """That no table is on a server while the first one is not there; no message repeats an address."""
    for called, other in others.items():
        kind = engine_for(other)
        if kind.on_server and kind is not first:
            remedy = "give the server, its address or session, as the source, and names of tables there"
            raise InvalidArgument(called, f"on {kind.title}", "where the first table is", remedy)


def _private(
    engine: Engine,
    name: str,
    given: Private,
    column: str | None,
    facts: _Facts,
    links: Iterable[str],
    csv: Csv | None,
) -> Table:
    owner = None if given.link is not None else given.unit or column
    if column is None and (given.unit is not None or given.link is not None):
        raise InvalidArgument("private", name, "without unit and link under Row()", "use User(column)")
    if column is not None and given.disjoint:
        remedy = "leave it out: the unit column bounds what one person adds"
        raise InvalidArgument("disjoint", name, "declared under Row() only", remedy)
    engine.add(name, given.source, types=facts.types, hints=facts.hints, unit=owner, links=links, csv=csv)
    limit = None if given.max_rows is None else natural("max_rows", given.max_rows)
    link = None if given.link is None else Link(*given.link)
    columns = facts.declared(name, engine.columns(name), engine.omitted(name))
    table = Table(name, columns, owner, True, limit, link, omitted=engine.omitted(name), disjoint=given.disjoint)
    return replace(table, is_view=engine.is_view(name))


def _public(engine: Engine, name: str, data: object, facts: _Facts, csv: Csv | None) -> Table:
    engine.add(name, data, types=facts.types, hints=facts.hints, private=False, csv=csv)
    columns = facts.declared(name, engine.columns(name), engine.omitted(name))
    return Table(name, columns, None, False, unique=engine.unique(name), omitted=engine.omitted(name))


def _limited(catalog: Catalog, matches: Mapping[str, int]) -> Catalog:
    limits = {catalog.table(name).name: natural("max_matches", most) for name, most in matches.items()}
    tables = [replace(t, max_matches=limits[t.name]) if t.name in limits else t for t in catalog.tables]
    return replace(catalog, tables=tuple(tables))


def _check_mappings(*given: object) -> None:
    for argument, facts, example in zip(("bounds", "values", "types"), given, EXAMPLES, strict=True):
        if not isinstance(facts, Mapping):
            raise InvalidArgument(argument, facts, "a dict by column", f"write {argument}={example}")


def _own(given: Private) -> tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]:
    return given.bounds, given.values, given.types


def _spread(facts: Mapping[str, Any], first: str, others: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Facts by table: those of "table.column" for that table, the rest for the first one."""
    tables = {name.lower(): name for name in (first, *others)}
    by_table: dict[str, dict[str, Any]] = {name: {} for name in tables.values()}
    for key, fact in facts.items():
        table, dot, column = key.partition(".")
        known = tables.get(table.lower()) if dot else None
        by_table[known or first][column if known else key] = fact
    return by_table


def _plain(values: Iterable[Any]) -> list[Any]:
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _links(table: str, given: Private, others: Mapping[str, Private]) -> set[str]:
    """The columns of a table by which rows find their owners."""
    own = {given.link[0]} if given.link is not None else set()
    return own | {one.link[2] for one in others.values() if one.link is not None and _same(one.link[1], table)}


def _same(name: str, other: str) -> bool:
    return str(name).lower() == other.lower()


def _check_seen(engine: Engine, owned: Iterable[str], dataset: str | None) -> None:
    """That it is known, or said, whose books a view is to continue."""
    for table in owned if dataset is None else ():
        if unseen := engine.unseen(table):
            remedy = 'write dataset="…", the data set of the tables it reads, or give the function a body BEGIN ATOMIC'
            raise InvalidArgument("table", table, f"a view that tells what it reads; {unseen[0]}() does not", remedy)


def _known(books: str | Path | None) -> dict[str, str]:
    """The sources in the books, with the data sets they belong to."""
    if books is None or (isinstance(books, Path) and not books.exists()):
        return {}
    with Ledger.at(books) as ledger:
        return ledger.sources()


def _claims(engine: Engine, tables: Iterable[str], public: Sequence[str], known: Iterable[str]) -> list[list[str]]:
    """For each table the sources that it is, at least one: first those in the books that hold some of its rows."""
    return [engine.claims(table, known, public) for table in tables]


def _check_claims(session: Session, claims: Iterable[Iterable[str]], known: Mapping[str, str]) -> None:
    """No source of the session is in another data set of the books, even if it was opened there meanwhile."""
    name = session.account[0]
    for text in (text for claim in claims for text in claim if not text.startswith(FLEETING)):
        if known.get(text, name) != name:
            session.close()
            raise InvalidArgument("source", text, f"of {name!r} or of none", f"it belongs to {known[text]!r}")
