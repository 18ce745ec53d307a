"""Files that are too large to be copied are read by each statement, with their statistics and dictionaries: what one
row holds must not change how the rows of others are read."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.attacks import statement_faults
from tests.attacks.register import attack

import discreet as dc
from discreet.engines.duckdb.engine import FEW

PEOPLE = FEW + 7_120
FACTS: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(9, "1e-6"), "max_rows": 1}


def written(folder: Path, name: str, column: Any) -> Path:
    path = folder / f"{name}.parquet"
    pyarrow.parquet.write_table(pa.table({"who": np.arange(len(column)), "x": column}), path)
    return path


@attack(11, finds=[statement_faults.statistics_of_files_believed])
def test_a_number_that_is_none_fails_nothing(tmp_path: Path) -> None:
    for name, odd in (("plain", 2.0), ("odd", np.nan)):
        values = np.full(PEOPLE, 2.0)
        values[77] = odd
        path = written(tmp_path, name, values)
        with dc.connect(path, table="t", bounds={"x": (0, 5)}, **FACTS) as session:
            for measure in ("SUM(x)", "AVG(x)", "COUNT_IF(SQRT(x) > 1)"):
                try:
                    ((value,),) = session.sql(f"SELECT {measure} AS v FROM t", epsilon=1).rows
                except dc.AnswerFailed:
                    pytest.fail(f"{measure} fails for one {odd}")
                assert value == value


@attack(34, finds=[statement_faults.statistics_of_files_believed])
def test_one_text_does_not_hide_those_of_others(tmp_path: Path) -> None:
    for name, more in (("plain", []), ("odd", [b"Malmz"])):
        texts = [b"Malm\xf6"] * PEOPLE + more
        ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
        column = pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends.tobytes()), pa.py_buffer(b"".join(texts)))
        with dc.connect(written(tmp_path, name, column), table="t", **FACTS) as session:
            ((count,),) = session.sql("SELECT COUNT(*) AS n FROM t WHERE x = 'Malm?'", epsilon=1).rows
        # The noise of one count is beyond a thousand with a chance below e^-1000.
        assert abs(count - PEOPLE) < 1000


@attack(11, finds=[statement_faults.moments_guarded_by_case_alone])
def test_a_moment_before_the_calendar_fails_nothing(tmp_path: Path) -> None:
    for name, odd in (("plain", 0), ("odd", -9223372022400000001)):
        numbers = np.arange(PEOPLE) % 2
        numbers[77] = 2
        moments = pa.array([0, 10**15, odd], pa.timestamp("us")).take(pa.array(numbers))
        with dc.connect(written(tmp_path, name, moments), table="t", **FACTS) as session:
            try:
                rows = session.sql("SELECT CAST(x AS VARCHAR) AS k, COUNT(*) AS n FROM t GROUP BY 1", epsilon=1).rows
            except dc.AnswerFailed:
                pytest.fail("it fails for one moment")
            assert len(rows) == 2
