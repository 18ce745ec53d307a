"""An answer as one HTML file that stands alone: the table, the intervals drawn, the cost and the certificate."""

from __future__ import annotations

import json
from html import escape

from discreet.app.numerals import loss, shown
from discreet.app.outcome import Outcome

__all__ = ["page"]

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1c2730; }
pre, code { font: 13px/1.5 ui-monospace, monospace; }
pre { background: #f3f5f7; padding: .75rem 1rem; overflow-x: auto; border-radius: 4px; }
table { border-collapse: collapse; margin: 1.25rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .9rem; border-bottom: 1px solid #dde3e8; text-align: left; }
.right { text-align: right; } .quiet { color: #667580; }
svg { display: block; margin: 1rem 0; }
"""
_ROW, _LABEL, _PLOT, _MOST = 26, 180, 560, 200


def page(outcome: Outcome, question: str) -> str:
    """The whole file."""
    answer = outcome.answer
    columns = outcome.columns()
    sides = ["right" if column.right else "left" for column in columns]
    head = "".join(f'<th class="{side}">{escape(c.title)}</th>' for side, c in zip(sides, columns, strict=True))
    body = "".join(
        "<tr>" + "".join(f'<td class="{side}">{escape(t)}</td>' for side, t in zip(sides, row, strict=True)) + "</tr>"
        for row in zip(*(column.texts for column in columns), strict=True)
    )
    notes = "".join(f'<p class="quiet">{escape(note)}</p>' for note in answer.notes)
    used = f"{float(outcome.standing.used) * 100:.1f} % of the budget is used."
    certificate = escape(json.dumps(answer.certificate, indent=2, ensure_ascii=False))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>A private answer</title><style>{_STYLE}</style>'
        f"<h1>A private answer</h1><pre>{escape(question)}</pre>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{_drawing(outcome)}{notes}"
        f"<p>Guarantee: {escape(loss(answer.loss))}. {used}</p>"
        f"<details><summary>Certificate</summary><pre>{certificate}</pre></details></html>\n"
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

    parts = []
    labels = [shown(label) for label in outcome.answer.column(key)]
    for place, (label, value, (low, high)) in enumerate(zip(labels, values, outcome.spans[name], strict=True)):
        middle = place * _ROW + _ROW / 2
        start, end = sorted((across(0.0), across(value)))
        parts.append(
            f'<text x="{_LABEL - 8}" y="{middle + 4}" text-anchor="end" font-size="13">{escape(label)}</text>'
            f'<rect x="{start}" y="{middle - 8}" width="{round(end - start, 1)}" height="16" fill="#9cc4dd"/>'
            f'<path d="M{across(low)} {middle}H{across(high)}" stroke="#1c2730" stroke-width="2"/>'
            f'<circle cx="{across(value)}" cy="{middle}" r="3.5" fill="#1c2730"/>'
        )
    height = len(labels) * _ROW
    title = escape(f"{name} by {key}, with {outcome.percent} intervals")
    width = _LABEL + _PLOT + 10
    return f'<svg width="{width}" height="{height}" role="img"><title>{title}</title>{"".join(parts)}</svg>'
