"""Keys and books of a user lie where they lay: one that is not found again would begin a budget anew."""

from pathlib import Path

import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from discreet.core.folders import data_folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which nothing lies, on Linux."""
    monkeypatch.setenv("HOME", str(tmp_path / "ann"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(platformdirs, "user_data_path", lambda name: Unix(name).user_data_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "ann"


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("said", [None, "", "share", "a share/of ann/"])
def test_on_linux_they_lie_where_they_always_lay(
    home: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, there: bool
) -> None:
    if said is not None:
        monkeypatch.setenv("XDG_DATA_HOME", said and str(home / said))
    place = home / (said or ".local/share") / "discreet"
    if there:
        place.mkdir(parents=True)
    assert data_folder() == place


def test_new_ones_lie_where_the_system_says_and_old_ones_where_they_are(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platformdirs, "user_data_path", lambda name: MacOS(name).user_data_path)
    assert data_folder() == home / "Library" / "Application Support" / "discreet"
    old = home / ".local" / "share" / "discreet"
    old.mkdir(parents=True)
    assert data_folder() == old


def test_a_place_that_hangs_on_the_current_folder_is_used_only_if_it_is_there(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "share")
    assert data_folder() == home / ".local" / "share" / "discreet"
    Path("share/discreet").mkdir(parents=True)
    assert data_folder() == Path("share/discreet")
