"""The classes of privacy bugs that shipped in real libraries, the attacks that look for them, and the faults they find.

Each class has a number. A test says which classes it attacks, and which faults planted in our own code make it fail:

    @attack(15, finds=[exchange_counted_once], neighbours="replace")
    def test_replacing_a_unit_moves_twice_as_much(neighbours): ...

The test itself is the honest run. `tests/attacks/test_register.py` runs it again with each fault planted, where it must
fail, and asserts that no class is without an attack that has found something. What is given by name is what the test
is called with; `tmp_path` and `monkeypatch` need not be given.

Attacks on questions run on DuckDB. What depends on the engine (3, 4, 5, 8, 9, 11, 13, 16, 17, 18, 27) holds on others
because their totals are the same whole numbers, for a corpus, random questions and rows that hold anything
(`tests/engines/test_contract.py`). 10 has tests of its own on each (`test_postgres_expressions.py` and
`test_spark_expressions.py`, with wrong writers that are noticed), as have types and lists (28), what errors tell and
which names share a budget (31: `test_postgres.py`, `test_postgres_catalog.py`, `test_spark.py`). Mechanisms that are
broken from the start, for the auditor to find, carry the same numbers (`tests/broken`).
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

Fault = Callable[[], Any]
"""Makes a context manager within which the fault is planted."""
Test = TypeVar("Test", bound=Callable[..., None])

CLASSES = {
    1: "low-order bits tell what noise was added to",
    2: "outputs that one data set reaches and its neighbour does not",
    3: "sums of doubles that depend on order and move by more than a row",
    4: "a mean rounded on the way, where values are large and close together",
    5: "whole numbers that wrap at the ends of their type",
    6: "a product of bounds that overflows instead of being refused",
    7: "a bound cut short by a division",
    8: "NaN, infinities, −0.0, subnormals, no rows and no values: an error, a type or an exact number shows",
    9: "NaN that passes a clamp, or counts as something it is not",
    10: "an engine that computes something else than the plan says",
    11: "one bad row that turns an answer into a failure",
    12: "values that do not follow from their row alone",
    13: "limits that are computed and not used",
    14: "the wrong one of two bounds",
    15: "a replaced unit counted as one change, not as two",
    16: "a bound that outlives the column it was declared for",
    17: "one row more that moves other rows",
    18: "a unit with rows in many groups, many tables and under no key",
    19: "an average whose noise supposes that the number of rows is known",
    20: "the price of another mechanism",
    21: "a threshold that is reached, not passed",
    22: "a last bit without noise, an answer whose length is a secret",
    23: "one sample measured twice, at the price of two samples",
    24: "division by a number of rows that was not drawn",
    25: "a running price that is too low where the analyst may choose when to stop",
    26: "the published versions of sparse vector that do not keep their promise",
    27: "groups left out, or in an order that follows the rows",
    28: "bounds, types, lists and limits read off the rows",
    29: "other generators, states shared by forked processes, seeds of tests in earnest",
    30: "work that depends on the noise drawn, or on one row",
    31: "books: run before charge, refunds, errors that quote, fresh budgets by other names, crashes, races",
    32: "a name in a question that a statement takes for one of its own, so that what it limits is not limited",
    33: "a run that ends before its outcome is stored, and is repeated for free with new noise",
    34: "one value that makes a whole column be read by another rule",
    35: "code of a function that runs before it is confined, powers it keeps, files it opens, text of a trial",
    36: "test randomness accepted where releases are real",
    37: "the same rows under two names, each charged as if it were alone, where every row is a unit",
    38: "work, and so time, that one person can multiply: many matches of long texts",
    39: "signed text that is not the text that ran; a check that says valid of what it did not check",
    40: "output that one of many renderers does not escape: tags, escape sequences, formulas",
    41: "secrets in spellings of an address that the redaction does not know",
    42: "a planner that does any amount of work for a price, which is free",
    43: "an audit or a debugging aid that changes what a live session does",
    44: "identities made of the names of our classes or of what a planner chose: a change sells everything again",
    45: "an accountant that takes a legal-looking parameter for no loss at all",
    46: "accounts that a typo opens without a cap; caps that hold in one place of a tree and not in another",
    47: "exact arithmetic on decimals done in binary floating point: answers that are wrong without a word",
    48: "a source that changes under an open session, so that rows whose budget is spent are answered",
    49: "a statement that cannot work, whatever the rows, and is charged",
    50: "durability that a cancelled wait only seems to give",
    51: "a file that every question parses anew, where a line break loses rows and a row makes it fail",
    52: "two questions of one identity: what was stored of one is shown for the other",
    53: "two columns whose names differ in case alone, one taken for the other: rows are owned by the wrong people",
}
"""Every class of bug, by its number."""


@dataclass(frozen=True)
class Attack:
    """A test, the classes that it attacks, and the faults that it must find."""

    check: Callable[..., None]
    classes: tuple[int, ...]
    finds: tuple[Fault, ...]
    given: dict[str, Any]

    @property
    def name(self) -> str:
        return self.check.__name__.removeprefix("test_")

    def run(self, folder: Path) -> None:
        """The test, with files in a new folder; raises where it fails."""
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patches:
            fixtures = {"tmp_path": folder, "monkeypatch": patches}
            wanted = inspect.signature(self.check).parameters
            self.check(**self.given, **{name: value for name, value in fixtures.items() if name in wanted})


ATTACKS: list[Attack] = []


def attack(*classes: int, finds: Sequence[Fault], **given: Any) -> Callable[[Test], Test]:
    """Registers the decorated test."""

    def registered(check: Test) -> Test:
        ATTACKS.append(Attack(check, classes, tuple(finds), given))
        return check

    return registered


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Ours with the fault in it; what was computed meanwhile is forgotten."""
    _forget()
    try:
        with fault():
            yield
    finally:
        _forget()


def _forget() -> None:
    for name, module in list(sys.modules.items()):
        if name.startswith("discreet.sql."):
            for kept in vars(module).values():
                clear = getattr(kept, "cache_clear", None)
                if clear is not None:
                    clear()
