"""Any function on blocks, held to its loss: aggregators where one answer matters most, and whole runs in one process.

Fresh randomness at every run; each audit accuses an honest mechanism with probability at most 1e-9. The planted faults
are the likely ones: a unit that moves more answers than are counted, and blocks that are balanced.
"""

from typing import Any

import numpy as np
import pytest

from discreet import Bounds
from discreet.adversary import audit
from discreet.noise import system
from discreet.robust import Agreement, Centre, Unstable, Vote
from discreet.robust.aggregation.blocks import blocks_of

pytestmark = pytest.mark.slow

BOUNDS = Bounds(0, 8)
SAMPLES = 1500


def centre(method: Any, rounds: int) -> Centre:
    return Centre(BOUNDS, 2, 5, rounds, method=method)


CASES: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("median", centre("median", 2), [0] * 6 + [8] * 4, [0] * 4 + [8] * 6),
    ("winsorized", centre("winsorized", 2), [0] * 5 + [8] * 5, [0] * 3 + [8] * 7),
    ("mean", centre("mean", 2), [0] * 10, [0] * 8 + [8] * 2),
    ("vote", Vote((0, 1), 2, 5, 2), [0] * 6 + [1] * 4, [0] * 4 + [1] * 6),
    ("noisy max", Vote((0, 1), 2, 5, method="noisy_max"), [0, 0, 0, 1, 1], [0, 0, 1, 1, 1]),
    ("agreement", Agreement(2, "0.05", 9), [0] * 6 + [1] * 3, [0] * 5 + [1] * 4),
]


def said(mechanism: Any) -> Any:
    def run(answers: Any) -> float:
        value = mechanism.release(answers).values
        return -100.0 if isinstance(value, Unstable) else float(value)

    return run


@pytest.mark.parametrize(("name", "mechanism", "d", "d_prime"), CASES, ids=[case[0] for case in CASES])
def test_an_aggregate_keeps_to_its_loss(name: str, mechanism: Any, d: Any, d_prime: Any) -> None:
    delta = getattr(mechanism.loss, "delta", 0)
    found = audit(said(mechanism), d, d_prime, samples=SAMPLES, delta=delta)
    assert not found.violates(mechanism.loss), str(found)


@pytest.mark.parametrize("method", ["median", "mean"])
def test_answers_counted_once_where_a_unit_moves_them_all_are_accused(method: Any) -> None:
    """As if each unit were in one block of thirty, where rounds put it in each of them."""
    wrong = Centre(BOUNDS, 1, 30, method=method)
    low = np.linspace(0.5, 3.5, 30)
    assert audit(said(wrong), low, 8 - low, samples=SAMPLES).violates(wrong.loss)


def balanced(units: Any, blocks: int) -> list[Any]:
    """The planted fault: blocks of equal sizes in the order of units, all of which one unit less moves on."""
    return np.array_split(np.argsort(units, kind="stable"), blocks)


@pytest.mark.parametrize("fair", [True, False], ids=["drawn", "balanced"])
def test_one_person_less_moves_one_block_and_balanced_blocks_are_accused(fair: bool) -> None:
    """Whole runs with a function that looks for a pair of people: without the first, every pair is apart."""
    mechanism = Vote((0, 1), 2, 8)

    def together(rows: Any) -> int:
        return int(any(row + 1 in rows for row in rows if row % 2 == 0))

    def run(units: Any) -> float:
        held = np.array(units)
        blocks = blocks_of(held, 8, entropy=system()) if fair else balanced(held, 8)
        return float(mechanism.release([together(held[block].tolist()) for block in blocks]).values)

    people = [*range(2, 18)]
    found = audit(run, people, people[1:], samples=SAMPLES)
    assert found.violates(mechanism.loss) != fair, str(found)
