"""Reconstruction: how many of n secret bits come back from answers about groups of people.

`reconstruct` asks an answerer, decodes what it says, and tells how sure each bit is. The secrets found are in `.bits`
and `.chances`; nothing prints them.

>>> import numpy as np
>>> from discreet.adversary.reconstruction.subset_queries import Listed
>>> secret = np.arange(40) % 3 == 0
>>> found = reconstruct(lambda weights: weights @ secret, Listed.drawn(40, 160), truth=secret)
>>> found.right, found.verdict
(1.0, 'BROKEN: 100.0 % of 40 secret bits were read off the answers (the commoner value for all gets 65.0 %).')
>>> print(found)  # doctest: +NORMALIZE_WHITESPACE
BROKEN: 100.0 % of 40 secret bits were read off the answers (the commoner value for all gets 65.0 %).
160 questions, 160 answered; decoded by robust; ...

Noise of any answer well below √n does not help: n questions already pin nearly all of n bits (Theorem 8.2 and its
efficient versions). Answers that are ε-DP together cannot be read, whatever is asked (`chance`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.adversary.figures import histogram
from discreet.adversary.reconstruction import decoding
from discreet.adversary.reconstruction.answerers import Answerer, Answers, FromFile, FromFunction
from discreet.adversary.reconstruction.chance import epsilon_proven, most_by_chance
from discreet.adversary.reconstruction.subset_queries import Hadamard, Queries
from discreet.core.display.html import block, facts, note
from discreet.core.errors import InvalidArgument

__all__ = ["METHODS", "Method", "Reconstruction", "reconstruct"]

Method = Literal["least squares", "robust", "linear program", "all candidates"]
METHODS: tuple[Method, ...] = ("least squares", "robust", "linear program", "all candidates")
ROBUST_UP_TO = 2000
"""People up to whom the ℓ1 fit is the default."""
OUTLIERS = 5.0
"""Answers that are farther off than so many standard deviations are left out of the last fit."""
PLENTY = 3
"""Answers for each person with which least squares need no help."""
BROKEN, LEAKING = 0.95, 0.1
"""Bits that are read to call answers broken, and what they are above the baseline to call them leaking."""
LUCK = 0.001
"""More than so likely by chance, what is right counts as luck in the verdict."""
ASKING = 0.6
"""The part of a progress bar that is for asking."""

Doubles = NDArray[np.float64]
Bits = NDArray[np.int64]


@dataclass(frozen=True)
class Reconstruction:
    """What came of an attack."""

    bits: Bits = field(repr=False)
    """The secrets, as guessed."""
    chances: Doubles = field(repr=False)
    """How likely each bit is 1, given the answers."""
    estimate: Doubles = field(repr=False)
    """What was rounded."""
    method: str
    asked: int
    answered: int
    reasons: dict[str, int]
    """Why others were not answered, and how often."""
    residual: float
    """How far answers are from those on the bits found: the median."""
    worst: float
    """The same, the largest."""
    truth: Bits | None = field(default=None, repr=False)

    @property
    def people(self) -> int:
        """How many bits were sought."""
        return int(self.bits.size)

    @property
    def certainty(self) -> float:
        """The mean chance that a guess is right, as far as the answers themselves tell."""
        return float(np.maximum(self.chances, 1 - self.chances).mean()) if self.answered else 0.5

    @property
    def sure(self) -> int:
        """Bits that are right with a chance of 99 % or more."""
        return int((np.maximum(self.chances, 1 - self.chances) >= 0.99).sum()) if self.answered else 0

    @property
    def right(self) -> float | None:
        """The part of the bits that is right, where the truth is known."""
        return None if self.truth is None else float((self.bits == self.truth).mean())

    @property
    def baseline(self) -> float | None:
        """What one gets right who always guesses the commoner value."""
        return None if self.truth is None else float(max(self.truth.mean(), 1 - self.truth.mean()))

    def beats_chance(self, epsilon: float = 0.0) -> bool:
        """Whether more bits are right than any attack on ε-DP answers about fair bits gets, but for one in 10⁹."""
        return self._known_right() > most_by_chance(self.people, epsilon)

    @property
    def epsilon_proven(self) -> float:
        """An ε below which the answers cannot be private, if the true bits were fair coins."""
        return epsilon_proven(self._known_right(), self.people)

    def _known_right(self) -> int:
        if self.truth is None:
            raise InvalidArgument("truth", None, "the true bits", "give them to reconstruct")
        return int((self.bits == self.truth).sum())

    @cached_property
    def verdict(self) -> str:
        """In plain words."""
        if not self.answered:
            return "NOTHING: no question was answered."
        found = self.certainty if self.right is None else self.right
        share = f"{found * 100:.1f} % of {self.people:,} secret bits"
        base = "" if self.baseline is None else f" (the commoner value for all gets {self.baseline * 100:.1f} %)"
        read = "can be read off" if self.right is None else "were read off"
        least = 0.5 if self.baseline is None else self.baseline
        if self.right is not None and self._lucky:
            return f"HELD: {share} were guessed, no more than by chance{base}."
        if found >= BROKEN:
            return f"BROKEN: {share} {read} the answers{base}."
        if found >= least + LEAKING or self.right is not None:
            return f"LEAKING: {share} {read} the answers{base}."
        return f"HELD: a guess is right for {share}, where a coin gets 50 %."

    @property
    def _lucky(self) -> bool:
        """Whether chance, or the commoner value, explains what is right."""
        from scipy.stats import binom

        return bool(binom.sf(self._known_right() - 1, self.people, max(0.5, self.baseline or 0.5)) > LUCK)

    def as_record(self, *, reveal: bool = False) -> dict[str, Any]:
        """For JSON; the secrets only if asked for."""
        record: dict[str, Any] = {
            "verdict": self.verdict,
            "people": self.people,
            "asked": self.asked,
            "answered": self.answered,
            "refused": self.reasons,
            "method": self.method,
            "certainty": self.certainty,
            "sure": self.sure,
            "right": self.right,
            "baseline": self.baseline,
        }
        return record | ({"bits": self.bits.tolist(), "chances": self.chances.tolist()} if reveal else {})

    def lines(self) -> list[tuple[str, str]]:
        """What is worth knowing, by name."""
        root = self.people**0.5
        said = [
            ("questions", f"{self.asked:,} asked, {self.answered:,} answered"),
            ("decoded by", self.method),
            ("sure of", f"{self.sure:,} of {self.people:,} bits, each with a chance of 99 % or more"),
            ("mean chance", f"{self.certainty * 100:.1f} % that a guess is right, by the answers alone"),
        ]
        if self.residual == self.residual:
            said.append(("noise seen", f"{self.residual:.3g} (median); √n is {root:.3g}"))
        said += [("refused", f"{count:,} × {reason}") for reason, count in self.reasons.items()]
        return said

    def __str__(self) -> str:
        rest = f"{self.asked:,} questions, {self.answered:,} answered; decoded by {self.method}"
        sure = f"sure of {self.sure:,} of {self.people:,} bits"
        if self.residual == self.residual:
            sure += f"; noise seen {self.residual:.3g} (√n is {self.people**0.5:.3g})"
        refused = "".join(f"\nrefused: {count:,} × {reason}" for reason, count in self.reasons.items())
        return f"{self.verdict}\n{rest}; {sure}{refused}"

    def _repr_html_(self) -> str:
        alarm = self.verdict.startswith(("BROKEN", "LEAKING"))
        return block(note(self.verdict, alarm=alarm), facts(self.lines()))

    def plot(self) -> Any:
        """How estimates spread: two humps are two values that can be told apart, one is a secret kept."""
        return histogram(self.estimate, self.truth, self.verdict)


def reconstruct(
    answerer: Answerer | Callable[[Doubles], Any] | ArrayLike | str | Path,
    queries: Queries,
    *,
    method: Method | None = None,
    truth: ArrayLike | None = None,
    progress: Callable[[float], None] | None = None,
) -> Reconstruction:
    """Ask, decode, judge.

    `answerer` is an `Answerer`, a function of the weights of one query, answers at hand (an array), or the path of a
    CSV file with a column `answer`. `truth`, where it is known, is only compared with.
    """
    told = progress or (lambda part: None)
    if not isinstance(queries, Queries):
        raise InvalidArgument("queries", queries, "a set of queries", "use Listed or Hadamard")
    known = _bits(truth, queries.people)
    chosen = _method(method, queries)
    answers = _answers(answerer, queries, lambda part: told(ASKING * part))
    if not answers.given:
        middle = np.full(queries.people, 0.5)
        nothing = np.zeros(queries.people, np.int64)
        rest = (len(queries), 0, answers.reasons, np.nan, np.nan, known)
        return Reconstruction(nothing, middle, middle, chosen, *rest)
    estimate, share = _decoded(chosen, queries, answers, lambda part: told(ASKING + (1 - ASKING) * part))
    bits = (estimate > 0.5).astype(np.int64)
    off = np.abs(answers.values - queries.apply(bits))
    off = off[np.isfinite(off)]
    told(1.0)
    return Reconstruction(
        bits=bits,
        chances=_chances(chosen, estimate, share),
        estimate=estimate,
        method=chosen,
        asked=len(queries),
        answered=answers.given,
        reasons=answers.reasons,
        residual=float(np.median(off)),
        worst=float(off.max()),
        truth=known,
    )


def _decoded(method: str, queries: Queries, answers: Answers, told: Callable[[float], None]) -> tuple[Doubles, float]:
    """Estimates of the bits, and the part of a bit's distance from ½ that comes through."""
    if method == "all candidates":
        return decoding.best_candidate(queries.people, answers.values)[0].astype(np.float64), 1.0
    if method == "linear program":
        return decoding.least_worst(queries, answers.values), 1.0
    if method == "least squares":
        # Orthogonal columns need no holding: it would scale all estimates alike.
        whole = isinstance(queries, Hadamard) and answers.given == len(queries)
        if whole or answers.given >= PLENTY * queries.people:
            return decoding.least_squares(queries, answers.values), 1.0
        return decoding.damped_squares(queries, answers.values)
    # Absolute errors find which answers are arbitrary; the others are worth more in squares.
    rough = decoding.least_absolute(queries, answers.values, told)
    off = np.abs(answers.values - queries.apply(rough))
    usual = 1.4826 * float(np.nanmedian(off))
    kept = np.where(off <= OUTLIERS * usual + 1e-6, answers.values, np.nan)
    enough = np.isfinite(kept).sum() >= PLENTY * queries.people
    return (decoding.least_squares(queries, kept) if enough else rough), 1.0


def _chances(method: str, estimate: Doubles, share: float) -> Doubles:
    """Candidates and programs within [0, 1] say less of their own noise: what they leave open is taken as it is."""
    if method == "all candidates":
        return np.clip(estimate, 0.01, 0.99)
    if method == "linear program":
        return np.clip(estimate, 0.001, 0.999)
    return decoding.certainties(estimate, share)


def _answers(answerer: Any, queries: Queries, told: Callable[[float], None]) -> Answers:
    if isinstance(answerer, Answerer):
        return answerer.ask(queries, told)
    if callable(answerer):
        return FromFunction(answerer).ask(queries, told)
    if isinstance(answerer, str | Path):
        return FromFile(answerer).ask(queries, told)
    found = Answers.of(answerer)
    if found.values.size != len(queries):
        many = f"{found.values.size} answers"
        raise InvalidArgument("answerer", many, f"{len(queries)}, one for each query", "mark those refused as NaN")
    return found


def _method(method: Method | None, queries: Queries) -> Method:
    if method is None:
        small = queries.people <= ROBUST_UP_TO and not isinstance(queries, Hadamard)
        return "robust" if small and len(queries) >= PLENTY * queries.people else "least squares"
    if method not in METHODS:
        raise InvalidArgument("method", method, f"one of {', '.join(METHODS)}", "leave it out for the one that suits")
    if method == "all candidates" and len(queries) != 1 << queries.people:
        raise InvalidArgument("queries", f"{len(queries)}", "all subsets for this method", "use Listed.all_subsets")
    return method


def _bits(truth: ArrayLike | None, people: int) -> Bits | None:
    if truth is None:
        return None
    bits = np.asarray(truth)
    if bits.shape != (people,) or not np.isin(bits, (0, 1)).all():
        raise InvalidArgument("truth", f"of shape {bits.shape}", f"{people} bits, 0 or 1", "give one for each person")
    return bits.astype(np.int64)
