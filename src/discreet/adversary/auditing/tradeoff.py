"""Trade-off curves: how well a guess tells D from D′, and how well a guarantee lets anybody tell.

Whoever sees an output and says "D" is wrong on D′ with probability x and right on D with probability y. A guarantee
allows only points (x, y) below its border: for (ε, δ) these are y ≤ e^ε·x + δ and 1 − x ≤ e^ε·(1 − y) + δ. What lies
above it by more than chance refutes the guarantee.

>>> [round(y, 3) for _, y in border(PureDP(1), points=5)]
[0.0, 0.68, 0.816, 0.908, 1.0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.adversary.auditing.regions import Region
from discreet.core.losses import Loss, PureDP

if TYPE_CHECKING:
    from discreet.adversary.auditing.auditor import Audit

__all__ = ["BEST", "border", "chart", "proven", "said"]

BEST = PureDP(0)
"""What a mechanism that tells nothing guarantees; its border is the diagonal."""
Curve = list[tuple[float, float]]


def border(claim: Loss, points: int = 101) -> Curve:
    """For evenly spaced x the largest y that the guarantee allows."""
    places = [place / (points - 1) for place in range(points)]
    return [(x, _most(claim, x)) for x in places]


def _most(claim: Loss, x: float) -> float:
    low, high = x, 1.0
    if not _refuted(claim, x, high):
        return 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _refuted(claim, x, middle) else (middle, high)
    return low


def _refuted(claim: Loss, x: float, y: float) -> bool:
    return any(Region((pair,)).refutes(claim) for pair in ((y, x), (1 - x, 1 - y)))


def proven(found: Audit) -> Curve:
    """The lower edge of where the tested event lies: with the stated confidence its point is above or left of it."""
    if found.likelier_on == "D":
        return [(q, p) for p, q in found.region.corners]
    return [(1 - p, 1 - q) for p, q in found.region.corners]


def said(found: Audit) -> tuple[float, float]:
    """The tested event as a point of the curve."""
    p, q = found.rates
    return (q, p) if found.likelier_on == "D" else (1 - p, 1 - q)


def chart(found: Audit, title: str) -> Any:
    """An Altair chart under a title: what was seen, what the claim allows, and the tested event."""
    import altair as alt
    import pandas as pd

    from discreet.adversary.figures import styled

    lines = {"seen": [*found.curve]}
    if found.claim is not None:
        lines["allowed by the claim"] = border(found.claim)
    lines["tells nothing"] = border(BEST, 2)
    rows = [{"line": name, "x": x, "y": y} for name, points in lines.items() for x, y in points]
    scale = alt.Scale(domain=[0, 1])
    drawn = (
        alt.Chart(pd.DataFrame(rows))
        .mark_line()
        .encode(
            x=alt.X("x:Q", title="D′ taken for D", scale=scale),
            y=alt.Y("y:Q", title="D recognised", scale=scale),
            color=alt.Color("line:N", title=None, sort=list(lines)),
            order="x:Q",
        )
    )
    x, y = said(found)
    point = alt.Chart(pd.DataFrame([{"x": x, "y": y, "event": found.event}])).mark_point(filled=True, size=70)
    both = drawn + point.encode(x="x:Q", y="y:Q", tooltip=["event:N", "x:Q", "y:Q"])
    return styled((both if found.epsilon else drawn).properties(width=380, height=380), title)
