"""How the books write things down: one text for one meaning, and nothing rounded.

>>> canonical(loss_to_plain(ApproxDP(3, "1e-6")))
'{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3"}'
>>> loss_from_plain(loss_to_plain(ApproxDP(3, "1e-6")))
ApproxDP(epsilon=3, delta=1e-06)
>>> shown(account_path(("health", "flu study", "ann")))
'health/flu study/ann'
>>> shown(everywhere("health", "ann")), above(("health", "flu study", "ann"))[:2]
('health/*/ann', [('health',), ('health', '', 'flu study')])
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet.core import units
from discreet.core.display.secrets import holds_secret
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event, from_json, to_json
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP

__all__ = [
    "Path",
    "above",
    "account_path",
    "attempt_key",
    "canonical",
    "covers",
    "digest",
    "events_from_plain",
    "events_to_plain",
    "everywhere",
    "is_everywhere",
    "loss_from_plain",
    "loss_to_plain",
    "path_text",
    "plain_text",
    "shown",
    "source_text",
    "study_key",
    "unit_from_plain",
    "unit_to_plain",
]

Path = tuple[str, ...]
"""An account: the data set, then the study, then the analyst; or one name wherever it stands in a data set."""

_EVERYWHERE = ""
"""Stands for all studies. No name is empty, so no study, in no books, was ever called so."""

MOST_LEVELS = 8
LONGEST_NAME = 200
LONGEST_SOURCE = 4096
_LOSSES: dict[str, Callable[..., Loss]] = {
    "PureDP": PureDP,
    "ApproxDP": ApproxDP,
    "ZCDP": ZCDP,
    "RenyiDP": RenyiDP,
}
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_UNITS = {kind.__name__: kind for kind in (units.Row, units.User, units.Event, units.Edge, units.Node)}


def canonical(value: object) -> str:
    """Plain data as JSON: keys in order, no spaces."""
    return _ENCODER.encode(value)


@lru_cache(maxsize=4096)
def path_text(path: Path) -> str:
    """The canonical text of an account, under which tables have it."""
    return canonical(path)


def digest(content: str | bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def attempt_key(question: str, attempt: int) -> str:
    """Under what the books keep an attempt of a question, which is given by its digest."""
    return question if attempt == 1 else _derived({"attempt": attempt, "question": question})


def study_key(question: str, path: Path) -> str:
    """Under what the books keep a question, given by its digest, where answers are kept per study: the name below the
    data set, or none, is part of it."""
    return _derived({"question": question, "study": path[1:2]})


def step_key(parent: int, number: int) -> str:
    """Under what the books keep a step of a question that was charged for several, in the entry `parent`."""
    return _derived({"parent": parent, "step": number})


def _derived(content: dict[str, Any]) -> str:
    """The key of what is made of a question or a charge: no question has it, for none has a NUL character."""
    return digest("\0" + canonical(content))


def account_path(account: object, *, charged: bool = False) -> Path:
    """The account that was named, or an error that says how to name one; only those in a tree can be charged at."""
    remedy = "write a tuple such as ('health', 'flu study', 'ann')"
    if not isinstance(account, tuple | list) or not 1 <= len(account) <= MOST_LEVELS:
        raise InvalidArgument("account", account, f"a tuple of 1 to {MOST_LEVELS} names", remedy)
    if is_everywhere(tuple(account)) and not charged:
        return everywhere(*account_path((account[0], account[2])))
    for name in account:
        plain_text("account", name, LONGEST_NAME)
        if name != name.strip() or "/" in name or unicodedata.normalize("NFC", name) != name:
            raise InvalidArgument("account", name, "without '/', outer spaces or decomposed accents", "rename it")
        if any(unicodedata.category(character).startswith("C") for character in name):
            raise InvalidArgument("account", name, "of visible characters", "rename it")
    return tuple(account)


def shown(path: Path) -> str:
    """The account as one line."""
    return "/".join(name or "*" for name in path)


def everywhere(dataset: str, name: str) -> Path:
    """The account of a name, such as an analyst's, wherever it stands below the data set: over all studies."""
    return dataset, _EVERYWHERE, name


def is_everywhere(path: Path) -> bool:
    """Whether this is the account of a name over all studies."""
    return len(path) == 3 and path[1] == _EVERYWHERE


def above(path: Path) -> list[Path]:
    """Whatever a charge at the account may have to be charged to, the data set first and the account itself last; the
    accounts of names over all studies, which come after the data set, need not be there."""
    if is_everywhere(path):
        return [path[:1], path]
    names = [everywhere(path[0], name) for name in dict.fromkeys(path[1:])]
    return [path[:1], *names, *(path[:depth] for depth in range(2, len(path) + 1))]


def covers(account: Path, charged: Path) -> bool:
    """Whether what is charged at one account counts at the other: above it, or its name over all studies."""
    if is_everywhere(account):
        return charged[0] == account[0] and account[2] in charged[1:]
    return charged[: len(account)] == account


def plain_text(argument: str, value: object, longest: int, *, empty: bool = False) -> str:
    """A text that UTF-8 and every database can hold, no longer than `longest`."""
    if not isinstance(value, str) or not (value or empty) or len(value) > longest:
        raise InvalidArgument(argument, value, f"a text of {0 if empty else 1} to {longest} characters", "shorten it")
    if "\0" in value:
        raise InvalidArgument(argument, value, "a text without NUL characters", "remove them")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(argument, value, "text that UTF-8 can hold", "remove lone surrogates") from None
    return value


def loss_to_plain(loss: Loss) -> dict[str, Any]:
    """A loss as plain data, in exact numbers."""
    return {"definition": type(loss).__name__} | {f.name: _number(getattr(loss, f.name)) for f in fields(loss)}


def loss_from_plain(record: dict[str, Any]) -> Loss:
    """The loss that `loss_to_plain` wrote."""
    return _LOSSES[record["definition"]](
        **{name: tuple(v) if isinstance(v, list) else v for name, v in record.items() if name != "definition"}
    )


def unit_to_plain(unit: units.Unit) -> dict[str, Any]:
    """A unit of privacy as plain data."""
    if type(unit).__name__ not in _UNITS:
        raise InvalidArgument("unit", unit, f"one of {sorted(_UNITS)}", "name who is protected")
    return {"kind": type(unit).__name__} | {f.name: getattr(unit, f.name) for f in fields(unit)}


def unit_from_plain(record: dict[str, Any]) -> units.Unit:
    """The unit that `unit_to_plain` wrote."""
    return _UNITS[record["kind"]](**{name: value for name, value in record.items() if name != "kind"})


def events_to_plain(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Events as plain data."""
    try:
        return [to_json(event) for event in events]
    except (KeyError, AttributeError):
        raise InvalidArgument("events", "an object", "one of discreet.core.events", "build it from these") from None
    except ValueError:
        raise InvalidArgument("events", "a number", "of at most 4300 digits", "round it to fewer digits") from None


def events_from_plain(records: list[dict[str, Any]]) -> tuple[Event, ...]:
    """The events that `events_to_plain` wrote."""
    return tuple(from_json(record) for record in records)


def _number(value: Fraction | tuple[Fraction, ...]) -> str | list[str]:
    if isinstance(value, tuple):
        return [str(number) for number in value]
    try:
        return str(value)
    except ValueError:
        raise InvalidArgument("budget", "a number", "of at most 4300 digits", "round it to fewer digits") from None


_PATH = re.compile(r"file:(?:/(?!/)|[A-Za-z]:[\\/])")
"""The full path of a file or folder; after `file://` there may be a server, and a password for it."""


def source_text(value: object) -> str:
    """A text that identifies data, which the books keep for ever: it must hold no password or token. Paths may hold
    what looks like one, for no driver takes one from there: `pass=1` is a folder of rows that passed."""
    text = plain_text("source", value, LONGEST_SOURCE)
    if not _PATH.match(text) and holds_secret(text):
        raise InvalidArgument("source", value, "without a password, key or token", "leave it out of the address")
    return text
