"""Which noise a question gets, which limits its units, and how far its answers will be off: from declared facts alone.

The form. ℓ1 weights with Laplace noise cost (statistics × groups of a unit), ℓ2 weights with Gaussian noise its square
root, times what the tail of a Gaussian costs. So a budget with a δ gets Laplace noise where units touch few sums, by
what is declared, and Gaussian noise elsewhere; a pure budget always Laplace.

The limits. A unit with at most a few rows, by declaration, needs no clipping, the more where there are few groups.
Otherwise the norm is found with a share of ε, up to the declared limit. Counts of units have a norm of their own.

>>> counted = Statistic("rows", None)
>>> facts = {"keys": 1, "owned": False, "max_rows": None, "changes": 1}
>>> one = plan((counted,), **facts, budget=ApproxDP(1, "1e-6"), epsilon=Fraction(1))
>>> one.norm, one.scale(0, 0)
('l1', 1.0)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import inf, isqrt

from discreet.accounting.budgets import noise_multiplier
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.expected_error import ExpectedError
from discreet.core.losses import ApproxDP, Budget, PureDP
from discreet.sql.bounding import declared_values as bands
from discreet.sql.bounding.clipping_norms import Caps
from discreet.sql.bounding.declared_values import least_error, noise
from discreet.sql.bounding.sums import RANKED, Statistic, Sums
from discreet.sql.measuring.measurement import TYPICAL_KEYS, Measurement
from discreet.sql.measuring.modes import Mode
from discreet.sql.measuring.quantiles import QuantilePlan, Rank, weight_of
from discreet.sql.plan import Query
from discreet.sql.relations import limits_in, tables_in, units_in
from discreet.sql.statement.layout import Norm, Weights

__all__ = ["NOMINAL", "expected", "plan", "words"]

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
    """The measurement that answers from these statistics and ranks for ε. If `whole`, declared limits are not searched
    below, so that nothing is clipped. `changes` is how many units differ between neighbours, `copies` in how many rows
    each of them can be where rows are units: as many rows differ as the two make together.

    If `gaussian`, under a budget in ρ, all noise is Gaussian, and ε is what it would cost at `NOMINAL`.

    Statistics and quantiles share ε, and δ, by their numbers of measures, of which what is made of two quantiles is
    two; statistics that only quantiles' keys need count as one.
    """
    if not statistics and not ranks:
        raise Unsupported("this question", "all its groups are known and nothing is measured", "add COUNT(*)")
    changes *= copies
    thresholded = keys is None
    if thresholded and not isinstance(budget, ApproxDP):
        remedy = "declare the values of the key columns, or use an ApproxDP budget"
        raise InvalidArgument("keys", "undeclared", f"declared under a {type(budget).__name__} budget", remedy)
    hidden = budget.delta * THRESHOLD_SHARE if isinstance(budget, ApproxDP) and thresholded else None
    delta = budget.delta - (hidden or 0) if isinstance(budget, ApproxDP) else NOMINAL if gaussian else Fraction(0)
    groups = (TYPICAL_KEYS if keys is None else keys) if owned else 1
    touched = max(1, min(groups, max_rows or groups) // 2) * (len(statistics) + len(ranks))
    laplace = not delta or (not gaussian and (touched <= FEW_SUMS or touched <= _few(epsilon, delta)))
    weights = _weights(keys, max_rows, laplace, whole) if owned else None
    norm: Norm = "l1" if laplace else "l2"
    asked = QuantilePlan(ranks, norm, "sum" if laplace else "squares", epsilon, keys, changes) if ranks else None
    plain = tuple(statistic.plain for statistic in statistics)
    fresh = Measurement(plain, norm, Fraction(1), changes, weights, quantiles=asked)
    search = epsilon / _share(TYPICAL_KEYS if keys is None else keys) if fresh.searched else None
    searches = replace(fresh, search_epsilon=search).searches
    left = epsilon - sum(searches)
    quantiles = sum(map(weight_of, ranks))
    share = Fraction(quantiles, quantiles + len(statistics))
    part = delta * share if statistics and not laplace else delta
    unlisted = any(isinstance(rank, Mode) and rank.values is None for rank in ranks)
    if unlisted and not isinstance(budget, ApproxDP):
        remedy = "declare the values of its column, or use an ApproxDP budget"
        bound = f"of declared ones under a {type(budget).__name__} budget"
        raise InvalidArgument("MODE", "of undeclared values", bound, remedy)
    named = part * THRESHOLD_SHARE if unlisted else Fraction(0)
    for_ranks = ApproxDP(left * share, part - named) if delta else PureDP(left * share)
    places = keys if owned else copies
    drawn = QuantilePlan.best(ranks, norm, for_ranks, places, changes, copies, delta=named) if ranks else None
    clipped = 0 in fresh.searched and any(not statistic.weighing for statistic in statistics)
    tallied = clipped and not laplace and keys != 1
    for_sums = left * (1 - share)

    def ratio(given: Sequence[Fraction] = ()) -> Fraction:
        """Noise over movement of the statistics beside those that have noise of their own, for the ε that is given."""
        if len(given) == len(statistics):
            return Fraction(1)
        if laplace:
            return 1 / (for_sums - sum(given))
        if drawn is None:
            return noise_multiplier(epsilon, delta, (*searches, *given), changes)
        return noise_multiplier(for_sums - sum(given), delta - part, (), changes)

    usual = Measurement(plain, norm, ratio(), changes, weights, search, hidden, drawn, max_rows, tallied, copies=copies)
    each = for_sums / sum((statistic.share for statistic in statistics), Fraction(0)) if statistics else Fraction(0)
    chosen = tuple(s if not gaussian and _gains(usual, i, s, each) else s.plain for i, s in enumerate(statistics))
    given = [each for statistic in chosen if statistic.values]
    return replace(usual, statistics=chosen, ratio=ratio(given), by_values=each) if given else usual


def _gains(usual: Measurement, index: int, statistic: Statistic, epsilon: Fraction) -> bool:
    """Whether noise by the declared values is clearly smaller than the usual, for a share of ε; and each unit that
    counts is whole in the sum, having one row."""
    weights = usual.weights
    if not statistic.values or (weights is not None and (weights.rows != ONE_ROW or statistic.bound > WEIGHED)):
        return False
    most = WORTH * usual.error(index, 0) / float(statistic.step)
    rate = epsilon / usual.changes
    return least_error(rate, statistic.additions) < most and noise(rate, statistic.additions).mean_error < most


def _few(epsilon: Fraction, delta: Fraction) -> float:
    """The number of sums that a unit touches up to which Laplace noise is smaller: it grows with the number, Gaussian
    noise with its root."""
    return (0.8 * float(noise_multiplier(epsilon, delta, (), 1) * epsilon)) ** 2


def _share(keys: int) -> int:
    """One part in so many of ε is for the search: the fewer groups, the more each unit above the norm counts."""
    return min(MOST_SHARE + isqrt(max(keys, 1) - 1), LEAST_SHARE)


def _weights(keys: int | None, max_rows: int | None, laplace: bool, whole: bool) -> Weights:
    few = max_rows is not None and (whole or max_rows <= max(FEW_ROWS, FEW_CELLS // (keys or TYPICAL_KEYS)))
    rows = Caps.fixed(max_rows) if few and max_rows is not None else Caps.up_to(max_rows)
    limits = [limit for limit in (keys, max_rows) if limit is not None]
    groups = min(limits) if limits else None
    if groups is None:
        return Weights("l1" if laplace else "l2", rows, Caps.up_to(None))
    most = groups if laplace else isqrt(groups - 1) + 1 if groups else 1
    units = Caps.fixed(max(most, 1)) if whole or groups <= FEW_GROUPS else Caps.up_to(most)
    return Weights("l1" if laplace else "l2", rows, units)


def expected(query: Query, sums: Sums, measurement: Measurement) -> tuple[ExpectedError, ...]:
    """What to expect of each measure that is released."""
    said = []
    ranked = 0
    for index, measure in enumerate(query.aggregate.measures):
        if measure.function in RANKED:
            said.append(_in_ranks(query, measurement, measure.name, ranked))
            ranked += 1
            continue
        needed = [(j, measurement.statistics[j]) for j in sums.places(index)]
        ends = []
        for last in (False, True):
            noises = [measurement.error(j, _cut(measurement, s, last)) for j, s in needed]
            if measure.function == "sum" and len(noises) > 1 and measure.bounds is not None:
                middle = abs(float(measure.bounds.lower + measure.bounds.upper)) / 2
                counted, summed = (noises[0], noises[1]) if len(noises) == 3 else (noises[1], noises[0])
                ends.append(summed + middle * counted)
            else:
                ends.append(noises[-1] if measure.function in ("variance", "stddev") else noises[0])
        weights = measurement.weights
        fixed = weights is None or all(not weights.caps(s.weighing).searched for _, s in needed)
        limited = fixed or query.aggregate.max_rows is not None
        over_count = measure.function in ("avg", "variance", "stddev")
        said.append(ExpectedError(measure.name, ends[0], ends[1] if limited else inf, over_count))
    return tuple(said)


def _in_ranks(query: Query, measurement: Measurement, name: str, index: int) -> ExpectedError:
    assert measurement.quantiles is not None
    off = measurement.quantiles.accuracy(index, Fraction(1, 2), 1)
    rank, meaning = measurement.quantiles.ranks[index], ""
    if isinstance(rank, Mode):
        meaning = "within {} rows of the most frequent" if rank.values is not None else "⊥ unless {} rows share a value"
    elif rank.kind == "trimmed":
        kept = 1 - 2 * rank.q
        off = (0.8 if measurement.norm == "l2" else 1.0) * float(measurement.quantiles.noise(index).summed / 2 / kept)
        meaning = "± {} times the distance of its cuts over the number of rows"
    if measurement.weights is None:
        return ExpectedError(name, off, off, False, not meaning, meaning)
    norms = measurement.weights.rows.norms
    limited = len(norms) == 1 or query.aggregate.max_rows is not None
    most = off * float(norms[-1]) if limited else inf
    return ExpectedError(name, off * float(norms[0]), most, False, not meaning, meaning)


def _cut(measurement: Measurement, statistic: Statistic, last: bool) -> int:
    return measurement.top(statistic.weighing) if last and measurement.weights is not None else 0


def words(query: Query, measurement: Measurement, keys: int | None) -> str:
    """The plan in words."""
    kind = "Gaussian" if measurement.norm == "l2" else "Laplace"
    names = ", ".join(dict.fromkeys(_KINDS[s.kind] for s in measurement.statistics if not s.values))
    said = [f"{kind} noise on {names}"] if names else []
    summed = (tuple(value + s.middle for value in s.values) for s in measurement.statistics if s.values)
    listed = [f"noise on sums by what one record can add: {bands.said(values)}" for values in dict.fromkeys(summed)]
    said += listed
    if listed and measurement.weights is not None:
        said.append("units with more than one row add nothing to these")
    if measurement.quantiles is not None:
        said += _drawn(measurement.quantiles)
    if measurement.weights is None:
        said.append("each row adds to one group")
        if measurement.copies > 1:
            names = ", ".join(sorted(tables_in(query.aggregate.input)))
            said.append(
                f"a row may be in all {measurement.copies} private tables of {names}, so noise is for as many rows; "
                "have tables declared disjoint if none is in two"
            )
    elif measurement.searched:
        share = _share(TYPICAL_KEYS if keys is None else keys)
        said.append(f"units with many rows weigh less, down to a limit found with a {_ORDINALS[share]} of ε")
        if measurement.tallied:
            said.append("what they lose by that is put back in proportion")
    else:
        said.append("no unit is clipped that keeps to what is declared")
    units = sorted(units_in(query.aggregate.input))
    if units:
        said.append(f"rows whose {' or '.join(units)} is NULL are nobody's and left out")
    for table, most in sorted(limits_in(query.aggregate.input)):
        said.append(f"joins let a row meet up to {most:,} rows of {table} and leave out the others")
    if not query.aggregate.keys:
        said.append("one group")
    elif keys is None:
        said.append("groups that few units share are withheld; list the values of the keys to see all")
    else:
        said.append(f"all {keys:,} listed groups are shown")
    return "; ".join(said)


def _drawn(quantiles: QuantilePlan) -> Iterator[str]:
    """How ranks and modes are found."""
    ranks = [rank for rank in quantiles.ranks if isinstance(rank, Rank)]
    modes = [rank for rank in quantiles.ranks if isinstance(rank, Mode)]
    if ranks:
        yield "quantiles drawn by rank, with ends for their intervals"
    if any(rank.kind == "trimmed" for rank in ranks):
        kind = "Gaussian" if quantiles.composition == "squares" else "Laplace"
        yield f"rows beyond the cuts of a trimmed mean count as the cuts, with {kind} noise on their sum and number"
    if any(mode.values is not None for mode in modes):
        yield "modes drawn from the listed values, the likelier the more rows they have"
    if any(mode.values is None for mode in modes):
        yield "modes named where enough rows share a value, and else ⊥"


_ORDINALS = {3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth", 10: "tenth"}
_KINDS = {
    "rows": "the number of rows",
    "present": "the number of values",
    "units": "the number of units",
    "raw": "sums",
    "centred": "sums",
    "squares": "sums of squares",
}
