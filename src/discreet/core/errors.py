"""Every error this library raises on purpose.

    DiscreetError
    ├── InvalidArgument (also ValueError)   an argument is outside its bound; nothing was drawn or charged
    ├── BudgetExceeded                      the charge does not fit in what remains; nothing was charged
    ├── NotAccountable                      this accountant cannot bound that event; another one may
    ├── Unsupported                         a question that cannot be answered privately, with what to write instead
    ├── AnswerFailed                        the engine failed on a question that was charged; no detail may leave
    ├── EngineUnavailable                   the engine was lost on the way; a charged question is charged again
    ├── EntropyFailure                      the operating system gave no usable randomness
    └── LedgerUnavailable, LedgerDamaged    trouble with the books themselves (`ledger/errors.py`)

No message contains a value read from private data.
"""

from __future__ import annotations

import os

from discreet.core.display.secrets import address_kind, known_scheme, looks_like_login, redacted
from discreet.core.display.text import visible

__all__ = [
    "AnswerFailed",
    "BudgetExceeded",
    "DiscreetError",
    "EngineUnavailable",
    "EntropyFailure",
    "InvalidArgument",
    "NotAccountable",
    "Unsupported",
    "known_place",
]


LONGEST_MESSAGE = 4000
"""Characters of a message: to look for secrets in many more would take long."""


class DiscreetError(Exception):
    """The root of the tree. What a message repeats is as others wrote it: what a terminal would obey is shown, and what
    looks like a secret is left out."""

    def __init__(self, message: str = "") -> None:
        super().__init__(_without_secrets(visible(message, lines=True)))


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
        super().__init__(f"the engine did not finish: {reason}; if it was charged, asking again is charged again")


class EntropyFailure(DiscreetError):
    """Randomness was asked for and none that is safe could be had."""


def known_place(argument: str, place: str, *kinds: str) -> str:
    """A path as it is, or an address of one of these kinds as drivers want it; any other address is refused unseen."""
    kind = address_kind(place)
    if kind is None and looks_like_login(place) and not (os.path.exists(place) or place.startswith((".", "/"))):
        # What looks like a secret is never repeated, not even in part.
        raise InvalidArgument(argument, "a text with a secret in it", "a path", "write ./ before such a name of a file")
    if kind is None or kind in kinds:
        return known_scheme(place)
    shown = "words of a connection" if kind == "words" else f"{kind}:…"
    schemes = ", ".join(f"{known}://" for known in kinds if known != "words")
    remedy = f"write a path (./ before a name that looks like an address), or an address that begins with {schemes}"
    raise InvalidArgument(argument, shown, "of a kind that is known", remedy)


def _brief(value: object, limit: int = 120) -> str:
    try:
        # A text loses its secrets before it is quoted: quoting doubles the backslashes by which drivers know its end.
        text = repr(_without_secrets(value)) if type(value) is str else _without_secrets(repr(value))
    except Exception:
        # As of a whole number with more digits than Python writes.
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _without_secrets(text: str) -> str:
    """The text without what looks like a secret. Much more is read than is kept of a long one, for half a secret is not
    recognised as one."""
    return redacted(text) if len(text) <= LONGEST_MESSAGE else redacted(text[: 2 * LONGEST_MESSAGE])[:LONGEST_MESSAGE]
