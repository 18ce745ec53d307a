"""The books as a steward reads them: what is spent and left, the entries, the public register.

Entries show when and for whom something was charged. Neither answers nor the time an answer took are shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Any

from discreet.app.config.settings import Settings
from discreet.app.output.bars import gauge
from discreet.charging import remaining as allowance
from discreet.charging.signing_keys import public_keys
from discreet.core.display.columns import Cells
from discreet.core.display.numbers import brief
from discreet.core.errors import InvalidArgument
from discreet.core.losses import ZCDP, ApproxDP, PureDP, zero
from discreet.core.rounding import float_down, float_up
from discreet.ledger import Entry, Head, Ledger, Standing
from discreet.ledger.encoding import is_everywhere, loss_from_plain
from discreet.ledger.encoding import shown as shown_account
from discreet.ledger.registry import loss_numbers
from discreet.ledger.stores.addresses import exists, shown

__all__ = [
    "anchor",
    "entries",
    "entry_cells",
    "kinds_cells",
    "opened",
    "outranked_caps",
    "outranked_lines",
    "protected",
    "register",
    "register_cells",
    "standing_cells",
    "standings",
]

SHORTEST = 16
"""Characters of a question that are shown however narrow the terminal is."""
_SHOWN = (
    "sequence",
    "time",
    "kind",
    "account",
    "events",
    "charge",
    "spent",
    "budget",
    "source",
    "note",
    "from",
    "to",
    "per",
)


@contextmanager
def opened(settings: Settings) -> Iterator[Ledger]:
    """The ledger of the settings."""
    if not exists(settings.books):
        remedy = "ask something first: the books are opened with the first question"
        raise InvalidArgument("ledger", shown(settings.books), "there already", remedy)
    with Ledger.at(settings.books, create=False) as ledger:
        yield ledger


def standings(settings: Settings) -> list[Standing]:
    """How every account stands, parents first; before the first question, the budget as it is declared."""
    if not exists(settings.books):
        return [Standing((settings.dataset,), settings.budget, zero(settings.budget), settings.budget, Fraction(0))]
    with opened(settings) as ledger:
        return [_told(ledger, path) for path in ledger.accounts()]


def _told(ledger: Ledger, path: tuple[str, ...]) -> Standing:
    """How an account stands: what its charges cost together, and the most that one more question may, in the definition
    of the data set's budget."""
    lineage = ledger.standing(path)
    dataset, standing = lineage[0], lineage[-1]
    if not isinstance(dataset.budget, PureDP | ApproxDP | ZCDP):
        return standing
    left = allowance.remaining(ledger, path, dataset.budget)
    return replace(standing, spent=allowance.spent(ledger, path, dataset.budget), remaining=left)


def outranked_caps(settings: Settings) -> list[str]:
    """Which caps are above one that holds anyway, and what holds."""
    if not exists(settings.books):
        return []
    with opened(settings) as ledger:
        return outranked_lines(ledger)


def outranked_lines(ledger: Ledger) -> list[str]:
    """Which caps in the books are above one that holds anyway, and what holds."""
    return [
        f"{shown_account(path)} may have {brief(budget)}, but {shown_account(parent)} has {brief(least)}: that holds."
        for path, budget, parent, least in ledger.outranked()
    ]


def standing_cells(found: list[Standing]) -> list[Cells]:
    """Accounts as a tree, with what they may spend, have spent and have left."""
    return [
        Cells("account", [_indented(s.account) for s in found]),
        Cells("budget", ["" if s.budget is None else brief(s.budget) for s in found], firm=True),
        Cells("spent", [brief(s.spent) for s in found], firm=True),
        Cells("left for one", ["" if s.remaining is None else brief(s.remaining, down=True) for s in found], firm=True),
        Cells("used", [f"{gauge(float(s.used), 8)} {_percent(float(s.used)):>7}" for s in found], True, True),
    ]


def entries(settings: Settings, last: int | None) -> list[dict[str, Any]]:
    """The entries, or the last few, without hashes of answers and without the times at which answers were ready."""
    with opened(settings) as ledger:
        since = 0 if last is None else max(0, ledger.head().sequence - last)
        return [_entry(entry) for entry in ledger.entries(since)]


def _entry(entry: Entry) -> dict[str, Any]:
    content = {key: value for key, value in entry.content.items() if key in _SHOWN and value not in (None, "")}
    if content["kind"] in ("release", "certify"):
        del content["time"]
    if "events" in content:
        content["events"] = [event["kind"] for event in content["events"]]
    return content | {"hash": entry.hash}


def entry_cells(found: list[dict[str, Any]], width: int) -> list[Cells]:
    """Entries, one a line of this width; what does not fit of a question is cut."""
    before = [
        Cells("#", [str(entry["sequence"]) for entry in found], right=True, firm=True),
        Cells("when", [entry.get("time", "")[:16].replace("T", " ") for entry in found], firm=True),
        Cells("what", [entry["kind"] for entry in found], firm=True),
        Cells("account", [shown_account(tuple(entry.get("account", ()))) for entry in found], firm=True),
    ]
    after = Cells("hash", [entry["hash"][:8] for entry in found], firm=True)
    taken = sum(max(map(len, [column.title, *column.texts])) + 2 for column in [*before, after])
    room = max(SHORTEST, width - taken - 2)
    details = [text if len(text) <= room else text[: room - 1] + "…" for text in map(_details, found)]
    return [*before, Cells("", details, firm=True), after]


def _details(entry: dict[str, Any]) -> str:
    match entry["kind"]:
        case "charge":
            return str(entry.get("note") or " + ".join(entry["events"]))
        case "release" | "certify":
            return f"of charge {entry['charge']}"
        case "open" | "amend" if "budget" in entry:
            return f"budget {brief(loss_from_plain(entry['budget']))}"
        case "answers":
            return f"kept per {entry['per']}"
        case "schema":
            return f"tables brought from schema {entry['from']} to {entry['to']}"
        case _:
            return str(entry.get("note") or entry.get("source", ""))


def anchor(text: str | None) -> Head | None:
    """A head noted earlier, written number:hash."""
    if text is None:
        return None
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) != 64:
        raise InvalidArgument("anchor", text, "number:hash", "give it as discreet ledger check printed it")
    return Head(int(number), digest.lower())


def register(settings: Settings) -> dict[str, Any]:
    """What may be published: the ledger's register, the kinds of questions asked, and the keys that sign."""
    with opened(settings) as ledger:
        found = ledger.registry()
        for dataset in found["data_sets"]:
            for line in dataset["accounts"]:
                standing = _told(ledger, tuple(line["account"]))
                line["spent"] = loss_numbers(standing.spent, float_up)
                line["remaining"] = None if standing.remaining is None else loss_numbers(standing.remaining, float_down)
            dataset["questions"] = dict(Counter(_kinds(ledger, dataset["name"])).most_common())
        return found | {"keys": list(public_keys(ledger, settings.books))}


def _kinds(ledger: Ledger, dataset: str) -> Iterator[str]:
    """For each question, the kinds of its events."""
    for entry in ledger.entries():
        content = entry.content
        if content["kind"] == "charge" and content["account"][0] == dataset:
            yield " + ".join(event["kind"] for event in content["events"])


def register_cells(dataset: dict[str, Any]) -> list[Cells]:
    """The accounts of a data set in the register."""
    lines = dataset["accounts"]
    return [
        Cells("account", [_indented(line["account"]) for line in lines]),
        Cells("budget", [_numbers(line["budget"]) for line in lines], firm=True),
        Cells("spent", [_numbers(line["spent"]) for line in lines], firm=True),
        Cells("used", [_percent(line["used"]) for line in lines], True, True),
        Cells("a day", [_percent(line["used_per_day"]) for line in lines], True, True),
        Cells("releases", [f"{line['releases']:,}" for line in lines], True, True),
    ]


def kinds_cells(questions: dict[str, int]) -> list[Cells]:
    """How many questions there were of each kind."""
    asked = [f"{number:,}" for number in questions.values()]
    return [Cells("questions by their events", list(questions)), Cells("asked", asked, right=True, firm=True)]


def protected(unit: dict[str, Any]) -> str:
    """Who a data set protects."""
    who = f"all rows of one {unit['column']!r}" if "column" in unit else f"one {unit['kind'].lower()}"
    return f"{who}, {unit['neighbours']} neighbours"


def _indented(account: Sequence[str]) -> str:
    if is_everywhere(tuple(account)):
        return f"  {account[-1]} (all studies)"
    return "  " * (len(account) - 1) + account[-1]


def _percent(part: float) -> str:
    return f"{part * 100:.1f} %"


def _numbers(record: dict[str, Any] | None) -> str:
    """The loss as its text has it, which is rounded less than its floats."""
    if record is None:
        return ""
    numbers = dict(re.findall(r"(\w+)=([^,)]+)", record["text"]))
    return brief(loss_from_plain({"definition": record["definition"], **numbers})) if numbers else str(record["text"])
