"""What commands print: the one way to standard output and standard error, beside the tables of `output/terminal.py`.

A name or a key in what is printed is as others wrote it. Here it becomes a text that a terminal shows and does not
obey (`core/display/text.py`); CSV for another program goes through `say_exactly`, where a terminal is what reads it.
"""

from __future__ import annotations

import sys
from typing import Any

import typer

from discreet.core.display.secrets import redacted
from discreet.core.display.text import visible

__all__ = ["say", "say_exactly"]


def say(text: str = "", *, err: bool = False, **style: Any) -> None:
    """Prints lines, with colours of `typer.style`; what goes to standard error is about places and settings, and has no
    secret of theirs."""
    shown = visible(text, lines=True)
    typer.secho(redacted(shown) if err else shown, err=err, **style)


def say_exactly(text: str) -> None:
    """Prints what another program reads, byte for byte; on a terminal it is shown as by `say`."""
    # Without a colour of ours to keep, what looks like one would be taken out of texts.
    typer.echo(visible(text, lines=True) if sys.stdout.isatty() else text, nl=False, color=True)
