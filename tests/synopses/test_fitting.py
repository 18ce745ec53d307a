"""Weights near given numbers: certified, against a slow solver and against the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import nnls
from scipy.sparse import csr_array
from tests.soak import third

from discreet.synopses.fitting import Cells, levelled, merged, nearest


class Dense:
    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def answers(self, x: np.ndarray) -> np.ndarray:
        return self.matrix @ x

    def weighed(self, y: np.ndarray) -> np.ndarray:
        return self.matrix.T @ y


def random_case(seed: int, k: int = 12, cells: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    matrix = (rng.random((k, cells)) < 0.4).astype(np.float64)
    x = rng.multinomial(50, rng.dirichlet(np.ones(cells))).astype(np.float64)
    return matrix, x, matrix @ x + rng.laplace(0, 20, k)


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e6, 1e6)), st.floats(0.01, 1e6), st.booleans())
def test_the_nearest_weights_on_a_simplex_are_found(y: np.ndarray, total: float, exactly: bool) -> None:
    x = Cells(y.size, total, exactly).project(y)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(total, rel=1e-9, abs=1e-6) or (not exactly and x.sum() <= total * (1 + 1e-9))
    # No allowed point lies at an acute angle: ⟨y − x, v − x⟩ ≤ 0 at every corner v.
    corners = [total * row for row in np.eye(y.size)] + ([] if exactly else [np.zeros(y.size)])
    scale = 1 + np.abs(y).max() + total
    assert all((y - x) @ (corner - x) <= 1e-9 * scale * scale * y.size for corner in corners)


@pytest.mark.parametrize("seed", range(4))
def test_a_fit_agrees_with_non_negative_least_squares(seed: int) -> None:
    matrix, _, numbers = random_case(seed)
    heavy = 1e4
    for exactly in (True, False):
        fit = nearest(Dense(matrix), numbers, Cells(20, 50.0, exactly), tolerance=1e-7, most=20_000)
        # The sum becomes one more equation of great weight; with ≤, a cell that no query counts takes up the rest.
        spare = np.zeros((matrix.shape[0], 0 if exactly else 1))
        wide = np.hstack([matrix, spare])
        slow, _ = nnls(np.vstack([wide, heavy * np.ones(wide.shape[1])]), np.append(numbers, heavy * 50), maxiter=1000)
        least = ((wide @ slow - numbers) ** 2).sum()
        assert fit.distance == pytest.approx(least, rel=1e-3)
        assert fit.distance - 2 * fit.gap <= least * (1 + 1e-6)


@settings(deadline=None, max_examples=third(60))
@given(st.integers(0, 10**6), st.integers(1, 400), st.booleans())
def test_what_the_gap_certifies_is_true_however_early_one_stops(seed: int, most: int, exactly: bool) -> None:
    matrix, x, numbers = random_case(seed)
    fit = nearest(Dense(matrix), numbers, Cells(20, x.sum() * (1 if exactly else 1.2), exactly), most=most)
    error = ((fit.answers - matrix @ x) ** 2).sum()
    before = ((numbers - matrix @ x) ** 2).sum()
    assert error <= before - fit.distance + 2 * fit.gap + 1e-6
    if 2 * fit.gap <= fit.distance:
        assert error <= before + 1e-6


@pytest.mark.parametrize("exactly", [True, False])
def test_the_linear_program_has_the_least_deviation(exactly: bool) -> None:
    for seed in range(5):
        matrix, x, numbers = random_case(seed)
        cells = Cells(20, 50.0, exactly)
        fit = levelled(csr_array(matrix), numbers, cells)
        assert fit is not None
        assert fit.deviation <= np.abs(numbers - matrix @ x).max() + 1e-6
        assert fit.deviation <= nearest(Dense(matrix), numbers, cells).deviation + 1e-6
        # Not less than what any weights y of the queries prove: t ≥ Σ y·(v − A·x) for all x.
        rng = np.random.default_rng(seed)
        for _ in range(20):
            dual = rng.normal(size=12)
            dual /= np.abs(dual).sum()
            proven = dual @ numbers - 50 * (matrix.T @ dual).max()
            assert (
                fit.deviation >= min(proven, dual @ numbers) - 1e-6 if not exactly else fit.deviation >= proven - 1e-6
            )


def test_numbers_that_nobody_can_have_are_met_as_nearly_as_can_be() -> None:
    contradiction = csr_array(np.array([[1.0, 0.0], [1.0, 0.0]]))
    fit = levelled(contradiction, np.array([0.0, 10.0]), Cells(2, 100.0))
    assert fit is not None
    assert fit.deviation == pytest.approx(5.0)
    assert nearest(Dense(contradiction.toarray()), np.array([-5.0, -5.0]), Cells(2, 0.0)).weights.tolist() == [0, 0]


@given(st.integers(0, 10**6))
def test_cells_that_no_query_tells_apart_are_merged_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = csr_array(np.ldexp(rng.integers(0, 3, (3, 15)), -20))
    small, kind = merged(matrix)
    dense = matrix.toarray()
    assert (small.toarray()[:, kind] == dense).all()
    assert small.shape[1] == np.unique(dense, axis=1).shape[1]
    first = [kind.tolist().index(place) for place in range(small.shape[1])]
    assert first == sorted(first)


def test_runs_of_cells_give_the_same_program_as_entries() -> None:
    rng = np.random.default_rng(0)
    rows = np.zeros((30, 40))
    for row in rows:
        low, high = sorted(rng.integers(0, 41, 2))
        row[low:high] = rng.choice([0.5, 1.0])
    numbers = rng.normal(20, 10, 30)
    shuffled = rng.permutation(40)
    fits = [levelled(csr_array(matrix), numbers, Cells(40, 60.0)) for matrix in (rows, rows[:, shuffled])]
    assert all(fit is not None for fit in fits)
    assert fits[0].deviation == pytest.approx(fits[1].deviation)
