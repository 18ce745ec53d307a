"""Changing a budget on record, and in discreet.toml with it.

>>> print(rewritten("# ours\\n[budget]\\nepsilon = 1 # so far\\n\\n[tables.t]\\n", {"epsilon": "2"}), end="")
# ours
[budget]
epsilon = 2
<BLANKLINE>
[tables.t]
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from discreet.app.books import opened
from discreet.app.registration import put, sound
from discreet.app.settings import Settings
from discreet.app.toml import Number, written
from discreet.connection import connect
from discreet.core.errors import InvalidArgument
from discreet.core.losses import ApproxDP, PureDP
from discreet.ledger.addresses import exists

__all__ = ["amend", "rewritten"]


def amend(
    settings: Settings, epsilon: str, delta: str | None, study: str | None, analyst: str | None, note: str
) -> tuple[str, ...]:
    """Gives the data set, or a study or analyst in it, another budget; returns whose."""
    numbers = {"epsilon": epsilon} | ({} if delta is None else {"delta": delta})
    budget: PureDP | ApproxDP
    if isinstance(settings.budget, ApproxDP):
        budget = ApproxDP(epsilon, settings.budget.delta if delta is None else delta)
    elif delta is None:
        budget = PureDP(epsilon)
    else:
        remedy = "leave it out: all answers so far were promised without a δ"
        raise InvalidArgument("delta", delta, "absent where the budget is ε alone", remedy)
    below = [part for part in (study, analyst) if part is not None]
    text = settings.path.read_text(encoding="utf-8")
    text = text if below else rewritten(text, numbers)
    if not below and sound(settings.path, text).budget != budget:
        raise InvalidArgument("config", str(settings.path), "with a plain [budget]", "change the budget in it first")
    if not exists(settings.books):
        connect(**settings.arguments()).close()
    with opened(settings) as ledger:
        account = (settings.dataset, *below)
        for depth in range(2, len(account) + 1):
            ledger.open(account[:depth])
        ledger.amend(account, budget, note=note)
    put(settings.path, text)
    return account


def rewritten(text: str, numbers: Mapping[str, str]) -> str:
    """The file with these numbers in its budget, and all else as it was."""
    head, mark, rest = text.partition("[budget]\n")
    body, *others = re.split(r"(?m)^(?=\[)", rest, maxsplit=1)
    for name, value in numbers.items():
        line = written({name: Number(value)}).rstrip().replace("\\", r"\\")
        body = re.sub(rf"(?m)^{name}\s*=.*$", line, body)
    return head + mark + body + "".join(others)
