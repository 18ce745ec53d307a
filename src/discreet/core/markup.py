"""Pieces of HTML that sit well in any notebook: every text is escaped, colours follow the page, nothing is fetched.

>>> from discreet.core.cells import Cells
>>> table([Cells("city", ["<b>"]), Cells("n", ["12"], right=True)]).count("&lt;b&gt;")
1
>>> note("less < more")
'<p class="quiet">less &lt; more</p>'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from discreet.core.cells import Cells

__all__ = ["MOST_ROWS", "STYLE", "block", "facts", "folded", "gauge", "note", "table"]

MOST_ROWS = 200
"""Rows that a notebook shows."""
STYLE = """
.discreet table { border-collapse: collapse; margin: .5em 0; font-variant-numeric: tabular-nums; color: inherit; }
.discreet th, .discreet td { padding: .25em .9em .25em 0; border: 0; border-bottom: 1px solid #8886; background: none; }
.discreet th, .discreet td { text-align: left; vertical-align: top; color: inherit; white-space: pre-wrap; }
.discreet th { font-weight: 600; border-bottom-width: 2px; }
.discreet .right { text-align: right; white-space: nowrap; }
.discreet .facts th { font-weight: inherit; color: #77818b; border: 0; white-space: nowrap; }
.discreet .facts td { border: 0; }
.discreet p { margin: .35em 0; max-width: 60em; }
.discreet .quiet { color: #77818b; }
.discreet .alarm { border-left: 4px solid #d23f31; padding-left: .6em; font-weight: 600; }
.discreet .gauge { display: inline-block; width: 12em; height: .7em; margin-right: .6em; border-radius: .35em; }
.discreet .gauge { background: #8884; overflow: hidden; vertical-align: baseline; }
.discreet .gauge span { display: block; height: 100%; background: #2f7fc1; }
.discreet details { margin: .35em 0; }
.discreet summary { cursor: pointer; }
.discreet pre { font-size: .85em; overflow-x: auto; background: none; color: inherit; white-space: pre; }
"""


def block(*parts: str) -> str:
    """Parts as one piece with its style, for a notebook."""
    return f'<div class="discreet"><style>{STYLE}</style>{"".join(parts)}</div>'


def table(columns: Sequence[Cells], most: int | None = None) -> str:
    """Columns side by side, as many rows as `most` and a line that says so if there are more."""
    sides = [
        " ".join(name for name, on in (("right", column.right), ("quiet", column.quiet)) if on) for column in columns
    ]
    head = "".join(_cell("th", side, column.title) for side, column in zip(sides, columns, strict=True))
    rows = list(zip(*(column.texts for column in columns), strict=True))
    body = "".join(
        "<tr>" + "".join(_cell("td", side, text) for side, text in zip(sides, row, strict=True)) + "</tr>"
        for row in rows[:most]
    )
    cut = "" if most is None or len(rows) <= most else note(f"The first {most:,} of {len(rows):,} rows.")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{cut}"


def facts(lines: Iterable[tuple[str, str]]) -> str:
    """Names and what they stand for, one a line; the second of each pair is HTML already."""
    return (
        '<table class="facts"><tbody>'
        + "".join(f"<tr><th>{escape(name)}</th><td>{shown}</td></tr>" for name, shown in lines)
        + "</tbody></table>"
    )


def note(text: str, *, alarm: bool = False) -> str:
    """A line below; an alarm stands out."""
    return f'<p class="{"alarm" if alarm else "quiet"}">{escape(text)}</p>'


def gauge(part: float) -> str:
    """How much of something is used up."""
    width = min(max(part, 0.0), 1.0)
    return f'<span class="gauge"><span style="width: {width:.1%}"></span></span>{part * 100:.1f} % used'


def folded(title: str, inside: str) -> str:
    """HTML that opens on a click."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def _cell(tag: str, side: str, text: str) -> str:
    return f'<{tag} class="{side}">{escape(text)}</{tag}>' if side else f"<{tag}>{escape(text)}</{tag}>"
