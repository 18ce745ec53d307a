"""Cells cover everything once, also what was never met while learning."""

import numpy as np
import pytest

from discreet.adversary.auditing.features import column
from discreet.adversary.auditing.outcomes import encode, table_of
from discreet.adversary.auditing.partitions import Cuts, Grid, Met, Partition, Values

STRANGE = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300, 5e-324])


def cuts_of(left, right, fineness=128):
    return Cuts.learn(column(table_of(left), 0), left, right, fineness)


@pytest.mark.parametrize("right", [np.arange(5.0), np.full(5, np.nan), np.empty(0), STRANGE])
def test_every_value_has_a_cell(right):
    cuts = cuts_of(np.random.default_rng(0).normal(size=5000), right)
    codes = cuts.codes(table_of(np.concatenate([STRANGE, right])))
    assert codes.min() >= 0
    assert codes.max() < cuts.cells
    assert codes[0] == cuts.nan


def test_few_values_get_one_cell_each():
    cuts = cuts_of(np.array([1, 5, 5]), np.array([9]))
    assert cuts.codes(table_of(np.array([1, 5, 9, 3, 100]))).tolist() == [1, 3, 5, 2, 6]


def test_frequent_values_among_many_get_a_cell_of_their_own():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=5000), np.full(100, 7.0)])
    cuts = cuts_of(values, values)
    assert 7.0 in cuts.cuts
    assert len(cuts.cuts) < 600


def test_cells_follow_the_number_line():
    values = np.random.default_rng(0).normal(size=20_000)
    cuts = cuts_of(values, values + 1)
    assert np.all(np.diff(cuts.codes(table_of(np.sort(values)))) >= 0)


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ([0, 1, 2, 3], "output ≤ 2"),
        ([4, 5, 6], "output > 2"),
        ([3], "output = 2"),
        ([2, 3, 4], "output in (1, 3)"),
        ([1, 5], "output = 1 or = 3"),
        ([7], "output is NaN"),
        ([0, 1, 2, 3, 4, 5, 6], "output is a number"),
    ],
)
def test_unions_of_cells_read_as_intervals(codes, words):
    cuts = cuts_of(np.array([1.0, 2.0]), np.array([3.0]))
    assert cuts.describe(np.isin(np.arange(cuts.cells), codes)) == words


def test_values_name_the_frequent_ones_and_keep_one_cell_for_the_rest():
    table = table_of(np.array(["a", "a", "a", "b", "b", "c"]))
    values = Values.learn(table, table, (0,), most=2)
    codes = values.codes(table_of(np.array(["a", "b", "c", "zzz"])))
    assert len({codes[0], codes[1]}) == 2
    assert codes[2] == codes[3] == values.cells - 1
    assert values.describe(np.arange(3) == codes[0]) == "output = 'a'"


def test_met_tells_which_side_knew_a_value():
    met = Met.learn(table_of(np.array([1, 2])), table_of(np.array([2, 3])), (0,))
    assert met.codes(table_of(np.array([0, 1, 2, 3]))).tolist() == [0, 1, 3, 2]
    assert met.describe(np.array([False, True, False, False])) == "output is among those met before only on D"


def test_grid_pairs_cells():
    table = table_of(np.array([[1, 1], [1, 2], [2, 1]]))
    first, second = (Cuts.learn(column(table, index), table.columns[index], table.columns[index]) for index in (0, 1))
    grid = Grid(first, second)
    codes = grid.codes(table)
    assert len(set(codes.tolist())) == 3
    chosen = np.zeros(grid.cells, bool)
    chosen[codes[1]] = True
    assert grid.describe(chosen) == "(output[0] = 1 and output[1] = 2)"


def test_partition_gives_other_kinds_their_own_cells():
    learned = encode([1, 2, None, "a"])
    table = learned.tables["int"]
    cuts = Cuts.learn(column(table, 0), table.columns[0], table.columns[0])
    partition = Partition(["int", "None", "str"], "int", cuts)
    codes = partition.codes(encode([1, None, "b", 2.5, 2]))
    assert codes.tolist() == [1, cuts.cells + 1, cuts.cells + 2, cuts.cells + 3, 3]
    assert partition.describe(np.arange(partition.cells) == cuts.cells + 1) == "output is of kind None"
    assert partition.counts(learned).sum() == 4
