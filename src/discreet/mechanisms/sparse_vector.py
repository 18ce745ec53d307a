"""The sparse vector technique: pay only for the questions whose answer is above a threshold.

Questions arrive one by one, each a whole number that moves by at most `sensitivity` between neighbours. Each is
answered above or below until `positives` of them were above; with `value_share` the noisy value of those is given too.

Guarantee (Lyu, Su, Li 2017, algorithm 7, on integers). One noise of scale Δ/ε₁ on the threshold, drawn once; fresh
noise of scale 2cΔ/ε₂ on every question (cΔ/ε₂ when all questions move the same way); for values fresh noise of scale
cΔ/ε₃ on those above. Then everything said is (ε₁ + ε₂ + ε₃)-DP. The argument moves the threshold noise by Δ and that of
each question above by 2Δ; on integers with an integer Δ every step of it is exact, with ≥ as well as >.

>>> svt = SparseVector.for_epsilon(1, threshold=100, positives=2)
>>> svt.loss
PureDP(epsilon=1)
>>> run = svt.start()
>>> answers = [run.ask(count) for count in (0, 3, 10_000, 5, 20_000)]
>>> [bool(answer.above) for answer in answers], run.exhausted
([False, False, True, False, True], True)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet.accounting.pure import pure
from discreet.core import events
from discreet.core.arrays import whole
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.exact import Exactable, at_least, natural, positive, probability
from discreet.core.forks import Run
from discreet.core.losses import PureDP
from discreet.core.mechanism import Release
from discreet.core.rounding import float_up, log_up
from discreet.mechanisms.additive import END, comparable, flag, saturating_sum, to_steps
from discreet.noise.entropy import Entropy, chosen
from discreet.noise.grid import INTEGERS
from discreet.noise.laplace import discrete_laplace

__all__ = ["Answer", "SparseVector", "SparseVectorRun"]


@dataclass(frozen=True)
class Answer:
    """Whether the question was above, and its noisy value where that was paid for."""

    above: bool
    value: int | None = None
    private: bool = True
    """False when the noise came from a test seed."""


@dataclass(frozen=True)
class SparseVector:
    """ε₁ for the threshold, ε₂ for the comparisons, ε₃ (0 for none) for the values."""

    threshold: int
    positives: int
    epsilon_threshold: Fraction
    epsilon_questions: Fraction
    epsilon_values: Fraction = Fraction(0)
    sensitivity: int = 1
    monotonic: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, int | np.integer):
            raise InvalidArgument("threshold", self.threshold, "a whole number", "round it to the questions' grid")
        object.__setattr__(self, "threshold", int(self.threshold))
        flag("monotonic", self.monotonic)
        if abs(self.threshold) > END // 2:
            raise InvalidArgument("threshold", self.threshold, "within ±2^61", "choose a coarser grid")
        object.__setattr__(self, "positives", natural("positives", self.positives))
        object.__setattr__(self, "epsilon_threshold", positive("epsilon_threshold", self.epsilon_threshold))
        object.__setattr__(self, "epsilon_questions", positive("epsilon_questions", self.epsilon_questions))
        object.__setattr__(self, "epsilon_values", at_least("epsilon_values", self.epsilon_values, 0))
        object.__setattr__(self, "sensitivity", natural("sensitivity", self.sensitivity))
        for scale in (self.threshold_scale, self.question_scale, self.value_scale or Fraction(1)):
            comparable("sensitivity/epsilon", scale)

    @classmethod
    def for_epsilon(
        cls,
        epsilon: Exactable,
        threshold: int,
        positives: int = 1,
        *,
        sensitivity: int = 1,
        monotonic: bool = False,
        value_share: Exactable = 0,
    ) -> SparseVector:
        """ε split so that comparisons err least: ε₁ : ε₂ = 1 : (2c)^⅔, or 1 : c^⅔ when monotonic."""
        budget = positive("epsilon", epsilon)
        share = probability("value_share", value_share, zero=True)
        ratio = Fraction((natural("positives", positives) * (1 if monotonic else 2)) ** (2 / 3)).limit_denominator(1000)
        compared = budget * (1 - share)
        first = compared / (1 + ratio)
        return cls(threshold, positives, first, compared - first, budget * share, sensitivity, monotonic)

    @property
    def threshold_scale(self) -> Fraction:
        """Δ/ε₁."""
        return self.sensitivity / self.epsilon_threshold

    @property
    def question_scale(self) -> Fraction:
        """2cΔ/ε₂, half of it when monotonic."""
        return self.positives * self.sensitivity * (1 if self.monotonic else 2) / self.epsilon_questions

    @property
    def value_scale(self) -> Fraction | None:
        """cΔ/ε₃."""
        return self.positives * self.sensitivity / self.epsilon_values if self.epsilon_values else None

    @cached_property
    def events(self) -> tuple[events.Pure]:
        """What a whole run costs, however many questions are asked."""
        return (events.Pure(self.epsilon_threshold + self.epsilon_questions + self.epsilon_values),)

    @cached_property
    def loss(self) -> PureDP:
        """ε₁ + ε₂ + ε₃."""
        return pure(self.events[0])

    def accuracy(self, beta: Exactable, questions: int) -> float:
        """With probability 1 − β, over so many questions, none farther than this from the threshold is misjudged."""
        tail = probability("beta", beta)
        # Half of β to the threshold's noise, half to a union over the questions' noises.
        spread = log_up(2 / tail) * self.threshold_scale
        return float_up(spread + log_up(2 * natural("questions", questions) / tail) * self.question_scale)

    def start(self, *, entropy: Entropy | None = None) -> SparseVectorRun:
        """A run that answers questions as they come; it costs `loss` once."""
        return SparseVectorRun(self, chosen(entropy))

    def release(self, data: object, *, entropy: Entropy | None = None) -> Release:
        """Answers to questions given all at once, up to the last one above: the law of `start` and `ask`, in one go."""
        source = chosen(entropy)
        counts = np.clip(whole("data", data).reshape(-1), -END, END)
        bar = self.threshold + int(discrete_laplace(self.threshold_scale, entropy=source))
        noisy = saturating_sum(counts, discrete_laplace(self.question_scale, counts.size, entropy=source))
        above = np.flatnonzero(noisy >= max(-END, min(bar, END)))[: self.positives]
        asked = above[-1] + 1 if above.size == self.positives else counts.size
        values: list[int | None] = [None] * above.size
        if self.value_scale is not None:
            fresh = discrete_laplace(self.value_scale, above.size, entropy=source)
            values = saturating_sum(counts[above], fresh).tolist()
        said = [Answer(False, private=source.private)] * int(asked)
        for place, value in zip(above.tolist(), values, strict=True):
            said[place] = Answer(True, value, source.private)
        return Release(tuple(said), self.loss, self.events, None, source.private)


class SparseVectorRun(Run):
    """The state of one run: the noisy threshold and how many answers may still be above. Threads may share it."""

    def __init__(self, mechanism: SparseVector, entropy: Entropy) -> None:
        super().__init__("SparseVector")
        self._mechanism = mechanism
        self._entropy = entropy
        self._left = mechanism.positives
        noise = discrete_laplace(mechanism.threshold_scale, entropy=entropy)
        self._threshold = mechanism.threshold + int(noise)

    @property
    def exhausted(self) -> bool:
        """Whether the run is over."""
        return self._left <= 0

    def ask(self, count: object) -> Answer:
        """Above or below; raises when the run is over."""
        steps = to_steps(count, INTEGERS, False, 1).reshape(())
        private = self._entropy.private
        self._stay()
        with self._lock:
            if self.exhausted:
                raise BudgetExceeded("of one more question", "of 0 positives", "start another run and pay for it")
            noise = discrete_laplace(self._mechanism.question_scale, entropy=self._entropy)
            if int(saturating_sum(steps, noise)) < self._threshold:
                return Answer(False, private=private)
            self._left -= 1
        if self._mechanism.value_scale is None:
            return Answer(True, private=private)
        fresh = discrete_laplace(self._mechanism.value_scale, entropy=self._entropy)
        return Answer(True, int(saturating_sum(steps, fresh)), private)
