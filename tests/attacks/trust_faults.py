"""Faults planted in what is shown and stored, one at a time."""

import re
from typing import Any
from unittest.mock import patch

from tests.attacks.faults import together

from discreet.app.config import registration, settings
from discreet.core import errors
from discreet.core.display import html as markup
from discreet.core.display import secrets
from discreet.core.display import text as texts
from discreet.estimation import result as estimation
from discreet.ledger.stores import addresses

NEVER = re.compile(r"(?!)()()()")


def nothing_escaped() -> Any:
    """Texts are put into HTML as they are."""
    return patch.object(markup, "_escaped", str)


def one_renderer_of_its_own() -> Any:
    """A plan is joined to HTML by hand, and taken for a piece."""
    return patch.object(estimation, "broken", lambda parts: markup.Html("<br>".join(parts)))


def characters_obeyed() -> Any:
    """Control characters leave as they came."""
    return patch.object(texts, "_HIDDEN", NEVER)


def characters_of_terminals_alone() -> Any:
    """Escape sequences are known, and what turns the direction of letters is not."""
    return patch.object(texts, "_HIDDEN", re.compile("[\x00-\x1f\x7f]"))


def formulas_run() -> Any:
    return patch.object(texts, "_FORMULA", NEVER)


def numbers_in_words() -> Any:
    """What is not finite is a text in JSON."""
    return patch.object(texts, "_finite", lambda value: {"x": ["NaN"]} if "x" in value else value)


def redaction_of_small_letters() -> Any:
    """Schemes and names of options are known in small letters alone."""
    return together(
        patch.object(secrets, "_USER", re.compile(r"postgres(?:ql)?://")),
        patch.object(secrets, "_OPTION", re.compile(secrets._OPTION.pattern)),
    )


def redaction_of_urls() -> Any:
    """Words of connections and options are taken for harmless."""
    return together(patch.object(secrets, "_OPTION", NEVER), patch.object(secrets, "_PAIR", NEVER))


def what_follows_the_last_at_is_a_host() -> Any:
    """Options are cut off after the user is, and a password in them is taken for one."""
    return patch.object(addresses, "server_of", lambda text: text.rpartition("@")[2].partition("?")[0])


def quoted() -> Any:
    return patch.object(errors, "redacted", str)


def any_address_is_a_path() -> Any:
    """What is no address that we know is the path of a file."""
    return together(
        patch.object(registration, "known_place", lambda argument, place, *kinds: place),
        patch.object(settings, "known_place", lambda argument, place, *kinds: place),
        patch.object(registration, "holds_secret", lambda text: False),
    )
