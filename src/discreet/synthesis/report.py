"""How good synthetic rows are, for people: a text, a piece for notebooks, and a page that stands alone.

Everything shown was released: the weights, and the errors that the check found with its part of the budget. Only rows
that protect nobody (`public`) are counted as they are, to show true counts and exact errors beside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.core.display.columns import Cells
from discreet.core.display.html import Html, block, document, element, facts, joined, note, table
from discreet.core.display.numbers import loss as loss_text
from discreet.core.display.numbers import shown
from discreet.core.display.text import visible
from discreet.sql.answers.html import certificate_html
from discreet.synopses.queries.workload import Workload

if TYPE_CHECKING:
    from discreet.synthesis.result import BlockError, Synthesis

__all__ = ["brief", "page", "summary"]

_STYLE = """
body { max-width: 62rem; }
h2 { margin: 2rem 0 .25rem; font-size: 1.15rem; }
svg { display: block; margin: .75rem 0; fill: currentColor; max-width: 100%; height: auto; }
.columns { display: grid; grid-template-columns: repeat(auto-fill, minmax(28rem, 1fr)); gap: 0 2rem; }
"""
LABEL, PLOT, END, ROW, AXIS = 210, 520, 60, 22, 44
NARROW = 90, 280
"""The width of labels and of the plot, for one column."""
MOST_BARS = 60
WIDEST = 34
FILL, TRUE = "#5b9bd0aa", "#d55e00"
PLAIN = "Synthetic rows by value, as they were released."
LEGEND = "Bars are synthetic rows, dots the true counts of public rows."


def summary(synthesis: Synthesis) -> str:
    """The rows in a few lines."""
    lines = [f"{len(synthesis):,} synthetic rows of {', '.join(synthesis.names)}", f"cost {loss_text(synthesis.loss)}"]
    if not synthesis.private:
        lines.insert(0, "NOT PRIVATE: the randomness came from a test seed.")
    for error in synthesis.errors:
        if not error.counts:
            lines.append(f"  {error.label}: {_percent(error)} of the rows in the wrong place")
    return "\n".join(map(visible, lines))


def brief(synthesis: Synthesis) -> Html:
    """For a notebook: the first rows, what they cost and how far off they are."""
    first = [Cells(name, [shown(v) for v in values[:10]]) for name, values in synthesis.table.columns.items()]
    more = note(f"The first of {len(synthesis):,} rows.") if len(synthesis) > 10 else ""
    return block(_alarm(synthesis), table(first), more, _facts(synthesis), _means(synthesis.errors))


def page(synthesis: Synthesis, public: Mapping[str, Any] | None = None) -> Html:
    """The whole file."""
    truth = None if public is None else synthesis.compared(public)
    errors = [error for error in synthesis.errors if error.counts] if truth is None else truth
    how = (
        "found out privately, with its part of the budget; lines hold the error with 95 % probability"
        if truth is None
        else "computed exactly, from rows that protect nobody"
    )
    found = joined(
        element("h2", "How far off they are"),
        _means(synthesis.errors),
        note(f"For every group of counts, how many rows would have to change places: {how}."),
        _errors(errors),
    )
    nothing = note("No part of the budget was spent on finding out how far off the rows are.")
    return document(
        "Synthetic rows",
        _STYLE,
        _alarm(synthesis),
        _facts(synthesis),
        found if errors else nothing,
        element("h2", "Columns"),
        note(PLAIN if public is None else LEGEND),
        element("div", *_columns(synthesis, public), class_="columns"),
        certificate_html(synthesis.certificate),
    )


def _alarm(synthesis: Synthesis) -> Html:
    return joined() if synthesis.private else note("NOT PRIVATE: the randomness came from a test seed.", alarm=True)


def _facts(synthesis: Synthesis) -> Html:
    request = synthesis.request
    bound = synthesis.accuracy(0.05)
    lines = [
        ("rows", f"{len(synthesis):,} of {', '.join(synthesis.names)}"),
        ("from", " ".join(request.text.split())),
        ("cost", loss_text(synthesis.loss)),
        ("plan", request.words),
    ]
    if request.errors:
        lines.append(("noise", f"{request.errors[0]} rows"))
    if math.isfinite(bound):
        lines.append(("proven", f"with 95 % probability every count is within {bound:,.0f} rows"))
    return facts(lines)


def _means(errors: Sequence[BlockError]) -> Html:
    means = [error for error in errors if not error.counts]
    if not means:
        return joined()
    spans = [error.misplaced() for error in means]
    return table(
        [
            Cells("counts by", [error.label.removeprefix("mean of ") for error in means]),
            Cells("rows in the wrong place", [f"{share * 100:.1f} %" for share, _, _ in spans], right=True),
            Cells("95 % interval", [f"{low * 100:.1f} … {high * 100:.1f} %" for _, low, high in spans], right=True),
        ]
    )


def _percent(error: BlockError) -> str:
    share, low, high = error.misplaced()
    return f"{share * 100:.1f} % ({low * 100:.1f} to {high * 100:.1f})"


def _errors(errors: Sequence[BlockError]) -> Html:
    """A bar for each group of counts, with its interval as a line."""
    spans = [error.misplaced() for error in errors[:MOST_BARS]]
    top = max([high for _, _, high in spans] + [0.001])
    labels = [_short(error.label) for error in errors[:MOST_BARS]]
    notes = [f"{share * 100:.1f} %" for share, _, _ in spans]
    bars = _bars(labels, [share for share, _, _ in spans], notes, top, LABEL, PLOT)
    across = _scale(top, LABEL, PLOT)
    wide = [(place, low, high) for place, (_, low, high) in enumerate(spans) if high > low]
    ends = [f"M{across(low)} {_middle(place)}H{across(high)}" for place, low, high in wide]
    whiskers = joined(*(element("path", d=path, stroke="currentColor", stroke_width=1.5) for path in ends))
    axis = _axis(top, len(spans), LABEL, PLOT, "share of rows in the wrong place", percent=True)
    title = "Share of rows in the wrong place, by group of counts"
    more = note(f"The first {MOST_BARS} of {len(errors)}.") if len(errors) > MOST_BARS else ""
    return _svg(title, bars + whiskers + axis, len(spans), LABEL + PLOT + END) + more


def _columns(synthesis: Synthesis, public: Mapping[str, Any] | None) -> list[Html]:
    """The counts of each column's values."""
    domain = synthesis.workload.domain
    drawn: list[Html] = []
    true = None if public is None else synthesis.histogram(public)
    for attribute in domain.attributes:
        each = Workload.marginals(domain, [(attribute.name,)])
        counts = synthesis.synopsis.answers(each).tolist()
        exact = None if true is None else each.answers(true).tolist()
        drawn.append(_column(attribute.name, attribute.labels, counts, exact))
    return drawn


def _column(name: str, labels: Sequence[str], counts: Sequence[float], exact: Sequence[float] | None) -> Html:
    labels, counts = [_short(label, 14) for label in labels[:MOST_BARS]], counts[:MOST_BARS]
    top = max([*counts, *(exact or ()), 1.0])
    left, wide = NARROW
    across = _scale(top, left, wide)
    bars = _bars(labels, counts, [f"{count:,.0f}" for count in counts], top, left, wide)
    seen = enumerate((exact or ())[:MOST_BARS])
    dots = joined(*(element("circle", cx=across(count), cy=_middle(place), r=3.5, fill=TRUE) for place, count in seen))
    axis = _axis(top, len(counts), left, wide, f"rows by {name}")
    return _svg(f"Rows by {name}", bars + dots + axis, len(counts), left + wide + END)


def _bars(
    labels: Sequence[str], values: Sequence[float], notes: Sequence[str], top: float, left: int, wide: int
) -> Html:
    across = _scale(top, left, wide)
    lengths = [round(across(value) - left, 1) for value in values]
    parts: list[Html] = []
    for place, (label, length, said) in enumerate(zip(labels, lengths, notes, strict=True)):
        middle = _middle(place)
        parts += [
            element("text", label, x=left - 8, y=middle + 4, text_anchor="end", font_size=12),
            element("rect", x=left, y=middle - 7, width=length, height=14, fill=FILL),
            element("text", said, x=left + wide + 8, y=middle + 4, font_size=11, opacity=".7"),
        ]
    return joined(*parts)


def _axis(top: float, bars: int, left: int, wide: int, title: str, *, percent: bool = False) -> Html:
    across, bottom = _scale(top, left, wide), bars * ROW + 4
    centred = {"text_anchor": "middle"}
    parts = [element("path", d=f"M{left} {bottom}H{left + wide}", stroke="currentColor", opacity=".5")]
    for tick in _ticks(top):
        said = f"{tick * 100:g} %" if percent else f"{tick:,.0f}"
        parts.append(element("path", d=f"M{across(tick)} 0V{bottom + 4}", stroke="currentColor", opacity=".15"))
        parts.append(element("text", said, x=across(tick), y=bottom + 17, font_size=11, opacity=".8", **centred))
    parts.append(element("text", title, x=left + wide / 2, y=bottom + 34, font_size=12, **centred))
    return joined(*parts)


def _svg(title: str, inside: Html, bars: int, wide: int) -> Html:
    high = bars * ROW + AXIS
    size = {"width": wide, "height": high, "viewBox": f"0 0 {wide} {high}"}
    return element("svg", element("title", title), inside, **size, role="img")


def _scale(top: float, left: int, wide: int) -> Any:
    return lambda value: round(left + min(max(value, 0.0), top) / top * wide, 1)


def _middle(place: int) -> float:
    return place * ROW + ROW / 2


def _ticks(top: float) -> list[float]:
    """Round numbers from 0 to the top, about five."""
    power = 10.0 ** math.floor(math.log10(top / 4))
    step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= top / 5)
    return [round(step * place, 12) for place in range(int(top / step + 1e-9) + 1)]


def _short(label: str, most: int = WIDEST) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"
