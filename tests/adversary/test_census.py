"""People who follow from published tables, by integer programming; contradictions are told, noise gives nobody away."""

from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from discreet import InvalidArgument
from discreet.adversary import Tables, reconstruct_tables
from discreet.adversary.reconstruction.census_block import solve
from discreet.mechanisms import Laplace

PAIRS = (("sex", "age"), ("age", "race"), ("sex", "race"))
VALUES: dict[str, list[Any]] = {"sex": ["F", "M"], "age": list(range(12)), "race": list("ABCDE")}


def people(blocks: int, seed: int = 0, most: int = 30) -> dict[str, list[Any]]:
    generator = np.random.default_rng(seed)
    out: dict[str, list[Any]] = {"block": [], "sex": [], "age": [], "race": []}
    for block in range(blocks):
        size = int(generator.integers(1, most + 1))
        out["block"] += [block] * size
        out["sex"] += generator.choice(["F", "M"], size).tolist()
        out["age"] += generator.integers(0, 12, size).tolist()
        out["race"] += generator.choice(list("ABCDE"), size, p=[0.6, 0.2, 0.1, 0.06, 0.04]).tolist()
    return out


def published(records: dict[str, list[Any]], *columns: str) -> dict[str, list[Any]]:
    counted = Counter(zip(*(records[name] for name in ("block", *columns)), strict=True))
    out = {name: [key[place] for key in counted] for place, name in enumerate(("block", *columns))}
    return out | {"count": list(counted.values())}


def tables(records: dict[str, list[Any]]) -> dict[str, Any]:
    return {f"{a} by {b}": published(records, a, b) for a, b in PAIRS}


def every_solution(rows: list[Any], counts: Any, cells: int) -> list[Any]:
    """By trying all."""
    tried = np.array(list(product(range(int(max(counts)) + 1), repeat=cells)))
    fits = [tried[:, row].sum(axis=1) == count for row, count in zip(rows, counts, strict=True)]
    return [tuple(x) for x in tried[np.all(fits, axis=0)].tolist()]


def test_what_is_certain_is_in_every_solution() -> None:
    generator = np.random.default_rng(1)
    states = Counter[str]()
    for _ in range(60):
        cells = 5
        rows = [np.flatnonzero(generator.random(cells) < 0.5) for _ in range(4)] + [np.arange(cells)]
        truth = generator.integers(0, 2, cells) * generator.integers(1, 3)
        counts = np.array([float(truth[row].sum()) for row in rows])
        if generator.random() < 0.3:
            counts[0] += 1
        found, known = solve(rows, counts, cells), every_solution(rows, counts, cells)
        states[found.status] += 1
        if not known:
            assert found.status == "inconsistent"
            assert found.misfit >= 0
            continue
        assert tuple(found.found.tolist()) in known
        assert found.least.tolist() == np.min(known, axis=0).tolist()
        assert (found.status == "unique") == (len(known) == 1)
        assert found.solutions == len(known) if found.counted else found.solutions <= len(known)
    assert {"unique", "ambiguous", "inconsistent"} <= set(states)


def test_most_people_of_small_blocks_follow_from_pairs_of_attributes() -> None:
    records = people(30)
    told: list[float] = []
    found = reconstruct_tables(tables(records), truth=records, progress=told.append)
    assert found.agreement is not None
    assert found.agreement.certain_right == 1.0
    assert found.certain > 0.5 * found.people
    assert found.people == len(records["block"])
    assert found.agreement.chance < 1e-6
    assert found.agreement.right > 0.85
    assert found.verdict.startswith("BROKEN")
    assert told[-1] == 1.0
    assert len(found.records()["block"]) == found.certain
    assert len(found.records(certain_only=False)["block"]) == found.people
    assert "certain" in str(found.plot().to_dict())


def test_a_table_that_is_read_back_is_not_broken() -> None:
    sexes, ages = ["F", "F", "M", "M"], [30, 40, 30, 40]
    crowd = {"sex": sexes, "age": ages, "count": [300, 280, 310, 310]}
    harmless = reconstruct_tables({"both": crowd, "age": {"age": [30, 40], "count": [610, 590]}})
    assert (harmless.certain, harmless.shares.beyond, harmless.shares.alone) == (1200, 0, 0)
    assert harmless.verdict.startswith("HELD: nobody follows from the tables together who is not printed")
    thin = reconstruct_tables({"both": crowd | {"count": [300, 1, 310, 310]}})
    assert thin.verdict.endswith("but 1 person printed there is alone with their values.")
    assert thin.as_record()["alone"] == 1
    # Everybody of 30 is of one race, which two tables tell together, though of nobody alone.
    race = {"age": [30, 40, 40], "race": ["A", "A", "B"], "count": [610, 300, 290]}
    together = reconstruct_tables({"both": crowd, "race": race})
    assert (together.shares.beyond, together.shares.few) == (together.certain, 0)
    assert together.verdict.startswith("LEAKING")


def test_records_are_not_shown_unless_asked() -> None:
    hidden = {"block": ["b"] * 2, "name": ["Zebedee", "Quux"], "count": [1, 1]}
    found = reconstruct_tables({"names": hidden})
    assert found.certain == 2
    for shown in (repr(found), str(found), found._repr_html_(), str(found.as_record())):
        assert "Zebedee" not in shown
    assert "Zebedee" in found.as_record(reveal=True)["records"]["name"]


def test_private_tables_fit_nobody_and_the_nearest_people_are_no_better_than_others() -> None:
    records = people(40, seed=3)
    exact = Tables.read(tables(records), values=VALUES)

    def noised(epsilon: int | str) -> Tables:
        def noisy(counts: Any) -> Any:
            noise = Laplace.for_epsilon(epsilon, 3, dimension=counts.size)
            return np.asarray(noise.release(counts.astype(np.int64)).values, float)

        return replace(
            exact,
            tables=tuple(
                replace(table, counts={block: noisy(counts) for block, counts in table.counts.items()})
                for table in exact.tables
            ),
        )

    held = reconstruct_tables(noised("0.1"), truth=records)
    assert held.certain == 0
    assert held.agreement is not None
    # The sign test at 10⁻⁹; a tenth of the people more than elsewhere would be noticed, as with too little noise below.
    assert held.agreement.chance > 1e-9
    assert held.states == {"inconsistent": 40}
    loud = reconstruct_tables(noised(12), truth=records)
    assert loud.agreement is not None
    assert loud.agreement.chance < 1e-9
    assert loud.verdict.startswith(("LEAKING", "BROKEN"))


def test_contradictions_name_the_tables() -> None:
    records = people(5, seed=4)
    said = tables(records)
    said["age by race"]["count"][0] += 3
    wrong = said["age by race"]["block"][0]
    found = reconstruct_tables(said)
    assert found.states["inconsistent"] == 1
    assert list(found.disagreements()) == [wrong]
    assert "sex by age counts" in found.disagreements()[wrong][0]
    assert "and age by race" in found.disagreements()[wrong][0]
    assert "contradict" in found.verdict


def test_counts_that_no_people_have() -> None:
    found = reconstruct_tables({"t": {"block": [1, 1], "sex": ["F", "M"], "count": [-2, 1.5]}})
    assert found.states == {"inconsistent": 1}
    assert "counts -2 for sex = F" in found.disagreements()[1][0]
    # The margins agree, and still nobody fits: an odd cycle of pairs.
    cycle = {
        "a by b": {"a": [0, 1], "b": [0, 1], "count": [1, 1]},
        "b by c": {"b": [0, 1], "c": [0, 1], "count": [1, 1]},
        "a by c": {"a": [0, 1], "c": [1, 0], "count": [1, 1]},
    }
    odd = reconstruct_tables(cycle)
    assert odd.states == {"inconsistent": 1}
    assert "no whole numbers fit" in odd.disagreements()["all"][0]


def test_suppressed_counts_say_nothing_and_coarse_columns_are_understood() -> None:
    ages = {age: "young" if age < 6 else "old" for age in range(12)}
    said = {
        "sex by group": {"block": [1, 1], "sex": ["F", "M"], "group": ["young", "old"], "count": [2, 1]},
        "age": {"block": [1, 1, 1], "age": [3, 4, 9], "count": [2, "*", 1]},
    }
    found = reconstruct_tables(said, groups={"group": ("age", ages)}, values={"age": range(12), "sex": ["F", "M"]})
    records = found.records()
    assert sorted(zip(records["sex"], records["age"], strict=True)) == [("F", 3), ("F", 3), ("M", 9)]
    open_count = reconstruct_tables({"sex": {"sex": ["F", "M"], "count": [2, ""]}})
    assert open_count.certain == 2
    assert open_count.states == {"ambiguous": 1}


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "csv"])
def test_tables_come_in_any_form(kind: str, tmp_path: Path) -> None:
    plain = {"block": [1, 1], "sex": ["F", "M"], "count": [1, 2]}
    frame: Any = pandas.DataFrame(plain)
    if kind == "csv":
        frame.to_csv(tmp_path / "sex.csv", index=False)
        frame = tmp_path / "sex.csv"
    elif kind != "pandas":
        frame = polars.DataFrame(plain) if kind == "polars" else pyarrow.table(plain)
    found = reconstruct_tables({"sex": frame})
    assert (found.people, found.certain) == (3, 3)


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ({}, {}, "tables by name"),
        ({"t": {"sex": ["F"], "n": [1]}}, {}, "with a column 'count'"),
        ({"t": {"sex": ["F", "F"], "count": [1, 1]}}, {}, "each combination once"),
        ({"t": {"sex": ["F", "M"], "count": [1]}}, {}, "columns of one length"),
        ({"t": {"g": ["x"], "count": [1]}}, {"groups": {"g": ("age", {1: "y"})}}, "one of"),
        ({"t": {"sex": ["F"], "count": [1]}}, {"truth": {"age": [1]}}, "sex"),
        ({"t": {"sex": ["F"], "count": [1]}}, {"seconds": 0}, "above 0"),
    ],
    ids=["none", "count", "twice", "lengths", "label", "truth", "seconds"],
)
def test_wrong_tables_are_named(given: Any, options: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        reconstruct_tables(given, **options)


def test_a_block_that_takes_too_long_is_left_open() -> None:
    records = people(1, seed=5, most=400)
    found = reconstruct_tables(
        {name: published(records, *name.split(" by ")) for name in tables(records)}, seconds=1e-9
    )
    assert found.states in ({"unsolved": 1}, {"unique": 1})


def test_tables_without_rows_are_named():
    with pytest.raises(InvalidArgument, match="leave out empty tables"):
        reconstruct_tables({"by sex": {"block": [], "sex": [], "count": []}})
