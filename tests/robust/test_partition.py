"""Blocks of units: each unit wholly in one block, drawn by itself, rows in no order."""

from typing import Any

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.noise import Entropy
from discreet.robust.aggregation.blocks import blocks_of, codes_of

WHO = np.random.default_rng(0).integers(0, 40, 500)


@pytest.mark.parametrize("units", [WHO, [f"p{who}" for who in WHO], [*map(float, WHO)]], ids=["whole", "text", "real"])
def test_every_row_is_in_one_block_with_all_rows_of_its_unit(units: Any) -> None:
    blocks = blocks_of(units, 7, 3, entropy=Entropy.for_tests(0))
    assert len(blocks) == 21
    for begin in (0, 7, 14):
        places = np.concatenate(blocks[begin : begin + 7])
        assert sorted(places.tolist()) == list(range(500))
        held = [set(WHO[block].tolist()) for block in blocks[begin : begin + 7]]
        assert sum(map(len, held)) == 40


@pytest.mark.parametrize(
    "units",
    [np.full(50, np.nan), np.full(50, "NaT", dtype="M8[s]"), [float("nan") for _ in range(50)]],
    ids=["reals", "times", "a list"],
)
def test_rows_that_name_nobody_are_one_unit(units: Any) -> None:
    codes, size = codes_of(units)
    assert (set(codes.tolist()), size) == ({0}, 1)


def test_a_unit_more_changes_one_block_and_nothing_else() -> None:
    """The law: with 2 blocks, whether two others are together does not depend on a third, and each block is as likely.
    6,000 draws; a share is off by 0.045 with probability below 1e-10 (Hoeffding)."""
    source = Entropy.for_tests(1)
    for others in (2, 3):
        draws = [[len(b) and 0 in b, len(b) and 1 in b] for b in _firsts(others, source)]
        shares = np.mean(np.array(draws, dtype=float), axis=0)
        together = np.mean([a == b for a, b in draws])
        assert np.abs([*shares - 0.5, together - 0.5]).max() < 0.045


def _firsts(units: int, source: Entropy) -> list[Any]:
    return [blocks_of(np.arange(units), 2, entropy=source)[0].tolist() for _ in range(6_000)]


def test_rows_of_a_block_are_in_random_order() -> None:
    """In one block each of 3! orders is as likely; the same bound as above."""
    source = Entropy.for_tests(2)
    orders = [tuple(blocks_of(np.zeros(3, dtype=int), 1, entropy=source)[0].tolist()) for _ in range(6_000)]
    shares = np.array([orders.count(order) for order in set(orders)]) / len(orders)
    assert len(shares) == 6
    assert np.abs(shares - 1 / 6).max() < 0.045


def test_fewer_units_than_blocks_and_none_at_all() -> None:
    assert sum(len(block) > 0 for block in blocks_of([1, 2], 50, entropy=Entropy.for_tests(0))) <= 2
    assert [len(block) for block in blocks_of([], 3, 2, entropy=Entropy.for_tests(0))] == [0] * 6
    with pytest.raises(InvalidArgument, match="units"):
        blocks_of([[1], [2]], 3, entropy=Entropy.for_tests(0))
