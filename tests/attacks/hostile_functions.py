"""What a hostile function tries, when it is loaded and when it is run; it tells by name what it got done.

Everything here is sent to a worker as it is, so it imports what it needs where it needs it. An attempt that gets
through does no harm: files are opened and not changed, and calls that would change something have arguments that the
system refuses once it permits the call.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SECRET = b"the steward's own"


@dataclass(frozen=True)
class Facts:
    """What somebody who knows the machine well could tell a function."""

    files: dict[str, str]
    """Files of the steward by what they are; each holds the secret, or has one byte that can be read."""
    folder: str
    processes: tuple[int, ...]
    handle: tuple[int, bytes] | None
    """Type and bytes of a handle of the first file (name_to_handle_at)."""
    port: int
    socket: str


def attempts(facts: Facts) -> dict[str, Callable[[], Any]]:
    """By name; each gives something true, or does not raise, where it got through."""
    import ctypes
    import errno
    import fcntl
    import resource
    import socket
    import sys

    import numpy

    system = ctypes.CDLL(None, use_errno=True)
    installed = os.path.dirname(numpy.__file__)
    limit = resource.RLIMIT_NPROC

    def opened(path: str, flags: int = os.O_RDONLY) -> bool:
        os.close(os.open(path, flags))
        return True

    def call(number: int, *given: Any) -> bool:
        """Whether the system lets a call through; a wrong argument would be another error."""
        ctypes.set_errno(0)
        refused = (errno.EPERM, errno.ENOSYS, errno.EACCES)
        return system.syscall(number, *given) >= 0 or ctypes.get_errno() not in refused

    def by_handle() -> bool:
        assert facts.handle is not None
        kind, held = facts.handle
        handle = ctypes.create_string_buffer(len(held).to_bytes(4, "little") + kind.to_bytes(4, "little") + held)
        for folder in (installed, "/", "/work", "/usr/lib", facts.folder):
            try:
                somewhere = os.open(folder, os.O_RDONLY)
            except OSError:
                continue
            number = system.syscall(304, somewhere, handle, os.O_RDONLY)
            if number >= 0:
                return bool(os.read(number, 1))
        raise PermissionError

    def connect(family: int, address: Any) -> bool:
        with socket.socket(family) as out:
            out.connect(address)
        return True

    def forked() -> bool:
        child = os.fork()
        if child == 0:
            os._exit(0)
        return bool(os.waitpid(child, 0))

    def link() -> bool:
        os.symlink(facts.files["data"], facts.folder + "/link")
        return True

    def dates(path: str) -> tuple[int, int]:
        known = os.stat(path)
        return known.st_atime_ns, known.st_mtime_ns

    def locked() -> bool:
        with open(numpy.__file__) as shared:
            fcntl.flock(shared, fcntl.LOCK_SH)
        return True

    def descriptors() -> bool:
        for number in range(3, 1024):
            try:
                os.lseek(number, 0, os.SEEK_SET)
            except OSError:
                continue
            return True
        raise PermissionError

    def rendezvous() -> bool:
        """Whether somebody who has the same page of the C library could be woken, or woke this one."""
        page = ctypes.c_void_p(ctypes.cast(system.printf, ctypes.c_void_p).value or 0)
        number = 202 if os.uname().machine == "x86_64" else 98
        return bool(system.syscall(number, page, 1, 1, None, None, 0) >= 0)

    tried: dict[str, Callable[[], Any]] = {}
    for kind, path in facts.files.items():
        tried |= {
            f"open {kind}": lambda path=path: opened(path),
            f"size of {kind}": lambda path=path: os.stat(path).st_size >= 0,
            f"open {kind} upwards": lambda path=path: opened(installed + "/.." * 40 + path),
            f"open {kind} through a process": lambda path=path: opened(f"/proc/{os.getppid()}/root{path}"),
            f"open {kind} through itself": lambda path=path: opened(f"/proc/self/root{path}"),
            f"rename {kind}": lambda path=path: os.rename(path, path) or True,
        }
    for number in facts.processes:
        tried |= {
            f"environment of {number}": lambda number=number: opened(f"/proc/{number}/environ"),
            f"memory of {number}": lambda number=number: opened(f"/proc/{number}/mem"),
            f"signal to {number}": lambda number=number: os.kill(number, 0) or True,
            f"limits of {number}": lambda number=number: call(302, number, 7, None, ctypes.create_string_buffer(16)),
        }
    tried |= {
        "list the folder": lambda: os.listdir(facts.folder),
        "environment": lambda: os.environ.get("DISCREET_SECRET"),
        "home": lambda: os.environ.get("HOME"),
        "memory files": lambda: os.listdir("/dev/shm") or True,
        "temporary files": lambda: os.listdir("/tmp") or True,
        "processes": lambda: os.listdir("/proc"),
        "descriptors": descriptors,
        "pipe": lambda: os.pipe(),
        "pair of sockets": lambda: socket.socketpair(),
        "futex of all": rendezvous,
        "faults": lambda: resource.getrusage(resource.RUSAGE_SELF),
        "internet": lambda: connect(socket.AF_INET, ("127.0.0.1", facts.port)),
        "local socket": lambda: connect(socket.AF_UNIX, facts.socket),
        "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        "write there": lambda: opened(facts.folder + "/written", os.O_WRONLY | os.O_CREAT),
        "change a package": lambda: opened(numpy.__file__, os.O_WRONLY),
        "mode of a package": lambda: os.chmod(numpy.__file__, os.stat(numpy.__file__).st_mode & 0o777) or True,
        "date of a package": lambda: os.utime(numpy.__file__, ns=dates(numpy.__file__)) or True,
        "folder": lambda: os.mkdir(facts.folder + "/folder") or True,
        "link": link,
        "lock": locked,
        "flags of what is open": lambda: fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL)) or True,
        "blocking of what is open": lambda: fcntl.ioctl(0, 0x5421, bytes(4)) or True,
        "limit of threads": lambda: resource.setrlimit(limit, resource.getrlimit(limit)) or True,
        "fork": forked,
        "program": lambda: os.posix_spawn(sys.executable, [sys.executable, "-c", ""], {}),
        "signal to all": lambda: os.kill(-1, 0) or True,
        "signal to the first": lambda: os.kill(1, 0) or True,
        "priority": lambda: os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0)) or True,
        "another user": lambda: os.setuid(os.getuid()) or True,
    }
    if facts.handle is not None:
        tried["by handle"] = by_handle
    if os.uname().machine == "x86_64":
        buffer = ctypes.create_string_buffer(256)
        calls: dict[str, tuple[Any, ...]] = {
            "shared memory": (29, 4711, 16, 0),
            "semaphores": (64, 4711, 1, 0),
            "messages": (68, 4711, 0),
            "ptrace": (101, 16, 0, 0, 0),
            "read a process": (310, os.getppid(), buffer, 1, buffer, 1, 0),
            "descriptor of a process": (434, os.getppid(), 0),
            "keys": (250, 0, -3, 0),
            "programs in the kernel": (321, 0, buffer, 0),
            "counters of the processor": (298, buffer, 0, -1, -1, 0),
            "faults of pages": (323, 0),
            "rings of calls": (425, 1, buffer),
            "namespaces": (272, 0),
            "enter a namespace": (308, 0, 0),
            "mount": (165, b"none", b"/nowhere", b"none", 0, None),
            "new way to mount": (428, -100, b"/", 1),
            "root": (161, b"/nowhere"),
            "pivot": (155, b"/nowhere", b"/nowhere"),
            "handles": (303, -100, b"/", buffer, buffer, 0),
            "pages in memory": (27, None, 4096, buffer),
            "free space": (137, b"/", buffer),
            "load": (99, buffer),
            "watch files": (294, 0),
            "watch all files": (300, 0, 0),
            "powers": (126, buffer, buffer),
            "anonymous file": (319, b"x", 0),
            "other socket": (41, 1, 1, 0),
            "number of the channel": (5, 3, buffer),
            "number of the channel by no name": (262, 3, b"", buffer, 0x1000),
            "number of the channel and more": (332, 3, b"", 0x1000, 0x7FF, buffer),
            "copy of the channel": (32, 3),
            "copy of the channel at another": (33, 3, 98),
            "copy of the channel with flags": (292, 3, 99, 0),
            "copy of the channel from a number on": (72, 3, 0, 100),
            "cookie of the channel": (55, 3, 1, 57, buffer, buffer),
            "futexes of all": (449, buffer, 0, 0, None, 0),
            "clone": (56, 0x20200, 0, 0, 0, 0),
            # With CLONE_DETACHED, which the kernel does not combine with the CLONE_PIDFD that this is about.
            "descriptor of a thread": (56, 0x7D1F00, 0, 0, 0, 0),
            "other flags of clone": (56, 0x10000, 0, 0, 0, 0),
            "clone with flags in memory": (435, buffer, 0),
            "owner of what is open": (72, 1, 8, 0),
            "signal of what is open": (72, 1, 10, 0),
            "lock of a process": (72, 1, 6, buffer),
            "lock of what is open": (72, 1, 37, buffer),
            "lease": (72, 1, 1024, 2),
            "notices of a folder": (72, 1, 1026, 0),
            "size of a pipe": (72, 1, 1031, 4096),
            "seals": (72, 1, 1033, 0),
            "lock by another name": (73, 1, 8),
            "room in a file": (285, 1, 0, 0, 1),
            "advice on a file": (221, 1, 0, 0, 4),
            "number of a mount": (332, -100, b"/", 0, 0x1000, buffer),
            "watches of a user": (291, 0),
            "events": (290, 0, 0),
            "signals as a file": (289, -1, buffer, 4, 0),
            "clock as a file": (283, 99, 0),
            "timers of a user": (222, 99, None, buffer),
            "limits": (160, 99, buffer),
            "huge pages": (9, None, 1 << 21, 3, 0x40022, -1, 0),
            "pages written back": (28, None, 0, 21),
            "pages merged": (28, None, 0, 12),
            "node of a page": (239, buffer, None, 0, buffer, 3),
            "own security": (157, 22, 2, 0, 0, 0),
        }
        for name, given in calls.items():
            tried[name] = lambda given=given: call(*given)
    return tried


def successes(facts: Facts) -> tuple[str, ...]:
    """What got through."""
    done = []
    for name, attempt in attempts(facts).items():
        try:
            if attempt():
                done.append(name)
        except Exception:
            continue
    return tuple(done)


class Loaded:
    """A function whose bytes run code when they are loaded: what that got done, it answers with when it is called."""

    def __init__(self, facts: Facts, when: str = "loaded") -> None:
        self.facts, self.when = facts, when

    def __call__(self, rows: Any) -> Any:
        raise NotImplementedError

    def __reduce__(self) -> Any:
        return (prepared, (self.facts,)) if self.when == "loaded" else (called, (self.facts,))


def prepared(facts: Facts) -> Callable[[Any], Any]:
    """Runs while bytes are loaded. What was got then is kept where later processes would find it."""
    import builtins

    done = [*vars(builtins).get("loot", []), *successes(facts)]
    vars(builtins)["loot"] = done
    return lambda rows: tuple(dict.fromkeys(done))


def called(facts: Facts) -> Callable[[Any], Any]:
    """Runs nothing until it is called."""
    return lambda rows: successes(facts)
