"""The one source of randomness: fresh after a fork, apart in threads, never given twice, wiped, and the only one."""

import ast
import copy
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.noise import laws

import discreet
from discreet import EntropyFailure, InvalidArgument
from discreet.noise import Entropy, discrete_laplace, entropy, system
from discreet.noise.entropy import _BUFFER, Words, _keystream, chosen

SOURCES = sorted(Path(discreet.__file__).parent.rglob("*.py"))


def drawn_in_child(draw: Callable[[], bytes]) -> bytes:
    """What a forked child draws."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, draw())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        received = pipe.read()
    os.waitpid(child, 0)
    return received


def words_drawn(source: Entropy | None = None) -> bytes:
    return (source or system()).words(8).tobytes()


def test_a_forked_child_does_not_continue_its_parent() -> None:
    system().words(1)
    in_child = drawn_in_child(words_drawn)
    assert len(in_child) == 64
    assert in_child != words_drawn()


def test_two_children_of_one_parent_differ() -> None:
    source = Entropy()
    source.words(1)
    children = {drawn_in_child(lambda: words_drawn(source)) for _ in range(4)}
    assert len(children) == 4
    assert words_drawn(source) not in children


def test_a_child_under_its_parents_process_number_starts_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    # Process numbers are given again: a grandchild may get the number that its buffer was filled under.
    system().words(1)
    number = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: number)
    assert drawn_in_child(words_drawn) != words_drawn()


def test_a_process_that_forked_unseen_is_told_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Entropy()
    source.words(1)
    left = source._stock.buffer.words.copy()
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert not np.isin(source.words(8), left).any()
    assert not np.isin(source._stock.buffer.words, left[left != 0]).any(), "the parent's words are gone from memory"


def noise_in_pool(_: int) -> list[int]:
    return discrete_laplace(2**50, 4).tolist()


def test_workers_of_a_pool_draw_apart() -> None:
    own = discrete_laplace(2**50, 4).tolist()
    with multiprocessing.get_context("fork").Pool(3) as pool:
        drawn = [own, *pool.map_async(noise_in_pool, range(12), chunksize=1).get(timeout=900)]
    flat = [value for values in drawn for value in values]
    assert len(set(flat)) == len(flat)


def test_threads_that_share_a_source_are_given_no_word_twice_and_no_wiped_one() -> None:
    source = Entropy()
    given: list[list[Words]] = [[] for _ in range(4)]
    gate = threading.Barrier(4)

    def draw(kept: list[Words]) -> None:
        gate.wait()
        kept.extend(source.words(3) for _ in range(3000))

    threads = [threading.Thread(target=draw, args=(kept,)) for kept in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    flat = np.concatenate([words for kept in given for words in kept])
    assert flat.size == 4 * 9000
    assert np.unique(flat).size == flat.size
    assert flat.all()


def test_each_thread_has_a_buffer_of_its_own() -> None:
    source = Entropy()
    source.words(1)
    mine = source._stock.buffer
    others: list[object] = []

    def draw() -> None:
        assert source._stock.buffer is None
        source.words(1)
        others.append(source._stock.buffer)

    thread = threading.Thread(target=draw)
    thread.start()
    thread.join()
    assert others[0] is not mine
    assert source._stock.buffer is mine


class Interrupted(Entropy):
    """Draws from itself in the middle of a refill, as a signal handler or a finaliser may."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[Words] = []

    def _generate(self, out: Words) -> None:
        super()._generate(out)
        if len(self.inside) < 3:
            self.inside.append(np.empty(0, dtype=np.uint64))
            self.inside[-1] = self.words(5)


def test_a_draw_inside_a_draw_gets_words_of_its_own() -> None:
    source = Interrupted()
    outer = [source.words(5) for _ in range(300)]
    flat = np.concatenate([*outer, *source.inside])
    assert np.unique(flat).size == flat.size
    assert flat.all()


def test_a_signal_handler_may_draw_while_noise_is_drawn() -> None:
    source = Entropy()
    given: list[Words] = []
    before = signal.signal(signal.SIGALRM, lambda *_: given.append(source.words(2)))
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4, 1e-4)
        given.extend(source.words(2) for _ in range(20000))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    flat = np.concatenate(given)
    assert np.unique(flat).size == flat.size
    assert flat.all()


def test_a_copy_shares_no_words_with_its_original() -> None:
    source = Entropy()
    source.words(1)
    twin = copy.copy(source)
    assert not np.isin(source.words(100), twin.words(100)).any()
    for duplicate in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            duplicate(source)


def test_words_handed_out_are_wiped() -> None:
    source = Entropy()
    given = np.concatenate([source.words(7), source.words(1), source.words(100)])
    buffer = source._stock.buffer
    assert buffer.left == _BUFFER - 108
    assert not buffer.words[buffer.left :].any()
    assert buffer.words[: buffer.left].all()
    assert not np.isin(given, buffer.words).any()


def test_every_refill_has_a_key_of_its_own_which_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[bytes] = []
    system_bytes = os.urandom

    def spied(size: int) -> bytes:
        keys.append(system_bytes(size))
        return keys[-1]

    monkeypatch.setattr(os, "urandom", spied)
    source = Entropy()
    for _ in range(5):
        source.words(_BUFFER)
        source.words(_BUFFER + 1)
    assert len(keys) == 10
    assert {len(key) for key in keys} == {48}
    assert len({key[:32] for key in keys}) == 10
    assert set(vars(source)) == {"_stock"}
    assert set(type(source._stock.buffer).__slots__) == {"left", "process", "words"}


def test_the_keystream_is_aes_256_in_counter_mode() -> None:
    # NIST SP 800-38A, F.5.5: the output blocks of CTR-AES256.
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    blocks = (
        "0bdf7df1591716335e9a8b15c860c502"
        "5a6e699d536119065433863c8f657b94"
        "1bc12c9c01610d5d0d8bd6a3378eca62"
        "2956e1c8693536b1bee99c73a31576b6"
    )
    out = np.empty(8, dtype=np.uint64)
    following = _keystream(key + counter, out)
    assert out.tobytes().hex() == blocks
    assert len(following) == 48


def test_long_keystreams_are_one_stream() -> None:
    whole, part = np.empty(300_000, dtype=np.uint64), np.empty(1000, dtype=np.uint64)
    key = bytes(range(48))
    _keystream(key, whole)
    _keystream(key, part)
    assert (whole[:1000] == part).all()
    assert np.unique(whole).size == whole.size


@pytest.mark.parametrize("error", [OSError("no"), NotImplementedError("none")])
def test_no_randomness_means_no_draw(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(size: int) -> bytes:
        raise error

    source = Entropy()
    source.words(1)
    monkeypatch.setattr(os, "urandom", refuse)
    for size in (_BUFFER, _BUFFER + 1):
        with pytest.raises(EntropyFailure, match="nothing was drawn"):
            source.words(size)
    with pytest.raises(EntropyFailure):
        discrete_laplace(10, 1000)
    monkeypatch.undo()
    assert source.words(_BUFFER).all()


def test_words_are_uniform_in_every_byte_and_bit() -> None:
    words = Entropy().words(200_000)
    eighths = laws.Law(tuple(range(255)), (1 / 256,) * 256)
    for place in range(0, 64, 8):
        assert eighths.accepts((words >> np.uint64(place) & np.uint64(255)).astype(np.int64))
    small = np.concatenate([Entropy().words(5) for _ in range(4000)])
    ones = sum(int((small >> np.uint64(bit) & np.uint64(1)).sum()) for bit in range(64))
    assert laws.distance(np.array([ones, small.size * 64 - ones]), [0.5, 0.5]) <= laws.limit(2)
    assert not eighths.accepts((words >> np.uint64(3) & np.uint64(254)).astype(np.int64))


@pytest.mark.parametrize("count", [0, 1, 16, 63, 64, 65, 128, 200])
def test_bits_are_the_leading_bits_of_the_words(count: int) -> None:
    words = Entropy.for_tests(5).words(-(-count // 64)).tolist()
    whole = sum(word << 64 * (len(words) - 1 - i) for i, word in enumerate(words))
    assert Entropy.for_tests(5).bits(count) == whole >> (64 * len(words) - count)


def test_sizes_of_requests_do_not_change_uniqueness() -> None:
    source = Entropy()
    sizes = (0, 1, 2, 511, 512, 513, 3, 0, 70_000, 5)
    flat = np.concatenate([source.words(size) for size in sizes])
    assert flat.size == sum(sizes)
    assert np.unique(flat).size == flat.size


def test_seeded_and_scripted_sources_repeat_and_are_never_private() -> None:
    for make in (lambda: Entropy.for_tests(3), lambda: Entropy.scripted_for_tests([1, 2], 3)):
        first, second = make(), make()
        assert not first.private
        for size in (1, 600, 2, 512):
            assert (first.words(size) == second.words(size)).all()
    assert not (Entropy.for_tests(3).words(9) == Entropy.for_tests(4).words(9)).any()
    assert Entropy.scripted_for_tests([7, 8]).words(2).tolist() == [7, 8]
    assert system().private


def test_only_an_entropy_is_taken_for_one() -> None:
    assert chosen(None) is system()
    seeded = Entropy.for_tests(0)
    assert chosen(seeded) is seeded
    for wrong in (0, 1.5, "seed", np.random.default_rng(0), object()):
        with pytest.raises(InvalidArgument) as raised:
            discrete_laplace(1, 3, entropy=wrong)
        assert raised.value.argument == "entropy"


def names_in(tree: ast.AST) -> set[str]:
    """Dotted names that a file imports or looks up."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        elif isinstance(node, ast.Attribute):
            parts: list[str] = [node.attr]
            value = node.value
            while isinstance(value, ast.Attribute):
                parts.append(value.attr)
                value = value.value
            if isinstance(value, ast.Name):
                found.add(".".join([value.id, *reversed(parts)]))
    return found


FORBIDDEN = {"random", "secrets", "uuid.uuid1", "uuid.uuid4", "np.random", "numpy.random", "os.getrandom", "opendp"}


def test_no_other_generator_is_in_the_library() -> None:
    for file in SOURCES:
        for name in names_in(ast.parse(file.read_text())):
            assert not any(name == bad or name.startswith(f"{bad}.") for bad in FORBIDDEN), (file, name)
            assert not name.endswith((".rvs", ".random", ".default_rng")), (file, name)
            # Audits replay questions with frozen noise, about rows that they made up.
            tested = "adversary" in file.parts
            assert tested or not name.endswith((".for_tests", ".scripted_for_tests")), (file, name)
            if name == "os.urandom" or name.endswith(".urandom"):
                assert file == Path(entropy.__file__)


def test_the_scan_sees_what_it_looks_for() -> None:
    hidden = "from numpy import random\nimport secrets as s\nnp.random.default_rng(0).normal()\nEntropy.for_tests(1)\n"
    names = names_in(ast.parse(hidden))
    assert {"numpy.random", "secrets", "np.random.default_rng", "Entropy.for_tests"} <= names
