"""A folder of visits, without and with a configuration."""

from pathlib import Path

import pytest
from tests.app.commands import INIT, Commands, write_visits


@pytest.fixture
def empty(tmp_path: Path) -> Commands:
    """A folder with data and without a configuration."""
    write_visits(tmp_path / "visits.parquet")
    (tmp_path / "cities.csv").write_text("city,region\nA,north\nB,north\nC,south\n")
    return Commands(tmp_path)


@pytest.fixture
def run(empty: Commands) -> Commands:
    """A folder with a configuration."""
    empty(*INIT)
    return empty


@pytest.fixture
def attended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if somebody sat at the terminal."""
    monkeypatch.setattr("discreet.app.cli._attended", lambda: True)
