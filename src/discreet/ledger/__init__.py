"""The ledger: budgets that hold across processes, crashes and analysts, in books that can be checked.

`Ledger` keeps nested accounts, charges them before anything is released, and answers an identical question from what
was released for it. See `ledger.py` for the law of one question, `stores/store.py` for what a store must guarantee,
`verification.py` for what a check finds.
"""

from discreet.ledger.errors import LedgerDamaged, LedgerUnavailable, StreamEnded
from discreet.ledger.ledger import Ledger
from discreet.ledger.migration import migrate
from discreet.ledger.records import Charge, Entry, Fault, Head, Report, Standing, Step
from discreet.ledger.registry import readable
from discreet.ledger.verification import Verifier

__all__ = [
    "Charge",
    "Entry",
    "Fault",
    "Head",
    "Ledger",
    "LedgerDamaged",
    "LedgerUnavailable",
    "Report",
    "Standing",
    "Step",
    "StreamEnded",
    "Verifier",
    "migrate",
    "readable",
]
