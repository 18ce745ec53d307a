"""Tools that look at a session while others ask: what they change, others would get.

A line of the list of known privacy bugs that is tested here: an audit or a debugging aid that changes the behaviour of
a live session. That nothing of ours replaces what it did not make is read off the source in tests/test_house.py.
"""

from fractions import Fraction
from threading import Thread, current_thread
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.attacks import audit_faults
from tests.attacks.register import attack

import discreet as dc
from discreet.adversary.session_audit.audit import audit_session
from discreet.session.session import Session
from discreet.sql.measuring.measurement import Measurement

ROWS = {"who": np.repeat(np.arange(40), 3), "k": np.array([*"abc"] * 40)}
COUNT = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"


def opened() -> Session:
    return dc.connect(ROWS, table="t", unit=dc.User("who"), budget=dc.PureDP(5), values={"k": [*"abc"]})


@attack(43, finds=[audit_faults.searches_overheard_on_the_class])
def test_a_question_beside_an_audit_gets_what_it_gets_without_one() -> None:
    """The question is asked in the middle of the audit's own look at a search, in another thread."""
    outcomes: list[Any] = []
    original = Measurement.clipping_search
    auditing = current_thread()

    def ask(session: Session) -> None:
        try:
            # Each is another question: a stored answer would need no search.
            outcomes.append(session.sql(COUNT, epsilon=Fraction(1, 20 + len(outcomes))))
        except BaseException as error:
            outcomes.append(error)

    with opened() as live, opened() as audited:

        def search(self: Measurement, *given: Any) -> Any:
            if current_thread() is auditing:
                asking = Thread(target=ask, args=(live,))
                asking.start()
                asking.join(300)
            return original(self, *given)

        with patch.object(Measurement, "clipping_search", search):
            audit_session(audited, [COUNT], runs=0, profiles=("most",))
    assert len(outcomes) == 4, "two neighbours are answered, then looked at"
    assert {type(outcome).__name__ for outcome in outcomes} == {"Answer"}
    assert all([row[0] for row in outcome.rows] == [*"abc"] for outcome in outcomes)
