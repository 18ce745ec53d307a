"""The server of the tests: it starts wherever a clone lies, leaves nothing behind, and fails once."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import psycopg
import pytest
from tests.ledger import servers
from tests.ledger.servers import Server, ServerFailed, packaged_programs


def in_a_private_folder(folder: Path) -> Path:
    """The package with its libraries where nobody else may enter, as in a clone below the home of root."""
    folder.mkdir(mode=0o700)
    installed = packaged_programs().parent
    package = installed.parent
    shutil.copytree(installed, folder / package.name / installed.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    return folder / package.name / installed.name / "bin"


def is_kept(segment: str) -> bool:
    """Whether a segment of shared memory is there and stays when the last process lets go of it."""
    listed = subprocess.run(["ipcs", "-m"], capture_output=True, text=True, check=True).stdout.splitlines()
    return any(line.split()[1:2] == [segment] and "dest" not in line for line in listed)


@pytest.fixture
def above(tmp_path: Path) -> Iterator[Path]:
    """A folder for the servers of one test, which another user may enter."""
    folder = servers._folder_for_servers() / f"{tmp_path.name}-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_server_starts_from_programs_that_other_users_cannot_reach(tmp_path: Path, above: Path) -> None:
    server = Server(above, in_a_private_folder(tmp_path / "clone"))
    try:
        with closing(psycopg.connect(server.url())) as connection:
            assert connection.execute("SELECT upper('libraries and extensions')").fetchone() is not None
    finally:
        server.remove()
    assert not [*above.iterdir()]


def test_a_server_that_does_not_start_leaves_nothing(above: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "OPTIONS", servers.OPTIONS | {"shared_buffers": "none"})
    with pytest.raises(ServerFailed, match="shared_buffers"):
        Server(above)
    assert not [*above.iterdir()]


def test_a_start_that_failed_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def failing() -> None:
        starts.append("tried")
        raise ServerFailed("no room")

    monkeypatch.setattr(servers, "Server", failing)
    monkeypatch.setattr(servers, "_started", cache(servers._started.__wrapped__))
    for _ in range(3):
        with pytest.raises(ServerFailed, match="no room"):
            servers.running()
    assert starts == ["tried"]


ABANDONED = """
import os, signal, sys
from pathlib import Path
from tests.ledger.servers import Server
server = Server(Path(sys.argv[1]))
print((server._data / "postmaster.pid").read_text(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("killed", [False, True], ids=["left running", "killed"])
def test_the_server_of_a_killed_process_goes_when_the_next_one_starts(above: Path, killed: bool) -> None:
    made = subprocess.run([sys.executable, "-c", ABANDONED, str(above)], stdout=subprocess.PIPE, text=True)
    lines = made.stdout.splitlines()
    process, segment = int(lines[0]), lines[6].split()[1]
    [left] = above.iterdir()
    assert is_kept(segment)
    if killed:
        os.kill(process, signal.SIGKILL)
    server = Server(above)
    try:
        assert [*above.iterdir()] == [server._folder] != [left]
        assert not is_kept(segment)
    finally:
        server.remove()
    assert not [*above.iterdir()]
