"""How findings of `discreet attack` leave: on the terminal, as JSON, pages and pictures; secrets only if asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from discreet.app.exhibit import print_json, show, write

if TYPE_CHECKING:
    from discreet.adversary.findings import Finding

__all__ = ["Output", "tell"]

MOST_SHOWN = 1000
"""Secrets that are printed, at most; all of them are in JSON."""


@dataclass(frozen=True)
class Output:
    """Where findings go."""

    html: Path | None
    plot: Path | None
    reveal: bool
    as_json: bool


def tell(found: Sequence[Finding], title: str, out: Output) -> None:
    """The verdicts with what they rest on; the page and the picture are of the first."""
    write(found[0], title, out.html, out.plot)
    if out.as_json:
        records = [each.as_record(reveal=out.reveal) for each in found]
        print_json(records[0] if len(records) == 1 else {"findings": records})
        return
    for place, each in enumerate(found):
        if place:
            typer.echo()
        show(each, (), each.lines())
        if out.reveal:
            _reveal(each)


def _reveal(found: Finding) -> None:
    for name, values in found.secrets().items():
        listed = values if isinstance(values, list) else [values]
        typer.echo(f"{name}:")
        for place, value in enumerate(listed[:MOST_SHOWN]):
            typer.echo(f"  {place + 1}: {value}")
        if len(listed) > MOST_SHOWN:
            typer.echo(f"  the first {MOST_SHOWN:,} of {len(listed):,}; --json prints all")
