"""What can go wrong with the books themselves.

    DiscreetError
    ├── LedgerUnavailable    the books cannot be read or written now; nothing may be released
    │   └── LedgerMissing    there are none at that place
    └── LedgerDamaged        the file is not a ledger this version knows, or contradicts itself

A refused charge is a `BudgetExceeded`, a wrong argument an `InvalidArgument`, as everywhere.

>>> LedgerUnavailable("no space is left on the disk", "make room and ask again")
LedgerUnavailable('the ledger is unavailable: no space is left on the disk; make room and ask again')
"""

from __future__ import annotations

from discreet.core.errors import DiscreetError

__all__ = ["LedgerDamaged", "LedgerMissing", "LedgerUnavailable"]


class LedgerUnavailable(DiscreetError):
    """The books cannot be read or written now.

    After a failed write nothing may be released. The charge was most likely not recorded; asking the same question
    again is safe either way, since one question is paid for once.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"the ledger is unavailable: {reason}; {remedy}")


class LedgerMissing(LedgerUnavailable):
    """There are no books at this place, and none were to be made."""


class LedgerDamaged(DiscreetError):
    """The books cannot be trusted: nothing is charged or released from them."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"the ledger is damaged: {reason}; {remedy}")
