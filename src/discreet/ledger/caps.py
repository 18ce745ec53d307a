"""Caps: budgets of studies and analysts, how they compare, and names that slip past them.

A cap limits what an account and all below it may be charged; a data set's budget limits all of it. Two mistakes made a
cap worth less than it seemed:

* A name that the books do not know is a new account without a cap: a typo of an analyst, an analyst in another study.
  So where the steward has capped somebody, whoever stands beside them is named on purpose (`assert_expected`). Where
  nobody is capped, new names are opened without a word.
* A cap above one that holds anyway limits nothing. Such a cap is refused (`assert_within`). A budget above may be
  lowered later; `outranked` then says which caps no longer say what holds.

>>> from discreet.core.losses import PureDP
>>> health = Account(("health",), PureDP(1), None, None, "")
>>> assert_expected(("health", "flue"), [health, Account(("health", "flu"), PureDP("0.5"), None, None, "")])
Traceback (most recent call last):
    ...
discreet.core.errors.InvalidArgument: account='health/flue' must be ...
>>> assert_within(("health", "flu"), PureDP(2), [health])
Traceback (most recent call last):
    ...
discreet.core.errors.InvalidArgument: budget=PureDP(epsilon=2) must be ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from fractions import Fraction

from discreet.core.errors import InvalidArgument
from discreet.core.losses import Loss, RenyiDP
from discreet.ledger.encoding import Path, above, everywhere, is_everywhere, shown
from discreet.ledger.records import Account

__all__ = ["alike", "assert_expected", "assert_within", "comparable", "joined", "names_in", "nearest", "outranked"]

MOST_NAMES = 12
"""Names that a message lists."""


def assert_expected(path: Path, accounts: Iterable[Account]) -> None:
    """That a new account without a cap does not stand beside capped ones by mistake.

    It does if an account beside it has a cap; if its own name has a cap elsewhere, and none over all studies; or if
    some names have caps over all studies and the books do not know this one as what it is to be, study or analyst.
    """
    known = [account for account in accounts if account.path[0] == path[0]]
    capped = {account.path for account in known if account.budget is not None and len(account.path) > 1}
    paths = [account.path for account in known if not is_everywhere(account.path)]
    name, names = path[-1], names_in((account.path for account in known), path[0])
    if everywhere(path[0], name) in capped:
        return
    beside = any(other[:-1] == path[:-1] for other in capped if not is_everywhere(other))
    elsewhere = [other for other in capped if other[-1] == name]
    over_all = any(map(is_everywhere, capped))
    level = len(path) - 1
    is_known = any(len(other) > level and other[level] == name for other in paths)
    if beside or elsewhere or (over_all and not is_known):
        what = f"{name!r} has a cap as {shown(min(elsewhere))!r}, not here" if elsewhere else "others have caps"
        bound = f"an account that the books know, for {what} and this one would have none"
        remedy = "the steward caps it with discreet budget amend … --new, or opens it as it is with new=True"
        raise InvalidArgument("account", shown(path), bound, f"{nearest(name, names)}; {remedy}")


def assert_within(path: Path, budget: Loss, parents: Sequence[Account]) -> None:
    """That a cap is no larger than one that holds above it."""
    for parent in parents:
        if parent.path != path and parent.budget is not None and _exceeds(budget, parent.budget):
            raise InvalidArgument(
                "budget",
                budget,
                f"at most {parent.budget}, which {shown(parent.path)!r} has and so holds for {shown(path)!r} too",
                "give no more than that, or amend that one first",
            )


def outranked(accounts: Sequence[Account]) -> list[tuple[Account, Account]]:
    """Accounts whose cap is above one that holds anyway, each with the account that has it."""
    by_path = {account.path: account for account in accounts}
    return [
        (account, by_path[parent])
        for account in accounts
        for parent in above(account.path)[:-1]
        if account.budget is not None and parent in by_path and _exceeds(account.budget, by_path[parent].budget)
    ]


def names_in(accounts: Iterable[Path], dataset: str) -> list[str]:
    """All names of studies and analysts of a data set."""
    return sorted({name for path in accounts if path[0] == dataset for name in path[1:] if name})


def nearest(name: str, known: Sequence[str]) -> str:
    """What a message says of the names there are."""
    likely = get_close_matches(name, known, n=3) or [*known[:MOST_NAMES]]
    return f"known names: {', '.join(map(repr, likely))}" if likely else "no names are known"


def alike(one: Loss, other: Loss) -> bool:
    """Whether two losses are in one definition."""
    return type(one) is type(other) and getattr(one, "orders", None) == getattr(other, "orders", None)


def comparable(one: Loss, other: Loss) -> bool:
    """Whether one of the losses is at least the other in every number."""
    if not alike(one, other):
        return False
    pairs = list(zip(_numbers(one), _numbers(other), strict=True))
    return all(a <= b for a, b in pairs) or all(a >= b for a, b in pairs)


def joined(one: Loss, other: Loss, pick: Callable[[Iterable[Fraction]], Fraction]) -> Loss:
    """The loss with one number of each pair."""
    numbers = [pick(pair) for pair in zip(_numbers(one), _numbers(other), strict=True)]
    return RenyiDP(one.orders, tuple(numbers)) if isinstance(one, RenyiDP) else type(one)(*numbers)


def _exceeds(one: Loss, other: Loss | None) -> bool:
    """Whether a cap is above another one, where both are in one definition."""
    if other is None or not alike(one, other):
        return False
    return any(a > b for a, b in zip(_numbers(one), _numbers(other), strict=True))


def _numbers(loss: Loss) -> tuple[Fraction, ...]:
    """The numbers of a loss, of which smaller ones promise more."""
    if isinstance(loss, RenyiDP):
        return loss.epsilons
    return tuple(getattr(loss, part.name) for part in fields(loss))
