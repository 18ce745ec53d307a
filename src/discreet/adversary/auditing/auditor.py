"""A lower bound on the ε of any mechanism, from running it.

`audit` runs a mechanism many times on two neighbouring data sets, searches some of the runs for the event that
tells them apart best, and tests that event on fresh runs: with the stated confidence, no guarantee below the reported
ε can be true. A bound of 0 is no proof of privacy; it says that this search on these data sets found nothing.

>>> from discreet.core.losses import PureDP
>>> audit(lambda data: data, 0, 1, samples=2000).violates(PureDP(1))
True
>>> print(audit(lambda data: data, 0, 1, samples=2000))  # doctest: +NORMALIZE_WHITESPACE
ε ≥ 3.78 at δ = 0 with confidence 1 − 1e-09: output ≤ 0 was seen in 100 % of the runs on D
and in 0 % of those on D′ (2000 runs on each)
>>> audit(lambda data: "same", 0, 1, samples=2000).epsilon
0.0

The mechanism must be a function of its data and of fresh randomness: runs are taken to be independent, and one that
gives the same outputs again is refused. Every output counts, and an exception is an output. `batch(data, n)` gives n
independent outputs at once, as an array whose first axis has length n or as a list; 10⁷ runs are then a matter of
seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.adversary.auditing.event_search import Candidate, best_events, partitions
from discreet.adversary.auditing.outcomes import Features, Outcomes, encode
from discreet.adversary.auditing.power import Terms
from discreet.adversary.auditing.regions import Region
from discreet.adversary.auditing.repeated_noise import repeated
from discreet.core.display.numbers import floored
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Exactable, natural, probability
from discreet.core.losses import ApproxDP, Loss
from discreet.core.rounding import float_down, float_up

__all__ = ["Audit", "Batch", "Mechanism", "audit"]

FINALISTS = 3
"""Events tested; the error allowed is shared among them."""
LEARNING, CHOOSING = 200_000, 400_000
"""At most this many runs on each data set fix cells and choose events; all others test."""
_CHUNK = 1 << 19
_LEAST = 100
_POINTS = 200
"""Points of a trade-off curve that are kept."""

Mechanism = Callable[[Any], Any]
Batch = Callable[[Any, int], Any]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Audit:
    """What the runs prove: the event's probabilities, on the data set where it is likelier and on the other, lie in
    `region`."""

    epsilon: float
    delta: float
    confidence: float
    event: str
    likelier_on: Literal["D", "D′"]
    region: Region
    samples: int
    rates: tuple[float, float] = (math.nan, math.nan)
    """How often the event was seen in the final runs, on the data set where it is likelier and on the other."""
    curve: tuple[tuple[float, float], ...] = ()
    """Trade-off: how often D′ is taken for D, and how often D is recognised, for one guess after another."""
    claim: Loss | None = None
    terms: Terms | None = None
    """What the final test was."""

    @property
    def doubt(self) -> float:
        """How likely the bound is wrong, at most; also where confidence differs from 1 by less than doubles tell."""
        return 1 - self.confidence if self.terms is None else self.terms.alpha * FINALISTS

    def epsilon_at(self, delta: float) -> float:
        """The lower bound on ε that the same event proves at another δ."""
        return self.region.epsilon(delta)

    def delta_at(self, epsilon: float) -> float:
        """The lower bound on δ that the event proves at this ε."""
        return self.region.delta(epsilon)

    def violates(self, loss: Loss) -> bool:
        """Whether the runs refute this guarantee."""
        return self.region.refutes(loss)

    @property
    def refuted(self) -> bool:
        """Whether the runs refute the claim that was audited."""
        return self.claim is not None and self.violates(self.claim)

    @property
    def verdict(self) -> str:
        """What was found, in plain words."""
        from discreet.adversary.auditing.report import verdict

        return verdict(self)

    def page(self, title: str = "Audit of a mechanism") -> str:
        """A page of HTML that stands alone: verdict, trade-off curve, what the audit would have caught."""
        from discreet.adversary.auditing.report import page

        return page(self, title)

    def plot(self) -> Any:
        """An Altair chart of the trade-off curve, with what the claim allows."""
        from discreet.adversary.auditing.tradeoff import chart

        return chart(self, self.verdict)

    def _repr_html_(self) -> str:
        from discreet.adversary.auditing.report import summary
        from discreet.core.display.html import block

        return block(summary(self))

    def __str__(self) -> str:
        bound = f"ε ≥ {floored(self.epsilon)} at δ = {self.delta:g} with confidence 1 − {self.doubt:.3g}"
        if self.epsilon == 0:
            return f"{bound}: no event was found that tells D from D′ ({self.samples} runs on each)"
        other = "D′" if self.likelier_on == "D" else "D"
        return (
            f"{bound}: {self.event} was seen in {self.rates[0] * 100:.3g} % of the runs on {self.likelier_on}"
            f" and in {self.rates[1] * 100:.3g} % of those on {other} ({self.samples} runs on each)"
        )


def audit(
    mechanism: Mechanism | Any,
    d: Any,
    d_prime: Any,
    *,
    samples: int = 100_000,
    confidence: Exactable = Fraction(999_999_999, 10**9),
    delta: Exactable | None = None,
    claim: Loss | None = None,
    batch: Batch | None = None,
    features: Features | None = None,
    progress: Callable[[float], None] | None = None,
) -> Audit:
    """The largest ε that `samples` runs on each of `d` and `d_prime` refute at this confidence, for this δ.

    `mechanism` is called as mechanism(data), or mechanism.release(data) or .randomise(data) where it has that; with
    `batch` given it is not called and may be None. `claim` is what the mechanism is said to guarantee; without `delta`
    its δ is taken, or 0. `features` adds readings of your own: each maps the list or array of outputs to one number or
    text (or row of them) for each output, looking at that output only. `progress` is told how much is done.
    """
    total = natural("samples", samples)
    if total < _LEAST:
        raise InvalidArgument("samples", samples, f"at least {_LEAST}", "run the mechanism more often")
    sure = probability("confidence", confidence)
    if delta is None:
        delta = claim.delta if isinstance(claim, ApproxDP) else 0
    spared = float_up(probability("delta", delta, zero=True))
    alpha = float_down((1 - sure) / FINALISTS)
    learning, choosing = min(total // 4, LEARNING), min(total // 4, CHOOSING)
    draw = _drawer(mechanism, batch, features, 2 * total, progress)

    learned = draw(d, learning), draw(d_prime, learning)
    chosen_on = draw(d, choosing), draw(d_prime, choosing)
    if any(repeated(*draws) for draws in zip(learned, chosen_on, strict=True)):
        remedy = "seed it from the operating system: noise that comes again is known to everybody"
        raise InvalidArgument("mechanism", "the same outputs again", "fresh randomness whenever it is run", remedy)
    terms = Terms(total - learning - choosing, alpha, spared)
    tested = best_events(partitions(*learned), learned, chosen_on, terms, FINALISTS)
    counted = _count(tested, draw, (d, d_prime), terms.trials)

    proofs = [(event, on, _proof(event, on, terms)) for event, on in zip(tested, counted, strict=True)]
    event, on, region = max(proofs, key=lambda proof: (proof[2].epsilon(spared), proof[2].delta(0.0)))
    p, q = _hits(event, on)
    return Audit(
        epsilon=region.epsilon(spared),
        delta=spared,
        confidence=float(sure),
        event=event.words,
        likelier_on="D" if event.favours_d else "D′",
        region=region,
        samples=total,
        rates=(p / terms.trials, q / terms.trials),
        curve=_curve(event, on, terms.trials),
        claim=claim,
        terms=terms,
    )


def _hits(event: Candidate, counts: tuple[Counts, Counts]) -> tuple[int, int]:
    """How often the event was seen, first where it is likelier."""
    ours, theirs = (int(side[event.chosen].sum()) for side in counts)
    return (ours, theirs) if event.favours_d else (theirs, ours)


def _proof(event: Candidate, counts: tuple[Counts, Counts], terms: Terms) -> Region:
    """The region by the rule that promised more before the final runs."""
    return terms.region(_hits(event, counts), event.rates)


def _curve(event: Candidate, counts: tuple[Counts, Counts], trials: int) -> tuple[tuple[float, float], ...]:
    """Cells taken one by one, those first that spoke for D most strongly while learning."""
    seen = [np.concatenate([[0.0], np.cumsum(side[event.ranking]) / trials]) for side in counts]
    moved = np.flatnonzero(np.concatenate([[True], np.diff(seen[0]) + np.diff(seen[1]) > 0]))
    if len(moved) > _POINTS:
        moved = moved[np.linspace(0, len(moved) - 1, _POINTS).round().astype(np.intp)]
    return tuple(zip(seen[1][moved].tolist(), seen[0][moved].tolist(), strict=True))


def _count(
    events: list[Candidate], draw: Callable[[Any, int], Outcomes], data: tuple[Any, Any], trials: int
) -> list[tuple[Counts, Counts]]:
    """How often each cell of each event's partition is met in fresh runs, drawn in pieces of bounded size."""
    totals = [[np.zeros(event.partition.cells, np.int64) for _ in data] for event in events]
    for size in _pieces(trials):
        for side in (0, 1):
            outcomes = draw(data[side], size)
            for total, event in zip(totals, events, strict=True):
                total[side] += event.partition.counts(outcomes)
    return [(ours, theirs) for ours, theirs in totals]


def _pieces(trials: int) -> Iterator[int]:
    for start in range(0, trials, _CHUNK):
        yield min(_CHUNK, trials - start)


def _drawer(
    mechanism: Mechanism | Any,
    batch: Batch | None,
    features: Features | None,
    whole: int,
    progress: Callable[[float], None] | None,
) -> Callable[[Any, int], Outcomes]:
    source = _repeated(mechanism) if batch is None else batch
    done = 0

    def drawn(data: Any, runs: int) -> Any:
        nonlocal done
        outputs = source(data, runs)
        done += runs
        if progress is not None:
            progress(done / whole)
        return outputs

    def draw(data: Any, runs: int) -> Outcomes:
        outputs = drawn(data, runs)
        if len(outputs) != runs:
            raise InvalidArgument("batch", len(outputs), f"a source of exactly {runs} outputs", "return one per run")
        outcomes = encode(outputs, features)
        for name, table in outcomes.extra.items():
            if table.rows != runs:
                raise InvalidArgument(name, table.rows, f"a feature of {runs} rows", "return one row per output")
        return outcomes

    return draw


def _repeated(mechanism: Mechanism | Any) -> Batch:
    from discreet.adversary.auditing.foreign import runnable

    run = runnable(mechanism)

    def outputs(data: Any, runs: int) -> list[Any]:
        results = []
        for _ in range(runs):
            try:
                results.append(run(data))
            except Exception as error:
                results.append(error.with_traceback(None))
        return results

    return outputs
