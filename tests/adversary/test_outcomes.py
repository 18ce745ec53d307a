"""Every output becomes columns, and nothing an observer could see is lost."""

import dataclasses
import datetime
import enum
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from discreet.adversary.auditing.outcomes import encode
from discreet.core.errors import InvalidArgument
from discreet.core.events import Pure
from discreet.core.losses import PureDP
from discreet.core.mechanism import Release


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Point:
    x: int
    y: float


class Held:
    """An object that prints as its address."""

    def __init__(self, held):
        self.held = held


def same(one, other):
    """Whether two outputs look alike to the auditor."""
    first, second = encode([one, None]), encode([other, None])
    if set(first.tables) != set(second.tables):
        return False
    pairs = [(first.tables[kind], second.tables[kind]) for kind in first.tables]
    return all(
        np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for left, right in pairs
        for a, b in zip(left.columns, right.columns, strict=True)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (1, 1.0),
        (1, True),
        (1.0, np.float64(1.0)),
        (np.float32(1), np.float64(1)),
        (0, None),
        ("a", "b"),
        ("a", b"a"),
        ("a", "a\0"),
        (b"a", b"a\0"),
        ("\ud800", "\ud801"),
        (np.bytes_(b"\xff"), np.bytes_(b"\xfe")),
        (memoryview(b"a"), memoryview(b"b")),
        (Fraction(10**400), Fraction(10**400) + 1),
        (Decimal("sNaN"), Decimal("sNaN1")),
        (Held(1), Held(2)),
        (1 << 70, (1 << 70) + 1),
        (1j, 1.0),
        (Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)),
        (Decimal("1.0"), Decimal("1.00")),
        (Colour.RED, Colour.BLUE),
        (Point(1, 2.0), Point(1, 3.0)),
        ((1, 2), [1, 2]),
        ((1, 2), (1, 2, 3)),
        ([1, None], [None, 1]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"b": 1}),
        ({1, 2}, {1, 3}),
        (frozenset({1}), {1}),
        (np.array([1, 2]), np.array([1, 3])),
        (np.array([1, 2]), np.array([[1, 2]])),
        (np.array([1, 2], np.int32), np.array([1, 2], np.int64)),
        (np.array([1, None], object), np.array([1, 2], object)),
        (np.datetime64("2024-01-01"), np.datetime64("2024-01-02")),
        (np.uint64(2**64 - 1), np.uint64(2**64 - 2)),
        (datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)),
        (ValueError("3 rows"), ValueError("4 rows")),
        (ValueError("3 rows"), TypeError("3 rows")),
        ("x" * 100 + "1", "x" * 100 + "2"),
        (Release(1, PureDP(1), ()), Release(1, PureDP(2), ())),
        (Release(1, PureDP(1), ()), Release(1, PureDP(1), (Pure(Fraction(1)),))),
        (Release(1, PureDP(1), ()), Release(2, PureDP(1), ())),
        (Release(1, PureDP(1), ()), Release(1, PureDP(1), (), private=False)),
    ],
)
def test_outputs_that_differ_look_different(one, other):
    assert not same(one, other)
    assert same(one, one)
    assert same(other, other)


def test_an_iterator_is_refused():
    with pytest.raises(InvalidArgument, match="list of what the iterator gives"):
        encode([iter([1])])


def test_addresses_of_objects_are_not_outputs():
    assert same(object(), object())


@pytest.mark.parametrize(
    "outputs",
    [
        [1.0, 2.5, float("nan")],
        [1, 2, 3],
        [True, False, True],
        [np.float32(1), np.float32(2), np.float32(0.1)],
        [np.array([1, 2]), np.array([3, 4]), np.array([5, 6])],
    ],
)
def test_quick_and_general_encodings_agree(outputs):
    quick, general = encode(outputs), encode([*outputs, None])
    (kind,) = quick.tables
    for ours, theirs in zip(quick.tables[kind].columns, general.tables[kind].columns, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_array_and_list_of_its_rows_agree():
    array = np.arange(12.0).reshape(4, 3)
    whole, rows = encode(array), encode(list(array))
    assert set(whole.tables) == set(rows.tables)
    np.testing.assert_array_equal(whole.tables["float64 array of shape (3,)"].numbers, array)


def test_structured_and_complex_arrays_have_named_columns():
    records = np.array([(1, 0.5), (2, 0.25)], dtype=[("count", int), ("mean", float)])
    (table,) = encode(records).tables.values()
    assert table.names == ("output.count", "output.mean")
    (table,) = encode(np.array([1 + 2j, 3 - 1j])).tables.values()
    assert table.columns[1].tolist() == [2.0, -1.0]


def test_releases_of_one_loss_are_read_as_their_values():
    outcomes = encode([Release(np.array([i, 2 * i]), PureDP(1), ()) for i in range(5)])
    (table,) = outcomes.tables.values()
    assert table.columns[1].tolist() == [0, 2, 4, 6, 8]


def test_kinds_are_numbered_and_new_ones_come_last():
    outcomes = encode([1, None, "a", 2])
    assert outcomes.kinds(["int", "str"]).tolist() == [0, 2, 1, 0]


def test_uint64_keeps_its_order():
    values = np.array([0, 1, 2**63, 2**64 - 1], np.uint64)
    (table,) = encode(values).tables.values()
    assert table.columns[0].tolist() == sorted(set(table.columns[0].tolist()))
    assert table.names == ("output − 2^63",)
    assert [number + 2**63 for number in table.columns[0].tolist()] == values.tolist()


def test_empty_arrays_and_empty_tuples_have_no_columns():
    assert encode(np.empty((3, 0))).tables["float64 array of shape (0,)"].columns == ()
    assert encode([(), ()]).tables["tuple()"].columns == ()
