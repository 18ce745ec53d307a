"""Changing a budget on record, and in discreet.toml with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from discreet.app.commands.books import opened, outranked_lines
from discreet.app.config.registration import put, sound
from discreet.app.config.settings import Settings
from discreet.app.config.toml import Number, rewritten
from discreet.core.errors import InvalidArgument
from discreet.core.losses import ZCDP, ApproxDP, PureDP
from discreet.ledger import Ledger
from discreet.ledger.caps import names_in, nearest
from discreet.ledger.encoding import Path, account_path, everywhere, shown
from discreet.ledger.stores.addresses import exists
from discreet.session.connect import connect

__all__ = ["amend", "answers"]


def amend(
    settings: Settings,
    numbers: Mapping[str, str],
    study: str | None,
    analyst: str | None,
    note: str = "",
    new: bool = False,
) -> list[str]:
    """Gives the data set, a study, or an analyst another budget; returns what is to be said of it.

    `numbers` has epsilon and delta, or rho, as text; an analyst without a study is capped over all studies; names that
    the books do not know must be `new`; `note` says why, for the record.
    """
    budget = _budget(settings.budget, numbers)
    own = study is None and analyst is None
    text = settings.path.read_bytes().decode()
    if own:
        text = rewritten(text, {"budget": {name: Number(number) for name, number in numbers.items()}})
        sound(settings.path, text)
    if not exists(settings.books):
        connect(**settings.arguments()).close()
    with opened(settings) as ledger:
        account = _capped(ledger, settings.dataset, study, analyst, budget, note, new)
        held = [line for line in outranked_lines(ledger) if line.startswith(settings.dataset)]
    put(settings.path, text)
    return [f"The budget of {shown(account)} is changed, on record.", *held]


def answers(settings: Settings, per: str | None, note: str = "") -> str:
    """Says who may see stored answers, after changing it if `per` is given."""
    if not exists(settings.books):
        connect(**settings.arguments()).close()
    with opened(settings) as ledger:
        account = (settings.dataset,)
        if per is not None:
            ledger.keep_answers(account, per=cast("Any", per), note=note)
        whose = ledger.keeps_answers(account)
    if whose == "study":
        return "Stored answers are kept per study: a question that another study asked is paid for again."
    return "Stored answers are shared: a question that anybody asked before is free for all who may ask."


def _budget(present: PureDP | ApproxDP | ZCDP, numbers: Mapping[str, str]) -> PureDP | ApproxDP | ZCDP:
    """The new budget, in the definition of the present one."""
    if isinstance(present, ZCDP):
        if [*numbers] != ["rho"]:
            raise InvalidArgument("budget", dict(numbers), "in ρ, as the data set's", "give --rho alone")
        return ZCDP(numbers["rho"])
    if "rho" in numbers:
        raise InvalidArgument("rho", numbers["rho"], "absent where the budget is not in ρ", "give --epsilon")
    if isinstance(present, ApproxDP):
        return ApproxDP(numbers["epsilon"], numbers.get("delta", present.delta))
    if "delta" in numbers:
        remedy = "leave it out: all answers so far were promised without a δ"
        raise InvalidArgument("delta", numbers["delta"], "absent where the budget is ε alone", remedy)
    return PureDP(numbers["epsilon"])


def _capped(
    ledger: Ledger,
    dataset: str,
    study: str | None,
    analyst: str | None,
    budget: PureDP | ApproxDP | ZCDP,
    note: str,
    new: bool,
) -> Path:
    """The account that has the budget now."""
    known = names_in(ledger.accounts(), dataset)
    for argument, name in (("study", study), ("analyst", analyst)):
        if name is not None and name not in known and not new:
            account_path((dataset, name))
            raise InvalidArgument(argument, name, "known to the books", f"{nearest(name, known)}; or add --new")
    if study is None and analyst is not None:
        account = everywhere(dataset, analyst)
    else:
        account = (dataset, *(part for part in (study, analyst) if part is not None))
        if account not in ledger.accounts() and not new and len(account) > 1:
            bound = "open already: these names have not met yet"
            raise InvalidArgument("study, analyst", shown(account), bound, "add --new, or leave out --study")
        for depth in range(2, len(account)):
            ledger.open(account[:depth], new=True)
    if account not in ledger.accounts():
        return ledger.open(account, budget=budget, note=note)
    ledger.amend(account, budget, note=note)
    return account
