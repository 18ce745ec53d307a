"""Random tables about the same people, what a steward declares of them, and neighbouring data sets.

`World(seed)` is everything random questions are asked about: `visits` with owners, `labs` with the same owners, `items`
linked to visits, `towns` that are public. Tame worlds keep what is declared, light ones among them have a few rows for
each unit, so that nothing is clipped; the others hold NaN, infinities, −0.0, the ends of 64 bits, odd texts, dates long
ago, values and numbers of rows beyond what is declared, rows of nobody.
"""

import datetime
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa

import discreet as dc
from discreet.adversary.session_audit.replay import WatchedDuckDB
from discreet.session.session import Session

CITIES = ("Oslo", "Rome", "Lima", "Zürich")
ODD_TEXTS = ("", " ", "é", "É", "ß", "日本語", "😀 smile", "it's", "%", "a%b", "12", "-3", "1e3", "nan", "2020-02-29")
ODD_INTEGERS = (0, -1, 121, -(2**63), 2**63 - 1, 2**53 + 1, -(2**31), 10**12)
ODD_REALS = (float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e308, -1e308, 5e-324, 500.0000001, -1e-9, 1e16)
ODD_DAYS = ("0001-01-01", "1582-10-15", "1899-12-31", "1969-12-31", "1970-01-01", "2000-02-29", "9999-12-31")
ARROW = {"integer": pa.int64(), "real": pa.float64(), "boolean": pa.bool_(), "text": pa.string()}
ARROW |= {"date": pa.date32(), "timestamp": pa.timestamp("us")}
SIZES = (0, 1, 12, 60, 60, 90, 140)

Row = dict[str, Any]
Data = dict[str, list[Row]]


class Dice:
    """Choices from one seeded generator."""

    def __init__(self, *seeds: int) -> None:
        self._rng = np.random.default_rng(seeds)

    def below(self, end: int) -> int:
        return int(self._rng.integers(end))

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def pick(self, *choices: Any) -> Any:
        return choices[self.below(len(choices))]

    def chance(self, probability: float) -> bool:
        return float(self._rng.random()) < probability

    def some(self, choices: Any, count: int) -> list[Any]:
        return [choices[place] for place in sorted(self._rng.permutation(len(choices))[:count].tolist())]

    def shuffled(self, choices: Any) -> list[Any]:
        return [choices[place] for place in self._rng.permutation(len(choices)).tolist()]


@lru_cache(maxsize=8)
def _parsed(statement: str) -> list[duckdb.Statement]:
    return duckdb.extract_statements(statement)


class Reading:
    """A connection that takes a statement apart once for the data and all neighbours: a third of its time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def extract_statements(self, statement: str) -> list[duckdb.Statement]:
        return _parsed(statement)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


class Optimized(WatchedDuckDB):
    """The engine, with one thread."""

    def _opened(self) -> Any:
        return Reading(super()._opened())


class Unoptimized(Optimized):
    """The engine with statements run as they are written: what they mean does not change, and they start sooner."""

    def __init__(self, lasting: bool = False) -> None:
        super().__init__(lasting)
        self._execute("PRAGMA disable_optimizer")


class Held(NamedTuple):
    """A column: its type, what is declared of it, and how its values are made."""

    kind: str
    tame: Callable[[Dice], Any]
    odd: tuple[Any, ...] = ()
    bounds: tuple[int, int] | None = None
    values: tuple[Any, ...] | None = None


def _day(dice: Dice) -> datetime.date:
    return datetime.date(1955, 1, 1) + datetime.timedelta(days=dice.below(25_000))


def _moment(dice: Dice) -> datetime.datetime:
    return datetime.datetime(1968, 1, 1) + datetime.timedelta(seconds=dice.below(1 << 31))


_DAYS = tuple(datetime.date.fromisoformat(day) for day in ODD_DAYS)
_MOMENTS = tuple(datetime.datetime.combine(day, datetime.time(23, 59, 59, 999_999)) for day in _DAYS)
VISITS: dict[str, Held] = {
    "age": Held("integer", lambda dice: dice.below(100), ODD_INTEGERS, bounds=(0, 120)),
    "level": Held("integer", lambda dice: dice.below(6), ODD_INTEGERS, bounds=(0, 5)),
    "cost": Held("real", lambda dice: dice.below(4000) / 8, ODD_REALS, bounds=(0, 500)),
    "score": Held("real", lambda dice: dice.between(-80, 80) / 8, ODD_REALS, bounds=(-10, 10)),
    "city": Held("text", lambda dice: dice.pick(*CITIES), ODD_TEXTS, values=CITIES),
    "note": Held("text", lambda dice: dice.pick("a", "b", "Ab", "ba c", ""), ODD_TEXTS),
    "day": Held("date", _day, _DAYS),
    "seen": Held("timestamp", _moment, _MOMENTS),
    "urgent": Held("boolean", lambda dice: dice.chance(0.5)),
    "big": Held("integer", lambda dice: dice.between(-(10**6), 10**6), ODD_INTEGERS),
    "wild": Held("real", lambda dice: dice.between(-9000, 9000) / 16, ODD_REALS),
}
LABS: dict[str, Held] = {
    "test": Held("text", lambda dice: dice.pick("x", "y", "z"), ODD_TEXTS, values=("x", "y", "z")),
    "result": Held("real", lambda dice: dice.below(80) / 8, ODD_REALS, bounds=(0, 10)),
}
ITEMS: dict[str, Held] = {
    "price": Held("real", lambda dice: dice.below(160) / 8, ODD_REALS, bounds=(0, 20)),
    "sort": Held("text", lambda dice: dice.pick("p", "q"), ODD_TEXTS, values=("p", "q")),
}
TOWNS: dict[str, Held] = {
    "city": Held("text", lambda dice: dice.pick(*CITIES)),
    "region": Held("text", lambda dice: dice.pick("north", "south"), values=("north", "south")),
    "people": Held("integer", lambda dice: dice.below(900), bounds=(0, 1000)),
}
UNITS: dict[str, tuple[Any, ...]] = {
    "integer": (*range(1, 13), -(2**63), 2**63 - 1),
    "text": (*"abcdefgh", "", " ", "\u00e9", "e\u0301", "日本", "NULL"),
    "real": (*(number / 2 for number in range(-5, 6)), 1e6, 0.0009765625, -0.0),
}


class World:
    """Tables, declarations and neighbours, all from one seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        dice = Dice(seed)
        self.tame = dice.chance(0.45)
        self.by_row = dice.chance(0.45)
        self.replaces = dice.chance(0.35)
        self.pure = dice.chance(0.3)
        self.poor = dice.chance(0.1)
        self.unit_kind: str = dice.pick("integer", "integer", "text", "real")
        self.pid: str = dice.pick("pid", "who")
        self.source: str = dice.pick("arrow", "arrow", "lists", "pandas")
        self.duplicates = dice.chance(0.5)
        self.matches: int | None = dice.pick(None, 1, 2, 2)
        chosen = ["age", "cost", "city", *dice.some([n for n in VISITS if n not in ("age", "cost", "city")], 2)]
        self.columns = {name: VISITS[name] for name in chosen}
        self.null_listed = dice.chance(0.2)
        self.size: int = dice.pick(*SIZES)
        self.heavy = dice.chance(0.6)
        self.max_rows: int | None = dice.pick(None, 2, 5, 20, 60)
        self.labs_max: int | None = dice.pick(None, 1, 10, 30)
        self.light = self.tame and dice.chance(0.6)
        if self.light:
            self.size, self.heavy, self.max_rows = 20, False, 5
        self.data = self._made(dice)
        self.optimized = dice.chance(0.15)
        if self.tame:
            self.max_rows = self._kept(self.max_rows, "visits", "who")
            self.labs_max = self._kept(self.labs_max, "labs", self.pid)

    @property
    def linked(self) -> bool:
        return not self.by_row

    @property
    def private(self) -> tuple[str, ...]:
        return ("visits", "labs", "items") if self.linked else ("visits", "labs")

    def held(self, table: str) -> dict[str, Held]:
        """The columns of a table; those with nothing declared say how rows belong together."""
        unit = Held(self.unit_kind, lambda dice: None)
        key = Held("integer", lambda dice: None)
        return {
            "visits": {"who": unit, "id": key, **self.columns},
            "labs": {self.pid: unit, **LABS},
            "items": {"visit": key, **ITEMS},
            "towns": TOWNS,
        }[table]

    def _made(self, dice: Dice) -> Data:
        people = UNITS[self.unit_kind]
        visits = [self._row(dice, "visits", who=self._person(dice, people)) for _ in range(self.size)]
        for number, row in enumerate(visits):
            row["id"] = dice.below(self.size) if not self.tame and self.duplicates and dice.chance(0.3) else number
        if self.heavy and self.size:
            visits += [self._row(dice, "visits", who=people[0]) | {"id": 1000 + i} for i in range(dice.between(5, 45))]
        labs = [self._row(dice, "labs", **{self.pid: self._person(dice, people)}) for _ in range(self.size // 2)]
        items = [self._row(dice, "items", visit=dice.below(self.size + 2)) for _ in range(self.size)]
        repeated = [dice.pick(*CITIES) for _ in range(2)] if self.duplicates else []
        towns = [self._row(dice, "towns") | {"city": city} for city in [*CITIES[:3], *repeated]]
        return {"visits": visits, "labs": labs, "items": items, "towns": towns}

    def _person(self, dice: Dice, people: tuple[Any, ...]) -> Any:
        if not self.tame and dice.chance(0.05):
            return dice.pick(None, float("nan"), float("inf")) if self.unit_kind == "real" else None
        return dice.pick(*people) if self.light or dice.chance(0.7) else people[dice.below(3)]

    def _row(self, dice: Dice, table: str, **known: Any) -> Row:
        row = dict(known)
        for name, held in self.held(table).items():
            if name in known or name == "id":
                continue
            odd = () if self.tame or table == "towns" else held.odd
            value = dice.pick(*odd) if odd and dice.chance(0.2) else held.tame(dice)
            row[name] = None if dice.chance(0.1) else value
        return row

    def _kept(self, limit: int | None, table: str, column: str) -> int | None:
        """A limit that the data keeps to."""
        counts = [sum(1 for row in self.data[table] if row[column] == who) for who in UNITS[self.unit_kind]]
        return None if limit is None else max(limit, *counts)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What `connect` is told besides the data."""
        unit = dc.Row if self.by_row else partial(dc.User, "who")
        most = 120 if self.poor else 10**7
        declared: dict[str, Any] = {
            "unit": unit(neighbours="replace" if self.replaces else "add_remove"),
            "budget": dc.PureDP(most) if self.pure else dc.ApproxDP(most, "1e-6"),
            "table": "visits",
            "bounds": {},
            "values": {},
            "types": {},
        }
        for table in (*self.private, "towns"):
            for name, held in self.held(table).items():
                place = name if table == "visits" else f"{table}.{name}"
                listed = (*held.values, None) if held.values and self.null_listed and table == "visits" else held.values
                told: dict[str, Any] = {"bounds": held.bounds, "values": listed}
                if self.source != "arrow" and table != "towns":
                    told["types"] = held.kind
                for fact, value in told.items():
                    if value is not None:
                        declared[fact][place] = value
        if self.matches is not None:
            declared["max_matches"] = {"towns": self.matches} | ({"items": self.matches} if self.linked else {})
        return declared if self.by_row else declared | {"max_rows": self.max_rows}

    def table(self, name: str, rows: list[Row]) -> Any:
        """Rows as a source of this world's kind."""
        columns = {column: [row[column] for row in rows] for column in self.held(name)}
        if self.source == "lists" and name != "towns":
            return columns
        arrays = {column: pa.array(columns[column], ARROW[held.kind]) for column, held in self.held(name).items()}
        arrow = pa.table(arrays)
        return arrow.to_pandas(integer_object_nulls=True) if self.source == "pandas" and name != "towns" else arrow

    def connect(self, data: Data) -> Session:
        """A session on these rows, with one thread."""
        labs = dc.Private(self.table("labs", data["labs"]), None if self.by_row else self.pid, max_rows=self.labs_max)
        private: dict[str, Any] = {"labs": dc.Private(labs.source) if self.by_row else labs}
        if self.linked:
            private["items"] = dc.Private(self.table("items", data["items"]), link=("visit", "visits", "id"))
        with patch("discreet.engines.registry.DuckDB", Optimized if self.optimized else Unoptimized):
            towns = self.table("towns", data["towns"])
            return dc.connect(
                self.table("visits", data["visits"]), **self.facts, private=private, public={"towns": towns}
            )

    def neighbour(self, number: int) -> Data:
        """A data set that differs in one unit: without it, or, where neighbours exchange one, with another in its
        place. Its rows come in another order."""
        dice = Dice(self.seed, 1_000_000 + number)
        changed = self._exchanged_row(dice) if self.by_row else self._exchanged_unit(dice, first=number == 0)
        return {table: dice.shuffled(rows) for table, rows in changed.items()}

    def _exchanged_row(self, dice: Dice) -> Data:
        table = dice.pick("visits", "visits", "labs")
        rows = list(self.data[table])
        if rows:
            place = dice.below(len(rows))
            rows[place : place + 1] = [self._row(dice, table, **self._whose(dice, table))] if self.replaces else []
        elif not self.replaces:
            rows = [self._row(dice, table, **self._whose(dice, table))]
        return self.data | {table: rows}

    def _whose(self, dice: Dice, table: str) -> Row:
        person = self._person(dice, UNITS[self.unit_kind])
        return {"who": person, "id": dice.below(50)} if table == "visits" else {self.pid: person}

    def _exchanged_unit(self, dice: Dice, first: bool) -> Data:
        people = UNITS[self.unit_kind]
        gone = people[0] if first else dice.pick(*people)
        data = {
            "visits": [row for row in self.data["visits"] if row["who"] != gone],
            "labs": [row for row in self.data["labs"] if row[self.pid] != gone],
            "items": self.data["items"],
            "towns": self.data["towns"],
        }
        keys = {row["id"] for row in self.data["visits"]} - {row["id"] for row in data["visits"]}
        if dice.chance(0.5):
            data["items"] = [row for row in data["items"] if row["visit"] not in keys]
        present = len(data["visits"]) + len(data["labs"]) < len(self.data["visits"]) + len(self.data["labs"])
        if self.replaces or not present:
            self._add(dice, data, gone)
        return data

    def _add(self, dice: Dice, data: Data, who: Any) -> None:
        """One unit's rows, many of them alike, with linked rows of its own."""
        most = self.max_rows if self.tame and self.max_rows is not None else 30
        number = dice.between(1, most)
        same = self._row(dice, "visits", who=who)
        alike = dice.chance(0.6)
        rows = [same if alike else self._row(dice, "visits", who=who) for _ in range(number)]
        visits = [row | {"id": 5000 + place} for place, row in enumerate(rows)]
        labs = [self._row(dice, "labs", **{self.pid: who}) for _ in range(dice.below(min(self.labs_max or 4, 4) + 1))]
        items = [self._row(dice, "items", visit=5000 + dice.below(number)) for _ in range(dice.below(6))]
        for table, more in (("visits", visits), ("labs", labs), ("items", items)):
            data[table] = [*data[table], *more]

    @cached_property
    def reference(self) -> duckdb.DuckDBPyConnection:
        """The rows in a DuckDB of their own: values that are no numbers as NULL, rows of nobody left out."""
        connection = duckdb.connect(config={"threads": 1})
        connection.execute("PRAGMA disable_optimizer")
        connection.execute("CREATE MACRO double_of(x) AS CAST(x AS DOUBLE)")
        connection.execute("CREATE MACRO fin(x) AS CASE WHEN isfinite(double_of(x)) THEN double_of(x) + 0 END")
        connection.execute(
            "CREATE MACRO clamp(x, low, high) AS CASE WHEN x IS NOT NULL AND NOT isnan(double_of(x)) "
            "THEN LEAST(GREATEST(x, low), high) END"
        )
        connection.execute("CREATE MACRO iqr(x) AS QUANTILE_CONT(x, 0.75) - QUANTILE_CONT(x, 0.25)")
        connection.execute("CREATE MACRO trimmed_mean(x, part) AS MEDIAN(x) + 0 * part")
        for table, rows in self.data.items():
            held = self.held(table)
            columns = {name: pa.array([row[name] for row in rows], ARROW[h.kind]) for name, h in held.items()}
            connection.register("raw", pa.table(columns))
            shown = ", ".join(f"fin({name}) AS {name}" if h.kind == "real" else name for name, h in held.items())
            owner = {"visits": "who", "labs": self.pid}.get(table)
            kept = f" WHERE {owner} IS NOT NULL" if owner and not self.by_row else ""
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM (SELECT {shown} FROM raw){kept}")
            connection.unregister("raw")
        return connection

    def close(self) -> None:
        with suppress(KeyError):
            vars(self).pop("reference").close()
