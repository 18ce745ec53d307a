"""What an attack or a bound found, for people: on the terminal, as a page that stands alone, as a picture, as JSON.

Secrets that were found are in none of these unless whoever asked said `--reveal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from discreet.app.output.printing import say
from discreet.core.display.columns import Cells
from discreet.core.display.html import document, joined, written_by_vega
from discreet.core.display.text import json_text
from discreet.core.errors import InvalidArgument

__all__ = ["Finding", "Telling", "check_files", "print_json", "show", "telling", "write"]

PICTURES = (".png", ".svg")
_STYLE = """
svg { display: block; margin: 1rem 0; max-width: 100%; height: auto; }
"""
_ALARMING = ("BROKEN", "LEAKING")


class Finding(Protocol):
    """A verdict with what it rests on."""

    @property
    def verdict(self) -> str: ...

    def _repr_html_(self) -> str: ...

    def plot(self) -> Any: ...


class Telling:
    """How much is done, set by one thread and read by another."""

    def __init__(self) -> None:
        self.part = 0.0

    def hear(self, part: float) -> None:
        """So much is done."""
        self.part = part

    def tell(self) -> float:
        """What was heard last."""
        return self.part


@contextmanager
def telling(doing: str) -> Iterator[Telling]:
    """A progress bar while the block runs."""
    from discreet.app.output.progress import waiting

    heard = Telling()
    with waiting(heard.tell, doing):
        yield heard


def check_files(targets: Mapping[str, Path | None], kept: Iterable[Path | None]) -> None:
    """Refuses files, by option, that cannot be written, or that are read by the same command."""
    read = {path.resolve() for path in kept if path is not None}
    for option, path in targets.items():
        if path is None:
            continue
        if not path.resolve().parent.is_dir():
            raise InvalidArgument(option, str(path), "in a folder that exists", f"there is no folder {path.parent}")
        if path.is_dir() or path.resolve() in read:
            raise InvalidArgument(option, str(path), "a new file", "name another one")
    plot = targets.get("plot")
    if plot is not None and plot.suffix not in PICTURES:
        raise InvalidArgument("plot", str(plot), "a file that ends in .png or .svg", "choose one of the two")


def write(found: Finding, title: str, html: Path | None, plot: Path | None) -> None:
    """A page, a picture, or both."""
    if plot is not None:
        drawing = _library()
        chart = found.plot().to_dict()
        if plot.suffix == ".png":
            plot.write_bytes(drawing.vegalite_to_png(chart, scale=2))
        else:
            plot.write_text(drawing.vegalite_to_svg(chart), encoding="utf-8")
    if html is not None:
        html.write_text(_page(found, title), encoding="utf-8")


def show(found: Finding, columns: Iterable[Cells], lines: Iterable[tuple[str, str]], notes: Iterable[str] = ()) -> None:
    """The verdict, then what it rests on."""
    from discreet.app.output.terminal import console, facts, show_grid, worded

    out = console()
    style = "bold red" if found.verdict.startswith(_ALARMING) else "bold green"
    out.print(worded(found.verdict, style=style if not found.verdict.startswith("No mechanism") else "bold"))
    listed = list(columns)
    if listed:
        show_grid(listed)
    said = list(lines)
    if said:
        out.print(facts(said))
    for note in notes:
        out.print(worded(note, style="dim italic"))


def print_json(record: Mapping[str, Any]) -> None:
    """For other programs."""
    say(json_text(record))


def _page(found: Finding, title: str) -> str:
    try:
        picture = written_by_vega(_library().vegalite_to_svg(found.plot().to_dict()))
    except ImportError:
        picture = joined()
    return document(title, _STYLE, found._repr_html_(), picture)


def _library() -> Any:
    from discreet.sql.answers.exports import library

    library("altair", "--plot", "'discreet[plots]'")
    return library("vl_convert", "--plot", "'discreet[plots]'")
