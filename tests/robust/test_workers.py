"""Blocks in processes of their own: whatever a function does, the others do not notice, and nobody is told."""

import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.robust.sandbox import workers as workers_module
from discreet.robust.sandbox.forkserver import DEEPEST_LABEL, MOST, read, written
from discreet.robust.sandbox.workers import Limits, Workers

SEEN: list[int] = []
LOCK = threading.Lock()
LIMITS = Limits(seconds=60, memory=1 << 28, workers=2)
"""More than a block takes on the busiest machine."""
HASTY = replace(LIMITS, seconds=Fraction(3))
"""For blocks some of which never end; of the others no more is asked than to be forked and to say something."""


def run(
    function: Callable[[Any], Any], blocks: list[Any], size: int | None = 1, limits: Limits = LIMITS
) -> list[float | bytes | None]:
    with Workers(function, size, "rows", limits) as workers:
        found = workers.answers(lambda place: pickle.dumps(blocks[place]), len(blocks))
    return [answer if size is None or answer is None else float(np.frombuffer(answer)[0]) for answer in found]


def misbehaving(folder: str) -> Callable[[str], Any]:
    """A function with a habit for each block."""

    def function(habit: str) -> Any:
        if habit == "raises":
            raise ValueError(habit)
        if habit == "exits":
            sys.exit(0)
        if habit == "dies":
            os._exit(0)
        if habit == "loops":
            while True:
                pass
        if habit == "sleeps":
            time.sleep(3600)
        if habit == "hogs":
            return sum(len(bytearray(1 << 25)) for _ in [bytearray(1 << 25) for _ in range(1000)])
        if habit == "recurses":
            return function(habit)
        if habit == "kills":
            os.kill(os.getppid(), 9)
            time.sleep(3600)
        if habit == "leaves a child":
            if os.fork() == 0:
                os.setsid()
                time.sleep(3600)
            return 5.0
        if habit == "long":
            return np.zeros(MOST)
        if habit == "prints":
            print("a secret")
            print("a secret", file=sys.stderr)
            os.write(1, b"a secret")
        if habit in ("writes", "makes a folder"):
            path = Path(folder) / habit
            _ = path.mkdir() if habit == "makes a folder" else path.write_text("x")
            return 5.0
        if habit == "calls out":
            with socket.socket() as out:
                out.connect(("127.0.0.1", int(Path(folder, "port").read_text())))
            return 5.0
        return {"text": "1.5", "nan": float("nan"), "infinite": float("inf"), "two": [1.0, 2.0], "none": None}.get(
            habit, 1.0
        )

    return function


HABITS = ["raises", "exits", "dies", "loops", "sleeps", "hogs", "recurses", "kills", "long", "writes", "makes a folder"]
HABITS += ["calls out", "leaves a child", "text", "nan", "infinite", "two", "none"]


def test_whatever_a_block_does_it_has_no_answer_and_the_others_have_theirs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        (tmp_path / "port").write_text(str(server.getsockname()[1]))
        blocks = ["good", *(part for habit in HABITS for part in (habit, "good")), "prints"]
        found = run(misbehaving(str(tmp_path)), blocks, limits=HASTY)
    answers = dict(zip(blocks, found, strict=True))
    assert [place for place, block in enumerate(blocks) if block == "good" and found[place] != 1.0] == []
    assert {habit: answers[habit] for habit in HABITS} == dict.fromkeys(HABITS)
    assert answers["prints"] == 1.0
    assert capfd.readouterr() == ("", "")
    assert [path.name for path in tmp_path.iterdir()] == ["port"]


def test_no_run_sees_what_another_changed() -> None:
    held = {"calls": 0}

    def counting(rows: list[int]) -> int:
        import numpy

        held["calls"] += 1
        rows.append(1)
        SEEN.append(1)
        numpy.seen = getattr(numpy, "seen", 0) + 1
        os.environ["SEEN"] = os.environ.get("SEEN", "") + "x"
        return held["calls"] + len(rows) + len(SEEN) + numpy.seen + len(os.environ["SEEN"])

    assert run(counting, [[], [], [], []]) == [5.0] * 4
    assert (held, SEEN) == ({"calls": 0}, [])


def test_no_run_leaves_a_sign_for_those_to_come(tmp_path: Path) -> None:
    mark, server = tmp_path / "mark", tmp_path / "server"
    mark.touch()

    def signs() -> list[tuple[str, Callable[[], bool], Callable[[], Any]]]:
        """Ways to say something to a process that begins later: how it is seen, and how it is said."""
        import ctypes
        import resource

        system, stack, parent = ctypes.CDLL(None), resource.RLIMIT_STACK, os.getppid()
        hard = resource.getrlimit(stack)[1]
        return [
            ("memory", lambda: system.shmget(4711, 16, 0) >= 0, lambda: system.shmget(4711, 16, 0o1600)),
            ("messages", lambda: system.msgget(4711, 0) >= 0, lambda: system.msgget(4711, 0o1600)),
            ("date", lambda: mark.stat().st_mtime == 4711, lambda: os.utime(mark, (4711, 4711))),
            ("mode", lambda: mark.stat().st_mode & 0o777 == 0o604, lambda: mark.chmod(0o604)),
            ("attribute", lambda: "user.x" in os.listxattr(mark), lambda: os.setxattr(mark, "user.x", b"x")),
            (
                "limit",
                lambda: resource.getrlimit(stack)[0] == 7 << 20,
                lambda: resource.prlimit(parent, stack, (7 << 20, hard)),
            ),
            (
                "priority",
                lambda: os.getpriority(os.PRIO_PROCESS, 0) == 7,
                lambda: os.setpriority(os.PRIO_PROCESS, parent, 7),
            ),
            ("socket", lambda: False, lambda: socket.socket(socket.AF_UNIX).connect(str(server))),
            ("process", lambda: any(map(marked, os.listdir("/proc"))), stay),
        ]

    def marked(process: str) -> bool:
        try:
            return Path(f"/proc/{process}/comm").read_text() == "4711\n"
        except OSError:
            return False

    def stay() -> None:
        import ctypes

        if os.fork() == 0:
            os.setsid()
            ctypes.CDLL(None).prctl(15, b"4711", 0, 0, 0)
            for _ in range(10_000):
                if os.fork():
                    break
            os._exit(0)

    def function(rows: Any) -> tuple[str, ...]:
        seen = []
        for name, look, say in signs():
            try:
                if look():
                    seen.append(name)
                say()
            except OSError:
                pass
        return tuple(seen)

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(server))
        listening.listen()
        listening.setblocking(False)
        found = run(function, [0] * 4, None, Limits(seconds=60, memory=1 << 28, workers=1))
        assert found == [b'{"t": []}'] * 4
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_a_child_has_its_own_rows_and_little_else() -> None:
    os.environ["DISCREET_SECRET"] = "known"

    def looks(rows: Any) -> tuple[Any, ...]:
        import gc

        found = sum(isinstance(thing, list) and thing[:1] == ["row"] for thing in gc.get_objects())
        descriptors = 0
        for number in range(256):
            try:
                os.fstat(number)
                descriptors += 1
            except OSError:
                pass
        return found, descriptors, os.environ.get("DISCREET_SECRET")

    try:
        answers = run(looks, [["row", place] for place in range(4)], None)
    finally:
        del os.environ["DISCREET_SECRET"]
    # Three are /dev/null; its channel cannot be looked at.
    assert set(answers) == {b'{"t": [1, 3, null]}'}


def test_libraries_that_a_function_names_are_imported_once_for_all_blocks() -> None:
    def early(rows: Any) -> tuple[bool, ...]:
        import sys

        before = "scipy.stats" in sys.modules, "scipy.odr" in sys.modules
        import scipy.odr
        import scipy.stats

        return *before, scipy.stats.__name__ != scipy.odr.__name__

    assert run(early, [0, 0], None) == [b'{"t": [true, false, true]}'] * 2


def test_each_run_draws_numbers_of_its_own() -> None:
    answers = run(lambda rows: np.random.random(), [0, 0, 0])
    assert len(set(answers)) == 3


@pytest.mark.parametrize(
    "function",
    [lambda rows, lock=LOCK: lock, (LOCK, 1).__getitem__, 3, "np.mean"],
    ids=["default", "bound", "number", "text"],
)
def test_what_cannot_be_sent_is_refused(function: Any) -> None:
    with pytest.raises(InvalidArgument, match="function=") as caught:
        run(function, [1])
    assert caught.value.remedy


def test_what_cannot_be_loaded_is_refused_with_the_kind_of_error() -> None:
    class Unloadable:
        def __reduce__(self) -> Any:
            return __import__, ("no_such_module",)

    held = Unloadable()
    with pytest.raises(InvalidArgument, match="ModuleNotFoundError") as caught:
        run(lambda rows: held, [1])
    assert "no_such_module" not in str(caught.value)


def test_modules_of_a_script_and_lambdas_are_found(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def twice(rows):\n    return 2 * rows\n")
    program = (
        "import pickle, mine\nfrom discreet.robust.sandbox.workers import *\n"
        "def thrice(rows): return mine.twice(rows) + rows\n"
        "for f in (mine.twice, thrice, lambda rows: thrice(rows) + 1):\n"
        "    with Workers(f, None, 'rows', Limits(workers=1)) as w:\n"
        "        print(w.answers(lambda place: pickle.dumps(7), 1))\n"
    )
    (tmp_path / "script.py").write_text(program)
    ran = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert ran.stdout == "[b'14']\n[b'21']\n[b'22']\n", ran.stderr


def test_padded_blocks_take_all_their_time_and_an_interrupt_ends_everything() -> None:
    limits = Limits(seconds=2, workers=1, padded=True)
    begun = time.monotonic()
    assert run(lambda rows: 1.0, [1, 1], limits=limits) == [1.0, 1.0]
    assert time.monotonic() - begun >= 4

    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    with Workers(lambda rows: time.sleep(3600), 1, "rows", Limits(seconds=3600, workers=1)) as workers:
        slot = workers._slots[0]
        with pytest.raises(KeyboardInterrupt):
            workers.answers(lambda place: pickle.dumps(1), 1, interrupt)
    assert slot._process.poll() is not None


def test_which_worker_has_a_block_shows_in_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = run(lambda rows: str(list(set(rows))), [[f"person {place}" for place in range(20)]] * 6, None)
    assert len(set(orders)) == 1
    monkeypatch.setattr(Workers, "_period", 0.1)
    with Workers(len, 1, "rows", replace(LIMITS, padded=True)) as workers:
        had: list[tuple[int, Any]] = []

        def answer(place: int, rows: Any) -> None:
            time.sleep(0.05 * (rows == 0))
            had.append((place, rows))

        workers.__dict__["_answer"] = answer
        numbered: Any = int
        workers.answers(numbered, 8)
    assert sorted(had) == [(0, 0), (0, 2), (0, 4), (0, 6), (1, 1), (1, 3), (1, 5), (1, 7)]


def test_a_padded_block_that_ends_late_makes_only_the_next_one_late(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, begun, packed = [0.0], [], []

    def passing(seconds: float) -> None:
        clock[0] += seconds

    def answer(place: int, rows: Any) -> None:
        assert packed == [0, 1, 2, 3], "rows are packed before the first block begins"
        begun.append(clock[0])
        passing(1.5 * period if rows == 0 else 0.01)

    with Workers(len, 1, "rows", Limits(seconds=60, workers=1, padded=True)) as workers:
        period = workers._period
        monkeypatch.setattr(workers_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        monkeypatch.setattr(workers._stopped, "wait", passing)
        workers.__dict__["_answer"] = answer
        numbered: Any = lambda number: packed.append(number) or number  # noqa: E731
        workers.answers(numbered, 4)
    assert begun == pytest.approx([0, 1.5 * period, 2 * period, 3 * period])
    assert period > 60.25


def test_a_block_is_named_by_nobody_and_goes_before_the_session_where_memory_runs_out() -> None:
    def renamed(rows: Any) -> float:
        import ctypes

        return float(ctypes.CDLL(None, use_errno=True).prctl(15, b"secret", 0, 0, 0))

    with Workers(renamed, 1, "rows", LIMITS, confined=True) as workers:
        [answer] = workers.answers(lambda place: pickle.dumps(1), 1)
        score = Path(f"/proc/{workers._slots[0]._process.pid}/oom_score_adj").read_text()
    assert answer is not None
    assert np.frombuffer(answer).tolist() == [-1.0]
    assert int(score) == 1000


def test_where_no_worker_can_take_the_place_of_one_that_was_lost_blocks_have_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A failure would tell of the block that lost it."""

    def never(self: Any, function: object) -> None:
        raise InvalidArgument("function", "it", "loadable", "this time it was not")

    for deed in ("begin", "__init__"):
        few = replace(LIMITS, workers=1)
        with Workers(lambda rows: 1.0, 1, "rows", few) as workers, monkeypatch.context() as now:
            now.setattr(workers_module._Slot, deed, never)
            workers._slots[0]._process.kill()
            assert workers.answers(lambda place: pickle.dumps(1), 3) == [None] * 3


def test_none_is_left_where_all_end_while_one_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    making, ended, made = threading.Event(), threading.Event(), []

    class Slow(workers_module._Slot):
        """Is made after it was decided to make one, and all were ended in between."""

        def __init__(self, order: dict[str, Any], packed: bytes) -> None:
            making.set()
            assert ended.wait(300)
            super().__init__(order, packed)
            made.append(self)

    with Workers(lambda rows: 1.0, 1, "rows", replace(LIMITS, workers=1)) as workers:
        monkeypatch.setattr(workers_module, "_Slot", Slow)
        workers._slots[0]._process.kill()
        asking = threading.Thread(target=workers.answers, args=(lambda place: pickle.dumps(1), 1))
        asking.start()
        assert making.wait(300)
    ended.set()
    asking.join(300)
    assert [slot._process.returncode is not None for slot in made] == [True]


def test_none_is_left_where_one_of_several_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Second(workers_module._Slot):
        def __init__(self, order: dict[str, Any], packed: bytes) -> None:
            if made:
                raise OSError("no more processes")
            super().__init__(order, packed)
            made.append(self)

    monkeypatch.setattr(workers_module, "_Slot", Second)
    with pytest.raises(OSError, match="no more processes"):
        Workers(lambda rows: 1.0, 1, "rows", LIMITS)
    assert [slot._process.returncode is not None for slot in made] == [True]


def test_a_block_has_its_memory_beside_what_libraries_take() -> None:
    def given(rows: Any) -> int:
        import resource

        return resource.getrlimit(resource.RLIMIT_AS)[0]

    [most] = run(given, [0])
    assert isinstance(most, float)
    # numpy alone takes more than this.
    assert most > LIMITS.memory + (1 << 24)


@pytest.mark.parametrize(
    "asked",
    [
        *({"seconds": 0}, {"seconds": 10**6}, {"memory": 10}, {"memory": 2**41}),
        *({"workers": 0}, {"workers": 2000}, {"padded": 1}),
    ],
    ids=str,
)
def test_limits_are_checked(asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(asked))):
        Limits(**asked)


def test_texts_of_arrow_reserve_no_more_memory_than_they_take() -> None:
    """What is reserved counts as used, and 1 GiB is all that a block has by default."""

    def megabytes_reserved(_: Any) -> float | None:
        import mmap

        import pyarrow

        def room() -> int:
            """Megabytes that can still be reserved, at once."""
            least, most = 0, 1 << 13
            while most - least > 1:
                middle = (least + most) // 2
                try:
                    mmap.mmap(-1, middle << 20).close()
                    least = middle
                except OSError:
                    most = middle
            return least

        before = room()
        pyarrow.array(["a text"])
        return before - room() if before > 1024 else None

    [reserved] = run(megabytes_reserved, [0], limits=Limits(seconds=600, memory=1 << 32, workers=1))
    assert isinstance(reserved, float)
    assert reserved < 256


def test_labels_in_labels_end_somewhere() -> None:
    """Whatever reads, compares and writes them later must not come to the end of the stack for one block's answer."""
    label: object = "x"
    for _ in range(DEEPEST_LABEL):
        label = (label,)
    assert read(written(label)) == label
    with pytest.raises(ValueError, match="deep"):
        read(written((label,)))


@pytest.mark.parametrize("message", [b"NaN", b"Infinity", b"-Infinity", b'{"t": [1, NaN]}', b"[1]"])
def test_a_message_that_is_no_label_is_refused(message: bytes) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)):
        read(message)
