"""Watching what a sampler reads: the words it was given, and the uniforms it had settled by ball arithmetic."""

from collections.abc import Callable, Iterable, Sequence

from discreet.noise.entropy import Entropy, Words
from discreet.noise.refinement import Uniform


class Counted(Entropy):
    """Scripted words, then a seeded stream; counts what is handed out."""

    private = False

    def __init__(self, script: Sequence[int] = (), seed: int = 0) -> None:
        super().__init__()
        self._source = Entropy.scripted_for_tests(script, seed)
        self.handed_out = 0

    def fill(self, out: Words) -> None:
        self._source.fill(out)
        self.handed_out += out.size


class Watched(Uniform):
    """A uniform that is remembered: what it knew when it was made, and in the end."""

    made: list["Watched"]

    def __init__(self, prefix: int, bits: int, entropy: Entropy) -> None:
        super().__init__(prefix, bits, entropy)
        self.first = (prefix, bits)
        self.made.append(self)

    @property
    def known(self) -> tuple[int, int]:
        """Its leading bits as an integer, and how many they are."""
        return self._prefix, self._bits

    @property
    def words_read(self) -> int:
        """How many words it had to be extended by."""
        return (self._bits - self.first[1]) // 64


class Readings:
    """What was known of each uniform when it was decided: its word, and where that left it open, what was read on."""

    def __init__(self, settled: Iterable[Watched]) -> None:
        self._extended = [uniform for uniform in settled if uniform.words_read]

    def of(self, prefix: int, bits: int, decided: Callable[[int, int], bool]) -> tuple[int, int]:
        """The leading bits the next decision rested on; uniforms must be asked for in the order they were drawn."""
        if decided(prefix, bits):
            return prefix, bits
        uniform = self._extended.pop(0)
        assert uniform.first == (prefix, bits)
        return uniform.known

    @property
    def unused(self) -> int:
        return len(self._extended)
