"""The command `discreet`, as a shell runs it: one process for one command.

Nothing that a command makes is worth collecting before it ends, and looking for it again and again while everything is
loaded would take a tenth of the time until the answer.
"""

from __future__ import annotations

import gc

__all__ = ["main"]


def main() -> None:
    """Carry out the command of this process's arguments."""
    gc.disable()
    from discreet.app.cli import app

    app()
