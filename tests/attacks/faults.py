"""Faults planted in noise, mechanisms and accounting, one at a time, as they shipped elsewhere."""

import math
from collections.abc import Iterable
from contextlib import ExitStack
from fractions import Fraction
from importlib import import_module
from typing import Any
from unittest.mock import PropertyMock, patch

import numpy as np

from discreet.accounting import odometers
from discreet.accounting.pld import dominating_pairs as pairs
from discreet.core import events
from discreet.core.domains import Bounds, Categories
from discreet.core.mechanism import Release
from discreet.mechanisms import gaussian, laplace, sparse_vector
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.selection import PermuteAndFlip
from discreet.mechanisms.sparse_vector import SparseVector
from discreet.noise import entropy, reference
from discreet.noise import laplace as noise
from discreet.noise.entropy import Entropy
from discreet.noise.grid import Grid
from discreet.robust.stability import StabilityTest

GROUP: Any = import_module("discreet.accounting.group")


def together(*patches: Any) -> ExitStack:
    """Several patches as one; they are undone where the stack is left."""
    stack = ExitStack()
    for each in patches:
        stack.enter_context(each)
    return stack


def noise_in_doubles() -> Any:
    def release(self: Laplace, data: object, *, entropy: Entropy | None = None) -> Release:
        drawn = np.random.default_rng(1).laplace(0, float(self.scale), np.shape(data))
        return Release(np.asarray(data) + drawn, self.loss, self.events, self.accuracy, True, self.limit)

    return patch.object(Laplace, "release", release)


def noise_that_is_even() -> Any:
    original = noise._append_low_bits

    def even(plan: Any, magnitudes: Any, source: Entropy) -> Any:
        kept = original(plan, magnitudes, source)
        magnitudes &= ~1
        return kept

    return patch.object(noise, "_append_low_bits", even)


def sums_that_wrap() -> Any:
    return patch.object(laplace, "saturating_sum", lambda values, noise: values + noise)


def any_scale() -> Any:
    return together(
        *(patch.object(module, "scale_argument", lambda name, value: value) for module in (laplace, gaussian))
    )


def lengths_cut_short() -> Any:
    return patch.object(Grid, "spanning", lambda self, length: math.floor(Fraction(length) / self.step))


def clip_of_numpy() -> Any:
    def clip(self: Bounds, values: Any) -> Any:
        return np.clip(np.asarray(values, dtype=np.float64), float(self.lower), float(self.upper))

    return patch.object(Bounds, "clip", clip)


def codes_by_first_appearance() -> Any:
    def codes(self: Categories, values: Iterable[Any]) -> Any:
        seen: dict[str, int] = {}
        return np.array([seen.setdefault(str(value), len(seen)) for value in values])

    return patch.object(Categories, "codes", codes)


def magnitude_of_the_lower_bound() -> Any:
    return patch.object(Bounds, "magnitude", property(lambda self: abs(self.lower)))


def groups_as_one() -> Any:
    return patch.object(GROUP, "_grouped_event", lambda event, k: event)


def charged_as_exponential() -> Any:
    return patch.object(PermuteAndFlip, "event", events.BoundedRange)


def threshold_reached() -> Any:
    def passes(self: StabilityTest, distance: int, entropy: Entropy) -> bool:
        return distance + int(noise.discrete_laplace(1 / self.epsilon, entropy=entropy)) >= self.threshold

    return patch.object(StabilityTest, "passes", passes)


def sampled_again() -> Any:
    """Whatever is done to one sample is charged as if each part of it had one of its own."""
    original = pairs.dominating

    def dominating(event: Any) -> Any:
        if isinstance(event, events.PoissonSampled) and isinstance(event.event, events.Repeated):
            event = events.Repeated(events.PoissonSampled(event.rate, event.event.event), event.event.count)
        return original(event)

    return patch.object(import_module("discreet.accounting.pld.distribution"), "dominating", dominating)


def reading_for_one_moment() -> Any:
    """Half the logarithm of 1/δ: about what is right at a time fixed beforehand."""
    original = odometers.log_up
    return patch.object(odometers, "log_up", lambda value: original(value) / 2)


def _noise_of(**scales: Fraction) -> Any:
    return together(*(patch.object(SparseVector, name, PropertyMock(return_value=s)) for name, s in scales.items()))


def questions_without_noise() -> Any:
    return _noise_of(question_scale=Fraction(1, 100))


def threshold_without_noise() -> Any:
    return _noise_of(threshold_scale=Fraction(1, 100))


def questions_as_if_one_were_above() -> Any:
    return patch.object(SparseVector, "question_scale", property(lambda self: 1 / self.epsilon_questions))


def no_end_to_the_run() -> Any:
    original = SparseVector.release

    def release(self: SparseVector, data: Any, **given: Any) -> Release:
        endless = SparseVector(self.threshold, 10**3, self.epsilon_threshold, self.epsilon_questions)
        with _noise_of(question_scale=self.question_scale):
            return original(endless, data, **given)

    return patch.object(SparseVector, "release", release)


def value_as_it_was_compared() -> Any:
    """The noise of the comparison is that of the value too."""
    original = sparse_vector.saturating_sum
    kept: list[Any] = []

    def added(counts: Any, drawn: Any) -> Any:
        if not kept:
            kept.append(original(counts, drawn))
            return kept[0]
        noisy = kept.pop()
        return np.array([noisy.max()] * len(counts))

    return patch.object(sparse_vector, "saturating_sum", added)


def words_of_numpy() -> Any:
    def fill(self: Entropy, out: Any) -> None:
        out[...] = np.random.randint(0, 1 << 64, out.shape, dtype=np.uint64)

    return patch.object(Entropy, "fill", fill)


def forks_not_noticed() -> Any:
    return patch.object(entropy, "_process", lambda: (1, 1))


def seeds_in_earnest() -> Any:
    return patch.object(entropy._Seeded, "private", True)


def draws_by_trial() -> Any:
    def sample(plan: Any, size: Any, source: Entropy) -> Any:
        return np.array(reference.discrete_laplace(plan.scale, source))

    return patch.object(noise, "_sample", sample)


def fractions_of_a_step() -> Any:
    """Squared sensitivities of numbers that are not whole, of which an accountant of whole numbers makes 0."""
    return patch.object(events, "squared_steps", lambda argument, value: Fraction(value))
