"""Answers released as they are: the mode, any function with a distance, and modes of subsamples."""

from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet import ApproxDP, InvalidArgument
from discreet.adversary import audit
from discreet.core.rounding import exp_down
from discreet.noise import Entropy
from discreet.robust import StableRelease, SubsampledRelease, Unstable, mode
from discreet.robust.aggregation.labels import label, tally
from discreet.robust.stable import gap_of
from discreet.robust.subsampled import more_than

from .worlds import every, neighbours


def law(mechanism: StableRelease, rows: Any) -> dict[object, Fraction]:
    passed = mechanism.test.chance(min(max(int(mechanism.distance(rows)), 0), mechanism.test.enough))
    return {mechanism.function(rows): passed, Unstable: 1 - passed}


def is_private(mechanism: StableRelease, relation: str, most: int) -> bool:
    grown, top = exp_down(mechanism.epsilon), 2
    for rows in every(top, most):
        for other in neighbours(rows, top, relation):
            ours, theirs = law(mechanism, rows), law(mechanism, other)
            for a, b in ((ours, theirs), (theirs, ours)):
                if (
                    sum(max(Fraction(0), chance - grown * b.get(said, 0)) for said, chance in a.items())
                    > mechanism.delta
                ):
                    return False
    return True


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_the_mode_is_private_on_every_small_pair_exactly(relation: Any) -> None:
    assert is_private(mode(1, "0.05", relation), relation, most=8)


def test_a_mode_charged_for_the_wrong_neighbours_is_caught() -> None:
    assert not is_private(mode(1, "0.05", "add_remove"), "replace", most=8)


def test_the_default_answers_at_least_as_often_as_the_book() -> None:
    best, book = mode(1, "1e-6"), mode(1, "1e-6", rule="book")
    assert best.loss == book.loss == ApproxDP(1, "1e-6")
    assert best.needed("0.05") < book.needed("0.05")


def test_modes_of_all_kinds_of_data() -> None:
    source = Entropy.for_tests(0)
    for data, expected in (
        (np.repeat([3, 5], [100, 9]), 3),
        (np.array(["a"] * 100 + ["b"]), "a"),
        (["a"] * 100 + [None, [1], {}], "a"),
        ([None] * 100, None),
        ([float("nan")] * 100, "nan"),
        ([True] * 60 + [1], True),
        ([(1, "x")] * 90, (1, "x")),
    ):
        found = mode(1, "1e-6").release(data, entropy=source).values
        assert str(found) == str(expected)
    for data in ([], [1], [1, 2] * 500, 7, np.array(3)):
        assert isinstance(mode(1, "1e-9").release(data, entropy=source).values, Unstable)


def test_equal_answers_that_are_written_differently_are_different() -> None:
    assert tally([1, True, 1.0, 1, 0.0, -0.0]) == [(1, 2), (-0.0, 1), (0.0, 1), (1.0, 1), (True, 1)]
    assert gap_of([1, True]) == (1, 0)


def test_what_may_not_leave_becomes_none() -> None:
    class Loud(str):
        pass

    for odd in (Loud("x"), [1], {1}, object(), 1 << 2000, (1, [2]), np.array([1]), 1j):
        assert label(odd) is None
    assert label(np.int64(3)) == 3
    assert label((np.float64(0.5), None)) == (0.5, None)


def test_functions_that_fail_have_no_answer() -> None:
    def fails(rows: Any) -> Any:
        raise KeyError(rows)

    assert StableRelease(fails, lambda rows: 99, 1, "1e-6").release([1]).values is None
    assert isinstance(StableRelease(len, fails, 1, "1e-12").release([1]).values, Unstable)


def test_the_tail_of_the_binomial_law_is_bounded_closely() -> None:
    from scipy.stats import binom

    for blocks, rate, cap in ((400, "0.0025", 9), (50, "0.1", 12), (1000, "0.01", 30), (10, "0.5", 9)):
        exact = binom.sf(cap, blocks, float(rate))
        assert exact * (1 - 1e-9) <= float(more_than(blocks, Fraction(rate), cap)) <= 1.4 * exact
    assert more_than(10, Fraction(1, 2), 10) == 0
    assert more_than(10, Fraction(1, 2), 3) == 1


def majority(rows: Any) -> str:
    return "many" if np.mean(rows) > 0.5 else "few"


def test_subsamples_that_agree_give_their_answer() -> None:
    mechanism = SubsampledRelease.for_blocks(majority, 1, "1e-6", 300)
    assert mechanism.loss.epsilon == 1
    assert mechanism.loss.delta <= Fraction(1, 10**6)
    found = Counter(
        str(mechanism.release(np.repeat([0, 1], [500, 9500]), entropy=Entropy.for_tests(seed)).values)
        for seed in range(15)
    )
    assert found["many"] >= 10
    split = mechanism.release(np.repeat([0, 1], [5000, 5000]), entropy=Entropy.for_tests(1)).values
    assert isinstance(split, Unstable)


def test_replaced_records_pay_no_more_than_the_test() -> None:
    added, replaced = (
        SubsampledRelease(majority, 1, "1e-6", 300, "0.003", 8, relation) for relation in ("add_remove", "replace")
    )
    assert replaced.loss == ApproxDP(1, "1e-6")
    assert added.loss.delta == Fraction(1, 10**6) + more_than(300, Fraction("0.003"), 8)


def test_the_book_asks_for_millions_of_blocks() -> None:
    book = SubsampledRelease.book(majority, 1, "1e-6", 10_000)
    assert book.blocks > 10**7
    assert float(book.rate) == pytest.approx(1 / (64 * np.log(1e6)))
    assert book.loss.epsilon == 1
    assert Fraction(1, 10**6) <= book.loss.delta < Fraction(1, 10**6) * (1 + Fraction(1, 10**9))


def subsampled_law(mechanism: SubsampledRelease, rows: tuple[int, ...]) -> dict[object, Fraction]:
    """By going through all draws of who is in which block."""
    found: dict[object, Fraction] = {}
    q, m = mechanism.rate, mechanism.blocks
    for drawn in product(product((0, 1), repeat=m), repeat=len(rows)):
        chance = Fraction(1)
        for held in drawn:
            chance *= q ** sum(held) * (1 - q) ** (m - sum(held))
        if any(sum(held) > mechanism.cap for held in drawn):
            passed, answer = Fraction(0), None
        else:
            blocks = [[row for row, held in zip(rows, drawn, strict=True) if held[i]] for i in range(m)]
            answer, lead = gap_of([mechanism.function(block) for block in blocks])
            passed = mechanism.test.chance(max(0, lead - 1) // (2 * mechanism.cap))
        found[answer] = found.get(answer, Fraction(0)) + chance * passed
        found[Unstable] = found.get(Unstable, Fraction(0)) + chance * (1 - passed)
    return found


@pytest.mark.parametrize(("relation", "other"), [("add_remove", (1, 1)), ("replace", (1, 1, 0))])
def test_subsampling_is_private_exactly_on_small_pairs(relation: Any, other: tuple[int, ...]) -> None:
    mechanism = SubsampledRelease(sum, 2, "0.05", 4, "0.3", 1, relation)
    ours, theirs = subsampled_law(mechanism, (1, 1, 1)), subsampled_law(mechanism, other)
    grown = exp_down(mechanism.epsilon)
    gaps = [
        sum(max(Fraction(0), chance - grown * b.get(said, Fraction(0))) for said, chance in a.items())
        for a, b in ((ours, theirs), (theirs, ours))
    ]
    assert max(gaps) <= mechanism.loss.delta


def test_a_lead_not_divided_by_the_cap_is_accused() -> None:
    """Answers of one record in all blocks: the auditor tells them apart when one record counts as one block."""

    class Bold(SubsampledRelease):
        def release(self, data: Any, *, entropy: Any = None) -> Any:
            answer, lead = gap_of([self.function(data)] * self.blocks)
            return answer if self.test.passes(lead - 1, Entropy()) else "⊥"

    bold = Bold(len, 1, "1e-3", 60, "0.9", 60, "replace")
    found = audit(bold.release, [1, 2], [1], samples=2000, delta="1e-3")
    assert found.violates(ApproxDP(1, "1e-3")), str(found)


def test_functions_on_blocks_may_fail_and_mutate() -> None:
    data = np.zeros(200)

    def rude(rows: Any) -> Any:
        rows += 1
        raise RuntimeError(str(rows))

    mechanism = SubsampledRelease(rude, 5, "0.01", 60, "0.01", 6)
    values = {str(mechanism.release(data, entropy=Entropy.for_tests(seed)).values)[:4] for seed in range(8)}
    assert values <= {"None", "not "}
    assert not data.any()
    for tiny in ([], [1], np.zeros((0, 3))):
        mechanism.release(tiny)


@pytest.mark.parametrize("blocks", [1, 10, 20])
def test_too_few_blocks_are_refused_with_how_many_do(blocks: int) -> None:
    with pytest.raises(InvalidArgument, match="blocks"):
        SubsampledRelease.for_blocks(majority, 1, "1e-6", blocks)


@pytest.mark.parametrize(
    ("argument", "bad"),
    [
        ("function", 3),
        ("epsilon", 0),
        ("delta", 0),
        ("blocks", 0),
        ("rate", 0),
        ("cap", 0),
        ("neighbours", "x"),
        ("rule", "x"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(argument: str, bad: Any) -> None:
    given = {"function": majority, "epsilon": 1, "delta": "1e-6", "blocks": 9, "rate": "0.1", "cap": 5}
    with pytest.raises(InvalidArgument, match=argument):
        SubsampledRelease(**(given | {argument: bad}))
