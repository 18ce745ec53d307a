"""A question that lives long goes through the whole spine: charged once, released in steps, each one certified."""

import json
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.charging.certificate import SigningKey
from discreet.charging.question import Bound, Context, LongPlan, Question, Step, checked_epsilon
from discreet.core.events import Event
from discreet.core.losses import PureDP
from discreet.mechanisms import Laplace
from discreet.noise import Entropy
from discreet.session.session import Session

ROWS = {"day": np.repeat([1, 2, 3], [500, 200, 900])}
TRUE = [500, 700, 1600]


@dataclass(frozen=True)
class Table:
    """A running total and the day that it is of."""

    rows: tuple[tuple[Any, ...], ...]
    loss: Any
    certificate: dict[str, Any] = field(repr=False)
    names = ("day", "n")


@dataclass(frozen=True)
class RunningCount(Question[Table]):
    """Rows up to each day. A row is of one day, so it moves one of the noisy counts, by one."""

    days: int
    give: Any
    failing: int = 0
    """The day at which its run fails."""

    def bind(self, context: Context) -> Bound[Table]:
        return BoundCount(self.days, checked_epsilon(self.give), self.failing, context)


@dataclass(frozen=True)
class BoundCount(Bound[Table]):
    days: int
    given: Fraction
    failing: int
    context: Context = field(repr=False)

    @property
    def identity(self) -> str:
        where = self.context.engine.definition("visits")
        return json.dumps({"kind": "test.running", "table": where, "days": self.days, "epsilon": str(self.given)})

    def plan(self) -> LongPlan[Table]:
        return CountPlan(self, Laplace.for_epsilon(self.given, dimension=self.days))


@dataclass(frozen=True)
class CountPlan(LongPlan[Table]):
    bound: BoundCount
    mechanism: Laplace

    text = property(lambda self: f"rows up to each of {self.bound.days} days")  # type: ignore[assignment]
    words = property(lambda self: "Laplace noise on the rows of each day")  # type: ignore[assignment]
    epsilon = property(lambda self: self.bound.given)  # type: ignore[assignment]
    steps = property(lambda self: self.bound.days)  # type: ignore[assignment]

    @property
    def events(self) -> tuple[Event, ...]:
        return self.mechanism.events

    @property
    def loss(self) -> PureDP:
        return self.mechanism.loss

    def run(self, entropy: Entropy, progress: Any, /) -> bytes:
        return b"0"

    def read(self, payload: bytes) -> Table:
        return Table((), self.loss, {})

    def run_step(self, number: int, before: bytes, entropy: Entropy, progress: Any, /) -> bytes:
        if number == self.bound.failing:
            raise RuntimeError("row 17 is odd")
        table = self.bound.context.engine.dialect.table("visits")
        [(count,)] = self.bound.context.engine.run(f'SELECT COUNT(*) FROM {table} WHERE "day" = {number}')
        return json.dumps(json.loads(before) + int(self.mechanism.release(count, entropy=entropy).values)).encode()

    def read_step(self, number: int, payload: bytes) -> Table:
        return Table(((number, json.loads(payload)),), self.loss, {})


def connected(folder: Path, **more: Any) -> Session:
    facts: dict[str, Any] = {"unit": dc.Row(), "budget": dc.PureDP(1), "table": "visits"} | more
    return dc.connect(ROWS, ledger=folder / "books", dataset="visits", **facts)


def test_it_is_charged_once_and_released_in_steps(tmp_path: Path) -> None:
    question = RunningCount(3, 1)
    with connected(tmp_path) as session:
        assert session.price(question).pays == PureDP(1)
        assert session.ask(question).rows == ()
        answers = []
        for number in (1, 2, 3):
            quote = session.price(Step(question, number))
            assert (quote.pays, quote.loss, quote.fits, quote.stored) == (PureDP(0), PureDP(1), True, False)
            assert "all steps together" in str(quote)
            answers.append(session.ask(Step(question, number)))
            assert session.price(Step(question, number)).stored
        assert session.spent == PureDP(1)
        assert all(abs(answer.rows[0][1] - true) < 60 for answer, true in zip(answers, TRUE, strict=True))
    with connected(tmp_path) as later:
        assert [later.ask(Step(question, number)).rows for number in (1, 2, 3)] == [answer.rows for answer in answers]
        assert later.spent == PureDP(1)
        assert later._ledger.check().sound


def test_the_certificate_of_a_step_names_what_was_paid_for_all(tmp_path: Path) -> None:
    question = RunningCount(3, 1)
    with connected(tmp_path) as session:
        whole = session.ask(question).certificate
        answer = session.ask(Step(question, 1))
        record = answer.certificate
        said = dc.verify(record, record["key"], answer=answer)
        assert (record["format"], said.loss, len(said.events)) == (3, PureDP(1), 1)
        assert said.parent == {"entry": whole["ledger"]["entry"], "hash": whole["ledger"]["hash"], "step": 1}
        assert "this is step 1" in str(said)
        assert session._ledger.confirm(record, keys=[record["key"]]) == ()
        stolen = SigningKey.create()
        body = {name: value for name, value in record.items() if name not in ("key", "signature")}
        second = session.ask(Step(question, 2)).certificate
        for forged in (
            body | {"parent": body["parent"] | {"step": 2}},
            body | {"parent": body["parent"] | {"entry": 1}},
            body | {"parent": second["parent"]},
            body | {"events": [{"kind": "nothing"}]},
            body | {"canonical": second["canonical"]},
        ):
            with pytest.raises(dc.InvalidArgument):
                session._ledger.confirm(stolen.sign(forged), keys=[stolen.public])
        for wrong in (None, {}, {"entry": "1", "hash": "a", "step": 1}, {"entry": True, "hash": "a", "step": 1}, [1]):
            with pytest.raises(dc.InvalidArgument):
                dc.verify(stolen.sign(body | {"parent": wrong}))
        with pytest.raises(dc.InvalidArgument):  # a step that hides of what it is one
            session._ledger.confirm(
                stolen.sign({name: body[name] for name in body if name != "parent"} | {"format": 2}),
                keys=[stolen.public],
            )


def test_steps_are_refused_out_of_turn_and_before_the_question(tmp_path: Path) -> None:
    question = RunningCount(3, 1)
    with connected(tmp_path) as session:
        with pytest.raises(dc.InvalidArgument, match="ask the question itself first"):
            session.ask(Step(question, 1))
        session.ask(question)
        for number, said in ((2, "in order"), (4, "from 1 to 3"), (0, "from 1 to 3"), (True, "from 1 to 3")):
            with pytest.raises(dc.InvalidArgument, match=said):
                session.ask(Step(question, number))
        with pytest.raises(dc.InvalidArgument, match="left out for steps"):
            session.ask(Step(question, 1), test_entropy=Entropy.for_tests(1))
    with connected(tmp_path) as session:
        session.ask(Step(question, 1))
    plain = dc.SQL("SELECT COUNT(*) AS n FROM visits", "0.1")
    with dc.connect(ROWS, unit=dc.Row(), budget=dc.PureDP(1), table="visits") as session:
        session.ask(plain)
        with pytest.raises(dc.InvalidArgument, match="released in steps"):
            session.ask(Step(plain, 1))


def test_a_step_that_fails_says_nothing_and_is_the_last(tmp_path: Path) -> None:
    question = RunningCount(3, 1, failing=2)
    with connected(tmp_path) as session:
        session.ask(question)
        session.ask(Step(question, 1))
        for _ in range(2):
            with pytest.raises(dc.AnswerFailed) as caught:
                session.ask(Step(question, 2))
            assert "17" not in str(caught.value)
        with pytest.raises(dc.StreamEnded, match="step 2"):
            session.ask(Step(question, 3))
        assert session.spent == PureDP(1)
        assert session.price(Step(question, 2)).failed


def test_others_read_released_steps_and_cannot_take_further_ones(tmp_path: Path) -> None:
    question = RunningCount(3, 1)
    with connected(tmp_path) as mine:
        mine.ask(question)
        first = mine.ask(Step(question, 1))
    with connected(tmp_path, study="flu", new=True) as other:
        assert other.ask(Step(question, 1)).rows == first.rows
        with pytest.raises(dc.InvalidArgument, match="as this account"):
            other.ask(Step(question, 2))
