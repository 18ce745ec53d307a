"""Random SQL about the tables of a `World`, with what the same words mean to DuckDB.

A question is written once. What stands between « and » is for the reference only: there integers that overflow are
NULL, reals that are no numbers are NULL, subqueries keep the owner, and a join lets through no more than is declared.
`Question.text` is for the session, `Question.own` the same for plain DuckDB, and `Question.rows` asks DuckDB for the
owner, the keys and the arguments of all aggregates of every row that takes part.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tests.sql.refused import refusals
from tests.sql.words import Scope, Value, Words, finite, seen
from tests.sql.worlds import ITEMS, LABS, TOWNS, Dice, World

QUANTILES = True
"""Whether questions ask for MIN, MAX, MEDIAN, QUANTILE, IQR, MAD, TRIMMED_MEAN and MODE too."""
EPSILONS = (1, 25)
REFUSED = 0.06
"""The part of the questions that must be refused."""
COUNTS = ("count", "count_units")


class Aggregated(NamedTuple):
    """An aggregate: its words, which statistic it is, and its argument's words."""

    text: str
    function: str
    argument: str | None = None


class Item(NamedTuple):
    """An output: an aggregate, or arithmetic on several."""

    text: str
    used: tuple[Aggregated, ...]

    @property
    def is_count(self) -> bool:
        return self.text == self.used[0].text and self.used[0].function in COUNTS


@dataclass(frozen=True)
class Question:
    """One question, its price, and what is known of its answer beforehand."""

    text: str
    epsilon: int
    refused: bool = False
    rows: str = ""
    own: str = ""
    keys: int = 0
    aggregates: tuple[Aggregated, ...] = ()
    plain: tuple[int | None, ...] = ()
    """For each output after the keys the aggregate that it is, if it is nothing more."""
    exact: bool = True
    """Whether DuckDB gives its words the same meaning."""
    sharp: bool = True
    """Whether only counts and keys decide which rows are shown."""
    order: tuple[int, bool] | None = None
    """The output that rows are ordered by, and whether downwards."""
    limit: int | None = None
    tags: frozenset[str] = frozenset()


def analysts(text: str) -> str:
    """The words without those for the reference."""
    kept, depth = [], 0
    for character in text:
        depth += character == "«"
        if not depth:
            kept.append(character)
        depth -= character == "»"
    return "".join(kept)


def references(text: str) -> str:
    """All words."""
    return text.replace("«", "").replace("»", "")


def question(world: World, number: int) -> Question:
    """The question of that number about a world."""
    dice = Dice(world.seed, number)
    epsilon = dice.pick(*EPSILONS)
    if dice.chance(REFUSED):
        return Question(dice.pick(*refusals(world)), epsilon, refused=True, tags=frozenset({"refused"}))
    return Grammar(world, dice).question(epsilon)


class Grammar(Words):
    """Writes one question."""

    def __init__(self, world: World, dice: Dice) -> None:
        super().__init__(dice, world.tame)
        self.world = world
        self.exact = True

    def question(self, epsilon: int) -> Question:
        dice = self.dice
        scope = self.source()
        where = self.where(scope)
        keys = [*dict.fromkeys(self.key(scope) for _ in range(dice.pick(0, 0, 1, 1, 1, 2)))]
        items = [self.item(scope) for _ in range(dice.pick(1, 1, 1, 2, 3))]
        shown = [f"{finite(key)} AS k{place}" for place, key in enumerate(keys)]
        shown += [f"{item.text} AS m{place}" for place, item in enumerate(items)]
        text = f"SELECT {', '.join(shown)} FROM {scope.source}{where}"
        if keys:
            text += f" GROUP BY {', '.join(dice.pick(str(i + 1), f'k{i}') for i in range(len(keys)))}"
        used = [one for item in items for one in item.used]
        sharp = True
        if keys and dice.chance(0.15):
            more, sharp = self.having(items[0])
            text += more
            used.append(Aggregated("COUNT(*)", "count"))
        aggregates = tuple(dict.fromkeys(used))
        plain = [aggregates.index(item.used[0]) if item.text == item.used[0].text else None for item in items]
        order, limit = None, None
        if dice.chance(0.15):
            text, plain, condition = self.outer(text, len(keys), plain)
            sharp = sharp and (items[0].is_count or not condition)
        elif keys:
            more, order, limit = self.arranged(len(keys), len(items))
            text += more
        shown = [scope.owner, *(finite(key) for key in keys), *(one.argument or "1" for one in aggregates)]
        return Question(
            analysts(scope.before + text),
            epsilon,
            rows=references(f"{scope.before}SELECT {', '.join(shown)} FROM {scope.source}{where}"),
            own=references(scope.before + text),
            keys=len(keys),
            aggregates=aggregates,
            plain=tuple(plain),
            exact=self.exact,
            sharp=sharp,
            order=order,
            limit=limit,
            tags=frozenset(self.tags | {one.function for one in aggregates} | ({"keys"} if keys else set())),
        )

    def having(self, first: Item) -> tuple[str, bool]:
        self.tags.add("having")
        if self.dice.chance(0.5):
            return f" HAVING COUNT(*) > {self.dice.between(0, 4)}.5e0", True
        return f" HAVING m0 > {self.dice.between(-2, 6)}.25e0 OR COUNT(*) > 8", first.is_count

    def arranged(self, keys: int, items: int) -> tuple[str, tuple[int, bool] | None, int | None]:
        """ORDER BY and LIMIT."""
        dice, text, order, limit = self.dice, "", None, None
        if dice.chance(0.3):
            place = dice.between(1, keys + items)
            words, place, descending = dice.pick(
                (str(place), place - 1, False), (f"{place} DESC", place - 1, True), ("m0 DESC", keys, True)
            )
            text, order = f" ORDER BY {words}", (place, descending)
            self.tags.add("order by")
        if dice.chance(0.15):
            limit = dice.between(1, 6)
            text += f" LIMIT {limit}"
            self.tags.add("limit")
        return text, order, limit

    def outer(self, text: str, keys: int, plain: list[int | None]) -> tuple[str, list[int | None], bool]:
        """Arithmetic and conditions on an answer."""
        self.tags.add("outer")
        shown = ", ".join([*(f"k{place}" for place in range(keys)), "m0", "m0 * 2 + 1 AS twice"])
        where = f" WHERE m0 > {self.dice.below(5)}.75e0" if self.dice.chance(0.6) else ""
        return f"SELECT {shown} FROM ({text}) AS o{where}", [plain[0], None], bool(where)

    def item(self, scope: Scope) -> Item:
        first = self.aggregate(scope)
        if self.dice.chance(0.8) or first.function == "mode":
            return Item(first.text, (first,))
        self.tags.add("arithmetic")
        text = self.dice.pick(
            f"{first.text} / (1 + COUNT(*))",
            f"ROUND(100 * {first.text} / (2 + COUNT(*)), 1)",
            f"CASE WHEN {first.text} > 3 THEN COUNT(*) ELSE 0 END",
            f"COALESCE({first.text}, 0) - 3 * COUNT(*)",
        )
        return Item(text, (first, Aggregated("COUNT(*)", "count")))

    def aggregate(self, scope: Scope) -> Aggregated:
        dice = self.dice
        kind = dice.below(15 if QUANTILES else 10)
        if kind <= 1:
            return Aggregated("COUNT(*)", "count")
        if kind == 2:
            counted = dice.pick(*scope.columns.values())
            return Aggregated(f"COUNT({counted.text})", "count", counted.text)
        if kind == 3 and scope.unit is not None:
            return Aggregated(f"COUNT(DISTINCT {scope.unit})", "count_units")
        if kind == 4:
            condition = self.condition(scope, 1)
            text = dice.pick(f"COUNT(*) FILTER (WHERE {condition})", f"COUNT_IF({condition})")
            return Aggregated(text, "count", f"CASE WHEN {condition} THEN 1 END")
        if kind == 14:
            value = finite(self.key(scope))
            return Aggregated(dice.pick(f"MODE({value})", f"MODE() WITHIN GROUP (ORDER BY {value})"), "mode", value)
        number = self.bounded(scope, 2).text
        if kind > 11:
            words, function = dice.pick(
                (f"IQR({number})", "iqr"),
                (f"MAD({number})", "mad"),
                (f"TRIMMED_MEAN({number}, {dice.pick('0.1', '0.25')})", "trimmed_mean"),
            )
            return Aggregated(words, function, f"fin({number})")
        if kind > 9:
            words, function = dice.pick(
                (f"MEDIAN({number})", "quantile"),
                (f"QUANTILE_CONT({number}, {dice.pick('0.1', '0.5', '0.75')})", "quantile"),
                (f"PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {number})", "quantile"),
                (f"MIN({number})", "min"),
                (f"MAX({number})", "max"),
            )
            return Aggregated(words, function, f"fin({number})")
        function = dice.pick("sum", "sum", "avg", "variance", "stddev")
        if dice.chance(0.15):
            condition = self.condition(scope, 1)
            self.tags.add("filter")
            kept = f"fin(CASE WHEN {condition} THEN {number} END)"
            return Aggregated(f"{function.upper()}(«fin(»{number}«)») FILTER (WHERE {condition})", function, kept)
        return Aggregated(f"{function.upper()}(«fin(»{number}«)»)", function, f"fin({number})")

    def source(self) -> Scope:
        """FROM: one of the forms that the world allows."""
        forms: list[Callable[[], Scope]] = [self.table, self.table, self.subquery, self.named]
        forms += [self.with_town, self.united]
        if not self.world.by_row:
            forms += [self.with_labs, self.with_items, self.features, self.features, self.distinct, self.three]
        form = self.dice.pick(*forms)
        self.tags.add(form.__name__)
        scope: Scope = form()
        return scope

    def table(self) -> Scope:
        alias = self.dice.pick("visits", "v")
        text = "visits" if alias == "visits" else "visits AS v"
        return Scope(text, seen(self.world.columns), self.unit("who"), f"{alias}.who", base=alias)

    def unit(self, name: str) -> str | None:
        return None if self.world.by_row else name

    def visits(self) -> dict[str, Value]:
        return seen({f"v.{name}": held for name, held in self.world.columns.items()})

    def with_town(self) -> Scope:
        """A join with the public table; each row meets as many towns as bear its city's name."""
        kind, more = self.dice.pick("JOIN", "LEFT JOIN"), self.dice.pick("", "", " AND t.people > 300")
        columns = self.visits() | seen({f"t.{name}": TOWNS[name] for name in ("region", "people")})
        towns = self.first("towns", "city", more.replace(" AND", " WHERE"))
        return Scope(f"visits v {kind} {towns} t ON v.city = t.city{more}", columns, self.unit("v.who"), "v.who")

    def first(self, table: str, key: str, where: str = "") -> str:
        """A table of which a join shows no more than the first rows with the same key."""
        if self.world.matches is None:
            return table
        order = ", ".join(self.world.held(table))
        place = f"ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {order})"
        return f"«(SELECT * FROM »{table}« AS t{where} QUALIFY {place} <= {self.world.matches}) AS»"

    def with_labs(self) -> Scope:
        kind, pid = self.dice.pick("JOIN", "LEFT JOIN"), self.world.pid
        text = f"visits v {kind} labs l ON v.who = l.{pid}{self.dice.pick('', ' AND l.result > 2')}"
        if pid == "who" and self.dice.chance(0.5):
            text = f"visits v {kind} labs l USING (who)"
        return Scope(text, self.visits() | seen({f"l.{n}": held for n, held in LABS.items()}), "v.who", "v.who")

    def with_items(self) -> Scope:
        kind, items = self.dice.pick("JOIN", "LEFT JOIN"), self.first("items", "visit")
        columns = self.visits() | seen({f"i.{n}": held for n, held in ITEMS.items()})
        return Scope(f"visits v {kind} {items} i ON i.visit = v.id", columns, "v.who", "v.who")

    def three(self) -> Scope:
        towns = self.first("towns", "city")
        text = f"visits v JOIN labs l ON l.{self.world.pid} = v.who LEFT JOIN {towns} t ON t.city = v.city"
        columns = self.visits() | seen({"l.result": LABS["result"], "t.people": TOWNS["people"]})
        return Scope(text, columns, "v.who", "v.who")

    def subquery(self) -> Scope:
        inner, columns, unit = self.selection()
        return Scope(f"({inner}) AS s", columns, unit, "s.u_")

    def named(self) -> Scope:
        inner, columns, unit = self.selection()
        return Scope("c", columns, unit, "c.u_", f"WITH c AS ({inner}) ")

    def selection(self) -> tuple[str, dict[str, Value], str | None]:
        """A SELECT of rows: some columns, one that is computed, and the unit if the analyst wants it."""
        scope = self.table()
        computed = self.number(scope, 2)
        names = self.dice.some(list(self.world.columns), 3)
        unit = self.unit("who") if self.dice.chance(0.6) else None
        shown = [*([unit] if unit else []), f"{finite(computed)} AS x", *names]
        columns = {name: scope.columns[name] for name in names} | {"x": computed._replace(text="x")}
        return f"SELECT {', '.join(shown)}«, who AS u_» FROM {scope.source}{self.where(scope)}", columns, unit

    def distinct(self) -> Scope:
        names = self.dice.some(list(self.world.columns), 2)
        columns = seen({name: self.world.columns[name] for name in ("age", *names)})
        shown = ", ".join(columns)
        return Scope(f"(SELECT DISTINCT who, {shown}«, who AS u_» FROM visits) AS s", columns, "who", "s.u_")

    def features(self) -> Scope:
        """One row for each unit, or for each unit and city, with aggregates of its own rows."""
        scope, dice = self.table(), self.dice
        keys = ["who", *(["city"] if dice.chance(0.4) else [])]
        number = self.number(scope, 1)
        text = number.text
        limited = number.bounded and self.world.max_rows is not None
        total = f"«fin(»SUM({text}« ORDER BY {text}»)«)»"
        if number.kind == "integer":
            total = f"«TRY_CAST(»SUM({text})« AS BIGINT)»"
        choices = [
            Value("COUNT(*)", "integer", self.world.max_rows is not None),
            Value(total, number.kind, limited),
            Value(f"MIN({finite(number)})", number.kind, number.bounded),
            Value(f"MAX({finite(number)})", number.kind, number.bounded),
            Value(f"«fin(»AVG(«CAST(»{text}« AS DOUBLE) ORDER BY {text}»)«)»", "real", number.bounded),
        ]
        value = dice.pick(*choices)
        # Averages of numbers of very different sizes are rounded differently.
        self.exact = self.exact and (self.world.tame or value != choices[-1])
        counted = dice.pick(*self.world.columns)
        having = dice.pick("", "", " HAVING COUNT(*) > 1", " HAVING MAX(age) > 20")
        shown = f"{', '.join(keys)}, {value.text} AS n, COUNT({counted}) AS c«, who AS u_»"
        inner = f"SELECT {shown} FROM {scope.source}{self.where(scope)} GROUP BY {', '.join(keys)}{having}"
        columns = {"n": value._replace(text="n"), "c": Value("c", "integer", self.world.max_rows is not None)}
        columns |= {name: scope.columns[name] for name in keys[1:]}
        return Scope(f"({inner}) AS f", columns, "who", "f.u_")

    def united(self) -> Scope:
        """UNION ALL of both tables, or at user level of one with itself."""
        scope = self.table()
        number = self.number(scope, 1)
        first = f"SELECT {finite(number)} AS x, city AS t«, {scope.owner} AS u_» FROM {scope.source}{self.where(scope)}"
        second = f"SELECT result, test«, {self.world.pid}» FROM labs"
        if not self.world.by_row and self.dice.chance(0.4):
            second = "SELECT cost, city«, who» FROM visits"
        columns = {"x": Value("x", "real", number.bounded), "t": Value("t", "text")}
        return Scope(f"({first} UNION ALL {second}) AS u", columns, None, "u.u_")

    def where(self, scope: Scope) -> str:
        parts = [f"({self.condition(scope, 1)})" for _ in range(self.dice.pick(0, 1, 1, 2))]
        if scope.base is not None and self.dice.chance(0.25):
            parts.append(self.membership(scope.base))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def membership(self, base: str) -> str:
        """A semi-join: with the public table, with one's own rows elsewhere, with rows linked to this one."""
        pid = self.world.pid
        self.tags.add("membership")
        choices = [
            f"{base}.city IN (SELECT city FROM towns WHERE people > 400)",
            f"EXISTS (SELECT 1 FROM towns t WHERE t.city = {base}.city AND t.region = 'north')",
            f"NOT EXISTS (SELECT 1 FROM towns WHERE towns.city = {base}.city)",
            f"{base}.city NOT IN (SELECT city FROM towns)",
        ]
        if not self.world.by_row:
            choices += [
                f"{base}.who IN (SELECT {pid} FROM labs WHERE result > 3)",
                f"EXISTS (SELECT 1 FROM labs l WHERE l.{pid} = {base}.who AND l.result < 7)",
                f"NOT EXISTS (SELECT 1 FROM labs l WHERE l.{pid} = {base}.who AND l.test = 'x')",
                f"EXISTS (SELECT 1 FROM items i WHERE i.visit = {base}.id AND i.price > 5)",
                f"{base}.who IN (SELECT who FROM visits GROUP BY who HAVING COUNT(*) > 3)",
            ]
        chosen: str = self.dice.pick(*choices)
        return chosen
