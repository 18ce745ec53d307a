"""What is obeyed instead of shown, and what a spreadsheet would compute, by Unicode's own tables."""

import unicodedata

import pytest

from discreet.core.display.text import csv_cell, visible

JOINERS = "\u200c\u200d"


def test_no_character_that_is_obeyed_is_shown_as_it_is() -> None:
    obeyed = {"Cc", "Cf", "Zl", "Zp", "Cs"}
    for character in map(chr, range(0x110000)):
        if unicodedata.category(character) in obeyed and character not in JOINERS:
            assert visible(f"a{character}b") != f"a{character}b", hex(ord(character))


@pytest.mark.parametrize("before", ["", " ", "\ufeff", "\u200b", "\xad", "\u2060", "\x00", "\t", "\ufeff \u200b"])
@pytest.mark.parametrize("sign", [*"=+-@", "\uff1d", "\uff0b", "\ufe62", "\ufe63", "\ufe66"])
def test_whatever_stands_before_a_formula_it_is_a_text(before: str, sign: str) -> None:
    assert csv_cell(f"{before}{sign}1+A1").startswith("'")
