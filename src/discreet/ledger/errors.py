"""What can go wrong with the books themselves.

    DiscreetError
    ├── LedgerUnavailable    the books cannot be read or written now; nothing may be released
    │   ├── CommitUnknown    a server went away in a commit; whether it is written is not known yet
    │   └── LedgerMissing    there are none at that place
    ├── LedgerDamaged        the file is not a ledger this version knows, or contradicts itself
    └── StreamEnded          a question of several steps has lost one, and has no more

A refused charge is a `BudgetExceeded`, a wrong argument an `InvalidArgument`, as everywhere.

>>> LedgerUnavailable("no space is left on the disk", "make room and ask again")
LedgerUnavailable('the ledger is unavailable: no space is left on the disk; make room and ask again')
"""

from __future__ import annotations

from discreet.core.errors import DiscreetError

__all__ = ["CommitUnknown", "LedgerDamaged", "LedgerMissing", "LedgerUnavailable", "StreamEnded"]


class LedgerUnavailable(DiscreetError):
    """The books cannot be read or written now.

    After a failed write nothing may be released, and the write was most likely not recorded. If it was a charge,
    nothing was run yet: the same question on the same handle is paid for once, whether it was recorded or not. If it
    was the outcome of a run, asking again is free if it was recorded, and is charged again if it was not: no run is
    free. The error says which of the two it was.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"the ledger is unavailable: {reason}; {remedy}")
        self.reason, self.remedy = reason, remedy


class CommitUnknown(LedgerUnavailable):
    """The connection was lost in the middle of a commit: whether it is written is not known yet."""

    def __init__(self, remedy: str = "look whether it is there, and do it again if it is not") -> None:
        reason = "the connection was lost in the middle of a commit, and whether it is written is not known yet"
        super().__init__(reason, remedy)


class LedgerMissing(LedgerUnavailable):
    """There are no books at this place, and none were to be made."""


class LedgerDamaged(DiscreetError):
    """The books cannot be trusted: nothing is charged or released from them."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"the ledger is damaged: {reason}; {remedy}")


class StreamEnded(DiscreetError):
    """A step of a long-lived question was lost, so the question has no further steps."""

    def __init__(self, step: int) -> None:
        super().__init__(
            f"step {step} failed, or its run ended without a stored outcome, and what was paid does not cover another; "
            "the steps before it stay free; ask the question anew for further ones"
        )
        self.step = step
