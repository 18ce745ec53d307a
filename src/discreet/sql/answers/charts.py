"""Charts of answers: every value with its interval, keys in their own order, the price below the title.

`chart` gives an Altair chart with a panel for each measure. Numbers and times as keys lie along the bottom, texts down
the side in the order of the answer; a second key is told apart by colour, or by panels of its own where it has many
values. Bars start at zero, so they are for counts and sums; other measures are points.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.core.display.numbers import percent
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable
from discreet.core.no_answer import Unstable
from discreet.sql.answers.chart_data import Key, Panel, keys_of, panels_of, safe, title_of
from discreet.sql.answers.exports import library
from discreet.sql.answers.html import price

if TYPE_CHECKING:
    from discreet.sql.answers.answer import Answer

__all__ = ["chart"]

MOST_WHISKERS = 60
"""Values along an axis of numbers or times whose intervals are drawn one by one; those of more make a band."""
MOST_COLOURS = 6
WRAPPED = 84
"""Characters in a line below the title."""
INK, QUIET, EDGE, LINE, FILL, DARK = "#22303c", "#5b6b78", "#aab4bc", "#e3e8ec", "#b4d0e7", "#1d5a8c"
# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
NUMERIC = ",.12~r"


def chart(answer: Answer, level: Exactable = 0.95) -> Any:
    """The measures by the keys, with their intervals at this level."""
    alt = library("altair", "plot()", "'discreet[plots]'")
    keys = keys_of(answer)
    roles = _roles(keys)
    panels = list(panels_of(answer, roles, level))
    if not panels:
        remedy = "ask for a COUNT, SUM or AVG beside the keys"
        raise InvalidArgument("answer", list(answer.names), "with a measure among its columns", remedy)
    layout = _Layout(**roles, panels=len(panels))
    drawn = [_panel(alt, panel, layout, place) for place, panel in enumerate(panels)]
    whole = drawn[0] if len(drawn) == 1 else alt.concat(*drawn, columns=layout.columns, spacing=24)
    title = alt.TitleParams(title_of(panels, keys), subtitle=_below(answer, panels, level))
    return _styled(whole.properties(title=title))


def _roles(keys: Sequence[Key]) -> dict[str, Key]:
    """Which key is the axis, which has colours, which has panels: an ordered one is the better axis, one of few values
    the better colour; what is left shares the panels."""
    if not keys:
        return {}
    ordered = [key for key in keys if key.kind in ("time", "number")] + [key for key in keys if key.kind == "steps"]
    axis = (ordered if len(keys) > 1 and ordered else keys)[0]
    others = sorted((key for key in keys if key is not axis), key=lambda key: len(key.values))
    roles = {"axis": axis}
    if others and len(others[0].values) <= MOST_COLOURS:
        roles["colour"] = others.pop(0)
    if others:
        roles["facet"] = Key.joined([key for key in keys if key in others])
    return roles


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """What the keys are for, and the size of a panel."""

    axis: Key | None = None
    colour: Key | None = None
    facet: Key | None = None
    panels: int

    @property
    def upright(self) -> bool:
        """Whether values rise from the bottom, rather than run to the right."""
        return self.axis is not None and self.axis.kind != "text"

    @property
    def continuous(self) -> bool:
        return self.axis is not None and self.axis.kind in ("time", "number")

    @property
    def crowded(self) -> bool:
        """Whether intervals drawn one by one would hide each other."""
        return self.continuous and (self.places > MOST_WHISKERS or self.colour is not None)

    @property
    def columns(self) -> int:
        """Panels beside each other."""
        return 3 if self.axis is not None and not self.upright and self.facet is None else 1

    @property
    def roles(self) -> dict[str, Key]:
        """The keys, by what they are for."""
        held = {"axis": self.axis, "colour": self.colour, "facet": self.facet}
        return {role: key for role, key in held.items() if key is not None}

    @property
    def places(self) -> int:
        """Values along the axis."""
        return 1 if self.axis is None else max(1, len(self.axis.values))

    @property
    def step(self) -> int:
        """How much room each value of the axis gets."""
        least = 13 * (1 if self.colour is None else len(self.colour.values))
        if self.upright:
            return max(14, least, min(84, (220 if self.facet else 560) // self.places))
        # No taller than what browsers can draw.
        return max(30 if self.places <= 12 else 22, least) if self.places <= 100 else max(3, 2200 // self.places)

    @property
    def size(self) -> dict[str, int]:
        """Width and height of a panel."""
        if self.axis is None:
            return {"width": 440, "height": 44}
        long = self.step * self.places
        if not self.upright:
            beside = min(self.columns, self.panels)
            return {"width": 240 if self.facet or beside > 2 else {1: 460, 2: 300}[beside], "height": long}
        if self.continuous:
            long = 240 if self.facet else 560
        return {"width": long, "height": 150 if self.facet else 260 if self.panels == 1 else 180}


def _panel(alt: Any, panel: Panel, layout: _Layout, place: int) -> Any:
    along, across = ("x", "y") if layout.upright else ("y", "x")
    tips = [alt.Tooltip(f"{role}:N", title=safe(key.name)) for role, key in layout.roles.items()]
    tips += [alt.Tooltip("shown:N", title=safe(panel.name)), alt.Tooltip("interval:N")]
    base = alt.Chart().encode(**_keyed(alt, layout, along, place), tooltip=tips)
    marks = _Marks(alt, base, layout, across, panel)
    drawn = alt.layer(*marks.layers).properties(**layout.size)
    data = alt.InlineData(values=panel.records)
    if layout.facet is None:
        return drawn.properties(data=data)
    facet = alt.Facet("facet:N", sort=layout.facet.labels, title=safe(layout.facet.name))
    return drawn.facet(facet, columns=3, data=data)


@dataclass(frozen=True)
class _Marks:
    """The layers of a panel, from back to front; `across` is the channel of its values."""

    alt: Any
    base: Any
    layout: _Layout
    across: str
    panel: Panel

    @property
    def layers(self) -> list[Any]:
        """Bars or points with whiskers; along numbers and times a line, with a band where whiskers would crowd."""
        layout = self.layout
        if layout.crowded:
            return [self._spans(self.base.mark_area(opacity=0.22, **self.ink)), self._values(self._line(1))]
        if layout.continuous:
            return [self._values(self._line(0.4)), *self._whiskers(9), self._values(self._points)]
        if self.bars:
            fill = {"color": FILL} if layout.colour is None else {"opacity": 0.35}
            return [self._values(self.base.mark_bar(cornerRadiusEnd=2, **fill)), *self._whiskers(13), *self._labels]
        return [*self._whiskers(9), self._values(self._points), *self._labels]

    @property
    def bars(self) -> bool:
        return self.panel.bars and self.layout.axis is not None and not self.layout.continuous

    @property
    def ink(self) -> dict[str, Any]:
        return {"color": DARK} if self.layout.colour is None else {}

    @property
    def _points(self) -> Any:
        return self.base.mark_point(filled=True, size=56, opacity=1, **self.ink)

    def _line(self, opacity: float) -> Any:
        return self.base.mark_line(strokeWidth=1.5, opacity=opacity, **self.ink)

    def _whiskers(self, wide: int) -> list[Any]:
        flat = "horizontal" if self.layout.upright else "vertical"
        cap = self.base.mark_tick(thickness=2, size=wide, opacity=1, orient=flat, **self.ink)
        ends = [cap.encode(**{self.across: self._scaled(f"{end}:Q")}, **self._colour) for end in ("low", "high")]
        return [self._spans(self.base.mark_rule(strokeWidth=2, **self.ink)), *ends]

    @property
    def _labels(self) -> list[Any]:
        """Numbers beside the ends of few wide bars, and above a value that stands alone."""
        layout = self.layout
        if layout.axis is None:
            text = self.base.mark_text(dy=-16, fontSize=14, fontWeight=600, color=INK)
            return [text.encode(**{self.across: self._scaled("value:Q")}, text="label:N")]
        if len(layout.roles) > 1 or not self.bars or layout.step < (64 if layout.upright else 18):
            return []
        aside = {"dy": -10} if layout.upright else {"dx": 9, "align": "left"}
        text = self.base.mark_text(fontSize=11, color=INK, **aside).transform_calculate(
            end="isValid(datum.high) ? max(datum.high, datum.value) : datum.value"
        )
        return [text.encode(**{self.across: self._scaled("end:Q")}, text="label:N")]

    def _values(self, mark: Any) -> Any:
        return mark.encode(**{self.across: self._scaled("value:Q")}, **self._colour)

    def _spans(self, mark: Any) -> Any:
        return mark.encode(**{self.across: self._scaled("low:Q"), f"{self.across}2": "high:Q"}, **self._colour)

    def _scaled(self, field: str) -> Any:
        alt = self.alt
        edge = {"padding": 10, "nice": False} if self.layout.axis is None else {}
        zero = self.panel.bars and self.layout.axis is not None
        grid = alt.condition("datum.value == 0", alt.value(EDGE), alt.value(LINE))
        few = 4 if self.layout.size["width"] < 300 else 5
        axis = alt.Axis(format=NUMERIC, tickCount=few, gridColor=grid, domain=False, ticks=False, labelFlush=False)
        channel = alt.Y if self.across == "y" else alt.X
        return channel(field, title=self.panel.label, axis=axis, stack=None, scale=alt.Scale(zero=zero, **edge))

    @property
    def _colour(self) -> dict[str, Any]:
        if self.layout.colour is None:
            return {}
        key = self.layout.colour
        scale = self.alt.Scale(domain=key.labels, range=COLOURS[: len(key.labels)])
        legend = self.alt.Legend(title=safe(key.name), orient="top", symbolOpacity=1, symbolType="circle")
        return {"color": self.alt.Color("colour:N", scale=scale, legend=legend)}


def _keyed(alt: Any, layout: _Layout, along: str, place: int) -> dict[str, Any]:
    """Where a value stands along the axis of its key; panels side by side, or above each other, say its name once."""
    if layout.axis is None:
        return {}
    key = layout.axis
    channel = alt.X if along == "x" else alt.Y
    first = place % layout.columns == 0
    title = safe(key.name) if (place == layout.panels - 1 if layout.upright else first) else None
    if key.kind == "time":
        return {along: channel("axis:T", axis=alt.Axis(grid=False), scale=alt.Scale(padding=12), title=title)}
    if key.kind == "number":
        scale = alt.Scale(zero=False, nice=False, padding=12)
        return {along: channel("axis:Q", axis=alt.Axis(grid=False, format="~r"), scale=scale, title=title)}
    labels = layout.upright or first
    axis = alt.Axis(
        labelAngle=0, labelLimit=240, ticks=False, domain=False, labelPadding=8, labels=labels, labelOverlap=True
    )
    scale = alt.Scale(domain=key.labels, paddingInner=0.3, paddingOuter=0.2)
    found = {along: channel("axis:N", axis=axis, scale=scale, sort=None, title=title)}
    if layout.colour is not None:
        beside = alt.XOffset if layout.upright else alt.YOffset
        order = layout.colour.labels
        found[f"{along}Offset"] = beside("colour:N", sort=order, scale=alt.Scale(domain=order))
    return found


def _below(answer: Answer, panels: Sequence[Panel], level: Exactable) -> list[str]:
    """What was paid, what the whiskers are, and what they leave out."""
    said = [f"{price(answer.loss, answer.certificate.get('unit'), digits=3)}; {percent(level)} intervals"]
    bare = [name for name, index in answer.measured.items() if not answer.spans.covers_clipping(index)]
    if bare:
        whose = "" if len(bare) == len(panels) else f" of {', '.join(bare)}"
        said.append(f"Intervals{whose} cover the noise, not what clipping took from units with many rows.")
    known = answer.measured.keys() | answer.query.chosen.keys()
    computed = [panel.name for panel in panels if panel.name not in known]
    if computed:
        said.append(f"No intervals for {', '.join(computed)}, computed from measures.")
    said += [text for text in answer.notes if text.startswith(Unstable.symbol)]
    if not answer.rows:
        said.append("There are no rows to show.")
    if not answer.private:
        said.append("NOT PRIVATE: the noise came from a test seed.")
    return [safe(line) for text in said for line in textwrap.wrap(text, WRAPPED)]


def _styled(whole: Any) -> Any:
    sizes = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal"}
    colours = {"labelColor": INK, "titleColor": QUIET}
    below = {"subtitleFontSize": 12, "subtitleColor": QUIET, "subtitlePadding": 5, "subtitleLineHeight": 17}
    return (
        whole.configure(font=FONT, background="white", padding=12)
        .configure_view(stroke=None)
        .configure_axis(**sizes, **colours, titlePadding=10, gridColor=LINE, domainColor=EDGE, tickColor=EDGE)
        .configure_title(anchor="start", fontSize=16, fontWeight=600, color=INK, offset=16, **below)
        .configure_legend(**sizes, **colours)
        .configure_header(**sizes, **colours)
    )
