"""How findings of `discreet attack` leave: on the terminal, as JSON, pages and pictures; secrets only if asked for.

Several findings have one verdict, which is the worst of theirs, and share one page and one picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.app.output.finding import print_json, show, write
from discreet.app.output.printing import say
from discreet.core.display.html import joined, note

if TYPE_CHECKING:
    from discreet.adversary.findings import Finding

__all__ = ["Output", "tell"]

MOST_SHOWN = 1000
"""Secrets that are printed, at most; all of them are in JSON."""
WORDS = ("BROKEN", "LEAKING", "UNSURE", "HELD", "NOTHING")
"""What verdicts begin with, the worst first."""


@dataclass(frozen=True)
class Output:
    """Where findings go."""

    html: Path | None
    plot: Path | None
    reveal: bool
    as_json: bool


@dataclass(frozen=True)
class Together:
    """Several findings about one release, the worst first."""

    parts: tuple[Finding, ...]

    @classmethod
    def of(cls, found: Sequence[Finding]) -> Together:
        """In the order of their verdicts."""
        return cls(tuple(sorted(found, key=lambda each: WORDS.index(_word(each)))))

    @property
    def verdict(self) -> str:
        """In plain words."""
        words = Counter(map(_word, self.parts))
        counted = ", ".join(f"{many} {word}" for word, many in words.items())
        return f"{_word(self.parts[0])} overall, by the worst of {len(self.parts)} findings: {counted}."

    def _repr_html_(self) -> str:
        alarm = self.parts[0].alarming
        return joined(note(self.verdict, alarm=alarm), *(each._repr_html_() for each in self.parts))

    def plot(self) -> Together:
        """All pictures, one below the other."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """The chart of all pictures."""
        charts = [each.plot().to_dict() for each in self.parts]
        shared = {"$schema": charts[0]["$schema"], "config": charts[0]["config"]}
        data = {name: rows for chart in charts for name, rows in chart.pop("datasets", {}).items()}
        below = [{name: held for name, held in chart.items() if name not in shared} for chart in charts]
        apart = {"resolve": {kind: {"color": "independent"} for kind in ("legend", "scale")}}
        return shared | apart | {"title": self.verdict, "datasets": data, "vconcat": below, "spacing": 40}


def tell(found: Sequence[Finding], title: str, out: Output) -> None:
    """The verdict on all findings, then each with what it rests on."""
    together = Together.of(found)
    write(found[0] if len(found) == 1 else together, title, out.html, out.plot)
    if out.as_json:
        records = [each.as_record(reveal=out.reveal) for each in together.parts]
        print_json(records[0] if len(records) == 1 else {"verdict": together.verdict, "findings": records})
        return
    if len(found) > 1:
        show(together, (), ())
        say()
    for place, each in enumerate(together.parts):
        if place:
            say()
        show(each, (), each.lines())
        if out.reveal:
            _reveal(each)


def _word(found: Finding) -> str:
    return found.verdict.partition(":")[0]


def _reveal(found: Finding) -> None:
    for name, values in found.secrets().items():
        listed = values if isinstance(values, list) else [values]
        say(f"{name}:")
        for place, value in enumerate(listed[:MOST_SHOWN]):
            say(f"  {place + 1}: {value}")
        if len(listed) > MOST_SHOWN:
            say(f"  the first {MOST_SHOWN:,} of {len(listed):,}; --json prints all")
