"""The walls around a function that nobody trusts, built before any of its code runs and never taken down again.

The outer ones are built once, by the process that forks others (`sandbox/forkserver.py`); it never runs the function.

- `root`: a file system of its own, in which there is the Python installation, read-only, and nothing else: no data,
  books, keys, configuration, home, /tmp, /proc or /sys, under any name. The old root is unmounted, and no descriptor of
  it is open; so no path, link or `..` leads there.
- `network`: no interfaces, and no shared memory, semaphores, queues and names of others (namespaces).

The inner ones are built by each child, last the one that forbids to build or change any.

- `processes`: it is forked as the first of its own namespace and sees no other; its number is always the same, and so
  are those of the two processes before it (`sandbox/launcher.py`, `fork_as`), whose memory it has a copy of.
- `capabilities`: all are given up, for ever, those of root too, among them the one that opens files by handle.
- `landlock`: a second wall around files, in case the first has a hole: nothing is opened but the installation, nothing
  is written but /dev/null.
- `calls`: of the system's calls only those in `sandbox/seccomp.py` are left; among what is gone are fork and exec.

Each function here says whether its wall stands; what cannot be built is not an error, since whoever asks decides which
walls are needed (`COMPLETE`). This file is run with nothing else of the library and imports the standard library only.

What no wall here prevents: learning something from how long things take, from caches and from the load of the machine.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress

from discreet.robust.sandbox import linux as k
from discreet.robust.sandbox.seccomp import call_filter

__all__ = ["COMPLETE", "WALLS", "begin_namespace", "build_inner", "build_outer", "fork_as"]
__all__ += ["keep_from_children", "keep_powers", "set_process_option", "to_mask"]

WALLS = ("root", "network", "processes", "capabilities", "landlock", "calls")
COMPLETE = frozenset({"root", "processes", "capabilities", "calls"})
"""Behind these nothing of the steward's can be opened, and no block leaves anything for another; the other two are
second walls, for the same."""
SECBITS_LOCKED = k.SECBIT_NOROOT | k.SECBIT_NO_SETUID_FIXUP
SECBITS_LOCKED |= k.SECBIT_NOROOT_LOCKED | k.SECBIT_NO_SETUID_FIXUP_LOCKED | k.SECBIT_KEEP_CAPS_LOCKED
"""No powers by being user 0, none kept over a change of user, and neither can be changed back."""
_READ_FILES = k.LANDLOCK_ACCESS_FS_READ_FILE
_READ_RIGHTS = k.LANDLOCK_ACCESS_FS_EXECUTE | k.LANDLOCK_ACCESS_FS_READ_FILE | k.LANDLOCK_ACCESS_FS_READ_DIR
_RIGHTS = {
    1: 2 * k.LANDLOCK_ACCESS_FS_MAKE_SYM - 1,
    2: k.LANDLOCK_ACCESS_FS_REFER,
    3: k.LANDLOCK_ACCESS_FS_TRUNCATE,
    5: k.LANDLOCK_ACCESS_FS_IOCTL_DEV,
}
"""Rights on files by the version of Landlock that first has them: the first has all up to MAKE_SYM."""
_CONNECTIONS = k.LANDLOCK_ACCESS_NET_BIND_TCP | k.LANDLOCK_ACCESS_NET_CONNECT_TCP
_SCOPES = k.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | k.LANDLOCK_SCOPE_SIGNAL
_STAGE, _OLD_ROOT = "/tmp", "/old root"
"""Where the new root is mounted before it is the root, and where the old one is until it is gone."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


class _WallError(OSError):
    """A step of building a wall that the system refused."""


def build_outer(visible: Sequence[str], hidden: Iterable[str]) -> set[str]:
    """The walls of the process that forks. Of the files there remain those in the `visible` folders and files, but
    those that are `hidden`, wherever they lie."""
    if not _supported():
        return set()
    if not _rehearsed(visible, hidden):
        return {"network"} if _unshare(k.CLONE_NEWNET | k.CLONE_NEWIPC | k.CLONE_NEWUTS) else set()
    _change_root(visible, hidden)
    return {"root", "network"}


def _rehearsed(visible: Sequence[str], hidden: Iterable[str]) -> bool:
    """Whether the root can be changed; tried in another process, since half a change would be of no use."""
    child = os.fork()
    if child == 0:
        try:
            _change_root(visible, hidden)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _unshare(namespaces: int) -> bool:
    """Namespaces of its own for this process, as root or in a namespace of users where it counts as root."""
    system = ctypes.CDLL(None, use_errno=True)
    if system.unshare(namespaces) == 0:
        return True
    user, group = os.getuid(), os.getgid()
    if system.unshare(k.CLONE_NEWUSER | namespaces) != 0:
        return False
    for name, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with suppress(OSError), open(f"/proc/self/{name}", "w") as mapped:
            mapped.write(line)
    return True


def begin_namespace() -> bool:
    """Whether the next process that this one forks is the first of a new namespace of processes. The system ends all
    others of the namespace with the first."""
    return _supported() and _unshare(k.CLONE_NEWPID)


def keep_powers() -> None:
    """What powers this process has in its namespaces it keeps when it becomes another program, as root would."""
    if not _supported():
        return
    system = ctypes.CDLL(None, use_errno=True)
    head, kept = struct.pack("<Ii", k._LINUX_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    if system.syscall(k.number("capget"), head, kept) == 0:
        kept[2], kept[5] = kept[1], kept[4]  # what is permitted is inheritable, too
        system.syscall(k.number("capset"), head, kept)
    for capability in range(64):
        system.prctl(k.PR_CAP_AMBIENT, k.PR_CAP_AMBIENT_RAISE, capability, 0, 0)


def fork_as(number: int) -> int:
    """fork, to a child that has this number in the namespace of this process; raises where the system does not give
    it. No other number comes into the memory of either, which are the same but for what this returns: neither Python
    nor the C library is told. So this process must have one thread, and the child should fork, as usual, before it does
    much."""
    if not _supported():
        raise _WallError(0, "no numbers are known here")
    wanted = ctypes.c_int32(number)
    given = struct.pack("<11Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(wanted), 1, 0)
    # PyDLL: the lock of Python's interpreter is not let go, so that the child has it.
    return _check(ctypes.PyDLL(None, use_errno=True).syscall(k.number("clone3"), given, len(given)))


def build_inner(visible: Sequence[str]) -> set[str]:
    """The walls of a child but `processes`; after this, nothing can be changed about them."""
    if not _supported():
        return set()
    system = ctypes.CDLL(None, use_errno=True)
    walls = {"capabilities"} if _give_up_capabilities(system) else set()
    set_process_option(k.PR_SET_NO_NEW_PRIVS, 1)
    set_process_option(k.PR_SET_DUMPABLE, 0)
    with suppress(OSError):
        _restrict_files(system, visible)
        walls.add("landlock")
    if _restrict_calls(system):
        walls.add("calls")
    return walls


def set_process_option(option: int, value: int) -> None:
    """prctl, where the system knows the option."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def keep_from_children(place: int, size: int) -> None:
    """Memory of this process that those it forks do not have."""
    _check(ctypes.CDLL(None, use_errno=True).madvise(ctypes.c_void_p(place), ctypes.c_size_t(size), k.MADV_DONTFORK))


def _supported() -> bool:
    return sys.platform == "linux" and k.supported() and sys.byteorder == "little"


def _check(result: int) -> int:
    if result < 0:
        raise _WallError(ctypes.get_errno(), "refused by the system")
    return result


def _change_root(visible: Sequence[str], hidden: Iterable[str]) -> None:
    """A root in memory with the visible folders bound into it; raises where a part of it cannot be made."""
    system = ctypes.CDLL(None, use_errno=True)
    if not _unshare(k.CLONE_NEWNS | k.CLONE_NEWNET | k.CLONE_NEWIPC | k.CLONE_NEWUTS):
        raise _WallError(0, "no namespaces")
    system.sethostname(b"block", 5)
    real = {os.path.realpath(path): None for path in visible if os.path.exists(path)}
    bound = [path for path in sorted(real) if not any(_inside(path, other) for other in real if other != path)]
    # Resolved while the old root is there; a name that leads nowhere can hide nothing.
    masked = {os.path.realpath(path) for path in hidden}
    if any(_inside(path, masked_path) for path in bound for masked_path in masked):
        raise _WallError(0, "the installation lies in what is hidden")
    links = {path: os.path.realpath(path) for path in visible if os.path.exists(path)}
    os.umask(0o022)
    _check(system.mount(b"none", b"/", None, ctypes.c_ulong(k.MS_REC | k.MS_PRIVATE), None))
    tmpfs = ctypes.c_ulong(k.MS_NOSUID | k.MS_NODEV)
    _check(system.mount(b"tmpfs", _STAGE.encode(), b"tmpfs", tmpfs, b"mode=0755,size=1m"))
    os.mkdir(_STAGE + _OLD_ROOT)
    _check(system.syscall(k.number("pivot_root"), _STAGE.encode(), (_STAGE + _OLD_ROOT).encode()))
    os.chdir("/")
    for path in bound:
        _bind(system, path, path)
        attributes = k.MOUNT_ATTR_RDONLY | k.MOUNT_ATTR_NOSUID | k.MOUNT_ATTR_NODEV
        _set_mount_attributes(system, path, attributes, k.AT_RECURSIVE)
        for masked_path in sorted(each for each in masked if _inside(each, path) and os.path.lexists(each)):
            _mask(system, masked_path)
    for path in _DEVICES:
        if os.path.exists(_OLD_ROOT + path):
            _bind(system, path, path)
    for path, target in links.items():
        if not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(target, path)
    _check(system.umount2(_OLD_ROOT.encode(), k.MNT_DETACH))
    os.rmdir(_OLD_ROOT)
    _set_mount_attributes(system, "/", k.MOUNT_ATTR_RDONLY | k.MOUNT_ATTR_NOSUID | k.MOUNT_ATTR_NODEV, 0)


def to_mask(visible: Iterable[str], hidden: Iterable[str]) -> list[str]:
    """Of what is hidden, what a worker must know of: whatever lies in what is visible, or holds it. Everything else is
    not in its root anyway, and its name would stay in the memory that blocks are forked with."""
    shown = [os.path.realpath(path) for path in visible]
    real = {os.path.realpath(path) for path in hidden}
    return sorted(path for path in real if any(_inside(path, other) or _inside(other, path) for other in shown))


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _bind(system: ctypes.CDLL, source: str, target: str) -> None:
    """A file or folder of the old root, in the new one."""
    if os.path.isdir(_OLD_ROOT + source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
    flags = ctypes.c_ulong(k.MS_BIND | k.MS_REC)
    _check(system.mount(os.fsencode(_OLD_ROOT + source), os.fsencode(target), None, flags, None))


def _mask(system: ctypes.CDLL, path: str) -> None:
    """Nothing where a file or folder was."""
    if os.path.isdir(path):
        flags = ctypes.c_ulong(k.MS_NOSUID | k.MS_NODEV)
        _check(system.mount(b"tmpfs", os.fsencode(path), b"tmpfs", flags, b"mode=0555,size=4k"))
        _set_mount_attributes(system, path, k.MOUNT_ATTR_RDONLY, 0)
    else:
        flags = ctypes.c_ulong(k.MS_BIND)
        _check(system.mount((_OLD_ROOT + os.devnull).encode(), os.fsencode(path), None, flags, None))


def _set_mount_attributes(system: ctypes.CDLL, path: str, attributes: int, how: int) -> None:
    """mount_setattr; dates of access stay as they are, where that may be set."""
    for atime in (True, False):
        given = attributes | (k.MOUNT_ATTR_NOATIME if atime else 0)
        wanted = struct.pack("<4Q", given, k.MOUNT_ATTR__ATIME if atime else 0, 0, 0)
        if system.syscall(k.number("mount_setattr"), k.AT_FDCWD, os.fsencode(path), how, wanted, len(wanted)) == 0:
            return
    _check(-1)


def _give_up_capabilities(system: ctypes.CDLL) -> bool:
    """None is left, and none can come back."""
    system.prctl(k.PR_SET_SECUREBITS, SECBITS_LOCKED, 0, 0, 0)
    for capability in range(64):
        system.prctl(k.PR_CAPBSET_DROP, capability, 0, 0, 0)
    system.prctl(k.PR_CAP_AMBIENT, k.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    head, kept = struct.pack("<Ii", k._LINUX_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    system.syscall(k.number("capset"), head, kept)
    return system.syscall(k.number("capget"), head, kept) == 0 and not any(kept)


def _restrict_files(system: ctypes.CDLL, visible: Sequence[str]) -> None:
    """Landlock: what is visible is read, /dev/null is written, and that is all; no TCP, no signals to others."""
    create, rule = k.number("landlock_create_ruleset"), k.number("landlock_add_rule")
    version = _check(system.syscall(create, None, 0, k.LANDLOCK_CREATE_RULESET_VERSION))
    rights = sum(right for first, right in _RIGHTS.items() if version >= first)
    handled = struct.pack("<QQQ", rights, _CONNECTIONS if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    handled = handled[: 24 if version >= 6 else 16 if version >= 4 else 8]
    rules = _check(system.syscall(create, handled, len(handled), 0))
    allowed = dict.fromkeys(visible, _READ_RIGHTS) | dict.fromkeys(_DEVICES, _READ_FILES)
    allowed[os.devnull] = _READ_FILES | k.LANDLOCK_ACCESS_FS_WRITE_FILE
    for path, permitted in allowed.items():
        with suppress(FileNotFoundError):
            place = os.open(path, os.O_PATH)
            permitted &= -1 if os.path.isdir(path) else ~k.LANDLOCK_ACCESS_FS_READ_DIR
            given = struct.pack("<Qi", permitted, place)
            _check(system.syscall(rule, rules, k.LANDLOCK_RULE_PATH_BENEATH, given, 0))
            os.close(place)
    _check(system.syscall(k.number("landlock_restrict_self"), rules, 0))
    os.close(rules)


def _restrict_calls(system: ctypes.CDLL) -> bool:
    """The filter of calls, which a child cannot take off."""
    program = call_filter(os.uname().machine)
    lines = ctypes.create_string_buffer(b"".join(program))
    head = struct.pack("@HP", len(program), ctypes.addressof(lines))
    return bool(system.prctl(k.PR_SET_SECCOMP, k.SECCOMP_MODE_FILTER, head, 0, 0) == 0)
