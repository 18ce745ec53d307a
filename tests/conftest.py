"""What holds for every test: a forked child destroys nothing that belongs to the process of the tests, the collector
does not look through all that was imported again and again, one process has Spark, and a failed comparison is short."""

import gc
import os
from typing import Any

import pytest
from hypothesis import settings
from tests.soak import third

# How long an example takes says how busy the machine is; each run draws other examples, and a share is enough.
settings.register_profile("unhurried", deadline=None, max_examples=third(100))
settings.load_profile("unhurried")

# Where these are set, pytest works out the whole difference of two values that a test compared. For two lists of 1,000
# lines that takes difflib longer than a test may take, and planted faults make such comparisons fail on purpose.
for variable in ("CI", "BUILD_NUMBER"):
    os.environ.pop(variable, None)

# Engines that earlier tests left to the collector have threads, which a fork does not copy: collecting such an engine
# in a child ends the child, and whoever waits for it waits for ever.
os.register_at_fork(after_in_child=gc.freeze)


def pytest_collection_finish() -> None:
    """Modules, and the tests themselves, stay to the end: looking through them takes a twentieth of the time of tests
    that plan many questions."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


def pytest_sessionfinish() -> None:
    """What is left at the end is let go of, or the engine complains of it."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where several processes run the tests, those on Spark are all in one, for Java takes long to start. They begin,
    for they take longest: the groups with most tests are handed out first."""
    from xdist.scheduler import LoadGroupScheduling

    class Together(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            on_spark = "spark" in nodeid and "/test_spark_cluster.py" not in nodeid
            return "spark" if on_spark else nodeid

    return Together(config, log) if config.getvalue("dist") == "load" else None
