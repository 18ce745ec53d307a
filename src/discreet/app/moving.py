"""Moving the books to another place, on the command line."""

from __future__ import annotations

from contextlib import closing

from discreet.ledger import migrate
from discreet.ledger.addresses import store_at

__all__ = ["moved"]


def moved(source: str, target: str) -> str:
    """Moves the books; what was done and what is to be done now."""
    with closing(store_at(source, create=False)) as old, closing(store_at(target)) as new:
        report = migrate(old, new)
        return (
            f"moved to {new.address}: sound, {report.head.sequence} entries\n"
            f"head {report.head.sequence}:{report.head.hash}\n"
            f"{old.address} is closed and charges nothing any more; name the new place as ledger in discreet.toml"
        )
