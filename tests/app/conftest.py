"""A folder of visits, without and with a configuration."""

from pathlib import Path
from shutil import copytree

import pytest
from tests.app.commands import INIT, Commands, write_visits


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, which is copied for each test."""
    folder = tmp_path_factory.mktemp("data")
    write_visits(folder / "visits.parquet")
    (folder / "cities.csv").write_text("city,region\nA,north\nB,north\nC,south\n")
    return folder


@pytest.fixture(scope="session")
def configured(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with what `init` makes of it: a configuration, and no books before the first question."""
    folder = copytree(data, tmp_path_factory.mktemp("configured"), dirs_exist_ok=True)
    Commands(folder)(*INIT)
    assert sorted(path.name for path in folder.iterdir()) == ["cities.csv", "discreet.toml", "visits.parquet"]
    return folder


@pytest.fixture
def empty(data: Path, tmp_path: Path) -> Commands:
    """A folder with data and without a configuration."""
    return Commands(copytree(data, tmp_path, dirs_exist_ok=True))


@pytest.fixture
def run(configured: Path, tmp_path: Path) -> Commands:
    """A folder with a configuration."""
    return Commands(copytree(configured, tmp_path, dirs_exist_ok=True))


@pytest.fixture
def attended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if somebody sat at the terminal."""
    monkeypatch.setattr("discreet.app.cli._attended", lambda: True)
