"""PipelineDP on its local backend, row by row in Python: groups and rows of each user sampled; Gaussian noise."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pipeline_dp
from protocol import BOUNDS, DELTA, EPSILON, KEYS, Rows, serve


def prepare(table: str, limits: list[int]) -> Callable[[], Rows]:
    """Count, sum and mean share their noise; the rows are read before the clock starts."""
    groups, rows = limits
    with duckdb.connect() as connection:
        data = connection.execute(f"SELECT u, k, v FROM read_parquet('{table}')").fetchall()
    metrics = pipeline_dp.Metrics
    parameters = pipeline_dp.AggregateParams(
        noise_kind=pipeline_dp.NoiseKind.GAUSSIAN,
        metrics=[metrics.COUNT, metrics.SUM, metrics.MEAN],
        max_partitions_contributed=groups,
        max_contributions_per_partition=rows,
        min_value=BOUNDS[0],
        max_value=BOUNDS[1],
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )

    def ask() -> Rows:
        accountant = pipeline_dp.PLDBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        result = engine.aggregate(data, parameters, extractors, KEYS)
        accountant.compute_budgets()
        return [(k, found.count, found.sum, found.mean) for k, found in result]

    return ask


if __name__ == "__main__":
    serve(prepare)
