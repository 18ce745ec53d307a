"""From SQL text to a plan. Whatever is not understood is refused, with the reason and what to write instead.

>>> from discreet.core.domains import Bounds
>>> from discreet.sql.catalog import Column, Table
>>> visits = Table("visits", (Column("patient", "integer"), Column("age", "integer", Bounds(0, 120))), "patient")
>>> query = parse("SELECT age >= 18 AS adult, AVG(age) FROM visits GROUP BY 1", Catalog((visits,)))
>>> [key.name for key in query.aggregate.keys], [measure.function for measure in query.aggregate.measures]
(['adult'], ['avg'])
>>> parse("SELECT age FROM visits", Catalog((visits,)))
Traceback (most recent call last):
    ...
discreet.core.errors.Unsupported: SELECT age FROM visits is refused: it would show people's rows; …
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import ErrorLevel, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.sql.catalog import Catalog
from discreet.sql.functions.registry import call
from discreet.sql.parsing.aggregates import Grouping, Item, items_of, row_leaf
from discreet.sql.parsing.doubles import as_doubles, catalog_of_doubles
from discreet.sql.parsing.effort import check_effort
from discreet.sql.parsing.expressions import read, whole_literal
from discreet.sql.parsing.joins import ownerless
from discreet.sql.parsing.key_values import listed
from discreet.sql.parsing.names import only, refuse
from discreet.sql.parsing.relations import Context, conditions, filtered, sources, union
from discreet.sql.parsing.scope import Field, Rows, distinct_names, project
from discreet.sql.plan import Aggregate, Expression, Named, Order, Query

__all__ = ["parse", "parse_rows"]

LONGEST = 100_000
MOST_ITEMS = 1_000
MOST_KEYS = 50
DEEPEST = 100
STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN)
CLAUSES = ("with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "order", "limit")


def parse(text: str, catalog: Catalog, *, doubles: bool = False) -> Query:
    """The plan of one question; with `doubles`, as versions before exact decimals read it (`parsing/doubles.py`)."""
    tree, answer = _read(text, catalog_of_doubles(catalog) if doubles else catalog, doubles)
    if isinstance(answer, Rows):
        if any(part.args.get("group") for part in (tree, tree.unnest())):
            raise refuse(tree, "the unit column as a key would single people out", "group by something they share")
        raise refuse(tree, "it would show people's rows", "aggregate them: COUNT(*), SUM, AVG, …")
    return answer


def parse_rows(text: str, catalog: Catalog) -> Rows:
    """The rows that a SELECT without aggregates is about, which nobody is shown: synthetic ones are made for them."""
    tree, answer = _read(text, catalog)
    if isinstance(answer, Query):
        raise refuse(tree, "it aggregates", "list columns to make rows of: SELECT a, b FROM … WHERE …")
    for part in (tree, tree.unnest()):
        for clause in ("order", "limit"):
            if part.args.get(clause) is not None:
                raise refuse(part.args[clause], "rows have no order", "leave it out")
    if not answer.private:
        raise refuse(tree, "it reads no private table", "ask the engine itself")
    if answer.linked is not None:
        raise ownerless(answer.linked, tree)
    read = tuple(Named(column.label, column.expression) for column in answer.visible)
    check_effort(Aggregate(answer.relation, read, ()), (), 0)
    return answer


def _read(text: str, catalog: Catalog, doubles: bool = False) -> tuple[exp.Expr, Rows | Query]:
    if not isinstance(text, str):
        raise InvalidArgument("sql", text, "text", "write a SELECT")
    if len(text) > LONGEST:
        raise Unsupported("this query", f"it has more than {LONGEST} characters", "split it")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Unsupported("this query", "it holds half a character", "write whole ones")
    try:
        tree = as_doubles(_tree(text)) if doubles else _tree(text)
        answer = _select(tree, Context(catalog, _select, {}, [0]))
    except RecursionError:
        raise Unsupported("this query", "it is nested too deeply", "compute parts of it in WITH") from None
    return tree, answer


def _tree(text: str) -> exp.Expr:
    dialect = Dialect.get_or_raise("duckdb")
    # Otherwise ORDER BY "all", a quoted column, would be read as the keyword ALL.
    dialect.SUPPORTS_ORDER_BY_ALL = False
    try:
        tokens = dialect.tokenize(text)
        if not tokens or tokens[0].token_type not in STARTS:
            raise Unsupported("this statement", "only questions are answered", "write one SELECT")
        _limit_nesting(tokens)
        parsed = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    except (Unsupported, RecursionError):
        raise
    except Exception as error:
        # Text that is no SQL makes the parser fail in many ways.
        raise Unsupported("this text", f"it does not read as SQL{_place(error)}", "correct it") from None
    statements = [tree for tree in parsed if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise Unsupported("this statement", "one question is answered at a time", "write one SELECT")
    return statements[0]


def _limit_nesting(tokens: Sequence[Any]) -> None:
    """Refuse deep brackets by count: how deep the parser could go depends on the process it runs in."""
    depth = 0
    for token in tokens:
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if depth > DEEPEST:
            reason = f"its brackets are more than {DEEPEST} deep"
            raise Unsupported("this query", reason, "compute parts of it in WITH")


def _place(error: Exception) -> str:
    if not isinstance(error, ParseError) or not error.errors:
        return ""
    first = error.errors[0]
    near = first.get("highlight")
    return f" at line {first.get('line')}, column {first.get('col')}" + (f", near {near[:40]!r}" if near else "")


def _select(node: exp.Expr, context: Context) -> Rows | Query:
    """A SELECT, a UNION ALL, or one of them in parentheses: rows, or a query where it aggregates over all people."""
    context.entered()
    context = _with(node, context)
    if isinstance(node, exp.Subquery):
        only(node, "this", "with_")
        return _select(node.this, context)
    if isinstance(node, exp.Union):
        return union(node, context)
    if isinstance(node, exp.SetOperation):
        raise refuse(node, "it compares rows of different people", "write EXISTS or NOT EXISTS")
    if not isinstance(node, exp.Select):
        raise refuse(node, "it is not a SELECT", "write one")
    only(node, *CLAUSES)
    source = sources(node, context)
    if isinstance(source, Query):
        return _after(node, source)
    where = node.args.get("where")
    rows = source if where is None else filtered(source, conditions(where.this), context)
    items = items_of(node, rows)
    if len(items) > MOST_ITEMS:
        raise refuse(node, f"it has more than {MOST_ITEMS} entries", "ask several questions")
    aggregated = node.args.get("group") or node.args.get("having") or any(item.aggregates for item in items)
    if aggregated or node.args.get("distinct"):
        return _grouped(node, rows, items)
    _no_order(node)
    read_items = [(item.label, read(item.node, lambda part: row_leaf(rows, part))) for item in items]
    return project(rows, [(label, rows.checked(expression)) for label, expression in read_items])


def _with(node: exp.Expr, context: Context) -> Context:
    clause = node.args.get("with_")
    if clause is None:
        return context
    if clause.args.get("recursive"):
        raise refuse(clause, "recursion has no bound", "write the steps out")
    only(clause, "expressions")
    for cte in clause.expressions:
        context = replace(context, named={**context.named, cte.alias.lower(): (cte, context)})
    return context


def _no_order(node: exp.Expr) -> None:
    if node.parent is None:
        return  # that it shows people's rows is what is wrong with it
    for name in ("order", "limit"):
        clause = node.args.get(name)
        if clause is not None:
            raise refuse(clause, "people's rows have no order that could be used", "order the answer, outside")


def _grouped(node: exp.Select, rows: Rows, items: list[Item]) -> Rows | Query:
    """A query over all people, or exact features of each if the unit column is a key."""
    if rows.linked is not None:
        raise ownerless(rows.linked, node)
    grouping = Grouping(rows)
    keys = _keys(node, rows, items)
    fields = [rows.field_of(expression) for _, expression, _ in keys]
    grouping.exact = any(field is not None and field.unit for field in fields)
    for label, expression, origin in keys:
        grouping.add_key(label, expression, origin)
    outputs = []
    for item in items:
        outputs.append((item, grouping.read(item.node, item.label)))
        grouping.aliases[item.label.lower()] = outputs[-1][1]
    having = None if node.args.get("having") is None else grouping.read(only(node.args["having"], "this")[0])
    if having is not None and having.type != "boolean":
        raise refuse(node.args["having"], "it is not a condition", "compare something")
    if grouping.exact:
        _no_order(node)
        features = grouping.features()
        kept = features if having is None else features.filtered(having)
        return project(kept, [(item.label, expression) for item, expression in outputs])
    if not rows.private:
        raise refuse(node, "it reads no private table", "ask the engine itself")
    grouping.keys = [*listed(rows.relation, tuple(grouping.keys))]
    names = distinct_names(item.label for item, _ in outputs)
    released = tuple(_output(name, expression, grouping) for name, (_, expression) in zip(names, outputs, strict=True))
    order = tuple(_order(part, released, grouping) for part in _ordered(node))
    aggregate = Aggregate(rows.relation, tuple(grouping.keys), tuple(grouping.measures), rows.max_rows)
    return Query(aggregate, released, having, order, _limit(node))


def _keys(node: exp.Select, rows: Rows, items: list[Item]) -> list[tuple[str, Expression, exp.Expr]]:
    """Labels, expressions and origins of the keys: of GROUP BY, or of all entries of SELECT DISTINCT."""
    distinct, group = node.args.get("distinct"), node.args.get("group")
    if len(items if distinct is not None else group.expressions if group is not None else ()) > MOST_KEYS:
        raise refuse(node, f"it has more than {MOST_KEYS} keys", "group by fewer")
    if distinct is not None:
        only(distinct)
        if group is not None or any(item.aggregates for item in items):
            raise refuse(node, "groups are distinct already", "leave DISTINCT out")
        return [(item.label, _row(item.node, rows), item.node) for item in items]
    if group is not None and group.args.get("all") and not group.expressions:
        only(group, "all")
        plain = [item for item in items if not item.aggregates and item.node.find(exp.Column) is not None]
        return [(item.label, _row(item.node, rows), item.node) for item in plain]
    keys = []
    for part in [] if group is None else only_expressions(group):
        item = _meant(part, rows, items)
        if item is not None and item.aggregates:
            raise refuse(part, "an aggregate cannot be a key", "group by columns")
        origin = part if item is None else item.node
        expression = _row(origin, rows)
        keys.append((_label(expression, rows, items, item), expression, origin))
    return keys


def only_expressions(group: exp.Expr) -> list[exp.Expr]:
    """The keys of a GROUP BY that has nothing else."""
    if group.find(exp.GroupingSets, exp.Rollup, exp.Cube) is not None:
        raise refuse(group, "every grouping is a question of its own", "list the keys, one GROUP BY to a question")
    only(group, "expressions")
    return list(group.expressions)


def _row(node: exp.Expr, rows: Rows) -> Expression:
    return read(node, lambda part: row_leaf(rows, part))


def _meant(part: exp.Expr, rows: Rows, items: list[Item]) -> Item | None:
    """The entry of SELECT that a position or an alias means."""
    place = whole_literal(part)
    if place is not None:
        if not 1 <= place <= len(items):
            raise refuse(part, f"SELECT has {len(items)} entries", "write a position among them")
        return items[place - 1]
    if not isinstance(part, exp.Column) or part.table:
        return None
    called = [item for item in items if item.label.lower() == part.name.lower()]
    if not called:
        return None
    if rows.matches(part.name):
        if any(item.aggregates or _row(item.node, rows) != _row(part, rows) for item in called):
            remedy = f"write GROUP BY {items.index(called[0]) + 1}, or another alias"
            raise refuse(part, "it names both a column and another entry of SELECT", remedy)
        return None
    return called[0]


def _label(expression: Expression, rows: Rows, items: list[Item], item: Item | None) -> str:
    if item is not None:
        return item.label
    field = rows.field_of(expression)
    if field is not None:
        return field.label
    same = (other.label for other in items if not other.aggregates and _row(other.node, rows) == expression)
    return next(same, "key")


def _output(name: str, expression: Expression, grouping: Grouping) -> Named:
    key = next((key for key in grouping.keys if expression == grouping.reference(key)), None)
    return Named(name, grouping.shown(expression)) if key is None else Named(name, expression, key.bounds, key.values)


def _ordered(node: exp.Expr) -> list[exp.Expr]:
    clause = node.args.get("order")
    if clause is None:
        return []
    only(clause, "expressions")
    for part in clause.expressions:
        only(part, "this", "desc")
    return list(clause.expressions)


def _order(node: exp.Expr, outputs: tuple[Named, ...], grouping: Grouping) -> Order:
    descending = bool(node.args.get("desc"))
    chosen = _chosen(node.this, outputs)
    return Order(grouping.read(node.this) if chosen is None else chosen, descending)


def _chosen(node: exp.Expr, outputs: tuple[Named, ...]) -> Expression | None:
    """The output that a position or a name in ORDER BY means."""
    place = whole_literal(node)
    if place is not None:
        if not 1 <= place <= len(outputs):
            raise refuse(node, f"SELECT has {len(outputs)} entries", "write a position among them")
        return outputs[place - 1].expression
    if not isinstance(node, exp.Column) or node.table:
        return None
    return next((output.expression for output in outputs if output.name.lower() == node.name.lower()), None)


def _limit(node: exp.Expr) -> int | None:
    clause = node.args.get("limit")
    if clause is None:
        return None
    count = whole_literal(clause.args.get("expression"))
    if not isinstance(clause, exp.Limit) or count is None:
        raise refuse(clause, "LIMIT has a whole number", "write LIMIT 10")
    only(clause, "expression")
    return count


def _after(node: exp.Select, query: Query) -> Query:
    """A SELECT from a query that is already aggregated: more arithmetic, conditions and order on its answer."""
    if node.args.get("group") or node.args.get("distinct") or node.args.get("having"):
        raise refuse(node, "it aggregates an answer", "ask the inner question and aggregate its answer yourself")
    fields = tuple(Field(output.name, output.expression, output.bounds, output.values) for output in query.outputs)
    rows = Rows(query.aggregate.input, fields, private=True, owned=True)
    items = items_of(node, rows)
    if any(item.aggregates for item in items):
        remedy = "GROUP BY the unit column in the subquery, or aggregate its answer yourself"
        raise refuse(node, "it aggregates an answer", remedy)
    names = distinct_names(item.label for item in items)
    read_items = [_row(item.node, rows) for item in items]
    outputs = tuple(_passed(name, expression, rows) for name, expression in zip(names, read_items, strict=True))
    where = node.args.get("where")
    ordered, limit = _ordered(node), _limit(node)
    if query.limit is not None and (where is not None or ordered):
        raise refuse(node, "the subquery has a LIMIT already", "put conditions and order inside it")
    having = query.having if where is None else _both(query.having, _row(where.this, rows))
    order = [_after_order(part, outputs, rows) for part in ordered]
    limits = [count for count in (query.limit, limit) if count is not None]
    return Query(query.aggregate, outputs, having, tuple(order) or query.order, min(limits, default=None))


def _passed(name: str, expression: Expression, rows: Rows) -> Named:
    field = rows.field_of(expression)
    return Named(name, expression) if field is None else Named(name, expression, field.bounds, field.values)


def _after_order(node: exp.Expr, outputs: tuple[Named, ...], rows: Rows) -> Order:
    chosen = _chosen(node.this, outputs)
    return Order(_row(node.this, rows) if chosen is None else chosen, bool(node.args.get("desc")))


def _both(first: Expression | None, second: Expression) -> Expression:
    if second.type != "boolean":
        raise Unsupported("this WHERE", "it is not a condition", "compare something")
    return second if first is None else call("and", first, second)
