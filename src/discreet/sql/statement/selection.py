"""Relations as SELECTs of an engine, with the owner of each row carried along.

Only relations are written whose columns have names of ours (`naming.renamed`).

>>> from discreet.sql.catalog import Column, Table
>>> from discreet.sql.statement.naming import renamed
>>> from discreet.sql.plan import Ref
>>> table = Table("visits", (Column("who", "integer"), Column("cost", "real")), unit="who")
>>> relation, names = renamed(Project(Scan(table), (Named("c", Ref("cost", "real")),)))
>>> names, Selection().select(relation)
({'c': 'v3'}, 'SELECT "v2" AS "v3", "discreet unit" FROM (SELECT ... "who" AS "discreet unit" FROM "visits" WHERE ...')
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from discreet.sql.catalog import Type
from discreet.sql.decimals import LONG_DIGITS, Decimals
from discreet.sql.functions.registry import admit, render
from discreet.sql.functions.signature import try_cast
from discreet.sql.plan import (
    Call,
    Expression,
    Features,
    Filter,
    Join,
    Measure,
    Named,
    Project,
    Ref,
    Relation,
    Scan,
    Union,
)
from discreet.sql.relations import columns_of, is_owned, is_plain, names_in
from discreet.sql.statement.clauses import Select, WithQuery, statement_of, subquery
from discreet.sql.statement.dialect import DUCKDB, Dialect
from discreet.sql.statement.naming import (
    OWNER,
    PLACE,
    JoinNames,
    Name,
    apart_from,
    check_name,
    check_names,
    declared,
    raw,
)

__all__ = ["Selection", "text_of"]

NOWHERE: Mapping[str, tuple[int, int]] = {}
LARGEST = sys.float_info.max


def text_of(expression: Expression, dialect: Dialect = DUCKDB) -> str:
    """An expression in SQL, over columns that have names of ours."""
    return _written(check_names(expression), dialect)


@lru_cache(maxsize=4096)
def _written(expression: Expression, dialect: Dialect) -> str:
    return dialect.text(render(expression))


@lru_cache(maxsize=4096)
def _admitted(name: str, kind: Type, dialect: Dialect, longest: int | None) -> str:
    column = dialect.text(admit(name, kind))
    if kind != "text" or longest is None:
        return column
    return f"CASE WHEN {dialect.byte_length(column)} <= {longest} THEN {column} END"


@dataclass(frozen=True)
class Selection:
    """SQL for relations, in one dialect."""

    dialect: Dialect = DUCKDB
    longest: int | None = None
    """The most bytes of a text of a table (`widths.longest_text`); longer ones are NULL."""

    def text_of(self, expression: Expression) -> str:
        """An expression in SQL."""
        return text_of(expression, self.dialect)

    def select(self, relation: Relation, used: frozenset[str] | None = None) -> str:
        """The relation as a SELECT; the owner, where there is one, is its last column.

        Only the columns in `used` are needed, if that is given: a table may have hundreds.
        """
        match relation:
            case Scan():
                return self._scan(relation, used)
            case Filter():
                return f"SELECT * FROM {self.source(relation, used)}"
            case Project():
                return str(self._project(relation, used))
            case Features():
                return str(self._features(relation, used))
            case Join():
                return str(self._join(relation, used))
            case Union():
                return self._union(relation, used)

    def _project(self, project: Project, used: frozenset[str] | None) -> Select:
        kept = [column for column in project.columns if used is None or column.name in used]
        needed = frozenset[str]().union(*(names_in(column.expression) for column in kept))
        shown = [self._named(column) for column in kept] + self._owner(project)
        # Without a fence a server would put what is computed here in all places where a query above it is written.
        computed = any(not isinstance(column.expression, Ref) for column in kept)
        fence = self.dialect.fence if computed else ""
        return Select(shown or ["1"], subquery(self.select(project.input, needed)), last=fence)

    def _features(self, features: Features, used: frozenset[str] | None) -> Select:
        owner = self._owner(features)
        measures = [measure for measure in features.measures if used is None or measure.name in used]
        shown = [self._named(key) for key in features.keys if used is None or key.name in used]
        shown += [self._exact(measure) for measure in measures] + owner
        groups = [self.text_of(key.expression) for key in features.keys] + owner
        read = [key.expression for key in features.keys] + [m.argument for m in measures if m.argument is not None]
        rows = self.select(features.input, frozenset[str]().union(*map(names_in, read)))
        return Select(shown, subquery(rows), groups=groups)

    def _union(self, union: Union, used: frozenset[str] | None) -> str:
        """All inputs under the names of the first."""
        names, owner, parts = columns_of(union), self._owner(union), []
        for part in union.inputs:
            pairs = [(a, b) for a, b in zip(columns_of(part), names, strict=True) if used is None or b in used]
            shown = [f"{self._quoted(have)} AS {self._quoted(want)}" for have, want in pairs] + owner
            rows = self.select(part, frozenset(have for have, _ in pairs))
            parts.append(str(Select(shown or ["1"], subquery(rows))))
        return " UNION ALL ".join(parts)

    def _owner(self, relation: Relation) -> list[str]:
        return [self._quoted(OWNER)] if is_owned(relation) else []

    def source(
        self, relation: Relation, used: frozenset[str] | None = None, ranges: Mapping[str, tuple[int, int]] = NOWHERE
    ) -> str:
        """What stands after FROM to read the relation; a filter is its WHERE, which nothing but GROUP BY may follow.

        Of a table, only rows are read whose integers lie in the `ranges`: as they are, so that engines can skip others.
        """
        if isinstance(relation, Scan):
            return subquery(self._scan(relation, used, ranges))
        if isinstance(relation, Filter):
            needed = None if used is None else used | names_in(relation.predicate)
            return f"{subquery(self.select(relation.input, needed))} WHERE {self.text_of(relation.predicate)}"
        return subquery(self.select(relation, used))

    def _scan(self, scan: Scan, used: frozenset[str] | None, ranges: Mapping[str, tuple[int, int]] = NOWHERE) -> str:
        """The one place where names stand that are not ours: those of a table and its columns."""
        table = scan.table
        pairs = [*zip(table.columns, map(check_name, columns_of(scan)), strict=True)]
        shown = [
            f"{_admitted(column.name, column.type, self.dialect, self.longest)} AS {self._quoted(name)}"
            for column, name in pairs
            if used is None or name in used
        ]
        for column, name in pairs:
            if column.type == "real" and (used is None or raw(name) in used):
                stored = self.dialect.text(try_cast(exp.column(column.name, quoted=True), "real", "column"))
                shown.append(f"{stored} AS {self._quoted(raw(name))}")
        limited = [(self.dialect.stored(column.name), *ranges[name]) for column, name in pairs if name in ranges]
        only = [f"{stored} BETWEEN {low} AND {high}" for stored, low, high in limited]
        if table.private and table.unit is not None:
            unit = self.dialect.owner(table.unit)
            shown.append(f"{unit} AS {self._quoted(OWNER)}")
            only.insert(0, f"{unit} IS NOT NULL")
        where = f" WHERE {' AND '.join(only)}" if only else ""
        return f"SELECT {', '.join(shown or ['1'])} FROM {self.dialect.table(table.name)}{where}"

    def _named(self, column: Named) -> str:
        return f"{self.text_of(column.expression)} AS {self._quoted(column.name)}"

    def _exact(self, measure: Measure) -> str:
        """An exact aggregate of one unit's own rows."""
        value = measure.argument
        units = value.type if value is not None and isinstance(value.type, Decimals) else None
        if value is not None and units is not None and measure.function in ("avg", "variance", "stddev", "quantile"):
            value, units = Call("cast", (value,), "real"), None
        argument = "*" if value is None else self.text_of(value)
        # Floating-point sums depend on their order, which depends on everybody's rows: sort one unit's own first.
        if measure.function == "count_distinct":
            call = f"COUNT(DISTINCT {argument})"
        elif measure.function == "quantile":
            call = self.dialect.quantile(argument, float(measure.rank or 0))
        elif measure.function == "sum" and units is not None:
            call = self.dialect.units_total(argument, units.precision > LONG_DIGITS)
        elif measure.function in ("sum", "avg", "variance", "stddev"):
            name = {"variance": "VAR_SAMP", "stddev": "STDDEV_SAMP"}.get(measure.function, measure.function.upper())
            call = self.dialect.ordered(name, argument, "real" if value is None else value.type)
        else:
            call = f"{measure.function.upper()}({argument})"
        if measure.function == "sum" and value is not None and value.type == "integer":
            call = self.dialect.held(call)
        elif measure.type == "real":
            call = self._finite(call)
        return f"{call} AS {self._quoted(measure.name)}"

    def _finite(self, aggregate: str) -> str:
        """A real aggregate as `logical.finite` has them: NULL for NaN and infinities, and 0 for −0."""
        double, largest = f"CAST({aggregate} AS {self.dialect.double})", self.dialect.real(LARGEST)
        return f"CASE WHEN {double} BETWEEN -{largest} AND {largest} THEN {double} + {self.dialect.real(0)} END"

    def _join(self, join: Join, used: frozenset[str] | None) -> Select:
        names = apart_from(JoinNames, declared(join))
        ours, theirs = ([n for n in columns_of(side) if used is None or n in used] for side in (join.left, join.right))
        partial = join.kind in ("semi", "anti")
        left = f"({self.select(join.left, frozenset(ours).union(a for a, _ in join.on))}) AS {names.left_rows}"
        right = f"({self._first(join, () if partial else theirs)}) AS {names.right_rows}"
        owned = [is_owned(join.left), is_owned(join.right)]
        pairs = [*join.on, *([(OWNER, OWNER)] if all(owned) else [])]
        condition = self._equal(names.left_rows, names.right_rows, pairs)
        if partial:
            negation = "NOT " if join.kind == "anti" else ""
            return Select(["*"], left, f"{negation}EXISTS (SELECT 1 FROM {right} WHERE {condition})")
        shown = [f"{names.left_rows}.{self._quoted(name)}" for name in ours]
        shown += [f"{names.right_rows}.{self._quoted(name)}" for name in theirs]
        if any(owned):
            shown.append(f"{names.left_rows if owned[0] else names.right_rows}.{self._quoted(OWNER)}")
        return Select(shown or ["1"], f"{left} {join.kind.upper()} JOIN {right} ON {condition}")

    def _first(self, join: Join, used: Iterable[str]) -> str:
        """The right side with the columns that are used or joined, and with no more rows for each value of the joined
        columns than the join lets through.

        Only rows of values that have more are sorted: those are few, while the right side may be large. All columns
        decide which of them come first, whatever is asked about them.
        """
        if join.most is None:
            return self.select(join.right, frozenset(used).union(b for _, b in join.on))
        called, every = apart_from(JoinNames, declared(join)), columns_of(join.right)
        rows, crowded = called.joined_rows, called.crowded_keys
        keys = [*dict.fromkeys(name for _, name in join.on)]
        names = [self._quoted(key) for key in keys]
        shown = [self._quoted(name) for name in every]
        order = ", ".join(f"{name} NULLS LAST" for name in shown)
        number = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(names)} ORDER BY {order}) AS {self._quoted(PLACE)}"
        is_crowded = (
            f"EXISTS (SELECT 1 FROM {crowded} WHERE {self._equal(rows, crowded, zip(keys, keys, strict=True))})"
        )
        numbered = Select(["*", number], rows, is_crowded)
        many = Select(names, rows, groups=names, having=f"COUNT(*) > {join.most}")
        queries = [
            WithQuery(rows, self.select(join.right, frozenset(every)), self.dialect.kept(not is_plain(join.right))),
            WithQuery(crowded, many, self.dialect.kept(True)),
        ]
        few = Select(shown, rows, f"NOT {is_crowded}")
        first = Select(shown, subquery(numbered), f"{self._quoted(PLACE)} <= {join.most}")
        return statement_of(queries, [few, first])

    def _equal(self, left: Name, right: Name, pairs: Iterable[tuple[str, str]]) -> str:
        """That columns of one side equal those of the other."""
        return " AND ".join(f"{left}.{self._quoted(a)} = {right}.{self._quoted(b)}" for a, b in pairs)

    def _quoted(self, name: str) -> str:
        return self.dialect.identifier(check_name(name))
