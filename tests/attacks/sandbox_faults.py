"""Faults of the walls around a function, planted in the program that workers run, one at a time."""

import pickletools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from discreet.estimation import trial
from discreet.robust.aggregation import votes
from discreet.robust.sandbox import shipping, workers


@contextmanager
def _all_names_sent(fault: Any) -> Iterator[None]:
    """The fault in a worker that is told where all files of the steward are."""
    apart = patch.object(workers, "_check_apart", lambda masked: None)
    with patch.object(workers, "to_mask", lambda visible, hidden: [*hidden]), apart, fault:
        yield


def _in_workers(lines: str) -> Any:
    """The program of a worker with these lines before it begins; `n` is its module and `w` that of the walls."""
    kept = "from discreet.robust.sandbox import forkserver as n, confinement as w\n"
    start = "from discreet.robust.sandbox.forkserver import main\n"
    assert start in workers._PROGRAM
    return patch.object(workers, "_PROGRAM", workers._PROGRAM.replace(start, start + kept + lines + "\n"))


@contextmanager
def _in_launchers(lines: str, later: str = "") -> Iterator[None]:
    """What begins a worker, with these lines before; `l` is its module. Then the worker itself, with others."""
    start = "from discreet.robust.sandbox.launcher import launch\n"
    assert start in workers._LAUNCHER
    changed = f"{start}from discreet.robust.sandbox import launcher as l\n{lines}\n"
    with patch.object(workers, "_LAUNCHER", workers._LAUNCHER.replace(start, changed)), _in_workers(later):
        yield


def function_loaded_before_the_walls() -> Any:
    return _in_workers(
        "import pickle\n"
        "build = n.build_outer\n"
        "receive = n.received\n"
        "def received(channel):\n"
        "    message = receive(channel)\n"
        "    if message[:1] == bytes([128]) and not hasattr(n, 'early'):\n"
        "        n.early = pickle.loads(message)\n"
        "    return message\n"
        "n.received = received"
    )


def root_that_may_open_by_handle() -> Any:
    """The root is changed, but the powers of root are kept, and of the calls none is refused."""
    return _in_workers("n.build_inner = lambda visible: {'capabilities', 'calls', 'landlock'}")


def only_the_data_hidden() -> Any:
    """Files of the data are masked in a root where everything else is as it was."""
    return _all_names_sent(
        _in_workers(
            "import ctypes, os\n"
            "def build_outer(visible, hidden):\n"
            "    w._unshare(w.k.CLONE_NEWNS)\n"
            "    system = ctypes.CDLL(None)\n"
            "    system.mount(b'none', b'/', None, ctypes.c_ulong(w.k.MS_REC | w.k.MS_PRIVATE), None)\n"
            "    system.mount(b'/dev/null', os.fsencode(hidden[0]), None, ctypes.c_ulong(w.k.MS_BIND), None)\n"
            "    return {'root', 'network'}\n"
            "n.build_outer = build_outer\n"
            "def build_inner(visible):\n"
            "    return {*inner(['/'])}\n"
            "inner, n.build_inner = n.build_inner, build_inner"
        )
    )


def nothing_masked() -> Any:
    """What lies in folders of the installation is there, whatever it is."""
    return patch.object(workers, "to_mask", lambda visible, hidden: [])


def no_filter_of_calls() -> Any:
    return _in_workers("w._restrict_calls = lambda system: True")


def what_all_share_counted(name: str) -> Any:
    """A call by which one process sees what others made is permitted as it is."""

    def counted() -> Any:
        return _in_workers(
            "from discreet.robust.sandbox import seccomp as c\n"
            "numbers = {'pipe2': (293, 59), 'socketpair': (53, 199), 'getsockopt': (55, 209), 'getrusage': (98, 165)}\n"
            "numbers |= {'setrlimit': (160, 164), 'epoll_create1': (291, 20), 'timer_create': (222, 107)}\n"
            f"c.k.CALLS.setdefault({name!r}, numbers.get({name!r}))\n"
            f"c._CHECKED.pop({name!r}, None)\n"
            f"c._ABSENT = [call for call in c._ABSENT if call != {name!r}]\n"
            f"c._ALLOWED.append({name!r})"
        )

    counted.__name__ = f"{name}_permitted"
    return counted


def flags_that_can_be_set() -> Any:
    return _demanded("fcntl", "c._not_the_channel() + c._among(1, (*c._FCNTL, c.k.F_SETFL))")


def blocking_that_can_be_set() -> Any:
    return _demanded("ioctl", "c._among(1, (*c._IOCTL, c.k.FIONBIO))")


def clone_by_what_is_refused() -> Any:
    """Any flags that make a thread and no namespace."""
    return _demanded("clone", "c._without(0, 0x7E020080) + [c._argument(0), c._any_bit(0x10000, 1), c._refusal()]")


def limits_that_can_be_set() -> Any:
    return _demanded("prlimit64", "c._among(0, (0,))")


def _demanded(name: str, demands: str) -> Any:
    return _in_workers(f"from discreet.robust.sandbox import seccomp as c\nc._CHECKED[{name!r}] = {demands}")


def descriptors_of_all_kept() -> Any:
    """Each block has what the process has open that forks all of them."""
    return _in_workers(
        "def own(descriptor):\n"
        "    n.os.dup2(descriptor, 3)\n"
        "    n.os.closerange(4, 1024)\n"
        "    return n.socket.socket(fileno=3)\n"
        "n._own_descriptors = own"
    )


def memory_of_all_kept() -> Any:
    return _in_workers("n._keep_memory = lambda maps: None")


def library_that_shares_memory() -> Any:
    """No fault of ours: a module that maps memory as one for several processes, when it is loaded."""
    return _in_workers("import builtins, mmap\nbuiltins.shared = mmap.mmap(-1, 4096)")


def names_of_files_kept() -> Any:
    return _all_names_sent(
        _in_workers(
            "outer = n.build_outer\n"
            "def build_outer(visible, hidden):\n"
            "    n.kept = hidden\n"
            "    return outer(visible, hidden)\n"
            "n.build_outer = build_outer"
        )
    )


def threads_not_counted() -> Any:
    return _in_workers("n.hand_over = lambda link: None")


def blocks_not_waited_for() -> Any:
    """Once the function is loaded."""
    return _in_workers(
        "def wait(loaded=[]):\n"
        "    if loaded:\n"
        "        raise ChildProcessError\n"
        "    loaded.append(True)\n"
        "    waited()\n"
        "waited, n.os.wait = n.os.wait, wait"
    )


def times_known_where_all_are_forked() -> Any:
    """The process that forks all blocks sees when each is over."""
    return _in_workers(
        "kept = n._kept\n"
        "def timed(*given, **named):\n"
        "    kept(*given, **named)\n"
        "    n.ended = n.time.monotonic()\n"
        "n._kept = timed"
    )


def missing_walls_unnoticed() -> Any:
    """The walls are not there, and nobody asks."""
    return patch.object(workers, "COMPLETE", frozenset())


def trial_that_quotes() -> Any:
    """What the function sent is said as it is."""
    return patch.object(trial, "_outcome", lambda request, said: repr(said))


def environment_passed_on() -> Any:
    return patch.object(workers, "_KEPT", ("HOME", "PATH", "LANG", "DISCREET_SECRET"))


def no_namespaces() -> Any:
    """No fault of ours: a machine that allows none."""
    nothing = "begin_namespace = lambda: False"
    return _in_launchers(f"l.{nothing}", f"w._unshare = lambda namespaces: False\nn.{nothing}")


def numbers_kept() -> Any:
    """No fault of ours: what each process before a block has for a number is kept where the block finds it."""
    return _in_workers(
        "import builtins, os\n"
        "builtins.numbers = [os.getpid()]\n"
        "forked = n._forked\n"
        "def noted(*given):\n"
        "    builtins.numbers.append(os.getpid())\n"
        "    forked(*given)\n"
        "n._forked = noted"
    )


NUMBERED_BY_THE_SYSTEM = "n.fork_as = lambda number: n.os.fork()"


def carers_numbered_by_the_system() -> Any:
    return _in_workers(NUMBERED_BY_THE_SYSTEM)


def numbers_of_the_machine() -> Any:
    """All are forked by a process that is in no namespace of its own."""
    unasked = "serve = n._serve\nn._serve = lambda *given: serve(*given[:-1], True)"
    return _in_launchers("l.begin_namespace = lambda: False", f"{NUMBERED_BY_THE_SYSTEM}\n{unasked}")


def named_modules_imported_where_all_are_forked() -> Any:
    """Whatever module a function names, on whose memory all blocks begin."""
    ahead = workers.loaded_ahead

    def all_of_them(form: str, packed: bytes) -> list[str]:
        texts = [text for _, text, _ in pickletools.genops(packed) if isinstance(text, str)]
        return [*ahead(form, packed), *(text for text in texts if text.split(".")[0] in sys.stdlib_module_names)]

    return patch.object(workers, "loaded_ahead", all_of_them)


def files_looked_at_noted() -> Any:
    """No fault of ours: whether Python looked at what its standard input is, and what it opened in its own way."""
    return _in_workers(
        "import builtins, io, os, stat\n"
        "builtins.looked = [f'standard {n}' for n in range(3) if not stat.S_ISCHR(os.fstat(n).st_mode)]\n"
        "real = builtins.open\n"
        "def noted(path, *given, **named):\n"
        "    builtins.looked += [path] if str(path).startswith('/proc') else []\n"
        "    return real(path, *given, **named)\n"
        "builtins.open = noted"
    )


def socket_as_standard_input() -> Any:
    return _in_launchers(
        "def become(program):\n"
        "    os.dup2(0, l.CONTROL)\n"
        "    l.keep_powers()\n"
        "    l.signal.pthread_sigmask(l.signal.SIG_UNBLOCK, l._ENDS)\n"
        "    os.execv(program[0], program)\n"
        "l._become = become"
    )


def files_opened_by_python() -> Any:
    """Which asks for their numbers."""
    return _in_workers("n._told_of_maps = lambda: open('/proc/self/maps', 'rb', buffering=0).read")


def code_of_any_size() -> Any:
    return patch.object(shipping, "_check_code", lambda code: None)


def any_number_of_voters() -> Any:
    return patch.object(votes, "check_blocks", lambda blocks, rounds: None)
