"""Choices made on raw blocks: private on every small table of choices, and honest about what it takes for granted."""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet import ApproxDP, InvalidArgument
from discreet.adversary import audit
from discreet.core.rounding import exp_down
from discreet.noise import Entropy
from discreet.robust import RawData, SignificantFeatures, Unstable

Choices = tuple[Any, ...]
LISTS = ((), ("a",), ("b",), ("a", "b"))


def changed(choices: Choices, options: Choices) -> Iterator[Choices]:
    """With one choice made otherwise."""
    for i, new in product(range(len(choices)), options):
        yield (*choices[:i], new, *choices[i + 1 :])


def worst(study: RawData, options: Choices) -> Fraction:
    """Σ (P − e^ε·P′)⁺ less δ, of the worst pair among all tables of choices."""
    grown, found = exp_down(study.epsilon), Fraction(-1)
    laws = {}
    for choices in product(options, repeat=study.blocks):
        answer, distance = study._judge(list(choices))
        laws[choices] = answer, study.test.chance(distance)
    for choices, (answer, passed) in laws.items():
        for other in changed(choices, options):
            theirs, chance = laws[other]
            gap = max(Fraction(0), passed - grown * (chance if theirs == answer else 0))
            gap += max(Fraction(0), 1 - passed - grown * (1 - chance))
            found = max(found, gap - study.delta)
    return found


@pytest.mark.parametrize("part", ["0.2", "0.5"])
def test_features_are_private_on_every_small_table(part: str) -> None:
    assert worst(SignificantFeatures(5, 1, "0.05", part=part), LISTS) <= 0


def test_choices_are_private_on_every_small_table() -> None:
    assert worst(RawData(6, 1, "0.05"), ("a", "b", None)) <= 0


class Unhalved(RawData):
    """One choice moves the lead by 2, which this forgets."""

    def _judge(self, choices: list[Any]) -> Any:
        counts = Counter(choices).most_common(2)
        return counts[0][0], counts[0][1] - (counts[1][1] if len(counts) > 1 else 0) - 1


class Forgetful(SignificantFeatures):
    """Features that nobody named cannot come up."""

    def _judge(self, choices: list[Any]) -> Any:
        answer, _ = super()._judge(choices)
        line, counts = int(self.part * self.blocks), Counter(name for listed in choices for name in listed)
        return answer, min((abs(number - line - 0.5) - 0.5 for number in counts.values()), default=self.blocks)


class Near(SignificantFeatures):
    """A feature on the line counts as one away from it."""

    def _judge(self, choices: list[Any]) -> Any:
        answer, distance = super()._judge(choices)
        return answer, distance + 1


@pytest.mark.parametrize(
    ("study", "options"),
    [
        (Unhalved(6, 1, "0.05"), ("a", "b")),
        (Forgetful(5, 1, "0.05", part="0.1"), LISTS),
        (Near(5, 1, "0.05"), LISTS),
    ],
    ids=["unhalved", "forgetful", "near"],
)
def test_wrong_distances_are_caught(study: Any, options: Choices) -> None:
    judge = study._judge
    object.__setattr__(study, "_judge", lambda choices: (judge(choices)[0], max(0, int(judge(choices)[1]))))
    assert worst(study, options) > 0


def test_blocks_share_out_the_rows() -> None:
    study, source = RawData(7, 1, "1e-6"), Entropy.for_tests(0)
    rows = np.arange(1000)
    hands = study.hand_out(rows, entropy=source)
    assert len(hands) == 7
    assert sorted(np.concatenate(hands).tolist()) == rows.tolist()
    assert all(90 < len(block) < 200 for block in hands)
    hands[0][:] = -1
    assert rows.min() == 0
    columns = study.hand_out({"a": rows, "b": rows * 2}, entropy=source)
    assert all((block["b"] == 2 * block["a"]).all() for block in columns)
    assert sum(len(block) for block in study.hand_out(list("abcde"), entropy=source)) == 5
    import pandas as pd
    import pyarrow as pa

    frame = pd.DataFrame({"a": rows})
    assert sum(len(block) for block in study.hand_out(frame, entropy=source)) == 1000
    assert sum(block.num_rows for block in study.hand_out(pa.table({"a": rows}), entropy=source)) == 1000
    for nothing in ([], np.zeros((0, 3)), {"a": []}):
        assert len(study.hand_out(nothing)) == 7


@pytest.mark.parametrize("kind", [np.array, list, lambda units: np.array([str(u) for u in units], dtype=object)])
def test_all_rows_of_a_unit_are_in_one_block(kind: Callable[[Any], Any]) -> None:
    units = np.repeat(np.arange(200), 5) * 3
    hands = RawData(9, 1, "1e-6").hand_out(units, units=kind(units.tolist()))
    assert sum(len(set(block.tolist())) for block in hands) == 200


def test_blocks_are_drawn_evenly() -> None:
    """Each of 20,000 rows is in each of 4 blocks with chance 1/4, within six standard errors of a fixed seed."""
    sizes = [len(block) for block in RawData(4, 1, "1e-6").hand_out(np.arange(20_000), entropy=Entropy.for_tests(3))]
    assert all(abs(size - 5000) < 6 * (20_000 * 3 / 16) ** 0.5 for size in sizes)


def test_a_clear_choice_comes_out_and_a_split_one_does_not() -> None:
    study = RawData(60, 1, "1e-6")
    assert study.loss == ApproxDP(1, "1e-6")
    assert study.needed("0.05") == 31
    source = Entropy.for_tests(0)
    assert study.release(["mean"] * 58 + [None, ["odd"]], entropy=source).values == "mean"
    for split in (["a", "b"] * 30, [None] * 30 + ["a"] * 30, list(range(60)), ["a"] * 31 + ["b"] * 29):
        assert isinstance(study.release(split, entropy=source).values, Unstable)


def test_features_come_in_lists_of_any_kind() -> None:
    study = SignificantFeatures(60, 1, "1e-6")
    source = Entropy.for_tests(0)
    odd = [{"age"}, ["age", "age"], ("age",), np.array(["age"]), "age", frozenset({"age"}), [["x"], "age"]]
    assert study.release([*odd, *[["age", "sex"]] * 48, None, 7, [], {}, object()], entropy=source).values == (
        "age",
        "sex",
    )
    assert study.release([()] * 60, entropy=source).values == ()
    assert study.release([(3, 1, 2)] * 60, entropy=source).values == (1, 2, 3)
    assert isinstance(study.release([["a"]] * 30 + [[]] * 30, entropy=source).values, Unstable)
    assert SignificantFeatures(60, 1, "1e-6", part="0.5").needed("0.05") == 15


def decided(study: RawData, choose: Callable[[Any], Any]) -> Callable[[Any], str]:
    def run(rows: Any) -> str:
        return str(study.release([choose(block) for block in study.hand_out(np.array(rows))]).values)[:5]

    return run


def largest(block: Any) -> int:
    return int(block.max(initial=0) > 5)


def test_the_auditor_finds_nothing_where_analysts_keep_to_their_blocks() -> None:
    study = RawData(5, 3, "0.05")
    found = audit(decided(study, largest), [9] * 3, [9] * 4, samples=1500, delta="0.05")
    assert not found.violates(study.loss), str(found)


def test_analysts_who_compare_their_blocks_are_accused() -> None:
    """They settle on what the largest row of all of them says."""

    class Talking(RawData):
        def release(self, choices: Any, **options: Any) -> Any:
            return super().release([max(choices)] * self.blocks, **options)

    study = Talking(40, 1, "1e-3")
    found = audit(decided(study, largest), [1] * 9, [1] * 9 + [9], samples=1000, delta="1e-3")
    assert found.violates(study.loss), str(found)


@pytest.mark.parametrize("choices", [["a"] * 3, [], "abcde", {"a": 1}, 5, None], ids=str)
def test_choices_must_be_one_to_a_block(choices: Any) -> None:
    with pytest.raises(InvalidArgument, match="choices"):
        RawData(5, 1, "1e-6").release(choices)


@pytest.mark.parametrize(
    ("argument", "rows", "units"),
    [
        ("rows", 5, None),
        ("rows", "text", None),
        ("rows", np.array(3), None),
        ("rows", {"a": [1], "b": [1, 2]}, None),
        ("rows", {}, None),
        ("units", [1, 2], [1]),
        ("units", [1, 2], np.zeros((2, 2))),
    ],
    ids=str,
)
def test_rows_and_units_must_fit(argument: str, rows: Any, units: Any) -> None:
    with pytest.raises(InvalidArgument, match=argument):
        RawData(5, 1, "1e-6").hand_out(rows, units=units)


@pytest.mark.parametrize(
    ("argument", "bad"), [("blocks", 0), ("epsilon", 0), ("delta", 1), ("rule", "x"), ("part", 1)], ids=str
)
def test_bad_parameters_are_refused(argument: str, bad: Any) -> None:
    with pytest.raises(InvalidArgument, match=argument):
        SignificantFeatures(**({"blocks": 5, "epsilon": 1, "delta": "1e-6"} | {argument: bad}))
