"""The jobs of one statement on Spark: how far they are, how to stop them, and that their errors stay among us.

A session in this process has groups of jobs and a tracker of stages; one over Spark Connect has tags, and tells how far
it is by itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import TracebackType
from typing import Any, Protocol, Self

__all__ = ["Jobs", "jobs_of", "number", "unsaid"]

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Where pyspark writes errors, for everybody to read."""
GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


_NUMBERS = count()


def number() -> str:
    """A name for groups of jobs and for views that no other process, and nothing before, has on the same cluster."""
    return f"{os.getpid()}_{time.time_ns()}_{next(_NUMBERS)}"


@contextmanager
def unsaid() -> Iterator[None]:
    """Errors of statements are not written: they may tell what a row holds."""
    from pyspark.logger import PySparkLogger

    before = [(logger, logger.disabled) for logger in map(PySparkLogger.getLogger, LOGGERS)]
    try:
        for logger, _ in before:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in before:
            logger.disabled = disabled


class Jobs(Protocol):
    """What runs inside a `with` block."""

    def __enter__(self) -> Self:
        """From here on, statements of this thread count."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """The thread goes on as it was."""

    def progress(self) -> float | None:
        """How many of the tasks that are known of are done; it never goes back."""

    def cancel(self) -> None:
        """Stop them."""


def jobs_of(session: Any) -> Jobs:
    """The jobs of the next statement."""
    return Tagged(session) if "connect" in type(session).__module__ else Grouped(session)


class Grouped:
    """Jobs of a session in this process."""

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext
        self._group = f"discreet-{number()}"
        self._before: dict[str, str | None] = {}
        self._done = 0.0

    def __enter__(self) -> Self:
        self._before = {name: self._context.getLocalProperty(name) for name in GROUP}
        self._context.setJobGroup(self._group, "discreet", interruptOnCancel=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            for name, value in self._before.items():
                self._context.setLocalProperty(name, value)
        except Exception:
            if error is None:
                raise

    def progress(self) -> float | None:
        """Over all stages that were planned so far: later ones are planned when earlier ones are done."""
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        known = [stage for stage in stages if stage is not None]
        total = sum(stage.numTasks for stage in known)
        if not total:
            return None
        self._done = max(self._done, sum(stage.numCompletedTasks for stage in known) / total)
        return self._done

    def cancel(self) -> None:
        """All of the group, and those that it would have yet."""
        self._context._jsc.sc().cancelJobGroupAndFutureJobs(self._group)


class Tagged:
    """Jobs of a session over Spark Connect."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._tag = f"discreet-{number()}"
        self._done: float | None = None

    def __enter__(self) -> Self:
        self._session.addTag(self._tag)
        self._session.registerProgressHandler(self._told)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._session.removeProgressHandler(self._told)
        self._session.removeTag(self._tag)

    def _told(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        total = sum(stage.num_tasks for stage in stages or ())
        if total:
            part = sum(stage.num_completed_tasks for stage in stages) / total
            self._done = max(self._done or 0.0, part)

    def progress(self) -> float | None:
        """What the server said last."""
        return self._done

    def cancel(self) -> None:
        """All with the tag."""
        self._session.interruptTag(self._tag)
