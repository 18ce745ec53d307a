"""Faults planted in the ledger, one at a time."""

from typing import Any
from unittest.mock import patch

from discreet.core.forks import Home
from discreet.ledger import accounts
from discreet.ledger.encoding import is_everywhere
from discreet.ledger.stores.postgres import connection as server


def warnings_that_nobody_hears() -> Any:
    """A wait that was cancelled counts as a wait."""
    return patch.object(server, "DOUBTFUL", ("no such code",))


def caps_of_one_place() -> Any:
    """A charge counts at the accounts of its own path, and at no name over all studies."""
    original = accounts.above

    def tree(path: Any) -> Any:
        return [each for each in original(path) if each == path or not is_everywhere(each)]

    return patch.object(accounts, "above", tree)


def names_that_nobody_checks() -> Any:
    """A name that the books do not know is opened without a word."""
    return patch.object(accounts, "assert_expected", lambda path, known: None)


def caps_that_nobody_compares() -> Any:
    """A cap may be above one that holds anyway."""
    return patch.object(accounts, "assert_within", lambda path, budget, parents: None)


def keys_that_a_fork_inherits() -> Any:
    """A child goes on where its parent was, and so do both."""
    return patch.object(Home, "left", False)
