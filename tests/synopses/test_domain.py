"""Domains read every value, refuse what is public and wrong, and come back from JSON."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from discreet import InvalidArgument
from discreet.noise import Entropy
from discreet.synopses import Attribute, Domain

AGE = Attribute.binned("age", (0, 10, 20.5, 30))
SEX = Attribute("sex", ("F", "M", None))
PLAN = Attribute("plan", (3, 1, 2))


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        ([0, 9.999, 10, 20.4999, 20.5, 30], [0, 0, 1, 1, 2, 2]),
        ([-math.inf, math.inf, math.nan, None, "x", 10**400, -(10**400), object(), True], [0, 2, 0, 0, 0, 2, 0, 0, 0]),
        (np.array([5, 15, 2**62]), [0, 1, 2]),
        (np.array([], dtype=np.float64), []),
        ([], []),
        (["a"], [0]),
    ],
)
def test_numbers_go_to_their_bin_or_the_nearest(column: object, codes: list[int]) -> None:
    assert AGE.codes(column).tolist() == codes


@pytest.mark.parametrize(
    ("attribute", "column", "codes"),
    [
        (SEX, ["M", "F", None, math.nan, "other", [], {}, Decimal("sNaN"), b"M", 7], [1, 0, 2, 2, 2, 2, 2, 2, 2, 2]),
        (SEX, np.array(["M", "F", "?"]), [1, 0, 2]),
        (SEX, pa.array(["M", None]), [1, 2]),
        (PLAN, np.array([1, 2, 3, 4, -(2**63)]), [1, 2, 0, 2, 2]),
        (PLAN, np.array([1, 2**64 - 1], dtype=np.uint64), [1, 2]),
        (PLAN, np.array([True, False]), [1, 2]),
        (PLAN, [1.0, 1.5, np.int8(3), None], [1, 2, 0, 2]),
        (PLAN, np.array([3.0, np.nan]), [0, 2]),
    ],
)
def test_categories_that_are_unknown_go_to_the_last(attribute: Attribute, column: object, codes: list[int]) -> None:
    assert attribute.codes(column).tolist() == codes


def test_histograms_count_every_record_once() -> None:
    domain = Domain((SEX, AGE, PLAN))
    generator = np.random.default_rng(1)
    columns = {
        "sex": generator.choice(np.array(["F", "M", "x"]), 500),
        "age": generator.normal(15, 20, 500),
        "plan": generator.integers(0, 5, 500),
        "other": ["left alone"],
    }
    histogram = domain.histogram(columns)
    assert histogram.sum() == 500
    assert histogram.size == domain.size == 27
    cells = np.repeat(np.arange(27), histogram)
    again = domain.histogram(domain.decode(cells, Entropy.for_tests(1)))
    assert (again == histogram).all()
    assert (domain.histogram(domain.decode(cells)) == histogram).all()
    assert (domain.cells(domain.codes(np.arange(27))) == np.arange(27)).all()


def test_whole_numbers_are_drawn_from_all_of_their_bin() -> None:
    attribute = Attribute.binned("n", (0, 2, 5), whole=True)
    codes = np.repeat([0, 1], 300)
    drawn = attribute.decode(codes, Entropy.for_tests(3))
    assert set(drawn[:300]) == {0, 1}
    assert set(drawn[300:]) == {2, 3, 4, 5}


def test_domains_come_back_from_json() -> None:
    import json

    domain = Domain((SEX, AGE, PLAN, Attribute("b", (True, False)), Attribute.binned("n", (0, 2, 5), whole=True)))
    assert Domain.from_json(json.loads(json.dumps(domain.to_json()))) == domain


def test_histograms_are_held() -> None:
    domain = Domain((PLAN,))
    assert domain.held([-5, 2**70, 3]).tolist() == [0, 2**62 - 1, 3]
    with pytest.raises(InvalidArgument, match="3 counts"):
        domain.held([1, 2])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Attribute("", (1,)), "name"),
        (lambda: Attribute("a", ()), "at least one"),
        (lambda: Attribute("a", (1, True)), "distinct"),
        (lambda: Attribute("a", (1.5,)), "binned"),
        (lambda: Attribute("a", "ab"), "at least one"),
        (lambda: Attribute.binned("a", (1,)), "two or more"),
        (lambda: Attribute.binned("a", (1, 1)), "increasing"),
        (lambda: Attribute.binned("a", (0, math.inf)), "finite"),
        (lambda: Attribute.binned("a", (0, 1.5), whole=True), "whole numbers"),
        (lambda: Domain(()), "one or more"),
        (lambda: Domain((SEX, SEX)), "distinct"),
        (lambda: Domain((SEX, AGE)).attribute("agee"), "there is age"),
        (lambda: Domain((SEX, AGE)).histogram({"sex": ["F"]}), "give age"),
        (lambda: Domain((SEX, AGE)).histogram({"sex": ["F"], "age": [1, 2]}), "equally long"),
        (lambda: Domain((SEX,)).histogram({"sex": "F"}), "a list or an array"),
        (lambda: Domain(tuple(Attribute(f"a{i}", range(100)) for i in range(9))).histogram({}), "GB"),
    ],
)
def test_what_is_public_and_wrong_is_refused(build: object, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        build()
