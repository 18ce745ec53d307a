"""Statements that no engine takes, and deeds of others between the charge and the run: alike on every engine."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

import discreet as dc
from discreet.session import sql_question as asked
from discreet.session.session import Session

BUDGET = dc.ApproxDP(100, "1e-6")
BROKEN = (
    "SELECT nothing FROM nowhere",
    "SELECT COUNT(* FROM t",
    "SELECT NO_SUCH_FUNCTION(1)",
    "SELECT 1 + DATE '2020-01-01' + TRUE",
)


def run_after(engine: Any, deed: Callable[[], None]) -> Any:
    """The deed is done after the charge and before the statement."""
    honest = engine.run

    def late(statement: str) -> Any:
        deed()
        return honest(statement)

    return patch.object(engine, "run", late)


def check_broken_statements(session: Session) -> None:
    """Nothing is charged for a statement that cannot run, and what can run is answered."""
    text = f"SELECT COUNT(*) AS n FROM {session._catalog.tables[0].name}"
    for broken in BROKEN:
        with patch.object(asked, "statement", lambda *_, broken=broken: broken):
            for ask in (session.price, session.sql):
                with pytest.raises(dc.Unsupported, match="does not take the statement"):
                    ask(text, epsilon=1)
    assert session.spent == dc.ApproxDP(0, 0)
    assert session.sql(text, epsilon=1).rows
