"""OpenDP's Polars pipeline: a number of groups for each user and of rows in each group, sampled; Gaussian noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import opendp.prelude as dp
import polars as pl
from protocol import BOUNDS, KEYS, SMALL_KEYS, Rows, rho_for, serve

dp.enable_features("contrib")

CENTS = 10_000
"""Values are summed as whole hundredths: sums of floats are charged for their rounding, many times the noise."""


def context(table: str, keys: Sequence[int], rho: float) -> dp.Context:
    """Users are the unit; the keys are public."""
    return dp.Context.compositor(
        data=pl.scan_parquet(table),
        privacy_unit=dp.unit_of(contributions=1, identifier="u"),
        privacy_loss=dp.loss_of(rho=rho),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["k"], max_groups=len(keys), max_length=10**9)],
    )


def public(keys: Sequence[int]) -> pl.LazyFrame:
    """The keys as a table to join with."""
    return pl.LazyFrame({"k": pl.Series(keys, dtype=pl.Int32)})


def prepare(table: str, limits: list[int]) -> Callable[[], Rows]:
    """Counts and sums in one query; the mean is their ratio, which costs nothing."""
    groups, rows = limits
    whole = (pl.col("v").fill_nan(50.0).fill_null(50.0) * (CENTS / BOUNDS[1]) + 0.5).cast(pl.Int64).fill_null(0)

    def ask() -> Rows:
        found = (
            context(table, KEYS, rho_for())
            .query()
            .truncate_per_group(rows, by=["k"])
            .truncate_per_group(groups * rows)
            .group_by("k")
            .agg(dp.len(signed=True), whole.dp.sum((0, CENTS)))
            .with_keys(public(KEYS))
            .release()
            .collect()
        )
        scaled = [(k, n, s * BOUNDS[1] / CENTS) for k, n, s in found.rows()]
        return [(k, n, s, s / max(n, 1)) for k, n, s in scaled]

    return ask


def latency(table: str) -> Callable[[int], object]:
    """A count by ten keys, at most ten groups for each user; a context that is split among questions is slower."""
    rho = rho_for()

    def ask(i: int) -> object:
        kept = context(table, SMALL_KEYS, rho).query().filter(pl.col("v") < 50 + i / 10)
        kept = kept.truncate_per_group(1, by=["k"]).truncate_per_group(10)
        return kept.group_by("k").agg(dp.len(signed=True)).with_keys(public(SMALL_KEYS)).release().collect()

    return ask


if __name__ == "__main__":
    serve(prepare, latency)
