"""Small pictures in the terminal: bars with their intervals as whiskers, and gauges of a budget.

>>> for line in bars([30.0, 12.0, 1.0], [(28.0, 32.0), (8.0, 16.0), (-3.0, 5.0)], width=33):
...     print(line.rstrip())
████████████████████████████├─●─┤
████████├───●───┤
├●───┤
>>> gauge(0.25, width=8)
'██░░░░░░'
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["bars", "gauge"]

BAR, WHISKER, LEFT, RIGHT, MARK, ZERO = "█", "─", "├", "┤", "●", "│"


def bars(values: Sequence[float], spans: Sequence[tuple[float, float]], width: int) -> list[str]:
    """One line for each value: a bar up to the near end of its interval, then the interval with the value marked.

    All lines share one scale, which holds zero, every value and the far end of every interval. Ends on the other side
    of zero from all values are cut there; an interval within two cells is the mark alone.
    """
    least, most = min(0.0, *values), max(0.0, *values)
    bottom = min(low for low, _ in spans) if least < 0 else 0.0
    top = max(high for _, high in spans) if most > 0 or least == 0 else 0.0
    bottom, top = min(bottom, least), max(top, most)
    whole = (top - bottom) or 1.0

    def cell(value: float) -> int:
        return round((min(max(value, bottom), top) - bottom) / whole * (width - 1))

    zero = cell(0.0)
    pairs = zip(values, spans, strict=True)
    return [_line(cell(value), cell(low), cell(high), zero, width) for value, (low, high) in pairs]


def _line(value: int, low: int, high: int, zero: int, width: int) -> str:
    cells = [" "] * width
    for place in range(min(value, zero), max(value, zero)):
        cells[place] = BAR
    if zero > 0:
        cells[zero] = ZERO
    if high - low > 1:
        cells[low : high + 1] = [WHISKER] * (high + 1 - low)
        cells[low], cells[high] = LEFT, RIGHT
    cells[value] = MARK
    return "".join(cells)


def gauge(part: float, width: int = 20) -> str:
    """How much of something is used up."""
    filled = round(min(max(part, 0.0), 1.0) * width)
    return BAR * filled + "░" * (width - filled)
