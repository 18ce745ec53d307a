"""A kind of question that is defined outside the package goes through the whole spine."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.noise import Entropy
from discreet.session.session import Session

CONTRIBUTING = Path(__file__).parent.parent / "CONTRIBUTING.md"
ROWS = {"who": np.arange(500)}


@pytest.fixture
def example() -> Iterator[Any]:
    """The module that CONTRIBUTING.md shows."""
    shown = re.findall(r"^```python\n(.*?)^```", CONTRIBUTING.read_text(), re.M | re.S)
    [source] = [text for text in shown if "class RowCount" in text]
    module = ModuleType("example_row_count")
    sys.modules[module.__name__] = module
    exec(source, module.__dict__)
    yield module
    del sys.modules[module.__name__]


def connected(folder: Path, **more: Any) -> Session:
    facts: dict[str, Any] = {"unit": dc.Row(), "budget": dc.ApproxDP(2, "1e-6"), "table": "visits"} | more
    return dc.connect(ROWS, ledger=folder / "books", dataset="visits", **facts)


def test_a_kind_from_elsewhere_is_priced_charged_stored_certified_and_replayed(example: Any, tmp_path: Path) -> None:
    question = example.RowCount("visits", 1)
    with connected(tmp_path) as session:
        quote = session.price(question)
        assert (quote.loss.epsilon, quote.fits, quote.stored, session.spent.epsilon) == (1, True, False, 0)
        assert "COUNT(*)" in quote.statement
        answer = session.ask(question)
        assert abs(answer.rows[0][0] - 500) < 60
        assert session.spent.epsilon == 1
        assert dc.verify(answer.certificate, answer=answer).loss == quote.loss
        assert session.price(question).stored
        again = session.ask(question)
        assert (again.rows, again.certificate) == (answer.rows, answer.certificate)
        assert session.spent.epsilon == 1
        assert session.ask(example.RowCount("visits", "0.5")).loss.epsilon == dc.PureDP("0.5").epsilon
        with pytest.raises(BudgetExceeded):
            session.ask(example.RowCount("visits", "0.75"))
    with connected(tmp_path) as later:
        assert later.ask(question).rows == answer.rows
        assert later._ledger.confirm(answer.certificate, keys=[answer.certificate["key"]]) == ()


def test_progress_and_test_randomness_reach_every_kind(example: Any) -> None:
    steps: list[float] = []
    with dc.connect(ROWS, unit=dc.Row(), budget=dc.PureDP(9), table="visits") as session:
        drawn = [
            session.ask(example.RowCount("visits", 1), progress=steps.append, test_entropy=Entropy.for_tests(7))
            for _ in range(2)
        ]
        assert drawn[0].rows == drawn[1].rows
        assert len(steps) >= 20
        assert not drawn[0].certificate


def test_what_is_no_question_or_makes_no_sense_here_is_refused(example: Any, tmp_path: Path) -> None:
    with connected(tmp_path, unit=dc.User("who")) as session:
        with pytest.raises(InvalidArgument, match="Row"):
            session.ask(example.RowCount("visits", 1))
        with pytest.raises(InvalidArgument, match="a Question"):
            session.ask("SELECT COUNT(*) AS n FROM visits")  # type: ignore[type-var]
        with pytest.raises(InvalidArgument, match="part of the question"):
            session.price(dc.SQL("SELECT COUNT(*) AS n FROM visits", 1), epsilon=1)
        with pytest.raises(InvalidArgument, match="exactly one"):
            session.ask(dc.SQL("SELECT COUNT(*) AS n FROM visits"))
        assert session.spent.epsilon == 0


def test_an_engine_that_fails_is_charged_and_says_nothing(example: Any, tmp_path: Path) -> None:
    class Failing(example.CountPlan):  # type: ignore[misc,name-defined]
        def run(self, *given: Any) -> bytes:
            raise RuntimeError("row 17 is odd")

    example.CountPlan = Failing
    with connected(tmp_path) as session:
        for _ in range(2):
            with pytest.raises(dc.AnswerFailed) as caught:
                session.ask(example.RowCount("visits", 1))
            assert "17" not in str(caught.value)
        assert session.spent.epsilon == 1
        assert session.price(example.RowCount("visits", 1)).failed
