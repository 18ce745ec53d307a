"""The only source of randomness: AES-256-CTR keyed by the operating system.

Each thread of each process has a generator of its own, keyed with fresh bytes from the operating system; a forked
child never continues its parent's stream. After each refill the key is replaced by output of the generator and
forgotten, and words are wiped from the buffer as they are handed out, so a later look at memory reveals no past
draw. Every sampler takes `entropy=None`, which means this generator.

Tests may pass a seeded or scripted source; whatever they produce is marked as not private.

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
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from discreet.core.errors import EntropyFailure

__all__ = ["Entropy", "Words", "system"]

Words = np.ndarray[Any, np.dtype[np.uint64]]

_BUFFER = 512
_CHUNK = 1 << 17
_ZEROS = bytes(8 * _CHUNK)


class Entropy:
    """A stream of uniform 64-bit words. Use `system()`; construct one only in tests, through `for_tests`."""

    private = True

    def __init__(self) -> None:
        self._owner = (0, 0)
        self._buffer = np.zeros(_BUFFER, dtype=np.uint64)
        self._left = 0

    def fill(self, out: Words) -> None:
        """Overwrite a contiguous array with uniform words."""
        if self._owner != (os.getpid(), threading.get_ident()):
            self._rekey()
        size = out.size
        if size > _BUFFER:
            self._generate(out)
            return
        if size > self._left:
            self._generate(self._buffer)
            self._left = _BUFFER
        taken = self._buffer[self._left - size : self._left]
        out[...] = taken
        taken.fill(0)
        self._left -= size

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
        return _Seeded(seed)

    @staticmethod
    def scripted_for_tests(words: Sequence[int], seed: int = 0) -> Entropy:
        """The given words first, then a seeded stream: for landing on a boundary that chance never reaches."""
        return _Scripted(words, seed)

    def _seed(self) -> bytes:
        try:
            seed = os.urandom(48)
        except (OSError, NotImplementedError) as error:
            raise EntropyFailure("the operating system refused random bytes; nothing was drawn") from error
        return seed

    def _rekey(self) -> None:
        self._start(self._seed())
        self._buffer.fill(0)
        self._left = 0
        self._owner = (os.getpid(), threading.get_ident())

    def _start(self, seed: bytes) -> None:
        self._cipher: CipherContext = Cipher(algorithms.AES(seed[:32]), modes.CTR(seed[32:48])).encryptor()

    def _generate(self, out: Words) -> None:
        view = out.view(np.uint8).data
        for start in range(0, len(view), 8 * _CHUNK):
            part = view[start : start + 8 * _CHUNK]
            self._cipher.update_into(_ZEROS[: len(part)] if len(part) < len(_ZEROS) else _ZEROS, part)
        self._start(self._cipher.update(bytes(48)))


class _Seeded(Entropy):
    private = False

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._key = hashlib.sha384(f"discreet test seed {seed}".encode()).digest()

    def _seed(self) -> bytes:
        return self._key


class _Scripted(_Seeded):
    def __init__(self, words: Sequence[int], seed: int) -> None:
        super().__init__(seed)
        self._script = list(words)

    def fill(self, out: Words) -> None:
        super().fill(out)
        flat = out.reshape(-1)
        taken = self._script[: flat.size]
        del self._script[: flat.size]
        flat[: len(taken)] = np.array(taken, dtype=np.uint64)


_local = threading.local()


def system() -> Entropy:
    """This thread's generator."""
    source: Entropy | None = getattr(_local, "source", None)
    if source is None:
        source = _local.source = Entropy()
    return source
