"""The system calls that a confined function may make, as a filter that the kernel runs (seccomp).

By these calls no block changes anything that another can see, nor sees what the kernel numbers or counts for several
processes together. It is a list of what is allowed: whatever is not on it, and whatever a later kernel adds, is
refused. Left out on purpose are the ways to files that pass by their names (open_by_handle_at), to other processes
(kill, ptrace, process_vm_readv, pidfd_open), to the network (socket, connect), to what outlives a process (shared
memory, keys, locks on files, dates, modes, attributes), to new powers (mount, unshare, setns, bpf, io_uring_setup,
execve, fork), and those that show what others did to the machine (mincore, statfs, sysinfo, preadv2, getrusage with its
faults of pages).

What is open. A block has four descriptors when its code begins (`sandbox/forkserver.py`), and what each of them has
open, with its flags, place, owner and locks, no other block has: 0, 1 and 2 are /dev/null, opened by the block itself,
and 3 is the `CHANNEL`, one end of a pair of sockets that is made for the block. What a block opens later is its own,
too. So flags that are changed would be seen by nobody; they cannot be changed either (F_SETFL, FIONBIO), and there are
no owners, signals, leases, notices, seals, sizes of pipes (fcntl) or locks (flock). Files and devices themselves stay
as they are: those of the installation are read-only, and nothing that is written to a device is kept.

What is counted. One block makes many, another sees the number, or that there are none left. Of this kind are:

- inode numbers and cookies of pipes, sockets, pidfds and files in memory: none is made here (pipe, socketpair,
  memfd_create, clone with CLONE_PIDFD), and the one there is, `CHANNEL`, is neither looked at (fstat, getsockopt) nor
  copied to where it could be; memory that is mapped to be shared takes one, which nobody behind the walls can ask for;
- numbers of mounts (statx, name_to_handle_at);
- watches of a user (epoll_ctl, inotify_add_watch), his pending signals (timer_create), and his threads: who could set
  RLIMIT_NPROC would count them by when clone begins to fail, so no limits are set (setrlimit, prlimit64);
- huge pages of the machine (MAP_HUGETLB), and the node on which a page lies that others have, too (get_mempolicy);
- pages that are written back, merged or joined for all who have them (MADV_PAGEOUT, MADV_MERGEABLE, MADV_COLLAPSE);
- futexes that are not private to a process, which are the same for all that have the same page of the same library:
  such calls return at once, as if the value had changed.

Numbers of processes and threads are those of a namespace in which the block is alone. On which processor a thread runs
(getcpu, and rseq without any call) and what clocks say are left: they tell of the load of the machine, as time does.
"""

from __future__ import annotations

import errno
import struct

from discreet.robust.sandbox import linux as k

__all__ = ["CHANNEL", "call_filter", "clone_filter"]

CHANNEL = 3
"""The descriptor by which a block gets its rows and sends its answer."""
_PTHREAD_CREATE = k.CLONE_VM | k.CLONE_FS | k.CLONE_FILES | k.CLONE_SYSVSEM | k.CLONE_SIGHAND | k.CLONE_THREAD
_PTHREAD_CREATE |= k.CLONE_SETTLS | k.CLONE_PARENT_SETTID | k.CLONE_CHILD_CLEARTID
"""The flags with which the C library (glibc) begins a thread: these, all of them, and no signal."""
_FCNTL = (k.F_DUPFD, k.F_GETFD, k.F_SETFD, k.F_GETFL, k.F_DUPFD_CLOEXEC)
"""Of the descriptor, which is the block's own; nothing that changes what is open."""
_IOCTL = (k.TCGETS, k.TIOCGWINSZ, k.FIONREAD, k.FIONCLEX, k.FIOCLEX)
_PRCTL = (k.PR_GET_DUMPABLE, k.PR_GET_NAME, k.PR_SET_VMA)
"""Not PR_SET_NAME: names of processes are shown to everybody on a machine, and stand in the log of its kernel."""
_MADVISE = (
    *(k.MADV_NORMAL, k.MADV_RANDOM, k.MADV_SEQUENTIAL, k.MADV_WILLNEED, k.MADV_DONTNEED, k.MADV_FREE),
    *(k.MADV_DONTFORK, k.MADV_DOFORK, k.MADV_HUGEPAGE, k.MADV_NOHUGEPAGE, k.MADV_DONTDUMP, k.MADV_DODUMP),
    *(k.MADV_WIPEONFORK, k.MADV_KEEPONFORK, k.MADV_GUARD_INSTALL, k.MADV_GUARD_REMOVE),
)
_ALLOWED = [
    # Its own descriptors, and files that it may open.
    *("read", "write", "readv", "writev", "pread64", "preadv", "lseek", "close", "close_range", "open", "openat"),
    *("stat", "lstat", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getcwd"),
    *("getdents", "getdents64"),
    # Memory.
    *("munmap", "mremap", "mprotect", "brk", "membarrier"),
    # Waiting, and the channel.
    *("poll", "ppoll", "select", "pselect6", "recvfrom", "shutdown"),
    # Threads.
    *("set_robust_list", "get_robust_list", "rseq", "set_tid_address", "arch_prctl", "exit", "exit_group"),
    *("restart_syscall", "sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler"),
    *("sched_get_priority_max", "sched_get_priority_min", "getpriority", "getcpu", "wait4", "waitid"),
    # Signals to itself.
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "sigaltstack"),
    *("alarm", "pause", "setitimer", "getitimer"),
    # Time.
    *("nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "time", "times"),
    # Who and where it is.
    *("getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups"),
    *("getpgrp", "getpgid", "getsid", "uname", "getrlimit", "umask", "getrandom", "capget"),
]
_NUMBER, _ARCHITECTURE = 0, 4
"""Where struct seccomp_data has the call and its architecture; arguments follow from byte 16, 8 bytes each."""


def _step(code: int, value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    """struct sock_filter; after a comparison so many steps are left out."""
    return struct.pack("<HBBI", code, if_so, if_not, value)


def _load(place: int) -> bytes:
    return _step(k.BPF_LD | k.BPF_W | k.BPF_ABS, place)


def _argument(place: int, upper: bool = False) -> bytes:
    """Half of an argument of the call: the lower one, unless said otherwise (these machines are little-endian)."""
    return _load(16 + 8 * place + 4 * upper)


def _equal(value: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return _step(k.BPF_JMP | k.BPF_JEQ | k.BPF_K, value, if_so, if_not)


def _any_bit(bits: int, if_so: int = 0, if_not: int = 0) -> bytes:
    return _step(k.BPF_JMP | k.BPF_JSET | k.BPF_K, bits, if_so, if_not)


def _verdict(what: int) -> bytes:
    return _step(k.BPF_RET | k.BPF_K, what)


def _refusal(error: int = errno.EPERM) -> bytes:
    return _verdict(k.SECCOMP_RET_ERRNO | error)


# Demands on arguments: each refuses, or goes on with the step that follows it.


def _among(place: int, values: tuple[int, ...]) -> list[bytes]:
    """A number of 32 bits that is one of these."""
    tests = [_equal(value, len(values) - before) for before, value in enumerate(values)]
    return [_argument(place), *tests, _refusal()]


def _null(place: int) -> list[bytes]:
    return [_argument(place), _equal(0, 1), _refusal(), *_small(place)]


def _small(place: int) -> list[bytes]:
    """No bit of the upper half."""
    return [_argument(place, upper=True), _equal(0, 1), _refusal()]


def _without(place: int, bits: int) -> list[bytes]:
    return [_argument(place), _any_bit(bits, 0, 1), _refusal()]


def _not_the_channel() -> list[bytes]:
    return [_argument(0), _equal(CHANNEL, 0, 1), _refusal()]


_CHECKED = {
    "clone": [*_among(0, (_PTHREAD_CREATE,)), *_small(0)],
    "futex": [_argument(1), _any_bit(k.FUTEX_PRIVATE_FLAG, 1), _refusal(errno.EAGAIN)],
    "sendto": _null(4),  # to the other end of a pair, not to an address
    "fstat": _not_the_channel(),
    "newfstatat": _not_the_channel(),
    "dup": _not_the_channel(),
    "dup2": _not_the_channel(),
    "dup3": _not_the_channel(),
    "fcntl": [*_not_the_channel(), *_among(1, _FCNTL)],
    "ioctl": _among(1, _IOCTL),
    "prctl": _among(0, _PRCTL),
    "prlimit64": [*_among(0, (0,)), *_null(2)],  # of the process itself, and read only
    "mmap": _without(3, k.MAP_HUGETLB),
    "madvise": _among(2, _MADVISE),
    "get_mempolicy": _among(4, (0, k.MPOL_F_MEMS_ALLOWED)),
}
"""Calls that are allowed where their arguments are as demanded."""
_ABSENT = ["clone3", "statx"]
"""Calls that are refused as an old kernel would, so that libraries do it the old way: the flags of clone3 lie in
memory, where a filter cannot look, and statx gives the numbers of mounts whether they are asked for or not."""


def call_filter(machine: str) -> list[bytes]:
    """The filter as instructions of BPF."""
    allow = _verdict(k.SECCOMP_RET_ALLOW)
    program = [_load(_ARCHITECTURE), _equal(k.AUDIT_ARCH[machine], 1), _verdict(k.SECCOMP_RET_KILL_PROCESS)]
    program.append(_load(_NUMBER))
    rules = {call: [_refusal(errno.ENOSYS)] for call in _ABSENT}
    rules |= {call: [*demands, allow] for call, demands in _CHECKED.items()}
    rules |= {call: [allow] for call in _ALLOWED}
    for call, steps in rules.items():
        number = k.number(call, machine)
        if number is not None:
            program += [_equal(number, 0, len(steps)), *steps]
    return [*program, _refusal()]


def clone_filter(machine: str, handed: bool) -> list[bytes]:
    """One for the clones that `call_filter` permits: each is handed to another process, or refused
    (`sandbox/threads.py`)."""
    number = k.number("clone", machine)
    assert number is not None
    verdict = _verdict(k.SECCOMP_RET_USER_NOTIF) if handed else _refusal(errno.EAGAIN)
    return [_load(_NUMBER), _equal(number, 0, 1), verdict, _verdict(k.SECCOMP_RET_ALLOW)]
