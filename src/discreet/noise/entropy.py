"""The only source of randomness: AES-256-CTR under keys from the operating system.

Every refill has a key of its own, drawn from the operating system for it alone and dropped with the cipher, so no key
outlives the words it made and nothing kept predicts the next refill. What is kept is a small buffer of words not yet
handed out, one for each thread: words are wiped from it as they leave, a forked child discards it, and whoever draws
while it is in use (a signal handler, a finaliser) starts another. An `Entropy` may therefore be shared freely.

Every sampler takes `entropy=None`, which means `system()`. Tests may pass a seeded or scripted source; whatever they
produce is marked as not private.

>>> Entropy.for_tests(0).bits(16)
43949
>>> system().private, Entropy.for_tests(0).private
(True, False)
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet.core.errors import EntropyFailure, InvalidArgument

__all__ = ["Entropy", "Words", "chosen", "for_release", "system"]

Words = np.ndarray[Any, np.dtype[np.uint64]]

_BUFFER = 512
_ZEROS = memoryview(bytes(1 << 20))
_KEY = 32
_SEED = _KEY + 16


class Entropy:
    """A stream of uniform 64-bit words. Use `system()`; others are for tests, or follow from what was released."""

    def __init__(self) -> None:
        self._stock = _Stock()

    @property
    def private(self) -> bool:
        """Whether what is drawn here may protect anybody: never for a source made for tests, or by anybody else."""
        return type(self) is Entropy

    def fill(self, out: Words) -> None:
        """Overwrite a contiguous array with uniform words."""
        size = out.size
        if size > _BUFFER:
            self._generate(out)
            return
        # Taken out of its place while in use, so that whoever interrupts this thread cannot be given the same words.
        buffer, self._stock.buffer = self._stock.buffer, None
        if buffer is None:
            buffer = _Buffer()
        if size > buffer.left or buffer.process != _process():
            self._generate(buffer.words)
            buffer.left = _BUFFER
            buffer.process = _process()
        taken = buffer.words[buffer.left - size : buffer.left]
        out[...] = taken
        taken.fill(0)
        buffer.left -= size
        self._stock.buffer = buffer

    def words(self, size: int) -> Words:
        """A new array of uniform words."""
        out = np.empty(size, dtype=np.uint64)
        self.fill(out)
        return out

    def bits(self, count: int) -> int:
        """A uniform integer of `count` bits."""
        number = 0
        for word in self.words(-(-count // 64)).tolist():
            number = number << 64 | word
        return number >> (-count % 64)

    @staticmethod
    def for_tests(seed: int) -> Entropy:
        """A reproducible stream. It protects nobody: releases made with it are marked as not private."""
        return _Seeded(f"discreet test seed {seed}")

    @staticmethod
    def scripted_for_tests(words: Sequence[int], seed: int = 0) -> Entropy:
        """The given words first, then a seeded stream: for landing on a boundary that chance never reaches."""
        return _Scripted(words, seed)

    @staticmethod
    def of_released(data: bytes) -> Entropy:
        """A stream that follows from what everybody may see: for draws that protect nobody, such as rows from released
        weights, that shall be the same each time. Marked as not private."""
        return _Seeded(f"discreet released {hashlib.sha256(data).hexdigest()}")

    def _generate(self, out: Words) -> None:
        try:
            seed = os.urandom(_SEED)
        except (OSError, NotImplementedError) as error:
            raise EntropyFailure("the operating system refused random bytes; nothing was drawn") from error
        _keystream(seed, out)


class _Buffer:
    """Words not yet handed out, and the process that may hand them out."""

    __slots__ = ("left", "process", "words")

    def __init__(self) -> None:
        self.words: Words = np.zeros(_BUFFER, dtype=np.uint64)
        self.left = 0
        self.process = (0, 0)


class _Stock(threading.local):
    """This thread's buffer, or None before its first use and while it is in use."""

    buffer: _Buffer | None = None


_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def _process() -> tuple[int, int]:
    """Which process this is: a number may be given again to a grandchild, so forks are counted too."""
    return os.getpid(), _forks


def _keystream(seed: bytes, out: Words) -> bytes:
    """Fill `out` with AES-256-CTR output under key and first counter from `seed`; returns the 48 bytes that follow."""
    cipher = Cipher(algorithms.AES(seed[:_KEY]), modes.CTR(seed[_KEY:])).encryptor()
    view = out.view(np.uint8).data
    for start in range(0, len(view), len(_ZEROS)):
        part = view[start : start + len(_ZEROS)]
        cipher.update_into(_ZEROS[: len(part)], part)
    return cipher.update(bytes(_SEED))


class _Seeded(Entropy):
    def __init__(self, seed: str) -> None:
        super().__init__()
        self._next = hashlib.sha384(seed.encode()).digest()

    @property
    def private(self) -> bool:
        return False

    def _generate(self, out: Words) -> None:
        self._next = _keystream(self._next, out)


class _Scripted(_Seeded):
    def __init__(self, words: Sequence[int], seed: int) -> None:
        super().__init__(f"discreet test seed {seed}")
        self._script = list(words)

    def fill(self, out: Words) -> None:
        super().fill(out)
        flat = out.reshape(-1)
        taken = self._script[: flat.size]
        del self._script[: flat.size]
        flat[: len(taken)] = np.array(taken, dtype=np.uint64)


class _Given(Entropy):
    """A source that somebody else made: it draws as it likes, and is not private whatever it says of itself."""

    def __init__(self, given: Entropy) -> None:
        super().__init__()
        self._given = given

    @property
    def private(self) -> bool:
        return False

    def fill(self, out: Words) -> None:
        self._given.fill(out)


_SYSTEM = Entropy()


def system() -> Entropy:
    """The generator of this process, safe to use from any thread."""
    return _SYSTEM


def chosen(entropy: Entropy | None) -> Entropy:
    """The source a caller asked for: `system()` unless it is an `Entropy`."""
    if entropy is None:
        return _SYSTEM
    if not isinstance(entropy, Entropy):
        raise InvalidArgument("entropy", entropy, "an Entropy or None", "leave it out, or in tests use for_tests")
    return entropy


def for_release(entropy: Entropy | None) -> Entropy:
    """The source of a release: `system()`, which alone is private, or one for tests. Nothing that a caller's own object
    says of itself, by a class of its own or by a method put into an `Entropy`, makes it private."""
    source = chosen(entropy)
    ours = source is _SYSTEM or type(source) in (_Seeded, _Scripted)
    return source if ours else _Given(source)
