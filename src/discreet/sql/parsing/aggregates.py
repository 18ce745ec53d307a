"""Aggregates: keys and measures from SELECT and GROUP BY, and the arithmetic done on them.

A `Grouping` reads expressions over groups. It turns each aggregate it meets into a measure, once however often it is
written, and each expression that is a key into a reference to the key. What remains is arithmetic on released values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.core.domains import Bounds, Categories
from discreet.core.errors import DiscreetError, InvalidArgument, Unsupported
from discreet.sql.aggregates import AGGREGATES, AggregateName
from discreet.sql.catalog import Type
from discreet.sql.decimals import Decimals
from discreet.sql.functions.registry import call, cast
from discreet.sql.functions.signature import NUMBERS, ORDERED, is_among
from discreet.sql.parsing.effort import MOST_MEASURES
from discreet.sql.parsing.expressions import is_aggregate, read
from discreet.sql.parsing.key_values import Lists
from discreet.sql.parsing.names import only, refuse, unknown, written
from discreet.sql.parsing.scope import Field, Rows, fresh
from discreet.sql.plan import Expression, Features, Literal, Measure, Named, Ref

__all__ = ["Grouping", "Item", "column_of", "items_of", "row_leaf"]

PLAIN: dict[type[exp.Expr], AggregateName] = {
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Variance: "variance",
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev",
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "quantile",
}
NAMED: dict[str, AggregateName] = {"mean": "avg", "iqr": "iqr", "mad": "mad"}
TRIMMED = ("trimmed_mean", "trim_mean")
REMEDIES: dict[type[exp.Expr], tuple[str, str]] = {
    exp.PercentileDisc: ("quantiles are of a continuous scale here", "write QUANTILE or PERCENTILE_CONT"),
    exp.ApproxDistinct: ("only units can be counted once each", "write COUNT(DISTINCT the unit column)"),
}


@dataclass(frozen=True)
class Item:
    """One entry of SELECT."""

    label: str
    node: exp.Expr

    @property
    def aggregates(self) -> bool:
        """Whether an aggregate stands in it."""
        return any(is_aggregate(part) for part in self.node.walk(prune=lambda part: isinstance(part, exp.Window)))


def items_of(select: exp.Select, rows: Rows) -> list[Item]:
    """The entries of SELECT with their labels; * is written out."""
    items: list[Item] = []
    for node in select.expressions:
        inner, label = (node.this, node.alias) if isinstance(node, exp.Alias) else (node, node.name)
        star = inner.this if isinstance(inner, exp.Column) else inner
        if isinstance(star, exp.Star):
            only(star)
            source = inner.table if isinstance(inner, exp.Column) else None
            shown = [f for f in rows.visible if source is None or f.source == source.lower()]
            if not shown:
                rows.find("*", source)
            items += [Item(f.label, exp.column(f.label, table=f.source or None, quoted=True)) for f in shown]
        else:
            plain = isinstance(node, exp.Alias | exp.Column)
            items.append(Item(label if plain and label else written(inner).lower(), inner))
    return items


def column_of(node: exp.Expr, rows: Rows) -> Field:
    """The column in sight that a column node means."""
    only(node, "this", "table")
    if not isinstance(node.this, exp.Identifier):
        raise refuse(node, "one column is needed here", "name it")
    try:
        return rows.find(node.name, node.args["table"].name if node.args.get("table") else None)
    except InvalidArgument as error:
        if not node.this.quoted or error.argument != "column":
            raise
        raise InvalidArgument("column", node.name, error.bound, f"text is in single quotes; {error.remedy}") from None


def row_leaf(rows: Rows, node: exp.Expr) -> Expression | None:
    """Columns of one row."""
    return column_of(node, rows).expression if isinstance(node, exp.Column) else None


@dataclass
class Grouping:
    """Keys and measures over some rows. `exact` measures are of one unit's own rows and leave nobody's data."""

    rows: Rows
    exact: bool = False
    keys: list[Named] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    _measures: dict[Measure, Measure] = field(default_factory=dict)
    """The measures by what they are, whatever their names."""
    aliases: dict[str, Expression] = field(default_factory=dict)
    """What the labels of SELECT mean, for HAVING and ORDER BY."""
    _lists: Lists = field(default_factory=Lists)
    """The values of modes."""

    def add_key(self, label: str, expression: Expression, node: exp.Expr) -> None:
        """One more key, unless it is one already."""
        if not _columns(expression):
            raise refuse(node, "a constant makes no groups", "leave it out of GROUP BY")
        shown = self.shown(expression)
        if all(key.expression != shown for key in self.keys):
            self.keys.append(self.rows.named(self._fresh(label), shown))

    def shown(self, expression: Expression) -> Expression:
        """An expression whose values are released: decimals as the doubles nearest to them."""
        return expression if self.exact or not isinstance(expression.type, Decimals) else cast(expression, "real")

    def reference(self, key: Named) -> Ref:
        """A key as released."""
        return Ref(key.name, key.expression.type)

    def read(self, node: exp.Expr, label: str | None = None) -> Expression:
        """An expression over keys and measures; a measure that is all of it gets the label for its name."""
        whole = node.unnest()
        return read(node, lambda part: self._leaf(part, label if part is whole else None))

    def _leaf(self, node: exp.Expr, label: str | None) -> Expression | None:
        if is_aggregate(node):
            return self._measured(node, label)
        if isinstance(node, exp.Literal | exp.Boolean | exp.Null) or node.find(exp.AggFunc, exp.Subquery):
            return None
        key = self._key(node)
        if key is not None:
            return self.reference(key)
        if not isinstance(node, exp.Column):
            return None
        if not node.table and node.name.lower() in self.aliases and not self.rows.matches(node.name):
            return self.aliases[node.name.lower()]
        column = column_of(node, self.rows)
        remedy = "leave it out" if column.unit else f"add {column.label} to GROUP BY, or aggregate it"
        raise Unsupported(f"the column {column.label}", "it stands outside aggregates and is not a key", remedy)

    def _key(self, node: exp.Expr) -> Named | None:
        try:
            expression = read(node, lambda part: row_leaf(self.rows, part))
        except DiscreetError:
            return None
        shown = self.shown(expression)
        return next((key for key in self.keys if key.expression == shown), None)

    def _measured(self, node: exp.Expr, label: str | None) -> Expression:
        if isinstance(node, exp.VariancePop | exp.StddevPop):
            return self._of_all(node)
        measure = self._measure(node, None)
        if self.exact and measure.aggregation.quartiles:
            ends = (replace(measure, function="quantile", rank=Fraction(quarters, 4)) for quarters in (3, 1))
            # Its size, since bounds of a difference do not say that it is above 0.
            return call("abs", call("-", *(self._known(end, None) for end in ends)))
        return self._known(measure, label)

    def _known(self, measure: Measure, label: str | None) -> Ref:
        """The measure as released, one more if there is none like it."""
        nameless = replace(measure, name="")
        known = self._measures.get(nameless)
        if known is None:
            if len(self.measures) == MOST_MEASURES:
                remedy = "ask several questions with fewer aggregates each"
                raise Unsupported("this question", f"it has more than {MOST_MEASURES} different aggregates", remedy)
            known = replace(measure, name=self._fresh(label or f"{measure.function}_{len(self.measures) + 1}"))
            self._measures[nameless] = known
            self.measures.append(known)
        return Ref(known.name, self._type(known))

    def _type(self, measure: Measure) -> Type:
        """The type of a measure: released, decimals are doubles."""
        kind = measure.type
        return "real" if isinstance(kind, Decimals) and not self.exact else kind

    def _of_all(self, node: exp.Expr) -> Expression:
        """The variance or deviation over n, from that over n - 1."""
        (inside,) = only(node, "this")
        spread = self._measured(exp.Variance(this=inside.copy()), None)
        count = self._measured(exp.Count(this=inside.copy()), None)
        variance = call("/", call("*", spread, call("-", count, _ONE)), count)
        return variance if isinstance(node, exp.VariancePop) else call("sqrt", variance)

    def _measure(self, node: exp.Expr, condition: Expression | None) -> Measure:
        if isinstance(node, exp.Filter) and condition is None:
            inner, where = only(node, "this", "expression")
            return self._measure(inner, self._row(where.this, "boolean"))
        if isinstance(node, exp.WithinGroup):
            return self._within(node, condition)
        if isinstance(node, exp.Count):
            return self._count(node, condition)
        if isinstance(node, exp.CountIf):
            (inside,) = only(node, "this")
            return self._of("count", call("case", self._row(inside, "boolean"), _ONE, _NULL), condition)
        if isinstance(node, exp.Quantile | exp.PercentileCont):
            value, *rank = only(node, "this", "quantile", "expression")
            if len(rank) != 1:
                raise refuse(node, "a quantile has a value and a rank", "write QUANTILE(x, 0.9)")
            return self._of("quantile", self._value(node, value), condition, _rank(node, rank[0]))
        if isinstance(node, exp.Anonymous):
            return self._named(node, condition)
        if isinstance(node, exp.Mode):
            if node.args.get("deterministic"):
                raise refuse(node, "MODE has one value", "write MODE(x)")
            only(node, "this")
            if node.this is None or isinstance(node.this, exp.Distinct):
                raise refuse(node, "a mode is of all values of a column", "write MODE(x)")
            return self._mode(node, node.this, condition)
        if type(node) not in PLAIN:
            raise refuse(node, *REMEDIES.get(type(node), ("we cannot release it", "use COUNT, SUM, AVG or QUANTILE")))
        (inside,) = only(node, "this")
        function = PLAIN[type(node)]
        half = Fraction(1, 2) if isinstance(node, exp.Median) else None
        return self._of(function, self._value(node, inside, function), condition, half)

    def _named(self, node: exp.Anonymous, condition: Expression | None) -> Measure:
        """Aggregates that are known by their names only."""
        name, values = node.name.lower(), node.expressions
        if name in TRIMMED:
            if len(values) != 2:
                raise refuse(node, "a trimmed mean has a value and what is cut off", "write TRIMMED_MEAN(x, 0.1)")
            trim = _rank(node, values[1], "what is cut off at either end", "0.1 for a tenth")
            if not 0 < trim < Fraction(1, 2):
                remedy = "write AVG to cut off nothing, MEDIAN for the middle, or a part such as 0.1"
                raise refuse(node, "what is cut off at either end is more than 0 and less than half", remedy)
            return self._of("trimmed_mean", self._value(node, values[0], "trimmed_mean"), condition, trim)
        if name not in NAMED:
            raise unknown(node)
        if len(values) != 1:
            raise refuse(node, f"{node.name.upper()} has one value", f"write {node.name.upper()}(x)")
        return self._of(NAMED[name], self._value(node, values[0], NAMED[name]), condition)

    def _mode(self, node: exp.Expr, inside: exp.Expr, condition: Expression | None) -> Measure:
        """The most frequent value, of those that can be listed if they can."""
        value = self._value(node, inside, "mode")
        measure = replace(self._of("mode", value, condition), bounds=None)
        values = [each for each in self._lists.listing(self.rows.relation, value) or () if each is not None]
        return replace(measure, values=Categories(tuple(values)) if values else None)

    def _count(self, node: exp.Count, condition: Expression | None) -> Measure:
        only(node, "this")
        inside = node.this
        if isinstance(inside, exp.Distinct):
            return self._units(node, inside, condition)
        if inside is None or isinstance(inside, exp.Star):
            return self._of("count", None if condition is None else _ONE, condition)
        value = self._row(inside)
        counted = None if isinstance(value, Literal) and value.value is not None and condition is None else value
        return self._of("count", counted, condition)

    def _units(self, node: exp.Count, distinct: exp.Distinct, condition: Expression | None) -> Measure:
        only(distinct, "expressions")
        values = [self._row(inside) for inside in distinct.expressions]
        if self.exact and len(values) == 1:
            return self._of("count_distinct", values[0], condition)
        column = self.rows.field_of(values[0]) if len(values) == 1 else None
        if column is None or not column.unit or self.exact:
            raise refuse(node, "only units can be counted once each", self._counting())
        if condition is not None:
            raise refuse(node, "units are counted over all rows", "put the condition in WHERE")
        return Measure("", "count_units")

    def _counting(self) -> str:
        units = [column.label for column in self.rows.fields if column.unit]
        if self.exact or not self.rows.private:
            return "SELECT DISTINCT the unit and the column in a subquery, and COUNT(*) outside"
        if not self.rows.owned:
            return "write COUNT(*): each row is a unit"
        if not units:
            return "SELECT the unit column in the subquery, and count it"
        return f"write COUNT(DISTINCT {units[0]}), or GROUP BY the column and count the groups"

    def _within(self, node: exp.Expr, condition: Expression | None) -> Measure:
        quantile, order = only(node, "this", "expression")
        if isinstance(quantile, exp.Mode) and quantile.this is None and len(order.expressions) == 1:
            only(quantile)
            return self._mode(node, order.expressions[0].this, condition)
        if not isinstance(quantile, exp.PercentileCont) or len(order.expressions) != 1:
            raise refuse(node, *REMEDIES.get(type(quantile), ("only quantiles have an order", "use PERCENTILE_CONT")))
        (ordered,) = order.expressions
        (inside,) = only(quantile, "this")
        rank = _rank(node, inside)
        value = self._value(node, ordered.this)
        return self._of("quantile", value, condition, 1 - rank if ordered.args.get("desc") else rank)

    def _value(self, node: exp.Expr, inside: exp.Expr, function: AggregateName = "quantile") -> Expression:
        value = self._row(inside)
        aggregation = AGGREGATES[function]
        if value.type == "boolean" and aggregation.of_truth:
            value = cast(value, "integer")
        column = self.rows.field_of(value)
        if column is not None and column.unit:
            raise refuse(node, f"{column.label} says who people are", "count people with COUNT(DISTINCT …)")
        if self.exact and not aggregation.of_one_unit:
            remedy = "take AVG, MEDIAN, QUANTILE, IQR, MIN or MAX of them"
            raise refuse(node, "it is not computed of each person's own rows", remedy)
        kinds = ORDERED if self.exact and aggregation.of_order else NUMBERS
        if aggregation.is_chosen:
            return self.shown(value)
        if not is_among(value.type, kinds):
            remedy = "CAST it, have its type declared in `types`, or take a number of it such as LENGTH or YEAR"
            raise refuse(node, f"it is of numbers, not of {value.type}", remedy)
        return value

    def _row(self, node: exp.Expr, kind: Type | None = None) -> Expression:
        value = read(node, lambda part: row_leaf(self.rows, part))
        if kind is not None and value.type != kind:
            raise refuse(node, f"it is {value.type}, not a condition", "compare it to something")
        return self.rows.checked(value)

    def _of(
        self,
        function: AggregateName,
        value: Expression | None,
        condition: Expression | None,
        rank: Fraction | None = None,
    ) -> Measure:
        chosen = value if condition is None or value is None else call("case", condition, value, _NULL)
        bounds = None if value is None or AGGREGATES[function].counts else self.rows.bounds(value)
        numbers = None if value is None or bounds is None or self.exact else self.rows.numbers(value)
        values = Categories(tuple(sorted(numbers))) if numbers and AGGREGATES[function].adds_values else None
        return Measure("", function, chosen, bounds, rank, values)

    def _fresh(self, label: str) -> str:
        return fresh(label, {key.name.lower() for key in self.keys} | {m.name.lower() for m in self.measures})

    def features(self) -> Rows:
        """One row for each unit and combination of keys."""
        alone = all((column := self.rows.field_of(key.expression)) is not None and column.unit for key in self.keys)
        keys = [self.rows.field(key.name, key.expression, key.name) for key in self.keys]
        measures = [self._feature(measure) for measure in self.measures]
        relation = Features(self.rows.relation, tuple(self.keys), tuple(self.measures))
        return replace(
            self.rows,
            relation=relation,
            fields=(*keys, *measures),
            max_rows=1 if alone else self.rows.max_rows,
        )

    def _feature(self, measure: Measure) -> Field:
        growth = 1 if measure.argument is None else self.rows.growth(measure.argument)
        return Field(measure.name, Ref(measure.name, measure.type), self._feature_bounds(measure), growth=growth)

    def _feature_bounds(self, measure: Measure) -> Bounds | None:
        """Bounds of an aggregate of at most `max_rows` values, at least one of them."""
        most = self.rows.max_rows
        if measure.aggregation.counts:
            least = 1 if measure.argument is None else 0
            return None if most is None else Bounds(least, max(most, 1))
        return measure.aggregation.range_of_one(measure.bounds, most, measure.type)


_ONE, _NULL = Literal(1, "integer"), Literal(None, "integer")


def _rank(node: exp.Expr, inside: exp.Expr, what: str = "the rank", such: str = "0.9") -> Fraction:
    rank = read(inside, lambda part: None)
    value = rank.value if isinstance(rank, Literal) else None
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or not 0 <= value <= 1:
        raise refuse(node, f"{what} is a literal from 0 to 1", f"write one, such as {such}")
    return Fraction(value)


def _columns(expression: Expression) -> bool:
    if isinstance(expression, Ref):
        return True
    return not isinstance(expression, Literal) and any(map(_columns, expression.arguments))
