"""An audit as people read it: a verdict in plain words, the trade-off curve, and what the audit would have caught.

The page stands alone: nothing is fetched, and every text is escaped.

>>> from discreet.adversary.auditing.auditor import audit
>>> from discreet.core.losses import PureDP
>>> verdict(audit(lambda rows: len(rows), [1], [1, 2], samples=2000, claim=PureDP(1)))
'BROKEN: the claim ε = 1 is false: the true ε is at least 3.78, except with probability 1e-09.'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.adversary.auditing.features import LOWEST
from discreet.adversary.auditing.power import NOTHING, RATES
from discreet.adversary.auditing.tradeoff import border, proven, said
from discreet.core.display import html as markup
from discreet.core.display import numbers as numerals
from discreet.core.display.columns import Cells
from discreet.core.display.html import Html, element, facts, joined, note, table
from discreet.core.losses import ZCDP, Loss, RenyiDP

if TYPE_CHECKING:
    from discreet.adversary.auditing.auditor import Audit

__all__ = [
    "bits_words",
    "claim_words",
    "document",
    "event_words",
    "evidence",
    "page",
    "power_table",
    "power_words",
    "record",
    "summary",
    "verdict",
]

SHORT = 110
"""Characters of an event that are shown, at most."""
SIDE, LEFT, BOTTOM = 360, 52, 44
SEEN, ALLOWED, EVENT = "#2f7fc1", "#d98a29", "#d23f31"
_PAGE = """
svg { display: block; margin: 1rem 0; fill: currentColor; }
.verdict { font-size: 1.15em; font-weight: 600; }
"""


def claim_words(loss: Loss) -> str:
    """A guarantee as it is written."""
    return "its stated Rényi curve" if isinstance(loss, RenyiDP) else numerals.loss(loss)


def verdict(found: Audit) -> str:
    """One sentence."""
    doubt = f"except with probability {found.doubt:.3g}"
    at = f" at δ = {found.delta:g}" if found.delta else ""
    least = f"the true ε{at} is at least {numerals.floored(found.epsilon)}"
    if found.refuted:
        assert found.claim is not None
        return f"BROKEN: the claim {claim_words(found.claim)} is false: {least}, {doubt}."
    if found.claim is not None:
        shown = f"the largest ε{at} proven is {numerals.floored(found.epsilon)}"
        return f"Nothing against {claim_words(found.claim)} was found on this pair of data sets: {shown}."
    return f"On this pair of data sets {least}, {doubt}."


def power_words(found: Audit) -> str:
    """What the audit would have caught, for the event it tested."""
    if found.terms is None:
        return "The audit says nothing about what it would have caught."
    claim = found.claim or NOTHING
    if not found.epsilon or not found.rates[0]:
        least = found.terms.least_caught(claim, RATES[0])
        said_so = "No event was found that tells D from D′"
        if math.isinf(least):
            return f"{said_so}, and with so few runs hardly any could have been: ask for more of them."
        from_on = f"would have been {'caught' if found.claim else 'told apart'} from ε = {least:.3g} on"
        return f"{said_so}. One in half of the runs on one of them {from_on}, with probability 99 % or more."
    rate = min(max(found.rates[0], 1e-9), 1.0)
    least = found.terms.least_caught(claim, rate)
    if math.isinf(least):
        return f"Events as rare as the one tested (in {rate * 100:.3g} % of runs) could have refuted nothing."
    what = "caught with probability 99 % or more" if found.claim else "told apart with probability 99 % or more"
    how = f"an event in {rate * 100:.3g} % of runs, as the one tested"
    return f"A mechanism whose ε is {least:.3g} or more by {how}, would have been {what}."


def event_words(found: Audit) -> str:
    """What tells the data sets apart, short; all of it is in the record."""
    if LOWEST in found.event:
        other = "D′" if found.likelier_on == "D" else "D"
        return f"the last binary digits of the output, which are others on {found.likelier_on} than on {other}"
    return found.event if len(found.event) <= SHORT else f"{found.event[: SHORT - 1].rstrip()}…"


def bits_words(found: Audit) -> str:
    """Why noise of the right scale may be found broken all the same, where that is what was seen."""
    if not found.epsilon or LOWEST not in found.event:
        return ""
    return (
        "The event looks at the last bits of numbers. Noise that is added in doubles gives itself away there, whatever "
        "its scale: release whole multiples of a step, as discreet.mechanisms.Laplace does, and audit again."
    )


def power_table(found: Audit) -> list[Cells]:
    """For events of several probabilities the least ε that would have been caught."""
    if found.terms is None:
        return []
    claim = found.claim or NOTHING
    least = [found.terms.least_caught(claim, rate) for rate in RATES]
    texts = ["no ε: too few runs" if math.isinf(one) else f"{one:.3g}" for one in least]
    return [
        Cells("an event seen in", [f"{rate * 100:g} % of runs" for rate in RATES]),
        Cells("is caught from ε =", texts, right=True),
    ]


def evidence(found: Audit) -> list[tuple[str, str]]:
    """What was claimed, and the event that tells against it."""
    lines = [] if found.claim is None else [("claimed", claim_words(found.claim))]
    if found.epsilon:
        other = "D′" if found.likelier_on == "D" else "D"
        seen = f"{found.rates[0] * 100:.3g} % of runs on {found.likelier_on}, {found.rates[1] * 100:.3g} % on {other}"
        lines += [("told apart by", event_words(found)), ("seen in", seen)]
    return lines


def summary(found: Audit) -> Html:
    """Verdict, numbers, curve, power: for a notebook or a page."""
    lines = [("proven", f"ε ≥ {numerals.floored(found.epsilon)} at δ = {found.delta:g}"), *evidence(found)]
    lines.append(("runs", f"{found.samples:,} on each data set"))
    lines.append(("confidence", f"1 − {found.doubt:.3g}"))
    power = power_table(found)
    return joined(
        verdict_html(verdict(found), alarm=found.refuted),
        facts(lines),
        note(bits_words(found)) if bits_words(found) else "",
        _drawing(found),
        element("p", power_words(found)) + table(power) if power else "",
        note(
            "A bound far below the claim is no proof of privacy: it says what this search found on these data sets. "
            "What would have been caught is stated for an event once it is tested."
        ),
    )


def verdict_html(text: str, *, alarm: bool) -> Html:
    """A verdict; an alarm stands out."""
    return note(text, alarm=True) if alarm else element("p", text, class_="verdict")


def record(found: Audit) -> dict[str, Any]:
    """For JSON."""
    claim = found.claim
    least = None if found.terms is None else found.terms.least_caught(claim or NOTHING, 0.5)
    return {
        "epsilon": found.epsilon,
        "delta": found.delta,
        "confidence": found.confidence,
        "claim": None if claim is None else numerals.loss_record(claim),
        "refuted": found.refuted,
        "event": found.event,
        "likelier_on": found.likelier_on,
        "rates": list(found.rates),
        "samples": found.samples,
        "caught_from_epsilon": None if least is None or math.isinf(least) else least,
        "curve": [list(point) for point in found.curve],
        "verdict": verdict(found),
    }


def page(found: Audit, title: str, notes: Sequence[str] = ()) -> Html:
    """A whole file."""
    return document(title, summary(found), *(note(one, alarm=True) for one in notes))


def document(title: str, *parts: str) -> Html:
    """Parts as a file of HTML that stands alone."""
    return markup.document(title, _PAGE, *parts)


def _drawing(found: Audit) -> Html:
    """The trade-off curve; above the border of the claim is what it forbids."""
    if not found.curve:
        return joined()
    parts = [_axes()]
    legend = [(SEEN, "what this audit saw")]
    if found.claim is not None:
        allowed = border(found.claim)
        corner = f"L{_x(0)} {_y(1)}Z"
        parts.append(element("path", d=f"{_path(allowed)}{corner}", fill=ALLOWED, opacity=".12"))
        parts.append(_line(_path(allowed), ALLOWED, 2))
        kind = "claim" if not isinstance(found.claim, ZCDP) else "claim, at all orders"
        legend.append((ALLOWED, f"above: forbidden by the {kind}"))
    parts.append(_line(_path(found.curve), SEEN, 2))
    if found.epsilon:
        edge = [(max(x, 0.0), min(y, 1.0)) for x, y in proven(found)]
        parts.append(_line(_path(edge), EVENT, 1.2))
        x, y = said(found)
        parts.append(element("circle", cx=_x(x), cy=_y(y), r=4, fill=EVENT))
        legend.append((EVENT, "the tested event, and how far it may be off"))
    for place, (colour, text) in enumerate(legend):
        at = SIDE - 20 - 18 * (len(legend) - place)
        parts.append(element("rect", x=LEFT + 120, y=at - 9, width=10, height=10, fill=colour))
        parts.append(element("text", text, x=LEFT + 136, y=at, font_size=12))
    wide, high = LEFT + SIDE + 60, SIDE + BOTTOM + 12
    title = element("title", "Trade-off curve: how well outputs tell D from D′")
    return element("svg", title, *parts, width=wide, height=high, viewBox=f"0 0 {wide} {high}", role="img")


def _line(path: str, colour: str, width: float) -> Html:
    return element("path", d=path, fill="none", stroke=colour, stroke_width=width)


def _axes() -> Html:
    ends = f"M{_x(0)} {_y(1)}V{_y(0)}H{_x(1)}"
    even = f"M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}"
    parts = [
        element("path", d=ends, fill="none", stroke="currentColor", opacity=".6"),
        element("path", d=even, stroke="currentColor", opacity=".35", stroke_dasharray="4 4"),
    ]
    small = {"font_size": 11, "opacity": ".8"}
    for tick in (0, 0.25, 0.5, 0.75, 1):
        share = f"{tick * 100:g} %"
        parts.append(element("text", share, x=_x(tick), y=_y(0) + 16, text_anchor="middle", **small))
        parts.append(element("text", share, x=LEFT - 6, y=_y(tick) + 4, text_anchor="end", **small))
    named = {"font_size": 12, "text_anchor": "middle"}
    turned = f"translate(12 {_y(0.5)}) rotate(-90)"
    parts.append(element("text", "D′ taken for D (type I error)", x=_x(0.5), y=_y(0) + 36, **named))
    parts.append(element("text", "D recognised (1 − type II error)", transform=turned, **named))
    return joined(*parts)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{_x(x)} {_y(y)}" for x, y in points)


def _x(value: float) -> float:
    return round(LEFT + value * SIDE, 1)


def _y(value: float) -> float:
    return round(10 + (1 - value) * SIDE, 1)
