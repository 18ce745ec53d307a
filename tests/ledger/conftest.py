"""The places where books can be kept: every test of the contract runs on each of them."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.ledger.places import Place, PostgresPlace, SQLitePlace


@pytest.fixture(params=[SQLitePlace, PostgresPlace], ids=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """One set of books, which can be opened any number of times."""
    with ExitStack() as handles:
        yield request.param(tmp_path, handles)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SQLitePlace]:
    """Books in a file."""
    with ExitStack() as handles:
        yield SQLitePlace(tmp_path, handles)


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[PostgresPlace]:
    """Books on a server."""
    with ExitStack() as handles:
        yield PostgresPlace(tmp_path, handles)
