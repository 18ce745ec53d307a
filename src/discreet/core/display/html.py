"""Pieces of HTML and SVG that sit well in any notebook: colours follow the page, nothing is fetched.

**This is the only module that writes markup, so no text is left unescaped**: whatever is put into a piece is escaped
unless it is a piece itself (`Html`), and pieces are made here alone. A text that was added to a piece, formatted or
joined by hand is a text again, and is escaped where it is used. Characters that are obeyed instead of shown are written
as their codes (`texts.visible`).

>>> from discreet.core.display.columns import Cells
>>> table([Cells("city", ["<b>"]), Cells("n", ["12"], right=True)]).count("&lt;b&gt;")
1
>>> note("less < more")
'<p class="quiet">less &lt; more</p>'
>>> element("text", "<a>", x=3, text_anchor="end") + "&"
'<text x="3" text-anchor="end">&lt;a&gt;</text>&amp;'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from discreet.core.display.columns import Cells
from discreet.core.display.text import visible

__all__ = [
    "MOST_ROWS",
    "STYLE",
    "Html",
    "block",
    "broken",
    "document",
    "element",
    "facts",
    "folded",
    "gauge",
    "joined",
    "note",
    "preformatted",
    "table",
    "written_by_vega",
]

MOST_ROWS = 200
"""Rows that a notebook shows."""
_PAGE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
"""
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


class Html(str):
    """A piece that is markup already. Whatever is added to it is escaped, unless it is a piece too."""

    __slots__ = ()

    def __add__(self, other: str) -> Html:
        return joined(self, other)

    def __radd__(self, other: str) -> Html:
        return joined(other, self)


def joined(*parts: str) -> Html:
    """Parts one after the other."""
    return Html("".join(part if isinstance(part, Html) else _escaped(part) for part in parts))


def broken(parts: Iterable[str]) -> Html:
    """Parts below each other."""
    return Html("<br>".join(joined(part) for part in parts))


def element(name: str, *inside: str, **attributes: object) -> Html:
    """One element; attributes are written with `_` for `-`, and `class_`."""
    given = "".join(f' {_attribute(key)}="{_escaped(str(value))}"' for key, value in attributes.items())
    if name in _EMPTY and not inside:
        return Html(f"<{name}{given}/>")
    return Html(f"<{name}{given}>{joined(*inside)}</{name}>")


def document(title: str, style: str, *parts: str) -> Html:
    """A file that stands alone; `style` is ours, and is added to that of every page."""
    body = element("div", element("h1", title), *parts, class_="discreet")
    head = f"{element('title', title)}<style>{_PAGE}{style}{STYLE}</style>"
    return Html(f'<!doctype html><html lang="en"><meta charset="utf-8">{head}{body}</html>\n')


def block(*parts: str) -> Html:
    """Parts as one piece with its style, for a notebook."""
    return Html(f'<div class="discreet"><style>{STYLE}</style>{joined(*parts)}</div>')


def table(columns: Sequence[Cells], most: int | None = None) -> Html:
    """Columns side by side, as many rows as `most` and a line that says so if there are more."""
    sides = [
        " ".join(name for name, on in (("right", column.right), ("quiet", column.quiet)) if on) for column in columns
    ]
    head = joined(*(_cell("th", side, column.title) for side, column in zip(sides, columns, strict=True)))
    rows = list(zip(*(column.texts for column in columns), strict=True))
    body = joined(
        *(
            element("tr", *(_cell("td", side, text) for side, text in zip(sides, row, strict=True)))
            for row in rows[:most]
        )
    )
    cut = "" if most is None or len(rows) <= most else note(f"The first {most:,} of {len(rows):,} rows.")
    return element("table", element("thead", element("tr", head)), element("tbody", body)) + cut


def facts(lines: Iterable[tuple[str, str]]) -> Html:
    """Names and what they stand for, one a line."""
    rows = (element("tr", element("th", name), element("td", shown)) for name, shown in lines)
    return element("table", element("tbody", *rows), class_="facts")


def note(text: str, *, alarm: bool = False) -> Html:
    """A line below; an alarm stands out."""
    return element("p", text, class_="alarm" if alarm else "quiet")


def gauge(part: float) -> Html:
    """How much of something is used up."""
    filled = element("span", style=f"width: {min(max(part, 0.0), 1.0):.1%}")
    return element("span", filled, class_="gauge") + f"{part * 100:.1f} % used"


def folded(title: str, inside: str) -> Html:
    """A piece that opens on a click."""
    return element("details", element("summary", title), inside)


def preformatted(text: str) -> Html:
    """A text with its lines as they are."""
    return element("pre", text)


def written_by_vega(picture: str) -> Html:
    """A drawing that the library of charts wrote from our description, in which it escapes texts."""
    return Html(picture)


_EMPTY = {"path", "rect", "circle"}


def _attribute(name: str) -> str:
    return name if name == "viewBox" else name.rstrip("_").replace("_", "-")


def _escaped(text: str) -> str:
    return escape(visible(str(text), lines=True))


def _cell(tag: str, side: str, text: str) -> Html:
    return element(tag, text, class_=side) if side else element(tag, text)
