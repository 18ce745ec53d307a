"""Privacy bugs of arithmetic that shipped in real libraries: sums, means, bounds, special values, samples."""

from fractions import Fraction

import numpy as np
import pytest
from tests.attacks import faults
from tests.attacks.register import attack

from discreet import Bounds, InvalidArgument
from discreet.accounting import group
from discreet.accounting.pld import distribution as pld
from discreet.adversary import measured_sensitivity
from discreet.core import events
from discreet.mechanisms import Gaussian, Laplace
from discreet.noise import Grid

BOUNDS = Bounds(-1, 1)
GRID = Grid(-20)


def grid_sum(values: np.ndarray) -> int:
    return int(GRID.steps(BOUNDS.clip(values)).sum())


def adversarial_rows() -> np.ndarray:
    """A million values whose float sum loses small ones: huge first, then far below half a unit of its last place."""
    rows = np.full(1_000_000, 2.0**-54)
    rows[0] = 1.0
    return rows


def test_one_row_moves_a_sum_by_at_most_its_bound_in_any_order() -> None:
    rows = adversarial_rows()
    generator = np.random.default_rng(3)
    orders = [rows, rows[::-1], generator.permutation(rows)]
    assert len({grid_sum(order) for order in orders}) == 1
    pairs = [(order, np.delete(order, place)) for order in orders for place in (0, 1, 500_000, -1)]
    assert not measured_sensitivity(grid_sum, pairs).exceeds(GRID.spanning(BOUNDS.magnitude))


def test_a_float_sum_would_be_caught() -> None:
    # Summed front to back, the one large value swallows every small one: removing it moves the sum by less than 1.
    rows = adversarial_rows() * 2.0**60  # bounds scaled alike
    with_it, without = (float(np.add.accumulate(values)[-1]) for values in (rows, rows[1:]))
    moved = abs(Fraction(with_it) - Fraction(without))
    assert moved != Fraction(rows[0])


def test_means_near_2_to_the_50_keep_their_sensitivity() -> None:
    bounds, grid, n = Bounds(2**50, 2**50 + 2), Grid(-4), 1024
    rows = np.full(n, 2.0**50 + 1)
    other = rows.copy()
    other[7] = 2.0**50 + 2
    moved = measured_sensitivity(lambda values: int(grid.steps(bounds.clip(values)).sum()), [(rows, other)])
    assert not moved.exceeds(grid.spanning(bounds.width))


@pytest.mark.parametrize("huge", [Fraction(2) ** 70, Fraction(2) ** 2000])
@attack(6, finds=[faults.any_scale], huge=Fraction(2) ** 70)
def test_a_product_of_bounds_too_large_for_the_noise_is_refused(huge: Fraction) -> None:
    with pytest.raises(InvalidArgument):
        Laplace.for_epsilon(1, huge * huge)
    with pytest.raises(InvalidArgument):
        Gaussian.for_zcdp(1, (huge * huge) ** 2)


@attack(7, finds=[faults.lengths_cut_short])
def test_odd_bounds_are_rounded_up_never_down() -> None:
    assert Laplace.for_epsilon(1, Fraction(5, 2)).events[0].sensitivity == 3
    assert Grid(0).spanning(Fraction(7, 2)) == 4
    assert group(events.Laplace(Fraction(2), 3), 3).sensitivity == 9


@pytest.mark.parametrize("nasty", [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7e308])
def test_special_values_change_neither_status_nor_reach(nasty: float) -> None:
    rows = np.array([0.5, -0.25, nasty])
    assert abs(grid_sum(rows) - grid_sum(rows[:2])) <= GRID.spanning(BOUNDS.magnitude)
    mechanism = Laplace.for_epsilon(1, 1, real=True)
    shapes = {np.shape(mechanism.release(float(BOUNDS.clip(d).sum())).values) for d in (rows, rows[:2], rows[:0])}
    assert shapes == {()}


@attack(15, finds=[faults.groups_as_one])
def test_a_replacement_is_two_changes() -> None:
    event = Laplace.for_epsilon(1).events[0]
    assert pld.epsilon(group(event, 2), 0) == 2


@attack(23, finds=[faults.sampled_again])
def test_one_sample_measured_twice_costs_more_than_two_samples() -> None:
    measured = events.Gaussian(Fraction(2**24), Fraction(2**24))
    once = events.PoissonSampled(Fraction(1, 10), measured)
    two_samples = pld.epsilon(events.Repeated(once, 2), "1e-5")
    one_sample = pld.epsilon(events.PoissonSampled(Fraction(1, 10), events.Repeated(measured, 2)), "1e-5")
    assert one_sample > two_samples * Fraction(11, 10)
