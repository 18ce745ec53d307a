"""The jobs of one statement on Spark: how far they are, how to stop them, and that their errors stay among us.

A session in this process has groups of jobs and a tracker of stages; one over Spark Connect has tags, and tells how far
it is by itself.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import TracebackType
from typing import Any, Protocol, Self

from discreet.engines.spark.sessions import is_connect

__all__ = ["Jobs", "jobs_of", "number", "unsaid"]

LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""Where pyspark writes errors, for everybody to read."""
GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


_NUMBERS = count()


def number() -> str:
    """A name for groups of jobs and for views that no other process, and nothing before, has on the same cluster."""
    return f"{os.getpid()}_{time.time_ns()}_{next(_NUMBERS)}"


class _Silence(logging.Filter):
    """Lets pass what other threads log: a logger is shared by all of a process, so it is never switched off."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this thread may write."""
        return getattr(self._depth, "count", 0) == 0

    def __enter__(self) -> None:
        self._depth.count = getattr(self._depth, "count", 0) + 1

    def __exit__(self, *_: object) -> None:
        self._depth.count -= 1


_SILENCE = _Silence()


@contextmanager
def unsaid() -> Iterator[None]:
    """Errors of this thread's statements are not written: they may tell what a row holds."""
    from pyspark.logger import PySparkLogger

    for logger in map(PySparkLogger.getLogger, LOGGERS):
        logger.addFilter(_SILENCE)  # once: a logger has each filter only once
    with _SILENCE:
        yield


class Jobs(Protocol):
    """What runs inside a `with` block."""

    def __enter__(self) -> Self:
        """From here on, statements of this thread count."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """The thread goes on as it was."""

    def begun(self) -> bool:
        """Whether they have tasks."""

    def cancel(self) -> None:
        """Stop them."""


def jobs_of(session: Any) -> Jobs:
    """The jobs of the next statement."""
    return Tagged(session) if is_connect(session) else Grouped(session)


class Grouped:
    """Jobs of a session in this process."""

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext
        self._group = f"discreet-{number()}"
        self._before: dict[str, str | None] = {}

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

    def begun(self) -> bool:
        """Whether they have tasks."""
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        return any(stage is not None and stage.numTasks for stage in stages)

    def cancel(self) -> None:
        """All of the group, and those that it would have yet."""
        self._context._jsc.sc().cancelJobGroupAndFutureJobs(self._group)


class Tagged:
    """Jobs of a session over Spark Connect."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._tag = f"discreet-{number()}"
        self._begun = False

    def __enter__(self) -> Self:
        self._session.addTag(self._tag)
        self._session.registerProgressHandler(self._told)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._session.removeProgressHandler(self._told)
        self._session.removeTag(self._tag)

    def _told(self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
        self._begun = self._begun or any(stage.num_tasks for stage in stages or ())

    def begun(self) -> bool:
        """Whether the server said that they have tasks."""
        return self._begun

    def cancel(self) -> None:
        """All with the tag."""
        self._session.interruptTag(self._tag)
