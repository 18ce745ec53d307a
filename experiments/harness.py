"""A named experiment: what a theorem states beside what is measured, as rows, a table and a figure.

A script builds one `Experiment` from a function that measures and a function that draws. Running it prints the table,
writes the figure as PNG and SVG, and ends with exit code 1 when a measured value breaks a bound.

>>> row = Row({"k": 3}, bound=2.0, measured=1.5)
>>> row.ratio, row.verdict
(0.75, 'ok')
>>> print(table([row, Row({"k": 4}, bound=2.0, measured=2.5)]))
k  bound  measured  ±  ratio  verdict
3      2       1.5      0.75  ok
4      2       2.5      1.25  EXCEEDED

Chance is accounted for in the row: `doubt` is how far the measured value may lie from the true one, and must be chosen
so that it lies farther with probability at most `ALARM`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import altair as alt
import vl_convert

__all__ = ["ALARM", "COLOURS", "OUT", "Experiment", "Row", "deviation", "points", "table"]

ALARM = 1e-12
"""The chance allowed to each row of a false verdict; the thousand rows of all scripts stay below 1e-9 together."""
OUT = Path(__file__).parent / "out"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""The palette of Okabe and Ito, which colour-blind readers can tell apart."""


@dataclass(frozen=True)
class Row:
    """One setting: the stated value, the measured value, and what the theorem claims about the two.

    The claim `at most` is broken by a measured value above the bound, `equal` by one on either side; `none` marks a
    setting outside the theorem, which is shown and cannot be broken.
    """

    setting: Mapping[str, str | int | float]
    bound: float
    measured: float
    doubt: float = 0.0
    claim: Literal["at most", "equal", "none"] = "at most"

    @property
    def ratio(self) -> float:
        """measured/bound: the share of the bound that is used; above 1 it is exceeded."""
        return self.measured / self.bound if self.bound else math.inf if self.measured else 1.0

    @property
    def exceeds(self) -> bool:
        """Whether the measured value is above the bound, all doubt granted. A NaN counts as above."""
        return not self.measured - self.doubt <= self.bound

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted."""
        short = self.claim == "equal" and self.measured + self.doubt < self.bound
        return self.claim != "none" and (self.exceeds or short)

    @property
    def verdict(self) -> str:
        """In words, loud where the claim is refuted."""
        if self.claim == "none":
            return "exceeds, outside the theorem" if self.exceeds else "holds, outside the theorem"
        if not self.broken:
            return "ok"
        return "EXCEEDED" if self.exceeds else "TOO LOW"


@dataclass(frozen=True)
class Experiment:
    """`measure(quick)` gives the rows, `draw(rows)` the figure without its title."""

    name: str
    title: str
    claim: str
    measure: Callable[[bool], list[Row]]
    draw: Callable[[list[Row]], Any]

    def run(self, *, quick: bool = False, out: Path = OUT) -> list[Row]:
        """Measure, print, draw, complain; the rows are returned."""
        rows = self.measure(quick)
        print(f"{self.title}\n{self.claim}\n\n{table(rows)}\n")
        for path in self.save(rows, out):
            print(f"wrote {path}")
        broken = [row for row in rows if row.broken]
        if broken:
            alarm = f"!!! {self.name}: {len(broken)} OF {len(rows)} ROWS BREAK THEIR CLAIM"
            print(f"\n{alarm}\n{table(broken)}", file=sys.stderr)
        else:
            print(f"{self.name}: all {sum(row.claim != 'none' for row in rows)} claims hold")
        return rows

    def save(self, rows: list[Row], out: Path) -> list[Path]:
        """The figure as PNG and SVG in the folder `out`."""
        title = alt.TitleParams(self.title, subtitle=self.claim, anchor="start", offset=16)
        chart = _styled(self.draw(rows).properties(title=title)).to_dict()
        out.mkdir(parents=True, exist_ok=True)
        image, drawing = out / f"{self.name}.png", out / f"{self.name}.svg"
        image.write_bytes(vl_convert.vegalite_to_png(chart, scale=2))
        drawing.write_text(vl_convert.vegalite_to_svg(chart), encoding="utf-8")
        return [image, drawing]

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """The command line; 1 when a claim is broken, else 0."""
        parser = argparse.ArgumentParser(description=f"{self.title}. {self.claim}")
        parser.add_argument("--quick", action="store_true", help="small sizes, a few seconds at most")
        parser.add_argument("--out", type=Path, default=OUT, help="folder for the figure (default: %(default)s)")
        given = parser.parse_args(arguments)
        return int(any(row.broken for row in self.run(quick=given.quick, out=given.out)))


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text, with one column for each name that occurs in a setting."""
    names = list(dict.fromkeys(name for row in rows for name in row.setting))
    cells = [[*names, "bound", "measured", "±", "ratio", "verdict"]]
    for row in rows:
        numbers = [row.bound, row.measured, row.doubt or "", row.ratio]
        cells.append([_shown(value) for value in [*(row.setting.get(name, "") for name in names), *numbers]])
        cells[-1].append(row.verdict)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    texts = {i for i, name in enumerate(names) if any(isinstance(row.setting.get(name), str) for row in rows)}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in texts or i == len(widths) - 1 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def points(rows: Sequence[Row], **columns: Callable[[Row], Any]) -> alt.Data:
    """The rows as data for a chart: the setting, bound, measured, ratio, and columns computed from each row."""
    records = [
        {**row.setting, "bound": row.bound, "measured": row.measured, "ratio": row.ratio}
        | {name: column(row) for name, column in columns.items()}
        for row in rows
    ]
    return alt.Data(values=records)


def deviation(second_moment: float, scale: float, size: int) -> float:
    """How far the mean of `size` draws of X ≥ 0 may stray from E[X], farther with probability at most `ALARM`.

    Bernstein's inequality for E[X^q] ≤ q!/2·E[X²]·scale^(q−2), q ≥ 3; Laplace noise meets it with its own scale.
    """
    exponent = math.log(2 / ALARM)
    return math.sqrt(2 * second_moment * exponent / size) + scale * exponent / size


def _shown(value: str | int | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _styled(chart: Any) -> Any:
    return (
        chart.configure(background="white", font="sans-serif", padding=16)
        .configure_title(fontSize=17, subtitleFontSize=13, subtitleColor="#444", subtitlePadding=6)
        .configure_axis(labelFontSize=12, titleFontSize=13, titleFontWeight="normal", gridColor="#e6e6e6")
        .configure_legend(labelFontSize=12, titleFontSize=13, symbolSize=90, labelLimit=400, symbolStrokeWidth=2.5)
        .configure_header(labelFontSize=14, titleFontSize=13, labelFontWeight="bold")
        .configure_view(stroke="#bbb")
    )
