"""What clipping took is tallied with the stated noise, moved by no unit farther than declared, and put back."""

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.attacks.sql_neighbours import both, exact, opened, strain
from tests.soak import third

import discreet as dc
from discreet.adversary.session_audit.sensitivity import tallied
from discreet.noise import Entropy
from discreet.sql.bounding.clipping_norms import G, H
from discreet.sql.measuring import clipping_loss as tally
from discreet.sql.measuring.clipping_loss import Tally

KEYS = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"]
BY_KEY = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
FACTS: dict[str, Any] = {"values": {"k": KEYS}}

people = st.lists(st.lists(st.sampled_from(KEYS), min_size=1, max_size=40), min_size=2, max_size=6)


def table(persons: list[list[str]]) -> dict[str, Any]:
    owners = [number for number, keys in enumerate(persons) for _ in keys]
    return {"who": np.array(owners), "k": np.array([key for keys in persons for key in keys])}


def heavy_tailed(people: int, heavy: int, rows: int, seed: int = 1) -> dict[str, Any]:
    """Most have a few rows, `heavy` of them have `rows`, over the keys alike."""
    rng = np.random.default_rng(seed)
    numbers = rng.poisson(3, people) + 1
    numbers[:heavy] = rows
    owners = np.repeat(np.arange(people), numbers)
    return {"who": owners, "k": rng.choice(KEYS, len(owners))}


@settings(max_examples=third(15), deadline=None)
@given(people, st.sampled_from(["add_remove", "replace"]))
def test_one_unit_moves_everything_by_no_more_than_the_noise_is_made_for(persons: Any, neighbours: Any) -> None:
    fewer = persons[:-1] if neighbours == "add_remove" else [*persons[:-1], ["a"] * 30]
    unit = dc.User("who", neighbours=neighbours)
    first, second = both(BY_KEY, table(persons), table(fewer), unit, **FACTS)
    assert first.measurement.tallied
    assert strain(first, second) <= 1 + 1e-9


def test_a_tally_without_a_cap_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    persons = [["a"], ["b"], ["c"] * 900]
    honest = tally.exact
    monkeypatch.setattr(tally, "exact", lambda octaves, caps, cut, octave: honest(octaves, caps, cut, 20))
    assert strain(*both(BY_KEY, table(persons), table(persons[:-1]), **FACTS)) > 10


@settings(max_examples=third(15), deadline=None)
@given(people, st.integers(0, 8), st.integers(0, 6))
def test_the_pair_is_what_clipping_loses_and_keeps(persons: Any, cut: int, octave: int) -> None:
    with opened(table(persons), **FACTS) as session:
        found = exact(session, BY_KEY)
    assert found.measurement.weights is not None
    caps = found.measurement.weights.rows
    lost, kept = tally.exact(found.groups.octaves, caps, cut, octave)
    limit, norm = 1 << octave, float(caps.norms[cut])
    expected = [0.0, 0.0]
    for keys in persons:
        weight = min(1.0, norm / math.hypot(*Counter(keys).values()))
        # A unit's octave decides: it has fewer rows than the cap, or at least as many.
        rows = min(len(keys), limit)
        expected[0] += (1 - weight) * rows
        expected[1] += weight * rows
    slack = len(persons) * 40 * 40 / G
    assert [lost / (G * H), kept / (G * H)] == pytest.approx(expected, abs=slack)


def test_the_octaves_count_every_unit_once() -> None:
    data = heavy_tailed(500, 20, 300)
    with opened(data, **FACTS) as session:
        groups = exact(session, BY_KEY).groups
    rows = np.bincount(data["who"])
    expected = np.bincount(np.log2(rows).astype(int), minlength=tally.OCTAVES)
    assert [number // (G * H) for number in tally.counted(groups.octaves)] == expected.tolist()
    assert sum(rows for _, rows, _, _ in groups.octaves.values()) == len(data["who"])


def test_released_tallies_have_the_stated_noise() -> None:
    with opened(heavy_tailed(400, 0, 0), **FACTS) as session:
        found = exact(session, BY_KEY, 1)
    released = [found.release(seed).tally for seed in range(1500)]
    assert all(each is not None for each in released)
    by_deviation: dict[float, list[float]] = {}
    for each in released:
        assert each is not None
        by_deviation.setdefault(each.deviation, []).append(each.lost + each.kept)
    deviation, sums = max(by_deviation.items(), key=lambda item: len(item[1]))
    assert len(sums) > 1000
    # The deviation of a thousand draws is within 14 % with probability above 1 − 1e-9.
    assert np.std(sums) == pytest.approx(math.sqrt(2) * deviation, rel=0.14)


def test_octaves_are_seen_above_the_noise() -> None:
    noisy = [900.0, 800.0, 20.0, -10.0, 5.0, 30.0, 0.0, 0.0]
    assert tally.seen(noisy, 10.0) == 1
    assert tally.seen([*noisy[:5], 60.0, 0.0, 0.0, 0.0, 0.0, 0.0], 10.0) == 5
    assert tally.seen([0.0] * 24, 10.0) == 0
    assert tally.seen([100.0] * 24, 10.0) == 23


def test_an_octave_more_is_counted_where_noise_is_a_tenth_of_all_rows() -> None:
    units = [1000.0, 500.0, 200.0, 5.0]
    rows = 1.5 * (1000 + 2 * 500 + 4 * 200)
    assert tally.counted_to(units, 2, rows / 10 / 2**6) == 6
    assert tally.counted_to(units, 2, rows / 9 / 2**6) == 5


def test_what_heavy_units_lose_is_put_back() -> None:
    # Each tenfold of people, counted from the heaviest, has as many rows as any other.
    rng = np.random.default_rng(1)
    data = {"who": np.floor(100_000 ** rng.random(1_000_000)), "k": rng.integers(0, 1000, 1_000_000)}
    true = np.bincount(data["k"])
    raised, bare = [], []
    with opened(data, values={"k": range(1000)}) as session:
        assert "put back in proportion" in session.price(BY_KEY, epsilon=1).plan
        for seed in range(4):
            answer = session.sql(BY_KEY, epsilon=1 + seed / 1000, test_entropy=Entropy.for_tests(seed))
            raised.append(np.abs(np.array(answer.column("n")) - true).mean())
            bare.append(np.abs(answer.spans.noisy.sums[:, 0] - true).mean())
            for n, (low, high) in zip(answer.column("n"), answer.intervals()["n"], strict=True):
                assert low - 0.5 <= n <= high + 0.5
            assert any("raised in proportion" in note for note in answer.notes)
    assert np.mean(raised) < 0.75 * np.mean(bare)


def test_where_nothing_is_lost_nothing_is_added() -> None:
    data = heavy_tailed(3000, 0, 0)
    with opened(data, **FACTS) as session:
        found = exact(session, BY_KEY, 1)
    factors = [found.release(seed).raised(found.measurement.statistics[0]) for seed in range(40)]
    # Noise exceeds 1.5 deviations once in fifteen times; 20 of 40 has a probability below 1e-9.
    assert sum(factor > 1 for factor in factors) < 20
    assert np.mean(factors) < 1.02


@pytest.mark.parametrize(("lost", "kept"), [(-5.0, 100.0), (1.0, 100.0), (100.0, 1.0), (100.0, -100.0), (0.0, 0.0)])
def test_noise_alone_raises_nothing(lost: float, kept: float) -> None:
    assert Tally(lost, kept, 1.0).raised == 1.0


def test_nothing_is_raised_beyond_twice() -> None:
    assert Tally(900.0, 100.0, 1.0).raised == 2.0
    assert Tally(900.0, 100.0, 1.0).at_most(3) > 9
    assert Tally(900.0, 2.0, 1.0).at_most(3) == math.inf


def test_intervals_hold_groups_that_heavy_units_are_not_in() -> None:
    # 200 units have a thousand rows each in one group, and nothing in the others: those are raised for nothing.
    ordinary = heavy_tailed(20_000, 0, 0)
    bots = {"who": np.repeat(np.arange(20_000, 20_200), 1000), "k": np.full(200_000, KEYS[0])}
    data = {name: np.concatenate([ordinary[name], bots[name]]) for name in bots}
    true = {key: int((data["k"] == key).sum()) for key in KEYS}
    held = asked = 0
    with opened(data, **FACTS) as session:
        for seed in range(12):
            answer = session.sql(BY_KEY, epsilon=1 + seed / 1000, test_entropy=Entropy.for_tests(seed))
            ends = answer.intervals()["n"]
            inside = [low <= true[key] <= high for (key, _), (low, high) in zip(answer.rows, ends, strict=True)]
            held, asked = held + sum(inside[1:]), asked + len(inside) - 1
    assert held > 0.9 * asked


def test_no_cap_and_no_group_needs_no_tally() -> None:
    data = heavy_tailed(50, 0, 0)
    with opened(data, **FACTS) as session:
        assert not exact(session, "SELECT COUNT(*) AS n FROM t").measurement.tallied
    with opened(data, max_rows=4, **FACTS) as session:
        assert not exact(session, BY_KEY).measurement.tallied
    with opened(data, budget=dc.PureDP(50), **FACTS) as session:
        first = exact(session, BY_KEY)
        assert not first.measurement.tallied
        assert tallied(first.measurement, first.groups, first.groups, 0) == 0
