"""Plans as short readable text, for fixtures."""

from fractions import Fraction

from discreet.core.domains import Bounds, Categories
from discreet.sql.plan import (
    Aggregate,
    Expression,
    Features,
    Filter,
    Join,
    Literal,
    Measure,
    Named,
    Project,
    Query,
    Ref,
    Relation,
    Scan,
    Union,
)

INFIX = {"+", "-", "*", "/", "//", "%", "=", "<>", "<", "<=", ">", ">=", "and", "or"}


def summary(query: Query) -> str:
    """The plan, one line for each node and clause."""
    lines = relation(query.aggregate.input)
    lines += grouped("aggregate", query.aggregate)
    shown = [
        output.name if is_same(output) else f"{output.name} := {text(output.expression)}" for output in query.outputs
    ]
    lines.append(f"output {'; '.join(shown)}")
    if query.having is not None:
        lines.append(f"having {text(query.having)}")
    if query.order:
        directions = (f"{text(order.expression)}{' down' if order.descending else ''}" for order in query.order)
        lines.append(f"order {'; '.join(directions)}")
    if query.limit is not None:
        lines.append(f"limit {query.limit}")
    return "\n".join(lines)


def is_same(output: Named) -> bool:
    return isinstance(output.expression, Ref) and output.expression.name == output.name


def relation(node: Relation) -> list[str]:
    match node:
        case Scan(table):
            return [f"scan {table.name}"]
        case Filter(below, predicate):
            return [*relation(below), f"filter {text(predicate)}"]
        case Project(below, columns):
            return [*relation(below), f"project {'; '.join(named(column) for column in columns)}"]
        case Features():
            return [*relation(node.input), *grouped("features", node)]
        case Join(left, right, on, kind, most):
            pairs = ", ".join(f"{one} = {other}" for one, other in on)
            joined = f"{kind} join on {pairs}" + ("" if most is None else f", with {most} at most")
            return [*relation(left), *("    " + line for line in relation(right)), joined]
        case Union(inputs):
            parts = [["    " + line for line in relation(part)] for part in inputs]
            return [*(line for part in parts for line in [*part, "  and"]), "union"]


def grouped(word: str, node: Aggregate | Features) -> list[str]:
    keys = [f"{word} by {'; '.join(named(key) for key in node.keys)}"] if node.keys else [word]
    return keys + [f"  {measure_text(measure)}" for measure in node.measures]


def named(column: Named) -> str:
    same = isinstance(column.expression, Ref) and column.expression.name == column.name
    return (column.name if same else f"{column.name} := {text(column.expression)}") + known(
        column.bounds, column.values
    )


def measure_text(measure: Measure) -> str:
    argument = "*" if measure.argument is None else text(measure.argument)
    rank = "" if measure.rank is None else f" at {measure.rank}"
    return f"{measure.name} := {measure.function}({argument}){rank}{known(measure.bounds)}"


def known(bounds: Bounds | None, values: Categories | None = None) -> str:
    shown = "" if bounds is None else f" in [{number(bounds.lower)}, {number(bounds.upper)}]"
    return shown + ("" if values is None else f" of {len(values)} values")


def number(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else repr(float(value))


def text(expression: Expression) -> str:
    if isinstance(expression, Ref):
        return expression.name
    if isinstance(expression, Literal):
        value = expression.value
        return number(value) + "r" if isinstance(value, Fraction) else "NULL" if value is None else repr(value)
    arguments = [text(argument) for argument in expression.arguments]
    if expression.function in INFIX:
        return "(" + f" {expression.function} ".join(arguments) + ")"
    name = expression.type if expression.function == "cast" else expression.function
    return f"{name}({', '.join(arguments)})"
