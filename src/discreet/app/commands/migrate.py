"""Moving the books to another place, on the command line."""

from __future__ import annotations

from contextlib import closing

from discreet.charging.signing_keys import public_keys
from discreet.ledger import Ledger, migrate
from discreet.ledger.stores.addresses import store_at

__all__ = ["moved"]


def moved(source: str, target: str) -> str:
    """Moves the books; what was done and what is to be done now."""
    with closing(store_at(source, create=False)) as old, closing(store_at(target)) as new:
        report = migrate(old, new)
        head = report.head
        with Ledger(new) as ledger:
            # A key beside a file stays there: its public half goes with the books, for the certificates it has signed.
            for key in public_keys(ledger, source):
                ledger.register(key)
            head = ledger.head()
        return (
            f"moved to {new.address}: sound, {head.sequence} entries\n"
            f"head {head.sequence}:{head.hash}\n"
            f"{old.address} is closed and charges nothing any more; name the new place as ledger in discreet.toml"
        )
