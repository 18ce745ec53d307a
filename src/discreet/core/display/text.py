"""Texts of others on their way out: to a terminal, a page, a sheet or a program.

Names, keys, notes and questions are written by whoever made the data or asks, and may hold anything. Where they are
shown they must stay texts: an escape sequence moves the cursor and paints over what a terminal says, an override of
direction shows letters in another order, a line break forges a line, a cell that begins with `=` is run by a
spreadsheet. Here are the only functions that make them harmless; `display/html.py` is the same for HTML.

>>> visible("\\x1b[2Jall clear"), visible("one\\ntwo"), visible("one\\ntwo", lines=True)
('\\\\x1b[2Jall clear', 'one\\\\ntwo', 'one\\ntwo')
>>> csv_cell("=1+1"), csv_cell(-5), csv_cell("-5.5"), csv_cell("- none")
("'=1+1", -5, '-5.5', "'- none")
>>> json_text({"x": float("nan"), "y": "\\u2028"}, indent=None)
'{"x": null, "y": "\\\\u2028"}'
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["csv_cell", "json_text", "visible"]

# Control characters (Cc), format characters (Cf) but joiners of letters, line and paragraph separators, and half pairs;
# tests/core/test_texts.py compares it with Unicode's own table.
_HIDDEN_CLASS = (
    "\x00-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HIDDEN = re.compile(f"[{_HIDDEN_CLASS}]")
_NAMES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_FORMULA = re.compile(rf"[\s{_HIDDEN_CLASS}]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20\ufe62\ufe63\ufe66\ufe6b]")
"""Where spreadsheets begin to compute, in narrow, small and wide letters, behind whatever they skip: a byte order mark
at the beginning of a file is taken for its encoding."""
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")


def visible(text: str, *, lines: bool = False) -> str:
    """The text with every character that is obeyed instead of shown written as its code; `lines` leaves line breaks."""
    if text.isprintable():
        return text
    return _HIDDEN.sub(lambda found: found[0] if lines and found[0] == "\n" else _code(found[0]), text)


def csv_cell(value: Any) -> Any:
    """A cell for CSV: a text that a spreadsheet would compute gets an apostrophe before it; numbers stay as they are,
    and so do texts that read as numbers."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value) or not _FORMULA.match(value):
        return value
    return f"'{value}"


def json_text(record: object, *, indent: int | None = 2) -> str:
    """Valid JSON whatever the numbers (what is not finite is null), and harmless on a terminal."""
    text = json.dumps(_finite(record), ensure_ascii=False, indent=indent, allow_nan=False)
    return _HIDDEN.sub(lambda found: found[0] if found[0] == "\n" else json.dumps(found[0])[1:-1], text)


def _code(character: str) -> str:
    number = ord(character)
    if character in _NAMES:
        return _NAMES[character]
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(held) for held in value]
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
