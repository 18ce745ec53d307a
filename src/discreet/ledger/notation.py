"""How the books write things down: one text for one meaning, and nothing rounded.

>>> canonical(loss_to_plain(ApproxDP(3, "1e-6")))
'{"definition":"ApproxDP","delta":"1/1000000","epsilon":"3"}'
>>> loss_from_plain(loss_to_plain(ApproxDP(3, "1e-6")))
ApproxDP(epsilon=3, delta=1e-06)
>>> shown(account_path(("health", "flu study", "ann")))
'health/flu study/ann'
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import fields
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet.core import units
from discreet.core.errors import InvalidArgument
from discreet.core.events import Event, from_json, to_json
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP

__all__ = [
    "Path",
    "account_path",
    "canonical",
    "digest",
    "events_from_plain",
    "events_to_plain",
    "loss_from_plain",
    "loss_to_plain",
    "path_text",
    "plain_text",
    "shown",
    "unit_from_plain",
    "unit_to_plain",
]

Path = tuple[str, ...]
"""An account: the data set, then the study, then the analyst."""

MOST_LEVELS = 8
LONGEST_NAME = 200
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


def account_path(account: object) -> Path:
    """The account that was named, or an error that says how to name one."""
    remedy = "write a tuple such as ('health', 'flu study', 'ann')"
    if not isinstance(account, tuple | list) or not 1 <= len(account) <= MOST_LEVELS:
        raise InvalidArgument("account", account, f"a tuple of 1 to {MOST_LEVELS} names", remedy)
    for name in account:
        plain_text("account", name, LONGEST_NAME)
        if name != name.strip() or "/" in name or unicodedata.normalize("NFC", name) != name:
            raise InvalidArgument("account", name, "without '/', outer spaces or decomposed accents", "rename it")
        if any(unicodedata.category(character).startswith("C") for character in name):
            raise InvalidArgument("account", name, "of visible characters", "rename it")
    return tuple(account)


def shown(path: Path) -> str:
    """The account as one line."""
    return "/".join(path)


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
