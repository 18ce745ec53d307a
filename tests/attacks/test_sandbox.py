"""Hostile functions: what they try when they are loaded and when they run, on made-up rows and on those of blocks.

A line of the list of known privacy bugs that is tested here: code of the analyst that runs before it is confined,
powers of root that are kept, books and keys that can be read from a sandbox, and text of a trial that leaves.
"""

import ctypes
import os
import pickle
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.attacks import sandbox_faults as faults
from tests.attacks.hostile_functions import SECRET, Facts, Loaded
from tests.attacks.register import attack

import discreet as dc
from discreet.robust import Limits
from discreet.robust.aggregation.blocks import LARGEST
from discreet.robust.sandbox import workers
from discreet.robust.sandbox.confinement import to_mask
from discreet.robust.sandbox.forkserver import CARER, read
from discreet.robust.sandbox.threads import MOST
from discreet.robust.sandbox.workers import Workers
from discreet.session.session import Session

LIMITS = Limits(seconds=20, workers=1)
MARK = "CHOSEN-BY-THE-FUNCTION"


@contextmanager
def steward(folder: Path) -> Iterator[tuple[Session, Facts]]:
    """A session with everything beside its data, and what there is to attack."""
    files = {name: folder / name for name in ("data.parquet", "books.db", "discreet.toml", "home.txt")}
    pyarrow.parquet.write_table(pa.table({"who": list(range(300)), "x": [1.5] * 300}), files["data.parquet"])
    files["discreet.toml"].write_bytes(SECRET)
    files["home.txt"].write_bytes(SECRET)
    opened = dc.connect(
        files["data.parquet"],
        table="t",
        unit=dc.User("who"),
        budget=dc.ApproxDP(20, "1e-6"),
        bounds={"x": (0, 2)},
        ledger=files["books.db"],
    )
    # A socket's name has an end: folders of tests are longer.
    local = f"/tmp/discreet-{os.getpid()}-{os.urandom(4).hex()}"
    with (
        opened as session,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as listening,
    ):
        listening.bind(local)
        listening.listen()
        named = {"data": files["data.parquet"], "books": files["books.db"], "key": session._custody.path}
        named |= {"settings": files["discreet.toml"], "another file": files["home.txt"]}
        places = {kind: str(path) for kind, path in named.items()}
        here = (os.getpid(), os.getppid())
        port = server.getsockname()[1]
        try:
            yield session, Facts(places, str(folder), here, handle_of(named["data"]), port, local)
        finally:
            os.unlink(local)


def handle_of(path: Path) -> tuple[int, bytes] | None:
    """How the kernel calls a file, by which it opens under any root."""
    if os.uname().machine != "x86_64":
        return None
    buffer = ctypes.create_string_buffer((128).to_bytes(4, "little"), 256)
    mount = ctypes.c_int()
    if ctypes.CDLL(None).syscall(303, -100, os.fsencode(path), buffer, ctypes.byref(mount), 0) != 0:
        return None
    size, kind = (int.from_bytes(buffer.raw[place : place + 4], "little") for place in (0, 4))
    return kind, buffer.raw[8 : 8 + size]


def answer_of(function: Callable[[Any], Any], session: Session) -> Any:
    """What one block answers, behind the walls that an estimate has."""
    request = dc.Estimate(function, "t", 1, form="numpy", limits=LIMITS).bind(session._context).request
    with Workers(function, None, "rows", LIMITS, request.packed, session._files(), confined=True) as confined:
        (answer,) = confined.answers(lambda place: pickle.dumps([1, 2]), 1)
    assert answer is not None, "it was not run at all"
    return read(answer)


FOUND = [faults.function_loaded_before_the_walls, faults.root_that_may_open_by_handle, faults.only_the_data_hidden]
FOUND += [faults.no_filter_of_calls]
SHARED = ("pipe2", "socketpair", "getsockopt", "getrusage", "futex", "fstat", "newfstatat", "statx", "dup3", "fcntl")
COUNTED = [faults.what_all_share_counted(name) for name in SHARED]


@attack(35, finds=FOUND, when="loaded")
@attack(35, finds=[*FOUND[1:], *COUNTED], when="called")
@pytest.mark.parametrize("when", ["loaded", "called"])
def test_a_hostile_function_gets_nothing_done(when: str, tmp_path: Path) -> None:
    with steward(tmp_path) as (session, facts):
        assert answer_of(Loaded(facts, when), session) == ()
        assert not {"written", "folder", "link"} & {path.name for path in tmp_path.iterdir()}


MORE = ("clone3", "setrlimit", "epoll_create1", "timer_create", "mmap", "madvise")
CHANGED = [faults.flags_that_can_be_set, faults.blocking_that_can_be_set, faults.limits_that_can_be_set]
CHANGED += [faults.clone_by_what_is_refused, *(faults.what_all_share_counted(name) for name in MORE)]
NOBODY = Facts({}, "/nowhere", (), None, 9, "/nowhere")


@attack(35, finds=CHANGED)
def test_nothing_is_changed_or_counted_that_blocks_share() -> None:
    with Workers(Loaded(NOBODY, "called"), None, "rows", LIMITS, confined=True) as confined:
        (answer,) = confined.answers(lambda place: pickle.dumps([1]), 1)
    assert answer is not None
    assert read(answer) == ()


@attack(35, finds=[faults.descriptors_of_all_kept])
def test_what_a_block_has_open_is_its_own() -> None:
    """Even where no call is refused: flags would stay for those that are forked later."""

    def flagged(rows: Any) -> int:
        import fcntl

        marks = os.O_NONBLOCK | os.O_APPEND
        flags = [fcntl.fcntl(number, fcntl.F_GETFL) for number in range(3)]
        for number in range(3):
            fcntl.fcntl(number, fcntl.F_SETFL, flags[number] | marks)
        return sum(bool(each & marks) for each in flags)

    with faults.no_filter_of_calls(), Workers(flagged, None, "rows", LIMITS, confined=True) as confined:
        assert confined.answers(lambda place: pickle.dumps([1]), 3) == [b"0"] * 3


@attack(35, finds=[faults.memory_of_all_kept])
def test_no_memory_of_a_library_is_one_for_all_blocks() -> None:
    def marked(rows: Any) -> int:
        import builtins

        shared = vars(builtins)["shared"]
        if rows == "write":
            shared[0] = 1
        return int(shared[0])

    with faults.library_that_shares_memory(), Workers(marked, None, "rows", LIMITS, confined=True) as confined:
        assert b"1" not in confined.answers(lambda place: pickle.dumps(["write", "read"][place]), 2)[1:]


def recent(begun: float) -> int:
    """How many readings of the clock there are in the memory that a block began with, from that time on."""
    import ctypes
    import gc

    import numpy as np

    now, system, found = time.monotonic(), ctypes.CDLL(None, use_errno=True), 0
    for pool in {id(thing) >> 14 for thing in gc.get_referents(*gc.get_objects())}:
        for page in range(pool << 14, (pool + 1) << 14, 4096):
            ctypes.set_errno(0)
            system.access(ctypes.c_void_p(page), 0)
            if ctypes.get_errno() != 14:  # EFAULT: there is nothing
                held = np.frombuffer(ctypes.string_at(page, 4096))
                found += int(np.count_nonzero((held > begun) & (held < now)))
    return found


@attack(35, finds=[faults.times_known_where_all_are_forked])
def test_a_block_does_not_find_in_memory_how_long_others_took() -> None:
    with Workers(recent, None, "rows", LIMITS, confined=True) as confined:
        begun = pickle.dumps(time.monotonic())
        assert confined.answers(lambda place: begun, 8) == [b"0"] * 8


def test_threads_begin_as_with_an_old_kernel() -> None:
    """The C library asks for clone3 first, and takes clone where there is no such call, and nothing else."""

    def begun(rows: Any) -> tuple[bool, int]:
        import ctypes
        import errno
        import threading

        over: list[int] = []
        thread = threading.Thread(target=over.append, args=(1,))
        thread.start()
        thread.join()
        ctypes.set_errno(0)
        ctypes.CDLL(None, use_errno=True).syscall(435, ctypes.create_string_buffer(88), 88)
        return ctypes.get_errno() == errno.ENOSYS, len(over)

    with Workers(begun, None, "rows", LIMITS, confined=True) as confined:
        (answer,) = confined.answers(lambda place: pickle.dumps([1]), 1)
    assert answer is not None
    assert read(answer) == (True, 1)


@attack(35, finds=[faults.nothing_masked])
def test_where_the_stewards_files_lie_among_packages_nothing_is_run(tmp_path: Path) -> None:
    """A mask over a file goes when the file is replaced, and what is beside it has none."""
    visible = [*workers.installed(), str(tmp_path)]
    with steward(tmp_path) as (session, _), patch.object(workers, "installed", lambda: visible):
        before = session.spent
        with pytest.raises(dc.Unsupported, match="among the packages"):
            answer_of(len, session)
        assert session.spent == before


@attack(35, finds=[faults.numbers_of_the_machine, faults.carers_numbered_by_the_system])
def test_a_block_knows_no_number_that_others_could_have_moved() -> None:
    """Neither its own nor, from the memory that it has a copy of, those of the processes that it was forked by: each
    thread that a block begins moves the next number of the machine."""

    def numbers(rows: Any) -> tuple[int, ...]:
        import builtins
        import os
        import threading

        threading.stack_size(1 << 16)
        for _ in range(20):
            threading.Thread(target=int).start()
        natives = threading.main_thread().native_id or 0, threading.get_native_id()
        return *vars(builtins)["numbers"], os.getpid(), *natives

    found = set()
    for _ in range(2):
        with faults.numbers_kept(), Workers(numbers, None, "rows", LIMITS, confined=True) as confined:
            found |= {*confined.answers(lambda place: pickle.dumps([1]), 3)}
    assert found == {f'{{"t": [1, {CARER}, 1, 1, 1]}}'.encode()}


@attack(35, finds=[faults.named_modules_imported_where_all_are_forked])
def test_no_module_that_a_function_chooses_is_imported_where_all_are_forked() -> None:
    """It would run there outside the inner walls, and what it keeps of the machine all blocks would have."""

    def early(rows: Any) -> tuple[Any, ...]:
        import sys

        before = "wave" in sys.modules or "multiprocessing.heap" in sys.modules
        import multiprocessing.heap
        import wave

        heap: Any = multiprocessing.heap.BufferWrapper
        return before, wave.__name__, heap._heap._lastpid

    with Workers(early, None, "rows", LIMITS, confined=True) as confined:
        (answer,) = confined.answers(lambda place: pickle.dumps([1]), 1)
    assert answer is not None
    assert read(answer) == (False, "wave", 1)


@attack(35, finds=[faults.socket_as_standard_input, faults.files_opened_by_python])
def test_the_process_that_forks_does_not_ask_for_numbers_of_what_is_open() -> None:
    """Sockets and files of /proc are numbered by the machine, and a block moves that by mapping memory."""

    def looked(rows: Any) -> tuple[str, ...]:
        import builtins

        return tuple(vars(builtins)["looked"])

    with faults.files_looked_at_noted(), Workers(looked, None, "rows", LIMITS, confined=True) as confined:
        (answer,) = confined.answers(lambda place: pickle.dumps([1]), 1)
    assert answer is not None
    assert read(answer) == ()


def repeated(levels: int) -> Callable[[Any], float]:
    """A function whose code has the same code twice, which has the same code twice, and so on."""

    def half(rows: Any) -> float:
        return 0.5

    for _ in range(levels):
        half.__code__ = half.__code__.replace(co_consts=(None, 0.5, half.__code__, half.__code__))
    return half


@attack(42, finds=[faults.code_of_any_size])
def test_a_price_does_no_work_for_code_that_python_never_wrote(tmp_path: Path) -> None:
    """Python takes the hash of code by all it holds, and does so while a function is pickled."""
    inner = repeated(18)
    with steward(tmp_path) as (session, _):
        for function in (inner, lambda rows: inner(rows)):
            with pytest.raises(dc.InvalidArgument, match="parts of code"):
                session.price(dc.Estimate(function, "t", epsilon=1, bounds=(0, 1), limits=LIMITS, form="numpy"))


@attack(49, finds=[faults.any_number_of_voters])
def test_more_blocks_than_can_be_run_are_refused_before_the_charge(tmp_path: Path) -> None:
    kinds: list[dict[str, Any]] = [{"values": ["a", "b"]}, {}, {"bounds": (0, 1)}]
    with steward(tmp_path) as (session, _):
        for kind in kinds:
            for blocks, rounds in ((LARGEST + 1, 1), (10**15, 1), (LARGEST // 2, 3)):
                asked = dc.Estimate(len, "t", epsilon=1, blocks=blocks, rounds=rounds, form="numpy", **kind)
                with pytest.raises(dc.InvalidArgument, match="blocks="):
                    session.price(asked)
                with pytest.raises(dc.InvalidArgument, match="blocks="):
                    session.ask(asked)
        assert session.spent.epsilon == 0


def forking(number: int) -> list[int]:
    """The processes of which a process was the one that began them."""
    return [int(one) for one in Path(f"/proc/{number}/task/{number}/children").read_text().split()]


@attack(35, finds=[faults.blocks_not_waited_for])
def test_nothing_is_left_of_blocks_that_took_too_long() -> None:
    """Their processes would add up until the machine has no numbers left for those of others."""

    def sleepy(rows: Any) -> Any:
        import time

        time.sleep(60)

    with Workers(sleepy, 1, "rows", Limits(seconds=2, workers=1), confined=True) as confined:
        assert confined.answers(lambda place: pickle.dumps([1]), 2) == [None] * 2
        (slot,) = confined._slots
        (first,) = forking(slot._process.pid)
        (server,) = forking(first)
        assert forking(server) == []
    assert not Path(f"/proc/{first}").exists()


@attack(35, finds=[faults.names_of_files_kept])
def test_a_function_is_not_told_where_the_stewards_files_are(tmp_path: Path) -> None:
    def names(rows: Any) -> int:
        import gc

        held = [one for thing in gc.get_objects() if isinstance(thing, list | tuple) for one in thing]
        held += [one for thing in gc.get_objects() if isinstance(thing, dict) for one in [*thing.values()]]
        return sum(isinstance(one, str) and one.endswith("/books.db") and one != "/books.db" for one in held)

    with steward(tmp_path) as (session, _):
        assert answer_of(names, session) == 0
    # Nor is the process that it is forked from: what Python frees stays in memory, where a function can read it.
    apart = [str(tmp_path / "data.csv"), str(tmp_path / "books.db")]
    assert to_mask(["/usr/lib"], apart) == []
    inside = os.path.realpath(tmp_path / "data.csv")
    assert to_mask([str(tmp_path)], [inside]) == to_mask([f"{inside}/x"], [inside]) == [inside]


@attack(35, finds=[faults.threads_not_counted])
def test_a_block_cannot_take_the_threads_of_all(tmp_path: Path) -> None:
    """Where a user or a container may have no more of them, blocks of others could not be forked."""

    def greedy(rows: Any) -> int:
        import threading

        threading.stack_size(1 << 16)
        over, begun = threading.Event(), 0
        try:
            while begun < 150:
                threading.Thread(target=over.wait, daemon=True).start()
                begun += 1
        except RuntimeError:
            pass
        return begun

    with steward(tmp_path) as (session, _):
        assert 1 <= answer_of(greedy, session) <= MOST


@attack(35, finds=[faults.environment_passed_on])
def test_a_function_has_none_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCREET_SECRET", "known")
    with steward(tmp_path) as (session, _):
        names = answer_of(lambda rows: tuple(os.environ), session)
    assert {name for name in names if not name.endswith("_THREADS")} <= {
        *("LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "PYTHONHASHSEED", "ARROW_DEFAULT_MEMORY_POOL")
    }


def shouting(rows: Any) -> Any:
    """Sends a text by itself, over whatever it has, and raises another."""
    import struct

    for number in range(3, 64):
        try:
            os.write(number, struct.pack("<Q", len(MARK)) + MARK.encode())
        except OSError:
            continue
    raise KeyError(MARK)


class Shouting:
    """Raises a text of its own while it is loaded."""

    def __call__(self, rows: Any) -> Any:
        raise NotImplementedError

    def __reduce__(self) -> Any:
        return exec, (f"raise {MARK.replace('-', '_')}Error",)


@attack(35, finds=[faults.trial_that_quotes])
def test_no_text_of_a_function_leaves_with_a_price(tmp_path: Path) -> None:
    def raising(rows: Any) -> Any:
        raise type(MARK, (ValueError,), {"__str__": lambda self: MARK})

    named: Any = [shouting, raising, lambda rows: MARK, lambda rows: (MARK,) * 9, Shouting()]
    with steward(tmp_path) as (session, _):
        for function in named:
            for asked in ({"bounds": (0, 1)}, {"values": ["a"]}, {}):
                quote = session.price(dc.Estimate(function, "t", epsilon=1, limits=LIMITS, form="numpy", **asked))
                assert MARK not in str(quote) + repr(quote) + quote._repr_html_()
                assert MARK.replace("-", "_") not in str(quote)
        with pytest.raises(dc.InvalidArgument) as refused:
            session.estimate(Shouting(), "t", epsilon=1, bounds=(0, 1), limits=LIMITS, form="numpy")
        assert MARK.replace("-", "_") not in str(refused.value)
        assert session.spent.epsilon == 0


@attack(35, finds=[faults.missing_walls_unnoticed])
def test_where_walls_are_missing_nothing_is_run_unless_it_is_trusted(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"epsilon": 1, "bounds": (0, 9), "blocks": 5, "form": "numpy"}
    with steward(tmp_path) as (session, facts), faults.no_namespaces():
        with pytest.raises(dc.Unsupported, match="processes, root"):
            session.estimate(Loaded(facts), "t", limits=LIMITS, **asked)
        assert session.spent.epsilon == 0
        quote = session.price(dc.Estimate(Loaded(facts), "t", limits=LIMITS, **asked))
        assert "trusted=True" in quote.notes[-1]
        trusted = Limits(seconds=20, workers=1, trusted=True)
        quote = session.price(dc.Estimate(lambda rows: 3.0, "t", limits=trusted, **asked))
        assert "walls that this machine cannot build: root, network, processes" in quote.notes
        session.estimate(lambda rows: 3.0, "t", limits=trusted, **asked)


def test_the_same_holds_for_somebody_who_is_not_root(tmp_path: Path) -> None:
    """In a namespace of mounts where an ordinary user can enter the folder of Python, which may be root's home."""
    tools = [shutil.which(name) for name in ("unshare", "setpriv", "mount")]
    if os.getuid() != 0 or not all(tools):
        pytest.skip("this test begins as root; others have run as whoever this is")
    home, ours = Path.home(), Path.cwd()
    inside = f"{sys.executable} -m pytest -q -n 0 -p no:cacheprovider --basetemp $1/run"
    script = f"""
        set -e
        mkdir -p "$1/home" && mount --rbind {home} "$1/home"
        mount -t tmpfs -o mode=755 tmpfs {home}
        for each in "$1"/home/.[a-z]* "$1"/home/*; do
            [ -d "$each" ] || continue
            mkdir "{home}/$(basename "$each")" && mount --rbind "$each" "{home}/$(basename "$each")"
        done
        chown 65534 "$1"
        cd {ours}
        exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all {inside} \\
            tests/attacks/test_sandbox.py -k "gets_nothing_done or environment or have_moved"
    """
    with_home = dict(os.environ) | {"HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    place = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    try:
        command = ["unshare", "--mount", "sh", "-c", script, "sh", str(place)]
        ran = subprocess.run(command, capture_output=True, text=True, env=with_home, timeout=900)
    finally:
        shutil.rmtree(place)
    assert ran.returncode == 0, ran.stdout + ran.stderr
