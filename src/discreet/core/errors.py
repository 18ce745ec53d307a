"""Every error this library raises on purpose.

    DiscreetError
    ├── InvalidArgument (also ValueError)   an argument is outside its bound; nothing was drawn or charged
    ├── BudgetExceeded                      the charge does not fit in what remains; nothing was charged
    ├── NotAccountable                      this accountant cannot bound that event; another one may
    ├── Unsupported                         a question that cannot be answered privately, with what to write instead
    ├── AnswerFailed                        the engine failed on a question that was charged; no detail may leave
    ├── EngineUnavailable                   the engine was lost on the way; the same question can be asked again
    ├── EntropyFailure                      the operating system gave no usable randomness
    └── LedgerUnavailable, LedgerDamaged    trouble with the books themselves (`ledger/errors.py`)

No message contains a value read from private data.
"""

from __future__ import annotations

__all__ = [
    "AnswerFailed",
    "BudgetExceeded",
    "DiscreetError",
    "EngineUnavailable",
    "EntropyFailure",
    "InvalidArgument",
    "NotAccountable",
    "Unsupported",
]


class DiscreetError(Exception):
    """The root of the tree."""


class InvalidArgument(DiscreetError, ValueError):
    """An argument outside its bound, with the remedy."""

    def __init__(self, argument: str, value: object, bound: str, remedy: str) -> None:
        self.argument = argument
        self.value = value
        self.bound = bound
        self.remedy = remedy
        super().__init__(f"{argument}={_brief(value)} must be {bound}; {remedy}")


class BudgetExceeded(DiscreetError):
    """A charge that does not fit."""

    def __init__(self, asked: object, remaining: object, remedy: str) -> None:
        self.asked = asked
        self.remaining = remaining
        self.remedy = remedy
        super().__init__(f"the charge {asked} exceeds the remaining budget {remaining}; {remedy}")


class NotAccountable(DiscreetError):
    """An accountant met an event it cannot bound."""

    def __init__(self, accountant: str, event: object, remedy: str) -> None:
        self.event = event
        super().__init__(f"the {accountant} accountant cannot bound {_brief(event)}; {remedy}")


class Unsupported(DiscreetError):
    """Part of a question that is refused; nothing was run or charged."""

    def __init__(self, construct: str, reason: str, remedy: str) -> None:
        self.construct = construct
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{construct} is refused: {reason}; {remedy}")


class AnswerFailed(DiscreetError):
    """The engine could not run a charged question. Its message could repeat data, so it is not shown."""

    def __init__(self) -> None:
        super().__init__("the engine failed on this question and nothing more may be said; the charge stands")


class EngineUnavailable(DiscreetError):
    """The engine was lost, which has nothing to do with what the rows hold."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the engine did not finish: {reason}; ask the same again, it is paid for once")


class EntropyFailure(DiscreetError):
    """Randomness was asked for and none that is safe could be had."""


def _brief(value: object, limit: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
