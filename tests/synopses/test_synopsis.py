"""Synopses answer, are saved and read again, and are drawn as tables."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from discreet import InvalidArgument
from discreet.noise import Entropy
from discreet.synopses import (
    Answers,
    Attribute,
    Domain,
    Explicit,
    MedianOf,
    Product,
    Sets,
    Synopsis,
    Weights,
    Workload,
    load,
)

DOMAIN = Domain((Attribute("sex", ("F", "M", None)), Attribute.binned("age", (0, 18, 65, 100), whole=True)))
BLOCKS = (Explicit(np.eye(9)[:2] / 2), Product({"sex": Sets([[1, 1, 0]])}))
WORK = Workload.all_marginals(DOMAIN, 1) + Workload(DOMAIN, BLOCKS)
MASS = np.array([3.0, 40.5, 10, 0, 30.25, 10, 1, 2, 3.25])
SYNOPSES = {
    "weights": Weights(DOMAIN, MASS, lambda beta: 10 * math.log(1 / beta)),
    "answers": Answers(WORK, WORK.answers(MASS) + 1),
    "median": MedianOf((Weights(DOMAIN, MASS), Answers(WORK, WORK.answers(MASS) - 2), Weights(DOMAIN, MASS + 1))),
}


@pytest.mark.parametrize("kind", SYNOPSES)
def test_saved_and_read_again(kind: str, tmp_path: Path) -> None:
    synopsis = SYNOPSES[kind]
    assert isinstance(synopsis, Synopsis)
    again = load(synopsis.save(tmp_path / "synopsis.npz"))
    assert type(again) is type(synopsis)
    assert again.domain == DOMAIN
    assert (again.answers(WORK) == synopsis.answers(WORK)).all()
    assert synopsis.accuracy(0.05) <= again.accuracy(0.05)
    assert math.isinf(again.accuracy(2.0**-60))
    with pytest.raises(InvalidArgument, match=r"\.npz"):
        synopsis.save(tmp_path / "synopsis.pickle")


def test_accuracy_read_again_is_never_too_small(tmp_path: Path) -> None:
    synopsis = SYNOPSES["weights"]
    again = load(synopsis.save(tmp_path / "synopsis.npz"))
    for beta in np.geomspace(1e-11, 0.99, 500).tolist():
        assert synopsis.accuracy(beta) <= again.accuracy(beta) <= synopsis.accuracy(beta) + 0.87


def test_answers_know_their_queries_only() -> None:
    answers = SYNOPSES["answers"]
    assert (answers.answers(WORK.subset([5, 0, 5])) == answers.values[[5, 0, 5]]).all()
    assert (answers.answers(Workload.marginals(DOMAIN, ["age"])) == answers.values[3:6]).all()
    with pytest.raises(InvalidArgument, match="built for"):
        answers.answers(Workload.prefixes(DOMAIN, "age"))


def test_medians_are_of_each_query() -> None:
    truth = WORK.answers(MASS)
    assert (SYNOPSES["median"].answers(WORK) == np.maximum(truth - 2, truth)).all()


@pytest.mark.parametrize("rows", [None, 1, 7, 5000])
def test_tables_have_the_shares_of_the_weights(rows: int | None) -> None:
    synopsis = SYNOPSES["weights"]
    table = synopsis.table(rows, entropy=Entropy.for_tests(1))
    many = rows or 100
    assert len(table) == many
    counts = DOMAIN.histogram(table.columns)
    assert (np.abs(counts - MASS * many / 100) < 1).all()
    assert len(Weights(DOMAIN, np.zeros(9)).table(20)) == 20


def test_tables_are_readable_elsewhere(tmp_path: Path) -> None:
    import pandas as pd
    from pyarrow import csv, parquet

    table = SYNOPSES["weights"].table(50)
    assert table.to_arrow().num_rows == 50
    assert set(table.to_pandas()["age"]) <= set(range(101))
    assert parquet.read_table(table.write(tmp_path / "t.parquet")).equals(table.to_arrow())
    assert csv.read_csv(table.write(tmp_path / "t.csv")).num_rows == 50
    assert isinstance(table.to_pandas(), pd.DataFrame)
    mixed = Weights(Domain((Attribute("x", (1, "one", None, True + 1)),)), np.ones(4)).table(400)
    assert set(mixed.to_arrow()["x"].to_pylist()) == {"1", "one", None, "2"}
    with pytest.raises(InvalidArgument, match=r"\.parquet"):
        table.write(tmp_path / "t.xlsx")


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.npz").write_text("hello")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    header = json.dumps({"format": "discreet synopsis", "version": 1, "kind": "x"})
    np.savez(tmp_path / "odd.npz", header=np.array(header))
    np.savez(tmp_path / "object.npz", header=np.array([{}], dtype=object))
    good = SYNOPSES["weights"].save(tmp_path / "good.npz")
    with np.load(good) as file:
        parts = {name: file[name] for name in file.files}
    np.savez(tmp_path / "short.npz", **(parts | {"weights": np.ones(2)}))
    for name in ("text", "other", "odd", "object", "short"):
        with pytest.raises(InvalidArgument, match="a saved synopsis"):
            load(tmp_path / f"{name}.npz")
    newer = json.loads(str(parts["header"])) | {"version": 99}
    np.savez(tmp_path / "newer.npz", **(parts | {"header": np.array(json.dumps(newer))}))
    with pytest.raises(InvalidArgument, match="newer discreet"):
        load(tmp_path / "newer.npz")
    with pytest.raises(InvalidArgument, match="exists"):
        load(tmp_path / "none.npz")


def test_damaged_files_are_refused_or_read_and_nothing_else_happens(tmp_path: Path) -> None:
    written = SYNOPSES["weights"].save(tmp_path / "good.npz").read_bytes()
    generator = np.random.default_rng(2)
    refused = 0
    for _ in range(1500):
        damaged = bytearray(written)
        damaged[generator.integers(len(damaged))] = generator.integers(256)
        (tmp_path / "damaged.npz").write_bytes(damaged)
        try:
            load(tmp_path / "damaged.npz")
        except InvalidArgument:
            refused += 1
    assert refused > 500


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Weights(DOMAIN, [1, 2]), "one for each cell"),
        (lambda: Weights(DOMAIN, -MASS), "numbers from 0"),
        (lambda: Weights(DOMAIN, MASS * math.nan), "numbers from 0"),
        (lambda: Answers(WORK, [1.0]), "one for each query"),
        (lambda: MedianOf(()), "one or more"),
        (lambda: SYNOPSES["weights"].table(0), "rows"),
        (lambda: SYNOPSES["weights"].accuracy(0), "beta"),
        (lambda: SYNOPSES["weights"].answers(Workload.marginals(Domain((Attribute("x", (1,)),)), ["x"])), "domain"),
    ],
)
def test_what_is_wrong_is_refused(build: object, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        build()
