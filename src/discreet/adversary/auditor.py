"""A lower bound on the ε of any mechanism, from running it.

`audit` runs a mechanism many times on two neighbouring data sets, searches some of the runs for the event that
tells them apart best, and tests that event on fresh runs: with the stated confidence, no guarantee below the reported
ε can be true. A bound of 0 is no proof of privacy; it says that this search on these data sets found nothing.

>>> audit(lambda data: data, 0, 1, samples=2000).violates(PureDP(1))
True
>>> print(audit(lambda data: data, 0, 1, samples=2000))  # doctest: +NORMALIZE_WHITESPACE
ε ≥ 3.78 at δ = 0 with confidence 1 − 1e-09: output ≤ 0 has probability at least 0.978 on D
and at most 0.0223 on D′ (2000 runs on each)
>>> audit(lambda data: "same", 0, 1, samples=2000).epsilon
0.0

The mechanism must be a function of its data and of fresh randomness: runs are taken to be independent. Every
output counts, and an exception is an output. `batch(data, n)` gives n independent outputs at once, as an array whose
first axis has length n or as a list; 10⁷ runs are then a matter of seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from discreet.adversary.bounds import delta_from, epsilon_from, proportion_high, proportion_low, renyi_from
from discreet.adversary.outcomes import Features, Outcomes, encode
from discreet.adversary.search import Candidate, Terms, best_events, partitions
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, probability
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP
from discreet.core.rounding import float_down, float_up

__all__ = ["Audit", "audit"]

FINALISTS = 3
"""Events tested; the error allowed is shared among their 2·FINALISTS bounds."""
LEARNING, CHOOSING = 200_000, 400_000
"""At most this many runs on each data set fix cells and choose events; all others test."""
_CHUNK = 1 << 19
_LEAST = 100
_ORDERS = tuple(1 + 2.0**power for power in range(-10, 11))

Mechanism = Callable[[Any], Any]
Batch = Callable[[Any, int], Any]


@dataclass(frozen=True)
class Audit:
    """What the runs prove: the event happens with probability ≥ p_low on one data set and ≤ q_up on the other."""

    epsilon: float
    delta: float
    confidence: float
    event: str
    likelier_on: Literal["D", "D′"]
    p_low: float
    q_up: float
    samples: int

    def epsilon_at(self, delta: float) -> float:
        """The lower bound on ε that the same event proves at another δ."""
        return epsilon_from(self.p_low, self.q_up, delta)

    def delta_at(self, epsilon: float) -> float:
        """The lower bound on δ that the event proves at this ε."""
        return delta_from(self.p_low, self.q_up, epsilon)

    def violates(self, loss: Loss) -> bool:
        """Whether the runs refute this guarantee."""
        if isinstance(loss, PureDP):
            return self.epsilon_at(0.0) > loss.epsilon
        if isinstance(loss, ApproxDP):
            return self.epsilon_at(float_up(loss.delta)) > loss.epsilon
        if isinstance(loss, ZCDP):
            bounds = [(order, float(loss.rho) * order) for order in _ORDERS]
        elif isinstance(loss, RenyiDP):
            bounds = [(float(a), float(e)) for a, e in zip(loss.orders, loss.epsilons, strict=True)]
        else:
            raise InvalidArgument("loss", loss, "a PureDP, ApproxDP, ZCDP or RenyiDP", "state the claim as a loss")
        return any(renyi_from(self.p_low, self.q_up, order) > bound * (1 + 1e-9) for order, bound in bounds)

    def __str__(self) -> str:
        bound = f"ε ≥ {_floor(self.epsilon)} at δ = {self.delta:g} with confidence 1 − {1 - self.confidence:.3g}"
        if self.epsilon == 0:
            return f"{bound}: no event was found that tells D from D′ ({self.samples} runs on each)"
        other = "D′" if self.likelier_on == "D" else "D"
        return (
            f"{bound}: {self.event} has probability at least {self.p_low:.3g} on {self.likelier_on}"
            f" and at most {self.q_up:.3g} on {other} ({self.samples} runs on each)"
        )


def audit(
    mechanism: Mechanism | Any,
    d: Any,
    d_prime: Any,
    *,
    samples: int = 100_000,
    confidence: Exactable = Fraction(999_999_999, 10**9),
    delta: Exactable = 0,
    batch: Batch | None = None,
    features: Features | None = None,
) -> Audit:
    """The largest ε that `samples` runs on each of `d` and `d_prime` refute at this confidence, for this δ.

    `mechanism` is called as mechanism(data), or mechanism.release(data) where it has a `release`; with `batch` given
    it is not called and may be None. `features` adds readings of your own: each maps the list or array of outputs to
    one number or text (or row of them) for each output, looking at that output only.
    """
    total = natural("samples", samples)
    if total < _LEAST:
        raise InvalidArgument("samples", samples, f"at least {_LEAST}", "run the mechanism more often")
    sure = probability("confidence", confidence)
    spared = float_up(probability("delta", delta, zero=True))
    alpha = float_down((1 - sure) / (2 * FINALISTS))
    learning, choosing = min(total // 4, LEARNING), min(total // 4, CHOOSING)
    draw = _drawer(mechanism, batch, features)

    learned = draw(d, learning), draw(d_prime, learning)
    chosen_on = draw(d, choosing), draw(d_prime, choosing)
    terms = Terms(total - learning - choosing, alpha, spared)
    tested = best_events(partitions(*learned), learned, chosen_on, terms, FINALISTS)
    hits = _count(tested, draw, (d, d_prime), terms.trials)

    proofs = [_proof(event, on, terms) for event, on in zip(tested, hits, strict=True)]
    event, p_low, q_up = max(proofs, key=lambda proof: (epsilon_from(proof[1], proof[2], spared), proof[1] - proof[2]))
    return Audit(
        epsilon=epsilon_from(p_low, q_up, spared),
        delta=spared,
        confidence=float(sure),
        event=event.words,
        likelier_on="D" if event.favours_d else "D′",
        p_low=p_low,
        q_up=q_up,
        samples=total,
    )


def _proof(event: Candidate, hits: tuple[int, int], terms: Terms) -> tuple[Candidate, float, float]:
    p, q = hits if event.favours_d else hits[::-1]
    p_low, q_up = proportion_low(p, terms.trials, terms.alpha), proportion_high(q, terms.trials, terms.alpha)
    return event, float(p_low), float(q_up)


def _count(
    events: list[Candidate], draw: Callable[[Any, int], Outcomes], data: tuple[Any, Any], trials: int
) -> list[tuple[int, int]]:
    """How often each event happens in fresh runs on each data set, drawn in pieces of bounded size."""
    totals = [[0, 0] for _ in events]
    for size in _pieces(trials):
        for side in (0, 1):
            outcomes = draw(data[side], size)
            for total, event in zip(totals, events, strict=True):
                total[side] += event.hits(outcomes)
    return [(ours, theirs) for ours, theirs in totals]


def _pieces(trials: int) -> Iterator[int]:
    for start in range(0, trials, _CHUNK):
        yield min(_CHUNK, trials - start)


def _drawer(
    mechanism: Mechanism | Any, batch: Batch | None, features: Features | None
) -> Callable[[Any, int], Outcomes]:
    if batch is None:
        batch = _repeated(mechanism)

    def draw(data: Any, runs: int) -> Outcomes:
        outputs = batch(data, runs)
        if len(outputs) != runs:
            raise InvalidArgument("batch", len(outputs), f"a source of exactly {runs} outputs", "return one per run")
        outcomes = encode(outputs, features)
        for name, table in outcomes.extra.items():
            if table.rows != runs:
                raise InvalidArgument(name, table.rows, f"a feature of {runs} rows", "return one row per output")
        return outcomes

    return draw


def _repeated(mechanism: Mechanism | Any) -> Batch:
    run = getattr(mechanism, "release", mechanism)
    if not callable(run):
        raise InvalidArgument("mechanism", mechanism, "callable, or have a release method", "pass a function of data")

    def outputs(data: Any, runs: int) -> list[Any]:
        results = []
        for _ in range(runs):
            try:
                results.append(run(data))
            except Exception as error:
                results.append(error.with_traceback(None))
        return results

    return outputs


def _floor(epsilon: float) -> str:
    """Three figures, never above the value."""
    if epsilon == 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(epsilon)) - 2)
    return f"{math.floor(epsilon / unit) * unit:.3g}"
