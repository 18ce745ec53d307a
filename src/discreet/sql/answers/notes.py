"""What an answer says about itself: which limits its rows were given, what its intervals leave out, who is in no group.

All of it follows from the plan and from released values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.core.no_answer import Unstable
from discreet.sql.analysis.lineage import Origins
from discreet.sql.answers.confidence import FAR, Spans
from discreet.sql.bounding.clipping_norms import Weighing
from discreet.sql.measuring.modes import Chosen
from discreet.sql.plan import Query, Ref
from discreet.sql.relations import names_in

__all__ = ["by_luck", "notes"]

PLACES = {Weighing.ROWS: "", Weighing.GROUPS: " in counts of units", Weighing.ROWS_IN_MEANS: " in averages"}
"""Where a norm applies."""
NEARLY = 0.95
"""The part of the declared bounds that an interval says nothing with."""
LEVEL = 0.95
"""The level of those intervals."""
LOOKED_AT = 100
"""The rows whose intervals are looked at: the first."""


def _raised(spans: Spans) -> Iterator[str]:
    """What was put back, and into which columns."""
    raised = [
        measure.name
        for index, measure in enumerate(spans.measures)
        if any(spans.noisy.raised(statistic) > 1 for statistic in spans.needs(index))
    ]
    tally = spans.noisy.tally
    if raised and tally is not None:
        yield (
            f"Clipping took about {tally.lost / (tally.lost + tally.kept):.0%} of all rows or more: {', '.join(raised)}"
            f" are raised in proportion, times {tally.raised:.3g}, as if heavy units were spread over the groups as"
            " others are."
        )


def notes(query: Query, spans: Spans, measured: dict[str, int], places: Sequence[int], private: bool) -> Iterator[str]:
    """The notes; `measured` are the outputs that are measures, `places` the released rows that are shown."""
    uncovered = {name: index for name, index in measured.items() if not spans.covers_clipping(index)}
    if uncovered and spans.noisy.norms is not None:
        kind = "root of the sum of squares" if spans.measurement.norm == "l2" else "sum"
        used = {s.weighing for index in uncovered.values() for s in spans.needs(index)} or {Weighing.ROWS}
        limits = " and ".join(f"{spans.noisy.norms[each]:g}{PLACES[each]}" for each in sorted(used))
        yield (
            f"Each unit's rows weigh at most {limits} ({kind} over groups): {', '.join(uncovered)} may be off by what"
            " heavier units lost, which the intervals do not cover unless max_rows is declared."
        )
    yield from _raised(spans)
    unknown = [name for name, index in measured.items() if spans.unknown(index)]
    if unknown:
        yield f"Clipping may have taken most of {', '.join(unknown)}: intervals reach to {FAR:g} times what is left."
    yield from _noise_alone(spans, measured, places)
    yield from _chosen(query, spans, places)
    yield from _computed(query, measured)
    moved = [name for name, index in measured.items() if any(s.values for s in spans.needs(index))]
    if moved:
        yield f"Values other than those declared count as the nearest of them in {', '.join(moved)}."
    if by_luck(query):
        yield (
            f"Rows were chosen from {len(spans.noisy.keys):,} by noisy values, which favours noise: intervals are wide"
            " enough for the noise of all of them at once."
        )
    if spans.noisy.hidden_below is not None:
        least = f"{spans.noisy.hidden_below:,.0f}"
        yield (
            f"Groups are withheld whose units weigh less than about {least} together (one in many groups weighs less in"
            " each); declare values to see all."
        )
    else:
        yield from _elsewhere(query)
    if not private:
        yield "NOT PRIVATE: the noise came from a test seed."


def _chosen(query: Query, spans: Spans, places: Sequence[int]) -> Iterator[str]:
    """Which columns are choices, and where there was none to make."""
    ranked = [measure.name for measure in query.aggregate.measures if measure.aggregation.is_ranked]
    drawn = dict(zip(ranked, spans.noisy.drawn, strict=True))
    for name, measure in query.chosen.items():
        without = sum(isinstance(each, Chosen) and not each.stable for each in map(drawn[measure].__getitem__, places))
        if without:
            yield (
                f"{Unstable.symbol} in {without:,} of {len(places):,} rows of {name}: not stable enough to answer:"
                " too few rows share a value; the question cost the same."
            )
    if query.chosen:
        names = ", ".join(query.chosen)
        yield f"Chosen by noisy counts, so perhaps not the most frequent, and without intervals: {names}."


def by_luck(query: Query) -> bool:
    """Whether noise has a say in which rows are shown."""
    measures = {measure.name for measure in query.aggregate.measures}
    told = [] if query.having is None else [query.having]
    told += [order.expression for order in query.order] if query.limit is not None else []
    return any(names_in(expression) & measures for expression in told)


def _computed(query: Query, measured: dict[str, int]) -> Iterator[str]:
    """Which columns have no interval."""
    measures = {measure.name for measure in query.aggregate.measures}
    plain = measured.keys() | query.chosen.keys()
    outputs = (output for output in query.outputs if output.name not in plain)
    without = [output.name for output in outputs if names_in(output.expression) & measures]
    if without:
        yield f"Computed from other columns, and so without intervals: {', '.join(without)}."


def _noise_alone(spans: Spans, measured: dict[str, int], places: Sequence[int]) -> Iterator[str]:
    """Which averages and quantiles could be anything."""
    found, first = {}, places[:LOOKED_AT]
    for name, index in measured.items():
        measure = spans.measures[index]
        if measure.bounds is None or not measure.aggregation.is_bounded:
            continue
        least = NEARLY * float(measure.bounds.width)
        widths = (high - low for low, high in (spans.interval(index, place, LEVEL) for place in first))
        found[name] = sum(width >= least > 0 for width in widths)
    rows = f"{len(first):,} rows" if len(first) == len(places) else f"the first {len(first):,} rows"
    told = [f"{name} in {count:,} of {rows}" for name, count in found.items() if count]
    if told:
        yield (
            "Too noisy to say anything, since the interval reaches from one declared bound to the other: "
            f"{', '.join(told)}."
        )


def _elsewhere(query: Query) -> Iterator[str]:
    """Which columns may hold values that the steward did not list."""
    origins = Origins(query.aggregate.input, lambda relation, expression: None)
    told = []
    for key in query.aggregate.keys:
        origin = origins.lowered(key.expression)
        if not isinstance(origin, Ref) or key.values is None:
            continue
        source = origins.sources[origin.name]
        # Where conditions leave some of the values only, they say themselves which rows are meant.
        if source.table is None and source.values is not None and set(source.values) == set(key.values.values):
            told.append(key.name)
    if told:
        yield f"Rows with other values of {', '.join(told)} than those declared are in no group."
