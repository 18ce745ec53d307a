"""What a statement on Spark keeps silent about is not said, and what others log meanwhile is."""

import logging
from threading import Barrier, Thread

import pytest

from discreet.engines.spark.jobs import LOGGERS, unsaid

pytest.importorskip("pyspark")


def test_only_the_thread_that_runs_a_statement_is_silent() -> None:
    written: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(record.getMessage())

    logger, kept, both = logging.getLogger(LOGGERS[0]), Kept(), Barrier(2, timeout=900)

    def other() -> None:
        both.wait()
        logger.error("before the other statement")
        with unsaid():
            both.wait()
            both.wait()
            logger.error("a row of the other statement")
        logger.error("after the other statement")

    thread = Thread(target=other)
    logger.addHandler(kept)
    try:
        thread.start()
        with unsaid():
            both.wait()
            logger.error("a row")
            both.wait()
        logger.error("after the statement")
        both.wait()
        thread.join(300)
    finally:
        logger.removeHandler(kept)
    assert sorted(written) == ["after the other statement", "after the statement", "before the other statement"]
    assert not logger.disabled
