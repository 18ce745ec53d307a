"""One step of a question that lives long: covered by what was charged when the question was asked, and stored for good.

A step is found under the entry that paid and its number, and needs what the step before stored. It is planned as the
question was when it was charged, whatever a later planner would choose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic

from discreet.charging.purchase import FAILED, Counter, stored_release
from discreet.charging.question import Bound, LongPlan, Plan, Result
from discreet.core.errors import AnswerFailed, InvalidArgument
from discreet.core.events import Event
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.ledger import StreamEnded
from discreet.ledger.records import Charge, Step
from discreet.noise.entropy import Entropy

__all__ = ["BoundStep", "StepPlan"]


@dataclass(frozen=True)
class BoundStep(Bound[Result]):
    """A step of a question that this account may see."""

    counter: Counter
    parent: Charge
    life: LongPlan[Result]
    """The question as it was charged."""
    number: int

    @classmethod
    def of(cls, counter: Counter, question: Bound[Result], number: int) -> BoundStep[Result]:
        """A step of a question that was asked; refused if it has none of that number."""
        parent = counter.stored(question.identity)
        if parent is None:
            raise InvalidArgument("step", number, "of a question that was asked", "ask the question itself first")
        payload = stored_release(parent).payload
        plan = question.recalled(payload, parent.events)
        if not isinstance(plan, LongPlan):
            raise InvalidArgument("question", plan.text, "one that is released in steps", "ask it as it is")
        if type(number) is not int or not 1 <= number <= plan.steps:
            raise InvalidArgument("number", number, f"from 1 to {plan.steps:,}", "ask for one of its steps")
        return cls(counter, parent, plan, number)

    @property
    def step(self) -> Step:
        """The step as the books know it."""
        return Step(self.parent.sequence, self.number)

    @property
    def identity(self) -> str:
        """Which entry paid, and which of its steps it is."""
        return f"step {self.number} of entry {self.parent.sequence}"

    @property
    def key(self) -> Step:
        """The step as the books know it."""
        return self.step

    def plan(self) -> StepPlan[Result]:
        """With what the step before stored."""
        if self.number == 1:
            return StepPlan(self, self.parent.payload)
        known = self.counter.stored(Step(self.parent.sequence, self.number - 1))
        if known is None:
            bound = "the one after the last that was released"
            raise InvalidArgument("number", self.number, bound, "ask for the steps in order")
        if known.payload == FAILED:
            raise StreamEnded(self.number - 1)
        return StepPlan(self, known.payload)

    def recalled(self, payload: bytes, events: tuple[Event, ...]) -> StepPlan[Result]:
        """To be read only."""
        return StepPlan(self, None)


@dataclass(frozen=True)
class StepPlan(Plan[Result], Generic[Result]):
    """How a step is run, and how its outcome is read."""

    bound: BoundStep[Result]
    before: bytes | None
    """What the step before stored; None where this one is only read."""

    @property
    def text(self) -> str:
        """Which step of which question."""
        return f"step {self.bound.number} of {self.bound.life.text}"

    @property
    def words(self) -> str:
        """The plan in words."""
        return self.bound.life.words

    @property
    def epsilon(self) -> Fraction:
        """What was given for all steps."""
        return self.bound.life.epsilon

    @property
    def events(self) -> tuple[Event, ...]:
        """What was charged for all steps."""
        return self.bound.parent.events

    @property
    def loss(self) -> PureDP | ApproxDP | ZCDP:
        """What all steps cost together."""
        return self.bound.life.loss

    @property
    def statement(self) -> str:
        """What the engine runs."""
        return self.bound.life.statement

    def check(self) -> None:
        """Have the engine prepare what it may be given to run."""
        self.bound.life.check()

    def run(self, entropy: Entropy, progress: Callable[[float], None], /) -> bytes:
        """The release of the step."""
        if self.before is None:
            raise AnswerFailed()
        return self.bound.life.run_step(self.bound.number, self.before, entropy, progress)

    def read(self, payload: bytes) -> Result:
        """What is shown of the step."""
        return self.bound.life.read_step(self.bound.number, payload)
