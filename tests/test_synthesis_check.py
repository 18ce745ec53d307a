"""How far synthetic rows are off, found out privately: with the noise that is charged for, and added up exactly."""

from typing import Any

import numpy as np

import discreet as dc
from discreet.adversary import audit
from discreet.core.losses import PureDP
from discreet.noise import Entropy
from discreet.sql.bounding.clipping_norms import G, H
from discreet.synopses import Workload
from discreet.synopses.synopsis import Weights
from discreet.synthesis.check import Check, distances
from discreet.synthesis.question import SyntheticRows


def test_neighbours_look_alike_and_a_check_without_enough_noise_is_caught() -> None:
    """Shapes and types do not depend on one person, and errors move by no more than what they are charged for."""
    made = []
    for people in (40, 41):
        held = {"who": np.arange(people), "x": np.array([0] * 40 + [1] * (people - 40))}
        with dc.connect(held, unit="who", budget=dc.PureDP(9), table="t", max_rows=1, values={"x": [0, 1]}) as session:
            made.append(session.synthesize("t", epsilon=1, rows=30))
            histogram = SyntheticRows("t", 1).bind(session._context).request.histogram(session._engine)
        assert histogram.sum() == people * G * H
    first, second = made
    assert (first.names, len(first), len(first.errors)) == (second.names, len(second), len(second.errors))
    assert first.loss == second.loss
    domain = first.workload.domain
    work = Workload.marginals(domain, [("x",)])
    synthetic = Weights(domain, [20.0, 20.0])
    check = Check(work, PureDP(1), unit_weight=1, changes=1)
    weak = Check(work, PureDP(8), unit_weight=1, changes=1)
    pair = np.array([20, 20]), np.array([20, 21])

    def errors(of: Check) -> Any:
        return lambda data: of.release(data, synthetic, Entropy())[0][0]

    honest = audit(errors(check), *pair, samples=1_500)
    assert honest.epsilon <= 1
    assert audit(errors(weak), *pair, samples=1_500).epsilon > 1


def test_the_check_adds_up_exactly_and_moves_no_more_than_it_says() -> None:
    generator = np.random.default_rng(0)
    made = request_of_four()
    domain = made.domain
    work = Workload(domain, made.workload.blocks)
    check = Check(work, PureDP(1), unit_weight=3, changes=1)
    assert check.noises[0].scale == 2 * 3 * len(work.blocks)
    synthetic = Weights(domain, generator.uniform(0, 9, domain.size))
    histogram = generator.integers(0, 9, domain.size)
    unit = np.bincount(generator.integers(0, domain.size, 3), minlength=domain.size)
    pairs = zip(distances(work, histogram, synthetic), distances(work, histogram + unit, synthetic), strict=True)
    assert sum(abs(a - b) for a, b in pairs) <= 3 * len(work.blocks)


def request_of_four() -> Any:
    held = {"a": np.zeros(3, dtype=int), "b": np.zeros(3, dtype=int)}
    with dc.connect(held, unit=dc.Row(), budget=dc.PureDP(9), table="t", values={"a": [0, 1], "b": [0, 1]}) as session:
        return SyntheticRows("t", 1).bind(session._context).request
