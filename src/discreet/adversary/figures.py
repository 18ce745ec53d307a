"""Figures of attacks, in the colours of the house: how estimates of bits spread, and bars of one number by name.

Altair is loaded when a figure is drawn.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.sql.answers.exports import library

__all__ = ["COLOURS", "altair", "bars", "dots", "histogram", "styled"]

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
INK, QUIET, LINE = "#22303c", "#5b6b78", "#e3e8ec"
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
BINS = 60
WIDE = 4.0
"""Where estimates are drawn to, on both sides of ½, at most; what lies beyond is in the last bars."""


def altair() -> Any:
    """The library, or a word on how to get it."""
    return library("altair", "plot()", "'discreet[plots]'")


def histogram(estimate: NDArray[np.float64], truth: NDArray[np.int64] | None, title: str) -> Any:
    """Estimates of bits, coloured by what they should be where that is known."""
    alt = altair()
    reach = min(max(float(np.abs(estimate - 0.5).max(initial=0.0)), 1.0), WIDE)
    edges = np.linspace(0.5 - reach, 0.5 + reach, BINS + 1)
    kinds = [("bits", np.ones(estimate.size, bool))]
    if truth is not None:
        kinds = [("true 0", truth == 0), ("true 1", truth == 1)]
    records = []
    for name, of in kinds:
        counts, _ = np.histogram(np.clip(estimate[of], edges[0], edges[-1]), edges)
        bars = zip(counts.tolist(), edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        records += [{"low": low, "high": high, "bits": many, "kind": name} for many, low, high in bars]
    colour = alt.Color(
        "kind:N", title=None, scale=alt.Scale(range=COLOURS), legend=None if truth is None else alt.Legend(orient="top")
    )
    bars = (
        alt.Chart(alt.Data(values=records))
        .mark_bar(opacity=0.65, binSpacing=0)
        .encode(
            x=alt.X("low:Q", bin="binned", title="estimate of a bit; above ½ it is guessed to be 1"),
            x2="high:Q",
            y=alt.Y("bits:Q", title="people", stack=None),
            color=colour,
        )
    )
    cut = alt.Chart(alt.Data(values=[{"at": 0.5}])).mark_rule(color=INK, strokeDash=[4, 4]).encode(x="at:Q")
    return styled((bars + cut).properties(width=520, height=260), title)


def bars(values: Mapping[str, float], title: str, axis: str, *, percent: bool = False) -> Any:
    """One bar for each name, in their order."""
    alt = altair()
    rows = [{"name": name, "value": value} for name, value in values.items()]
    drawn = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(color=COLOURS[1])
        .encode(
            x=alt.X("value:Q", title=axis, axis=alt.Axis(format="%" if percent else "~s")),
            y=alt.Y("name:N", title=None, sort=None, axis=alt.Axis(labelLimit=360)),
        )
    )
    return styled(drawn.properties(width=420, height=alt.Step(26)), title)


def dots(names: Sequence[str], values: Sequence[float], kinds: Sequence[str], title: str, axis: str) -> Any:
    """One number by name on a logarithmic axis, coloured by kind."""
    alt = altair()
    rows = [{"name": n, "value": v, "kind": k} for n, v, k in zip(names, values, kinds, strict=True) if v > 0]
    drawn = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, size=110, opacity=1)
        .encode(
            x=alt.X("value:Q", title=axis, scale=alt.Scale(type="log")),
            y=alt.Y("name:N", title=None, sort=list(names), axis=alt.Axis(labelLimit=360)),
            color=alt.Color("kind:N", title=None, scale=alt.Scale(range=COLOURS[1::-1])),
        )
    )
    return styled(drawn.properties(width=460, height=alt.Step(30)), title)


def styled(chart: Any, title: str, below: str = "") -> Any:
    """The chart under its title, in the style of the others."""
    alt = altair()
    head = alt.TitleParams(textwrap.wrap(title, 76), subtitle=textwrap.wrap(below, 90) if below else [])
    sizes = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    colours = {"labelColor": INK, "titleColor": QUIET}
    return (
        chart.properties(title=head)
        .configure(font=FONT, background="white", padding=12)
        .configure_view(stroke=None)
        .configure_axis(**sizes, **colours, gridColor=LINE, titlePadding=10)
        .configure_title(anchor="start", fontSize=15, fontWeight=600, color=INK, offset=14, subtitleColor=QUIET)
        .configure_legend(**sizes, **colours)
    )
