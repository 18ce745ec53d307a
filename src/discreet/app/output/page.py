"""An answer as one HTML file that stands alone: the table, the intervals drawn, the cost and the certificate."""

from __future__ import annotations

from discreet.app.output.outcome import Outcome
from discreet.core.display.html import Html, document, element, table
from discreet.core.display.numbers import loss, shown
from discreet.sql.answers.html import certificate_html, notes_html

__all__ = ["page"]

_STYLE = """
.question { font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap; }
.question { background: #8882; padding: .75rem 1rem; border-radius: 4px; }
svg { display: block; margin: 1rem 0; fill: currentColor; }
"""
_ROW, _LABEL, _PLOT, _MOST = 26, 180, 560, 200


def page(outcome: Outcome, question: str) -> str:
    """The whole file."""
    answer = outcome.answer
    used = f"{float(outcome.standing.used) * 100:.1f} % of the budget is used."
    return document(
        "A private answer",
        _STYLE,
        element("p", question, class_="question"),
        table(outcome.columns()),
        _drawing(outcome),
        notes_html(answer.notes),
        element("p", f"Guarantee: {loss(answer.loss)}. {used}"),
        certificate_html(answer.certificate),
    )


def _drawing(outcome: Outcome) -> str:
    """The first measure by the one key: a bar, and its interval as a line."""
    key = outcome.key
    if key is None or not outcome.spans or not 2 <= len(outcome.answer.rows) <= _MOST:
        return ""
    name = next(iter(outcome.spans))
    values = [float(value) for value in outcome.answer.column(name)]
    ends = [end for span in outcome.spans[name] for end in span]
    bottom, top = min(0.0, *values), max(*values, *ends)
    if not top - bottom < 1e300:
        return ""

    def across(value: float) -> float:
        return round(_LABEL + (min(max(value, bottom), top) - bottom) / ((top - bottom) or 1.0) * _PLOT, 1)

    parts: list[Html] = []
    labels = [shown(label) for label in outcome.answer.column(key)]
    for place, (label, value, (low, high)) in enumerate(zip(labels, values, outcome.spans[name], strict=True)):
        middle = place * _ROW + _ROW / 2
        start, end = sorted((across(0.0), across(value)))
        parts += [
            element("text", label, x=_LABEL - 8, y=middle + 4, text_anchor="end", font_size=13),
            element("rect", x=start, y=middle - 8, width=round(end - start, 1), height=16, fill="#5b9bd088"),
            element("path", d=f"M{across(low)} {middle}H{across(high)}", stroke="currentColor", stroke_width=2),
            element("circle", cx=across(value), cy=middle, r=3.5, fill="currentColor"),
        ]
    title = element("title", f"{name} by {key}, with {outcome.percent} intervals")
    return element("svg", title, *parts, width=_LABEL + _PLOT + 10, height=len(labels) * _ROW, role="img")
