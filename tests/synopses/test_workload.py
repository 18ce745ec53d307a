"""Workloads answer as their matrices do, and know how far one record moves them."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.soak import third

from discreet import InvalidArgument
from discreet.mechanisms import NeighbourSet
from discreet.synopses import Attribute, Domain, Explicit, Product, Sets, Workload, every, prefixes, ranges

DOMAIN = Domain((Attribute("a", ("x", "y")), Attribute.binned("b", (0, 1, 2, 5, 9)), Attribute("c", (1, 2, 3))))
HALVES = Sets([[0.5, 0.25, 0, 1], [1, 1, 0, 0]])
WORKLOADS = {
    "marginals": Workload.marginals(DOMAIN, [(), "a", ("c", "a"), ("a", "b", "c")]),
    "pairs": Workload.all_marginals(DOMAIN, 2),
    "prefixes": Workload.prefixes(DOMAIN, "b"),
    "ranges": Workload.ranges(DOMAIN, "b"),
    "products": Workload(DOMAIN, (Product({"c": ranges, "b": prefixes}), Product({"a": every, "b": HALVES}))),
    "fractions twice": Workload(DOMAIN, (Product({"b": HALVES, "c": Sets([[0.1, 1, 0.7]])}),)),
    "explicit": Workload(DOMAIN, (Explicit(sparse.eye_array(24) * 0.3), Product({"c": every}))),
    "predicates": Workload.predicates(DOMAIN, [lambda at: (at["a"] == 1) & (at["b"] > 1), np.ones(24)]),
}
WORKLOADS["subset"] = (WORKLOADS["pairs"] + WORKLOADS["products"]).subset([30, 2, 2, 50, 0])
WORKLOADS["again and again"] = WORKLOADS["prefixes"].subset([3] * 9 + [0])
WORKLOADS["sum"] = WORKLOADS["subset"] + WORKLOADS["ranges"]


def matrix(work: Workload) -> np.ndarray:
    return work.rows(range(len(work))).toarray()


@pytest.mark.parametrize("work", WORKLOADS.values(), ids=WORKLOADS)
def test_products_answer_as_their_matrix(work: Workload) -> None:
    rows = matrix(work)
    generator = np.random.default_rng(1)
    x, y = generator.integers(0, 1000, 24), generator.normal(size=len(work))
    assert rows.shape == (len(work), 24)
    assert ((rows >= 0) & (rows <= 1)).all()
    assert (work.answers(x) == rows @ x).all()
    assert (work.counts(x) == (rows * work.denominator).astype(np.int64) @ x).all()
    assert np.allclose(work.weighed(y), rows.T @ y)
    assert all((work.row(index) == row).all() for index, row in enumerate(rows))
    assert len({work.describe(index) for index in range(len(work))}) == len(np.unique(rows, axis=0))


@pytest.mark.parametrize("work", WORKLOADS.values(), ids=WORKLOADS)
def test_how_far_one_record_moves_the_answers_is_computed(work: Workload) -> None:
    rows = matrix(work)
    for p in (1, 2):
        one = max(sum(Fraction(entry) ** p for entry in column) for column in rows.T.tolist())
        two = max(np.abs(a - b) ** p @ np.ones(len(work)) for a, b in product(rows.T, rows.T))
        assert work.column_norm(p) == one
        assert max(one, two) - 1e-9 <= work.column_norm(p, changes=2) <= 2 * one
    assert work.largest() == work.largest(changes=2) == Fraction(rows.max())


def test_replacing_one_record_costs_no_more_than_it_must() -> None:
    assert WORKLOADS["pairs"].column_norm(1, changes=2) == 6
    assert WORKLOADS["prefixes"].column_norm(1, changes=2) == 4
    assert WORKLOADS["ranges"].column_norm(1, changes=2) == 6
    assert Workload.marginals(DOMAIN, [()]).column_norm(1, changes=2) == 1


def test_domains_past_memory_still_have_sensitivities() -> None:
    wide = Domain(tuple(Attribute(f"a{i}", range(10)) for i in range(20)))
    work = Workload.all_marginals(wide, 2) + Workload.prefixes(wide, "a3")
    assert len(work) == 19010
    assert work.column_norm(1) == 200
    with pytest.raises(InvalidArgument, match="GB"):
        work.answers(np.zeros(3))


@given(st.lists(st.integers(0, 2**62 - 1), min_size=24, max_size=24))
@settings(max_examples=third(50), deadline=None)
def test_counts_are_exact_however_large(cells: list[int]) -> None:
    for name in ("products", "pairs", "explicit"):
        work = WORKLOADS[name]
        rows = (matrix(work) * work.denominator).astype(np.int64).tolist()
        exact = [sum(weight * cell for weight, cell in zip(row, cells, strict=True)) for row in rows]
        assert work.counts(cells).tolist() == [min(total, 2**62 - 1) for total in exact]


def test_how_much_is_computed_does_not_follow_from_how_many_people_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    passes, answers = [0, 0], Workload.answers
    for place, people in enumerate((1, 1 << 40)):

        def counted(work: Workload, x: object, place: int = place) -> np.ndarray:
            passes[place] += 1
            return answers(work, x)

        monkeypatch.setattr(Workload, "answers", counted)
        WORKLOADS["explicit"].counts([people] * 24)
    assert passes[0] == passes[1] > 0


def test_many_marginals_share_their_sums() -> None:
    generator = np.random.default_rng(2)
    shape = (3, 2, 4, 2, 3, 2)
    domain = Domain(tuple(Attribute(f"a{i}", range(n)) for i, n in enumerate(shape)))
    x = generator.integers(0, 100, domain.size)
    for order in range(1, 7):
        work = Workload.all_marginals(domain, order)
        tensor, wanted = x.reshape(shape), []
        for block in work.blocks:
            out = tuple(i for i in range(6) if i not in block.axes(domain))
            wanted.append(tensor.sum(axis=out).reshape(-1))
        assert (work.answers(x) == np.concatenate(wanted)).all()


def test_neighbour_sets_are_the_columns() -> None:
    one = Workload(DOMAIN, (Product({"b": Sets([[0.5, 0.25, 0, 1]])}),))
    assert one.neighbour_set() == (0, Fraction(1, 4), Fraction(1, 2), 1)
    full = Workload.predicates(DOMAIN, [np.ones(24)])
    assert full.neighbour_set() == (1,)
    assert full.neighbour_set(changes=2) == (0, 1)
    pair = Workload.marginals(DOMAIN, ["a"])
    assert pair.neighbour_set() == ((0, 1), (1, 0))
    assert NeighbourSet(1, pair.neighbour_set(), dimension=2).loss.epsilon == 1
    with pytest.raises(InvalidArgument, match="one or two queries"):
        WORKLOADS["pairs"].neighbour_set()


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_come_back(name: str) -> None:
    work = WORKLOADS[name]
    again = Workload.unpacked(*work.packed())
    assert (matrix(again) == matrix(work)).all()
    assert [again.describe(i) for i in range(len(again))] == [work.describe(i) for i in range(len(work))]


OTHER = Domain((Attribute("a", ("x", "y")),))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Workload(DOMAIN, ()), "give some queries"),
        (lambda: Workload.marginals(DOMAIN, []), "give some queries"),
        (lambda: Workload.predicates(DOMAIN, []), "at least one query"),
        (lambda: Workload.marginals(DOMAIN, [("bb",)]), "there is b"),
        (lambda: Workload.all_marginals(DOMAIN, 4), "at most 3"),
        (lambda: Workload(DOMAIN, (Product({"b": Sets([[1, 0, 1]])}),)), "4 for b"),
        (lambda: Sets([[1, 2]]), r"in \[0, 1\]"),
        (lambda: Sets([[-0.1]]), r"in \[0, 1\]"),
        (lambda: Sets([[float("nan")]]), r"in \[0, 1\]"),
        (lambda: Explicit([[0.5, 1.5]]), r"in \[0, 1\]"),
        (lambda: Workload(DOMAIN, (Explicit(np.ones((2, 5))),)), "one for each cell"),
        (lambda: WORKLOADS["pairs"] + Workload.marginals(OTHER, ["a"]), "same domain"),
        (lambda: WORKLOADS["pairs"].answers(np.ones(3)), "one for each cell"),
        (lambda: WORKLOADS["pairs"].weighed(np.ones(3)), "one for each query"),
        (lambda: WORKLOADS["pairs"].subset([]), "list the queries"),
        (lambda: WORKLOADS["pairs"].subset([999]), "list the queries"),
        (lambda: WORKLOADS["pairs"].row(999), "no more queries"),
        (lambda: WORKLOADS["pairs"].column_norm(3), "1 or 2"),
        (lambda: Workload.predicates(DOMAIN, [np.ones(7)]), "one weight for each"),
    ],
)
def test_what_is_wrong_is_refused(build: object, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        build()
