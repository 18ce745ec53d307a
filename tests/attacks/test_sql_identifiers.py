"""Names in a question that were chosen to be taken for names in our statements.

On DuckDB; what a steward's names do on other engines is in tests/engines/test_names.py, and that an analyst's change
nothing in any statement in tests/sql/test_naming.py.
"""

from typing import Any

import numpy as np
import pytest
from tests.attacks import statement_faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import both, strain
from tests.soak import whole_or_share
from tests.sql.hostile import ODD, sql

import discreet as dc

CODES = {"code": np.array(["a"] * 500), "weight": np.arange(500)}
FACTS: dict[str, Any] = {"public": {"p": CODES}, "max_matches": {"p": 1}, "bounds": {"x": (0, 5)}}


def people(number: int) -> dict[str, Any]:
    return {"who": np.arange(number), "c": np.array(["a"] * number), "x": np.ones(number)}


@pytest.mark.parametrize(
    "name", ["discreet place", "Discreet Place", "discreet unit", "joined_rows", "crowded_keys", "group_key_0", "unit"]
)
@attack(32, finds=[statement_faults.names_as_analysts_give_them], name="discreet place")
def test_a_name_of_ours_does_not_lift_a_limit(name: str) -> None:
    """One row more, each a unit of its own, which meets one of 500."""
    text = (
        f"SELECT COUNT(*) AS n, SUM(x) AS s FROM t JOIN (SELECT code, 1 AS {sql(name)}, weight FROM p) AS o"
        f" ON o.code = t.c WHERE o.{sql(name)} = 1"
    )
    before, after = both(text, people(3), people(4), dc.Row(), **FACTS)
    assert strain(before, after) <= 1


@attack(32, finds=[statement_faults.names_as_analysts_give_them])
def test_names_change_nothing_that_is_run() -> None:
    """Whatever the name, the statement is that of any other, so it cannot fail for one person only."""
    statements = set()
    # Some of the names in each run, so that a share is enough; that it is all of them, and many more, for the text of
    # a statement is in tests/sql/test_naming.py.
    for name in ("plain", *ODD[:: whole_or_share(1, 4)]):
        squares = f"SELECT who, CLAMP(x * x, 0, 9) AS {sql(name)} FROM t"
        text = f"SELECT SUM({sql(name)}) AS n FROM ({squares}) WHERE {sql(name)} > 0"
        before, _ = both(text, people(3), people(4), **FACTS)
        statements.add(before.statement)
    assert len(statements) == 1
