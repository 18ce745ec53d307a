"""A plan in words: which noise is added to what, which limits units have, which groups are shown."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.sql.aggregates import RankKind
from discreet.sql.bounding import declared_values as bands
from discreet.sql.measuring.measurement import TYPICAL_KEYS, Measurement
from discreet.sql.measuring.modes import Mode
from discreet.sql.measuring.planner import search_share
from discreet.sql.measuring.quantiles import QuantilePlan, Rank
from discreet.sql.plan import Query
from discreet.sql.relations import limits_in, tables_in, units_in

__all__ = ["plan_in_words"]


def plan_in_words(query: Query, measurement: Measurement, keys: int | None) -> str:
    """The plan in words."""
    kind = "Gaussian" if measurement.norm == "l2" else "Laplace"
    names = ", ".join(dict.fromkeys(s.kind.words for s in measurement.statistics if not s.values))
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
        share = search_share(TYPICAL_KEYS if keys is None else keys)
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
    if any(rank.kind is RankKind.TRIMMED for rank in ranks):
        kind = "Gaussian" if quantiles.composition == "squares" else "Laplace"
        yield f"rows beyond the cuts of a trimmed mean count as the cuts, with {kind} noise on their sum and number"
    if any(mode.values is not None for mode in modes):
        yield "modes drawn from the listed values, the likelier the more rows they have"
    if any(mode.values is None for mode in modes):
        yield "modes named where enough rows share a value, and else ⊥"


_ORDINALS = {3: "third", 4: "fourth", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth", 10: "tenth"}
