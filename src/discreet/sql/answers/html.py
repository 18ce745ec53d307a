"""Answers, quotes and sessions as HTML for notebooks: numbers with their intervals, price, notes, certificate.

>>> from discreet.core.losses import PureDP
>>> print(price(PureDP("0.5"), {"kind": "user", "column": "patient_id", "neighbours": "add_remove"}))
(ε = 0.5), patient-level
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.core.display.columns import Cells, measured
from discreet.core.display.html import (
    MOST_ROWS,
    Html,
    block,
    broken,
    element,
    facts,
    folded,
    gauge,
    joined,
    note,
    preformatted,
    table,
)
from discreet.core.display.numbers import loss as loss_text
from discreet.core.display.numbers import percent, shown
from discreet.core.display.text import visible
from discreet.core.exact import Exactable
from discreet.core.losses import Loss
from discreet.sql.bounding.declared_values import within
from discreet.sql.catalog import Catalog, Column, Table

if TYPE_CHECKING:
    from discreet.core.expected_error import ExpectedError
    from discreet.sql.answers.answer import Answer

__all__ = [
    "answer_html",
    "answer_text",
    "certificate_html",
    "columns",
    "notes_html",
    "price",
    "quote_html",
    "session_html",
]

_LISTED = 8
"""Declared values that are listed one by one."""


def columns(answer: Answer, level: Exactable = 0.95) -> list[Cells]:
    """The columns to show; each measure is followed by its interval, which says so if it is of the noise alone."""
    spans = answer.intervals(level)
    found = []
    for name in answer.names:
        values = answer.column(name)
        if name in spans:
            alone = " noise" if answer.spans.of_noise_alone(answer.measured[name]) else ""
            found += measured(name, values, spans[name], percent(level) + alone)
        else:
            numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
            found.append(Cells(name, [shown(value) for value in values], right=numeric))
    return found


def price(loss: Loss, unit: Mapping[str, Any] | None, digits: int = 6) -> str:
    """What was paid and for whom: a person's level protects all their rows together."""
    paid = f"({loss_text(loss, digits=digits)})"
    if not unit:
        return paid
    who = str(unit.get("column", unit["kind"])).replace("_", " ").removesuffix(" id")
    neighbours = ", neighbours by replacement" if unit.get("neighbours") == "replace" else ""
    return f"{paid}, {who}-level{neighbours}"


def answer_html(answer: Answer, level: Exactable = 0.95) -> Html:
    """The table with intervals, the price, the notes, and the certificate folded away."""
    paid = element("p", price(answer.loss, answer.certificate.get("unit")))
    rows = table(columns(answer, level), MOST_ROWS)
    return block(rows, paid, notes_html(answer.notes), certificate_html(answer.certificate))


def answer_text(answer: Answer, level: Exactable = 0.95) -> str:
    """The same in plain text; of many rows the first."""
    first = replace(answer, rows=answer.rows[:MOST_ROWS], places=answer.places[:MOST_ROWS])
    lines = [""] * (len(first.rows) + 1)
    for cells in columns(first, level):
        texts = [cells.title, *cells.texts]
        wide = max(map(len, texts))
        padded = [text.rjust(wide) if cells.right else text.ljust(wide) for text in texts]
        lines = [f"{line}  {text}" for line, text in zip(lines, padded, strict=True)]
    more = len(answer.rows) - len(first.rows)
    rest = [f"… and {more:,} more rows"] if more else []
    paid = price(answer.loss, answer.certificate.get("unit"))
    told = [*(line[2:].rstrip() for line in lines), *rest, paid, *answer.notes]
    return "\n".join(visible(line) for line in told)


def notes_html(notes: Iterable[str]) -> Html:
    """What an answer says about itself; that it is not private stands out."""
    return joined(*(note(text, alarm=text.startswith("NOT PRIVATE")) for text in notes))


def certificate_html(certificate: Mapping[str, Any]) -> Html:
    """The signed statement, folded away; nothing where there is none."""
    if not certificate:
        return joined()
    text = json.dumps(certificate, indent=2, ensure_ascii=False)
    entry = certificate["ledger"]["entry"]
    return folded(f"Certificate, signed; entry {entry:,} of the ledger", preformatted(text))


def quote_html(cost: str, plan: str, errors: Iterable[ExpectedError], alarm: bool, notes: Iterable[str] = ()) -> str:
    """What a question would cost, how it would be answered, and how far off; `alarm` where there would be no answer."""
    told = element("p", "costs ", element("strong", cost), **({"class_": "alarm"} if alarm else {}))
    said = {"plan": plan.split("; "), "expected error": [str(error) for error in errors], "notes": [*notes]}
    return block(told, facts([(name, broken(parts)) for name, parts in said.items() if any(parts)]))


def session_html(
    catalog: Catalog, unit: Mapping[str, Any], budget: Loss, spent: Loss, remaining: Loss, used: Mapping[str, Fraction]
) -> Html:
    """Who is protected, how much of the budget is used up, and the tables with what is declared of them."""
    column = f" (column {unit['column']})" if "column" in unit else ""
    other = "replaced by any other" if unit["neighbours"] == "replace" else "there or not"
    gauges = [gauge(float(part)) + (f" by {name}" if len(used) > 1 else "") for name, part in used.items()]
    lines = [
        ("protects", f"each {unit['kind']}{column}, whether {other}"),
        ("budget", loss_text(budget)),
        ("", broken(gauges)),
        ("spent", loss_text(spent)),
        ("left", f"{loss_text(remaining, down=True)} for one question"),
    ]
    return block(facts(lines), *(_table_html(held) for held in catalog.tables))


def _table_html(held: Table) -> Html:
    kind = "private" if held.private else "public"
    limit = "" if held.max_rows is None else f", at most {held.max_rows:,} rows of each"
    title = f"{held.name}: {kind}, {len(held.columns)} columns{limit}"
    cells = [
        Cells("column", [column.name for column in held.columns]),
        Cells("type", [column.type for column in held.columns]),
        Cells("declared", ["the unit" if column.name == held.unit else _declared(column) for column in held.columns]),
    ]
    return folded(title, table(cells))


def _declared(column: Column) -> str:
    every = None if column.found else within(column.values, column.bounds)
    if column.bounds is not None and every is None:
        low, high = (shown(float(end)) for end in (column.bounds.lower, column.bounds.upper))
        return f"{low} to {high}"
    if column.values is None:
        return ""
    values = column.values.values
    rest = f", … ({len(values):,} values)" if len(values) > _LISTED else ""
    return ", ".join(shown(value) for value in values[:_LISTED]) + rest
