"""Which noise a question gets, and which limits its units: from declared facts alone, in four steps.

1. `choose_noise`. ℓ1 weights with Laplace noise cost (statistics × groups of a unit), ℓ2 weights with Gaussian noise
   its square root, times what the tail of a Gaussian costs. So a budget with a δ gets Laplace noise where units touch
   few sums, by what is declared, and Gaussian noise elsewhere; a pure budget always Laplace.
2. `choose_limits`. A unit with at most a few rows, by declaration, needs no clipping, the more where there are few
   groups. Otherwise the norm is found with a share of ε, up to the declared limit. Counts of units have a norm of their
   own.
3. `split_budget`. Sums and quantiles share what is left of ε and δ by their numbers.
4. `calibrate`. Each gets the least noise that its share pays for.

>>> from discreet.sql.aggregates import Sum
>>> counted = Statistic(Sum.ROWS, None)
>>> facts = {"keys": 1, "owned": False, "max_rows": None, "changes": 1}
>>> one = plan((counted,), **facts, budget=ApproxDP(1, "1e-6"), epsilon=Fraction(1))
>>> one.norm, one.scale(0, 0)
('l1', 1.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from discreet.accounting.budgets import noise_multiplier
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.losses import ApproxDP, Budget, PureDP
from discreet.sql.bounding.clipping_norms import Caps, Weighing
from discreet.sql.bounding.declared_values import least_error
from discreet.sql.bounding.declared_values import noise as noise_by_values
from discreet.sql.bounding.sums import Statistic
from discreet.sql.measuring.measurement import TYPICAL_KEYS, Measurement
from discreet.sql.measuring.modes import Mode
from discreet.sql.measuring.quantiles import QuantilePlan, Rank, weight_of
from discreet.sql.statement.layout import Norm, Weights

__all__ = ["NOMINAL", "Facts", "Limits", "NoiseForm", "Shares", "calibrate", "choose_limits", "choose_noise"]
__all__ += ["plan", "search_share", "split_budget"]

LEAST_SHARE, MOST_SHARE = 10, 3
"""One part in so many of ε finds clipping norms: less where many groups share what a wrong norm takes."""
THRESHOLD_SHARE = Fraction(1, 100)
"""The part of the budget's δ that keys which are not listed may cost; and of what is left modes of such values."""
FEW_ROWS, FEW_CELLS = 5, 64
"""Up to this many rows of a unit, by declaration, are not clipped; nor up to so many over the number of groups."""
FEW_SUMS = 3
"""Where a unit touches no more sums, Laplace noise is smaller for any δ that makes sense."""
FEW_GROUPS = 4
"""The same for groups, in counts of units."""
WORTH = 0.95
"""How much smaller noise by declared values must be than the usual: composed with others under a δ it costs more."""
ONE_ROW = Caps.fixed(1)
"""The limit under which a unit that counts at all is whole."""
WEIGHED = 1 << 13
"""The most steps of a value where statements weigh units."""
NOMINAL = Fraction(1, 10**6)
"""The δ at which Gaussian noise is planned for a ρ: it decides nothing about the guarantee, and little about shares."""


@dataclass(frozen=True)
class Facts:
    """All that a plan may depend on: what is measured, what is declared of it, and what it may cost.

    `keys` is the number of groups where they are listed. `changes` is how many rows or units differ between neighbours,
    all `copies` of each counted: in so many rows each of them can be where rows are units. If `whole`, declared limits
    are not searched below, so that nothing is clipped. If `gaussian`, all noise is Gaussian.
    """

    statistics: tuple[Statistic, ...]
    ranks: tuple[Rank | Mode, ...]
    keys: int | None
    owned: bool
    max_rows: int | None
    changes: int
    copies: int
    budget: Budget
    epsilon: Fraction
    whole: bool = False
    gaussian: bool = False

    @property
    def plain(self) -> tuple[Statistic, ...]:
        """The statistics without what is declared of their values."""
        return tuple(statistic.plain for statistic in self.statistics)

    @property
    def typical_keys(self) -> int:
        """How many groups there are, or may be."""
        return TYPICAL_KEYS if self.keys is None else self.keys


@dataclass(frozen=True)
class NoiseForm:
    """The form of noise, by the norm of units' weights; the δ that sums and ranks may cost; and that of groups to show
    although nobody listed them."""

    norm: Norm
    delta: Fraction
    threshold_delta: Fraction | None

    @property
    def is_laplace(self) -> bool:
        """Whether weights are bounded in ℓ1."""
        return self.norm == "l1"


@dataclass(frozen=True)
class Limits:
    """What a unit's rows may weigh: nothing to bound at row level. Norms that are to be found cost `search_epsilon`
    together, and each its part. If `tallied`, what clipping takes is released too."""

    weights: Weights | None
    search_epsilon: Fraction | None
    searches: tuple[Fraction, ...]
    tallied: bool


@dataclass(frozen=True)
class Shares:
    """What is left after the searches, by what it is for. Of the δ of ranks, `mode_delta` is for modes of values that
    nobody listed."""

    sums: Fraction
    sums_delta: Fraction
    ranks: Fraction
    ranks_delta: Fraction
    mode_delta: Fraction


@lru_cache(maxsize=1024)
def plan(
    statistics: tuple[Statistic, ...],
    *,
    keys: int | None,
    owned: bool,
    max_rows: int | None,
    changes: int,
    budget: Budget,
    epsilon: Fraction,
    ranks: tuple[Rank | Mode, ...] = (),
    whole: bool = False,
    copies: int = 1,
    gaussian: bool = False,
) -> Measurement:
    """The measurement that answers from these statistics and ranks for ε.

    `changes` is how many units differ between neighbours, `copies` in how many rows each of them can be where rows are
    units: as many rows differ as the two make together. If `gaussian`, under a budget in ρ, ε is what all noise would
    cost at `NOMINAL`.
    """
    if not statistics and not ranks:
        raise Unsupported("this question", "all its groups are known and nothing is measured", "add COUNT(*)")
    changed = changes * copies
    facts = Facts(statistics, ranks, keys, owned, max_rows, changed, copies, budget, epsilon, whole, gaussian)
    noise = choose_noise(facts)
    limits = choose_limits(facts, noise)
    return calibrate(facts, noise, limits, split_budget(facts, noise, limits))


def choose_noise(facts: Facts) -> NoiseForm:
    """Laplace noise where there is no δ, or units touch few sums; Gaussian noise elsewhere, and where it is asked for.

    Groups that are not listed need a δ, of which they get a part.
    """
    budget, thresholded = facts.budget, facts.keys is None
    if thresholded and not isinstance(budget, ApproxDP):
        remedy = "declare the values of the key columns, or use an ApproxDP budget"
        raise InvalidArgument("keys", "undeclared", f"declared under a {type(budget).__name__} budget", remedy)
    hidden = budget.delta * THRESHOLD_SHARE if isinstance(budget, ApproxDP) and thresholded else None
    nominal = NOMINAL if facts.gaussian else Fraction(0)
    delta = budget.delta - (hidden or 0) if isinstance(budget, ApproxDP) else nominal
    laplace = not delta or (not facts.gaussian and _touches_few(facts, delta))
    return NoiseForm("l1" if laplace else "l2", delta, hidden)


def choose_limits(facts: Facts, noise: NoiseForm) -> Limits:
    """Declared limits are kept where they are low; others are candidates up to which a norm is found with a share of ε,
    the larger the fewer groups there are."""
    weights = _weights(facts, noise) if facts.owned else None
    ranked = QuantilePlan(facts.ranks, noise.norm, "sum", facts.epsilon, facts.typical_keys) if facts.ranks else None
    unscaled = Measurement(facts.plain, noise.norm, Fraction(1), facts.changes, weights, quantiles=ranked)
    search = facts.epsilon / search_share(facts.typical_keys) if unscaled.searched else None
    searches = replace(unscaled, search_epsilon=search).searches
    summed = any(statistic.weighing == Weighing.ROWS for statistic in facts.statistics)
    clipped = Weighing.ROWS in unscaled.searched and summed
    return Limits(weights, search, searches, clipped and not noise.is_laplace and facts.keys != 1)


def split_budget(facts: Facts, noise: NoiseForm, limits: Limits) -> Shares:
    """What the searches leave is shared by the numbers of measures, of which what is made of two quantiles is two.

    Statistics that only quantiles' keys need count as one. Laplace noise needs no δ, so that ranks have all of it.
    """
    left = facts.epsilon - sum(limits.searches)
    quantiles = sum(map(weight_of, facts.ranks))
    share = Fraction(quantiles, quantiles + len(facts.statistics))
    part = noise.delta * share if facts.statistics and not noise.is_laplace else noise.delta
    unlisted = any(isinstance(rank, Mode) and rank.values is None for rank in facts.ranks)
    if unlisted and not isinstance(facts.budget, ApproxDP):
        remedy = "declare the values of its column, or use an ApproxDP budget"
        bound = f"of declared ones under a {type(facts.budget).__name__} budget"
        raise InvalidArgument("MODE", "of undeclared values", bound, remedy)
    named = part * THRESHOLD_SHARE if unlisted else Fraction(0)
    return Shares(left * (1 - share), noise.delta - part, left * share, part - named, named)


def calibrate(facts: Facts, noise: NoiseForm, limits: Limits, shares: Shares) -> Measurement:
    """The least noise that the shares pay for; sums of declared values have noise by those where it is smaller."""
    drawn = _calibrate_ranks(facts, noise, shares) if facts.ranks else None
    usual = Measurement(
        facts.plain,
        noise.norm,
        _multiplier(facts, noise, limits, shares),
        facts.changes,
        limits.weights,
        limits.search_epsilon,
        noise.threshold_delta,
        drawn,
        facts.max_rows,
        limits.tallied,
        copies=facts.copies,
    )
    if facts.gaussian or not any(statistic.values for statistic in facts.statistics):
        return usual
    each = shares.sums / sum((statistic.share for statistic in facts.statistics), Fraction(0))
    chosen = tuple(s if _gains(usual, i, s, each) else s.plain for i, s in enumerate(facts.statistics))
    given = tuple(each for statistic in chosen if statistic.values)
    if not given:
        return usual
    return replace(usual, statistics=chosen, ratio=_multiplier(facts, noise, limits, shares, given), by_values=each)


def _calibrate_ranks(facts: Facts, noise: NoiseForm, shares: Shares) -> QuantilePlan:
    budget = ApproxDP(shares.ranks, shares.ranks_delta) if noise.delta else PureDP(shares.ranks)
    places = facts.keys if facts.owned else facts.copies
    return QuantilePlan.best(
        facts.ranks, noise.norm, budget, places, facts.changes, facts.copies, delta=shares.mode_delta
    )


def _multiplier(
    facts: Facts, noise: NoiseForm, limits: Limits, shares: Shares, by_values: Sequence[Fraction] = ()
) -> Fraction:
    """Noise over movement of the statistics beside those that have noise by their values, for the ε that is given.

    Without ranks the Gaussian is composed with all that is pure, and gets back what that does not need; with ranks,
    which are composed on their own, it has its share alone.
    """
    if len(by_values) == len(facts.statistics):
        return Fraction(1)
    if noise.is_laplace:
        return 1 / (shares.sums - sum(by_values))
    if not facts.ranks:
        return noise_multiplier(facts.epsilon, noise.delta, (*limits.searches, *by_values), facts.changes)
    return noise_multiplier(shares.sums - sum(by_values), shares.sums_delta, (), facts.changes)


def _gains(usual: Measurement, index: int, statistic: Statistic, epsilon: Fraction) -> bool:
    """Whether noise by the declared values is clearly smaller than the usual, for a share of ε; and each unit that
    counts is whole in the sum, having one row."""
    weights = usual.weights
    # What values have in common may be smaller than any double.
    if not statistic.values or not float(statistic.step):
        return False
    if weights is not None and (weights.rows != ONE_ROW or statistic.bound > WEIGHED):
        return False
    most = WORTH * usual.error(index, 0) / float(statistic.step)
    rate = epsilon / usual.changes
    additions = statistic.additions
    return least_error(rate, additions) < most and noise_by_values(rate, additions).mean_error < most


def _touches_few(facts: Facts, delta: Fraction) -> bool:
    """Whether a unit touches so few sums that Laplace noise is smaller: it grows with their number, Gaussian noise with
    its root. Of the groups that it can be in, half are counted."""
    groups = facts.typical_keys if facts.owned else 1
    measures = len(facts.statistics) + len(facts.ranks)
    touched = max(1, min(groups, facts.max_rows or groups) // 2) * measures
    if touched <= FEW_SUMS:
        return True
    # The mean of Gaussian noise is 0.8 of its deviation.
    mean_error = 0.8 * float(noise_multiplier(facts.epsilon, delta, (), 1) * facts.epsilon)
    return touched <= mean_error**2


def search_share(keys: int) -> int:
    """One part in so many of ε is for the search: the fewer groups, the more each unit above the norm counts."""
    return min(MOST_SHARE + isqrt(max(keys, 1) - 1), LEAST_SHARE)


def _weights(facts: Facts, noise: NoiseForm) -> Weights:
    keys, max_rows = facts.keys, facts.max_rows
    most_rows = max(FEW_ROWS, FEW_CELLS // (keys or TYPICAL_KEYS))
    few = max_rows is not None and (facts.whole or max_rows <= most_rows)
    rows = Caps.fixed(max_rows) if few and max_rows is not None else Caps.up_to(max_rows)
    limits = [limit for limit in (keys, max_rows) if limit is not None]
    groups = min(limits) if limits else None
    if groups is None:
        return Weights(noise.norm, rows, Caps.up_to(None))
    most = groups if noise.is_laplace else isqrt(groups - 1) + 1 if groups else 1
    units = Caps.fixed(max(most, 1)) if facts.whole or groups <= FEW_GROUPS else Caps.up_to(most)
    return Weights(noise.norm, rows, units)
