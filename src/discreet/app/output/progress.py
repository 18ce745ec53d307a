"""A sign of life while the engine reads, for people who look at a terminal; elsewhere nothing is written.

How far the engine is depends on the rows, so it is not shown; steps that are the same whatever the data are
(`purchase.Listener`), and those of work on what is released already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

__all__ = ["waiting"]

PAUSE = 0.1
"""Seconds between two looks at what is done."""


@contextmanager
def waiting(progress: Callable[[], float | None] | None, doing: str = "asking") -> Iterator[None]:
    """Shows a bar, or while nobody knows how much there is to do, a moving one, until the block is left."""
    from discreet.app.output.terminal import console

    screen = console(errors=True)
    if not screen.is_terminal:
        yield
        return
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    shown = Progress(
        SpinnerColumn(), TextColumn(doing), BarColumn(), TimeElapsedColumn(), console=screen, transient=True
    )
    done = Event()

    def look() -> None:
        task = shown.add_task(doing, total=None)
        while not done.wait(PAUSE):
            part = None if progress is None else progress()
            if part is not None:
                shown.update(task, total=1.0, completed=part)

    with shown:
        watcher = Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
