"""The register of privacy spent: per data set who is protected, what was promised, and what is used up.

It holds names, budgets, counts and dates, nothing from data or questions, and can be published. Spent losses and
budgets are rounded up, what remains is rounded down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from discreet.core.losses import Loss
from discreet.core.rounding import float_down, float_up
from discreet.ledger.accounts import filter_of
from discreet.ledger.encoding import covers, is_everywhere, unit_to_plain
from discreet.ledger.records import Account, Tally
from discreet.ledger.stores.store import Books

__all__ = ["loss_numbers", "readable", "registry"]

DAY = 86400.0


def registry(books: Books, ledger: str, now: datetime) -> dict[str, Any]:
    """The register as plain data that JSON can hold."""
    head, accounts, tallies = books.head(), books.accounts(), books.tallies()
    datasets = [
        {
            "name": dataset.path[0],
            "unit": unit_to_plain(dataset.unit) if dataset.unit else None,
            "accounts": [
                _line(account, dataset, [t for t in tallies if covers(account.path, t.path)], now)
                for account in accounts
                if account.path[0] == dataset.path[0]
            ],
        }
        for dataset in accounts
        if len(dataset.path) == 1
    ]
    return {
        "ledger": ledger,
        "head": {"sequence": head.sequence, "hash": head.hash},
        "time": now.astimezone(UTC).isoformat(timespec="seconds"),
        "data_sets": datasets,
    }


def readable(register: dict[str, Any]) -> str:
    """The register as lines of text."""
    lines = [f"ledger {register['ledger']}, entry {register['head']['sequence']}, {register['time']}"]
    for dataset in register["data_sets"]:
        unit = dataset["unit"]
        column = f" by {unit['column']!r}" if "column" in unit else ""
        lines += ["", f"{dataset['name']}: protects each {unit['kind']}{column} ({unit['neighbours']} neighbours)"]
        for line in dataset["accounts"]:
            name = "  " * len(line["account"]) + line["account"][-1]
            name = f"    {line['account'][-1]} in all studies" if is_everywhere(tuple(line["account"])) else name
            budget = f" of {line['budget']['text']}" if line["budget"] else ""
            lines.append(
                f"{name}: spent {line['spent']['text']}{budget}, {line['used']:.1%} used,"
                f" {line['used_per_day']:.2%} a day, {line['releases']} releases"
            )
    return "\n".join(lines) + "\n"


def _line(account: Account, dataset: Account, tallies: list[Tally], now: datetime) -> dict[str, Any]:
    """One account with all below it; the rate is the part of the budget used per day since the first charge."""
    filter = filter_of(account, dataset)
    used = float_up(filter.used)
    first = min((tally.first for tally in tallies), default=None)
    days = 1.0 if first is None else max(1.0, (now - datetime.fromisoformat(first)).total_seconds() / DAY)
    return {
        "account": list(account.path),
        "budget": None if account.budget is None else loss_numbers(account.budget, float_up),
        "promised": None if account.promised is None else loss_numbers(account.promised, float_up),
        "spent": loss_numbers(filter.spent, float_up),
        "remaining": None if account.budget is None else loss_numbers(filter.remaining, float_down),
        "used": used,
        "used_per_day": used / days,
        "days_left": (1 - used) * days / used if used else None,
        "charges": sum(tally.charges for tally in tallies),
        "releases": sum(tally.releases for tally in tallies),
        "first_charge": first,
        "last_charge": max((tally.last for tally in tallies), default=None),
    }


def loss_numbers(loss: Loss, rounded: Callable[[Fraction], float]) -> dict[str, Any]:
    """A loss as JSON can hold it: its text, and its numbers rounded."""
    numbers: dict[str, Any] = {"definition": type(loss).__name__, "text": str(loss)}
    for part in fields(loss):
        value = getattr(loss, part.name)
        numbers[part.name] = [rounded(v) for v in value] if isinstance(value, tuple) else rounded(value)
    return numbers
