"""Accounts: how they are opened, what they may be charged, and how a budget is changed on record.

Accounts are a tree: a charge counts at its account and at all above it. Beside the tree a data set can have accounts of
names over all studies (`notation.everywhere`): a charge counts there wherever the name stands in its path. So a cap on
an analyst holds in every study, also in those that are opened later. What may be opened without a word, and which caps
make sense, is in `caps.py`.

An account is opened once; opening it again continues it, and naming another budget, unit or source then is an error.
A source belongs to one data set for good, whatever the data set is called, so a renamed view has no fresh budget.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.filters import Composition, Filter
from discreet.accounting.flattening import as_event, neighbours
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotAccountable
from discreet.core.events import Event
from discreet.core.exact import Exactable, exact
from discreet.core.losses import ApproxDP, Loss
from discreet.core.units import Unit
from discreet.ledger.caps import alike, assert_expected, assert_within, comparable, joined
from discreet.ledger.encoding import (
    Path,
    above,
    canonical,
    covers,
    events_from_plain,
    is_everywhere,
    loss_to_plain,
    shown,
    unit_to_plain,
)
from discreet.ledger.errors import LedgerDamaged
from discreet.ledger.records import Account, Entry
from discreet.ledger.stores.store import Books, pages

__all__ = ["Opening", "admit", "amended", "charges_under", "filter_of", "largest", "lineage", "room"]

REMEDY = "add more noise, ask for less, or have the steward amend the budget"


@dataclass(frozen=True)
class Opening:
    """What a caller says of an account; None leaves it as the books have it."""

    path: Path
    budget: Loss | None
    unit: Unit | None
    source: str | None
    composition: Composition | None
    delta_share: Exactable | None
    order: Exactable | None
    new: bool = False
    """Whether a name that the books do not know is meant to be one."""

    def found(self, books: Books) -> Path | None:
        """The account that this continues; None if there is none; an error if it says otherwise than the books."""
        if len(self.path) > 1 and (self.unit is not None or self.source is not None):
            raise InvalidArgument("account", self.path, "a data set, to have a unit or a source", "leave these out")
        account = books.account(self.path)
        owner = None if self.source is None else books.owner(self.source)
        if self.source is not None and owner is None and account is not None:
            raise InvalidArgument(
                "source",
                self.source,
                f"a source of the data set {self.path[0]!r}",
                "attach it if it is about the same people, or else take another name",
            )
        if owner is not None and (owner,) != self.path:
            if account is not None:
                raise InvalidArgument("source", self.source, f"of {self.path[0]!r}", f"it belongs to {owner!r}")
            account = books.account((owner,))
        if account is None:
            return None
        self._assert_same(account)
        return account.path

    def made(self, books: Books) -> tuple[Account, dict[str, Any]]:
        """The new account and the entry that opens it."""
        if len(self.path) == 1:
            if self.budget is None or self.unit is None or self.source is None:
                raise InvalidArgument(
                    "account", self.path, "open already", "give budget, unit and source to open a new data set"
                )
            fresh = self._filter(self.budget)
        else:
            parents = lineage(books, self.path[:1] if is_everywhere(self.path) else self.path[:-1])
            if self.budget is None and (self.composition, self.delta_share, self.order) != (None, None, None):
                raise InvalidArgument("budget", None, "given with composition, delta_share or order", "give it")
            if self.budget is not None:
                over = [account for each in above(self.path)[:-1] if (account := books.account(each)) is not None]
                assert_within(self.path, self.budget, over)
            elif not self.new:
                assert_expected(self.path, books.accounts())
            fresh = self._fresh(books, parents[0])
        account = Account(self.path, self.budget, self.budget, self.unit, canonical(fresh.state()))
        entry: dict[str, Any] = {
            "kind": "open",
            "account": self.path,
            "budget": None if self.budget is None else loss_to_plain(self.budget),
            "state": fresh.state(),
        }
        if self.unit is not None:
            entry |= {"unit": unit_to_plain(self.unit), "source": self.source}
        return account, entry

    def _fresh(self, books: Books, dataset: Account) -> Filter:
        """The filter of an account below a data set; one over all studies counts what its name was charged before."""
        if not is_everywhere(self.path):
            return _like(dataset) if self.budget is None else self._filter(self.budget)
        if self.budget is None or (self.composition, self.delta_share, self.order) != (None, None, None):
            raise InvalidArgument(
                "budget", self.budget, "given, and nothing else, for a name over all studies", "do so"
            )
        unlimited = Account(self.path, None, None, None, "")
        try:
            return amended(unlimited, _like(dataset), self.budget, charges_under(pages(books, 0), self.path))
        except BudgetExceeded:
            remedy = "give a larger one: what is spent stays spent"
            bound = f"at least what {self.path[-1]!r} has spent in all studies"
            raise InvalidArgument("budget", self.budget, bound, remedy) from None

    def _filter(self, budget: Loss) -> Filter:
        share = Fraction(1, 2) if self.delta_share is None else self.delta_share
        return Filter(budget, composition=self.composition, delta_share=share, order=self.order)

    def _assert_same(self, account: Account) -> None:
        name = shown(account.path)
        if self.budget is not None and self.budget != account.budget:
            remedy = "continue with that one, or change it on record with amend"
            raise InvalidArgument("budget", self.budget, f"{account.budget}, the budget of {name!r}", remedy)
        if self.unit is not None and self.unit != account.unit:
            remedy = "continue with that one: what was promised to one unit cannot be told to another"
            raise InvalidArgument("unit", self.unit, f"{account.unit}, the unit of {name!r}", remedy)
        kept = json.loads(account.state)
        for argument, value in (("delta_share", self.delta_share), ("order", self.order)):
            if value is not None and (kept[argument] is None or exact(argument, value) != Fraction(kept[argument])):
                raise InvalidArgument(argument, value, f"{kept[argument]}, as {name!r} was opened", "leave it out")
        if self.composition is not None and self.composition != kept["composition"]:
            bound = f"{kept['composition']!r}, as {name!r} was opened"
            raise InvalidArgument("composition", self.composition, bound, "leave it out")


def lineage(books: Books, path: Path) -> tuple[Account, ...]:
    """The account and all that a charge at it counts at, the data set first and the account itself last."""
    found: list[Account] = []
    for each in above(path):
        account = books.account(each)
        if account is not None:
            found.append(account)
        elif each == path or not is_everywhere(each):
            known = ", ".join(repr(shown(a.path)) for a in books.accounts()[:20]) or "none"
            raise InvalidArgument("account", shown(each), "open", f"open it first; open accounts: {known}")
    return tuple(found)


def filter_of(account: Account, dataset: Account) -> Filter:
    """The filter of an account as it stands."""
    budget = account.budget or dataset.budget
    try:
        state = json.loads(account.state)
        if budget is None:
            raise InvalidArgument("budget", budget, "a loss", "check the ledger")
        return Filter.revive(budget, state)
    except (ValueError, TypeError) as reason:
        raise LedgerDamaged(f"the sums of {shown(account.path)!r} are not within its budget", "check it") from reason


def admit(filters: Mapping[Path, Filter], unit: Unit | None, event: Event) -> None:
    """Charges every filter, or raises an error that names the first account that the event does not fit.

    After an error the filters are of no more use.
    """
    relation = neighbours(event)
    if relation is not None and unit is not None and relation != unit.neighbours:
        raise NotAccountable("ledger", event, f"it is for {relation} neighbours, and the data set is not")
    for path, filter in filters.items():
        try:
            filter.charge(event)
        except BudgetExceeded:
            remedy = f"this is the budget of {shown(path)!r}: {REMEDY}"
            raise BudgetExceeded(filter.price(event), filter.remaining, remedy) from None


def charges_under(entries: Iterable[Entry], path: Path) -> Iterator[Event]:
    """What counts at the account, in order."""
    for entry in entries:
        content = entry.content
        if content["kind"] == "charge" and covers(path, tuple(content["account"])):
            yield as_event(events_from_plain(content["events"]))


def amended(account: Account, standing: Filter, budget: Loss, past: Iterable[Event]) -> Filter:
    """The filter of the account with another budget of the same definition, no smaller than what is spent.

    The two budgets must be comparable, one at least the other in every number: then the larger one is a guarantee for
    all that was ever admitted. An account that had no budget gets one that counts all its charges so far, `past`.
    """
    if account.budget is None:
        fresh = Filter(budget)
        for event in past:
            fresh.charge(event)
        return fresh
    if not comparable(budget, account.budget):
        raise InvalidArgument(
            "budget",
            budget,
            f"comparable with {account.budget}: of its definition, and no number up while another goes down",
            "change it in one direction",
        )
    try:
        old = account.budget
        if isinstance(budget, ApproxDP) and isinstance(old, ApproxDP) and budget.delta < old.delta:
            # One question alone is measured at the budget's δ: with less of it, it costs more ε.
            return _replayed(budget, standing, past)
        return Filter.revive(budget, standing.state())
    except (InvalidArgument, BudgetExceeded):
        raise InvalidArgument(
            "budget",
            budget,
            f"at least what {shown(account.path)!r} has spent, {standing.spent}",
            "give a larger one: what is spent stays spent",
        ) from None


def _replayed(budget: Loss, standing: Filter, past: Iterable[Event]) -> Filter:
    """A filter by the rules of another, as if its budget had held from the beginning."""
    fresh = Filter(
        budget,
        composition=standing.composition,
        delta_share=standing.delta_share,
        order=standing.state()["order"],
    )
    for event in past:
        fresh.charge(event)
    return fresh


def room(accounts: tuple[Account, ...]) -> Loss:
    """What still fits, as far as budgets of one definition can tell it.

    The definition is that of the nearest budget, from the account upwards; budgets above it in the same definition
    count too, those in another do not.
    """
    limits = [account for account in accounts if account.budget is not None]
    left = [filter_of(account, accounts[0]).remaining for account in limits]
    nearest = left[-1]
    for loss in left[:-1]:
        if alike(loss, nearest):
            nearest = joined(nearest, loss, min)
    return nearest


def largest(one: Loss | None, other: Loss) -> Loss:
    """The larger of two losses in each number."""
    return other if one is None else joined(one, other, max)


def _like(dataset: Account) -> Filter:
    """An untouched filter with the rules of the data set's."""
    standing = filter_of(dataset, dataset)
    return _replayed(standing.budget, standing, ())
