"""Faults planted in how statements are written: the names in them, and the work that they make of one row."""

from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from sqlglot import exp
from tests.attacks.faults import together

from discreet.engines.duckdb import engine as duckdb
from discreet.engines.duckdb import types as schema
from discreet.session import mechanism_run
from discreet.session import sql_question as asked
from discreet.sql.answers import answer as answers
from discreet.sql.functions import decimal_arithmetic as units
from discreet.sql.functions import registry as functions
from discreet.sql.functions import text as textual
from discreet.sql.functions.signature import WIDE, Shaped, guarded, invoked, typed
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.parsing import aggregates as parse_aggregates
from discreet.sql.parsing import effort, select
from discreet.sql.parsing import key_values as keys
from discreet.sql.plan import Join
from discreet.sql.relations import columns_of
from discreet.sql.statement import builder as statements
from discreet.sql.statement import histograms, naming, selection, widths
from discreet.sql.statement import results as groups


def names_as_analysts_give_them() -> Any:
    """Columns of a statement are called as in the question."""

    def kept(relation: Any) -> Any:
        return relation, {name: naming.Name(name) for name in columns_of(relation)}

    checks = [patch.object(module, "check_name", naming.Name) for module in (naming, selection)]
    return together(
        *checks, patch.object(selection, "check_names", lambda one: one), patch.object(statements, "renamed", kept)
    )


def shares_added_up_for_each_sum() -> Any:
    """Planning takes the number of sums squared."""

    def factor(self: Measurement, statistic: Any) -> Any:
        shares = [s.share for s in self.statistics]
        return self._shares / statistic.share if shares else Fraction(1)

    return patch.object(Measurement, "_factor", factor)


def plans_of_any_size() -> Any:
    return together(
        patch.object(asked, "check_effort", lambda *_: None), patch.object(parse_aggregates, "MOST_MEASURES", 10**9)
    )


def rows_of_any_size() -> Any:
    """Rows that are not aggregated in SQL are not bounded."""
    return patch.object(select, "check_effort", lambda *_: None)


def counts_of_any_size() -> Any:
    """Counts for a mechanism are not bounded."""
    return patch.object(mechanism_run, "check_effort", lambda *_: None)


def writers_of_any_depth() -> Any:
    return patch.object(asked.Asked, "prepared", lambda self: (str(self.statement), self)[1])


def sorted_by_constants() -> Any:
    return patch.object(answers, "names_in", lambda expression: frozenset({"any"}))


def lists_made_again() -> Any:
    """The values of a part of a question are listed wherever they are asked for."""
    once = keys._Domain.values

    def again(self: Any, expression: Any) -> Any:
        self._known_values.pop(expression, None)
        return once(self, expression)

    return together(patch.object(keys.Lists, "listing", keys.Lists._found), patch.object(keys._Domain, "values", again))


def lists_of_any_size() -> Any:
    """What is computed to list values may be as large as subqueries make it, and as often as keys ask for it."""
    return together(patch.object(keys, "_light", list), patch.object(keys.Lists, "count", lambda *_: None))


def texts_of_any_length() -> Any:
    """What one row becomes in a join is limited in rows, and not in what they hold."""
    return patch.object(statements, "narrowed", lambda relation: relation)


def joins_measured_one_at_a_time() -> Any:
    """A join that matches once repeats nothing, whatever it is joined to."""
    original = widths._limits

    def limits(relation: Any) -> list[int]:
        once = isinstance(relation, Join) and relation.most in (None, 1)
        return [] if once else original(relation)

    return patch.object(widths, "_limits", limits)


def rows_of_any_width() -> Any:
    """A question may make as many texts of a row as it likes, however long they are."""
    return patch.object(statements, "longest_text", lambda relation, read, dialect: None)


def views_taken_for_tables() -> Any:
    """A view is read once for how much its units weigh, and once more for what they add."""
    return patch.object(duckdb.DuckDB, "is_view", lambda self, table: False)


def searches_of_any_length() -> Any:
    """Only patterns with both % and _ are limited in how often they are compared."""

    def is_slow(call: Any) -> bool:
        return call.function == "like" and {"%", "_"} <= {*(textual._sought(call) or "")}

    return together(patch.object(textual, "is_slow", is_slow), patch.object(functions, "is_slow", is_slow))


def aggregates_as_they_come() -> Any:
    """An average of one person's rows may be −0.0, which is equal to 0.0 and shown apart from it."""
    return patch.object(selection.Selection, "_finite", lambda self, aggregate: aggregate)


def keys_as_they_are_shown() -> Any:
    """Keys and values are released as the engine spells them."""
    return together(*(patch.object(module, "released", lambda value: value) for module in (groups, histograms)))


def results_guarded_and_not_arguments() -> Any:
    """That a text is too long is asked beside what is made of it."""

    def guard(text: Any, most: int) -> Any:
        return guarded(exp.LTE(this=exp.Length(this=text.copy()), expression=exp.Literal.number(most)), text)

    return together(patch.object(textual, "no_longer", guard), patch.object(functions, "no_longer", guard))


def products_tried() -> Any:
    """The engine finds out whether a product has too many digits."""
    usual = units.arithmetic

    def arithmetic(operator: Any, rule: Any, left: Any, right: Any) -> Any:
        made = usual(operator, rule, left, right)
        if made.node.args.get("source") != "digits":
            return made
        _, *sides = units.sides(made.node.this)
        tried = invoked("TRY", operator(this=typed(sides[0], WIDE), expression=typed(sides[1], WIDE)))
        return Shaped(typed(tried, WIDE), made.reach)

    return patch.object(units, "arithmetic", arithmetic)


def statistics_of_files_believed() -> Any:
    return patch.object(duckdb, "WITHOUT_STATISTICS", "SELECT 1")


def moments_guarded_by_case_alone() -> Any:
    return patch.object(schema, "_CALENDAR", ("TIMESTAMP '-infinity'", "TIMESTAMP 'infinity'"))


def subqueries_weighed_alone() -> Any:
    return patch.object(effort, "written_out", lambda aggregate: 1)


def conditions_taken_for_one() -> Any:
    """What a condition compares is weighed once, however often the engine computes it."""
    between = replace(functions.FUNCTIONS["between"], copies=(1,))
    return patch.dict(functions.FUNCTIONS, between=between)
