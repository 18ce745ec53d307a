"""Answers, prices and budgets on a terminal: aligned numbers, intervals beside them, a plot, and what is left."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from discreet.app.output.bars import BAR, bars, gauge
from discreet.app.output.outcome import MOST_MORE, Outcome
from discreet.core.display.columns import Cells
from discreet.core.display.numbers import loss, number, places, shown
from discreet.core.display.text import visible
from discreet.ledger import Standing
from discreet.ledger.encoding import shown as shown_account

if TYPE_CHECKING:
    from discreet.app.output.outcome import Priced

__all__ = ["console", "facts", "show_grid", "show_outcome", "show_price", "standing_line", "worded"]

MOST_BARS = 40
WIDEST_LABEL = 24
WIDEST_PLOT = 100
WIDEST = 1000


def console(*, errors: bool = False) -> Console:
    """Standard output, or standard error."""
    return Console(file=sys.stderr if errors else sys.stdout, highlight=False, soft_wrap=False)


def worded(text: str, style: str = "") -> Text:
    """A text as it is: neither markup of the library nor what a terminal obeys does anything in it."""
    return Text(visible(text, lines=True), style=style)


def _grid(columns: Iterable[Cells]) -> Table:
    """Columns of texts, numbers to the right."""
    listed = list(columns)
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    for column in listed:
        table.add_column(
            worded(column.title),
            justify="right" if column.right else "left",
            style="dim" if column.quiet else "",
            overflow="ellipsis" if column.firm else "fold",
            no_wrap=column.firm,
        )
    for row in zip(*(column.texts for column in listed), strict=True):
        table.add_row(*map(worded, row))
    return table


def show_grid(columns: Iterable[Cells]) -> None:
    """Prints columns; where no terminal limits them, as wide as they are."""
    out, table = console(), _grid(columns)
    if not out.is_terminal:
        out.width = max(out.width, out.measure(table, options=out.options.update(max_width=WIDEST)).maximum)
    out.print(table)


def facts(lines: Iterable[tuple[str, str]]) -> Table:
    """Names and what they stand for, one a line."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="left", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in lines:
        table.add_row(worded(name), worded(text))
    return table


def show_outcome(outcome: Outcome, *, plot: bool = True) -> None:
    """The whole answer."""
    show_grid(outcome.columns())
    out = console()
    if plot:
        _plot(out, outcome)
    for note in outcome.answer.notes:
        out.print(Padding(worded(note, style="dim italic"), (0, 0, 1, 0)))
    lines = [("cost", "nothing: this was asked before" if outcome.free else loss(outcome.answer.loss))]
    out.print(facts([*lines, ("budget", standing_line(outcome.standing, outcome.more))]))


def show_price(priced: Priced) -> None:
    """What a question would cost and how it would be answered."""
    lines = [("cost", priced.quote.cost), ("plan", "\n".join(priced.words))]
    console().print(facts(lines))


def _number(more: int) -> str:
    return f"{more:,}" if more < MOST_MORE else f"at least {more:,}"


def standing_line(standing: Standing, more: int | None = None) -> str:
    """A gauge of the budget with what is left of it."""
    whose = "" if len(standing.account) == 1 else f" of {shown_account(standing.account)}"
    enough = "" if more is None else f", enough for {_number(more)} more like this"
    return f"{gauge(float(standing.used))} {float(standing.used) * 100:.1f} % used{whose}{enough}"


def _plot(out: Console, outcome: Outcome) -> None:
    """Bars of the first measure by the one key."""
    rows, key = outcome.answer.rows, outcome.key
    if key is None or not outcome.spans or not 2 <= len(rows) <= MOST_BARS:
        return
    name = next(iter(outcome.spans))
    values, spans = outcome.answer.column(name), outcome.spans[name]
    if not all(abs(number) < 1e300 for span in zip(values, *zip(*spans, strict=True), strict=True) for number in span):
        return
    labels = _shortened([visible(shown(value)) for value in outcome.answer.column(key)])
    decimals = places([(high - low) / 2 for low, high in spans])
    ends = [number(value, decimals) for value in values]
    first, last = max(map(len, [*labels, key[:WIDEST_LABEL]])), max(map(len, ends))
    lines = bars([float(v) for v in values], spans, max(10, min(out.width, WIDEST_PLOT) - first - last - 4))
    out.print(worded(f"{name} by {key}", style="bold"))
    for label, line, end in zip(labels, lines, ends, strict=True):
        drawn = worded(f"{label:<{first}}  ")
        for mark in line:
            drawn.append(mark, style="cyan" if mark == BAR else "bold yellow")
        out.print(drawn.append(f"  {end:>{last}}", style="dim"), no_wrap=True, overflow="crop")
    out.print()


def _shortened(labels: Sequence[str]) -> list[str]:
    return [label if len(label) <= WIDEST_LABEL else label[: WIDEST_LABEL - 1] + "…" for label in labels]
