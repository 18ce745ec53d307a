"""Membership: from means, from synthetic rows, from signed rows, from fingerprints; and none of it on ours."""

import numpy as np
import pytest

import discreet as dc
from discreet.adversary import FingerprintCode, Marginals, SignedData, power_of_means, trace_means, trace_rows
from discreet.adversary.membership.signed_rows import SignedRow, noisy_answers, recombined, shuffled
from discreet.adversary.reconstruction.chance import power
from discreet.core.errors import InvalidArgument
from discreet.mechanisms import Laplace
from discreet.noise.entropy import Entropy

GENERATOR = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_data() -> None:
    """Every test has its own data, the same each time."""
    GENERATOR.bit_generator.state = np.random.default_rng(0).bit_generator.state


def study(traits: int, people: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bits of people with different means, and who is in by a fair coin."""
    common = GENERATOR.uniform(0.1, 0.9, traits)
    return (GENERATOR.random((people, traits)) < common).astype(int), common, GENERATOR.integers(0, 2, people) == 1


def test_exact_means_of_many_traits_tell_who_is_in() -> None:
    people, common, inside = study(6000)
    found = trace_means(people[inside].mean(axis=0), people, population=common, members=inside)
    assert found.power == 1.0
    assert found.false_alarms == 0.0
    assert found.beats_chance(epsilon=1)
    assert found.epsilon_proven > 2
    assert found.verdict.startswith("BROKEN")
    assert "claims" not in found.as_record()


def test_our_means_do_not() -> None:
    """300 people by coin: an attack that is right about 95 % of them would be noticed even at ε = 1."""
    people, common, inside = study(6000)
    assert power(300, 0.95, epsilon=1) > 0.99
    mechanism = Laplace.for_epsilon(1, sensitivity=6000, dimension=6000)
    released = np.asarray(mechanism.release(people[inside].sum(axis=0)).values, float) / inside.sum()
    found = trace_means(released, people, population=common, members=inside)
    assert not found.beats_chance(epsilon=1)


def test_p_values_hold_for_people_who_are_not_in() -> None:
    """10,000 outsiders at α = 0.01: more than 172 claims have a chance below 10⁻⁹ if the rate is kept."""
    _, common, _ = study(400)
    means = (GENERATOR.random((50, 400)) < common).mean(axis=0)
    outsiders = (GENERATOR.random((10_000, 400)) < common).astype(int)
    assert trace_means(means, outsiders, population=common, alpha=0.01).claims.sum() <= 172
    others = (GENERATOR.random((4000, 400)) < common).astype(int)
    ranked = trace_means(means, outsiders, reference=others, alpha=0.01)
    assert ranked.claims.sum() <= 300  # Ranks among 2,000 share one sample of the null.
    wrong = trace_means(means, outsiders, population=np.full(400, 0.5), alpha=0.01)
    assert wrong.claims.sum() > 300  # A wrong population is noticed.


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3], ids=str)
def test_measured_power_is_what_the_formula_says(noise: float) -> None:
    """n = 100: the normal approximation is within 0.12 of the share of 400 members that four studies claim."""
    wanted, caught = power_of_means(1200, 100, noise, alpha=0.05), []
    for _ in range(4):
        people = GENERATOR.integers(0, 2, (100, 1200))
        means = people.mean(axis=0) + GENERATOR.normal(0, noise / 2, 1200)
        scores = (people - 0.5) @ (means - 0.5)
        spread = np.sqrt(((means - 0.5) ** 2).sum() / 4)
        caught += (scores / spread > 1.6449).tolist()
    assert abs(np.mean(caught) - wanted) < 0.12


def survey(people: int) -> dict[str, np.ndarray]:
    health = GENERATOR.integers(0, 5, people)
    table = {"health": health, "age": GENERATOR.integers(0, 90, people)}
    return table | {f"c{i}": (health + GENERATOR.integers(0, 4, people)) % 5 for i in range(5)}


def rows(table: dict[str, np.ndarray], places: np.ndarray) -> dict[str, np.ndarray]:
    return {name: column[places] for name, column in table.items()}


@pytest.mark.parametrize(("by", "tried"), [("nearest", 400), ("density", 400), ("marginals", 60)])
def test_copied_rows_tell_who_is_in(by: str, tried: int) -> None:
    """Marginals of few people tell of each of them; copies of many still show each."""
    table, inside = survey(1600), GENERATOR.integers(0, 2, tried) == 1
    targets, others = rows(table, np.arange(tried)), rows(table, np.arange(tried, 1600))
    data = rows(targets, inside)
    copies = rows(data, GENERATOR.integers(0, inside.sum(), 400))
    found = trace_rows(copies, targets, others, by=by, members=inside, alpha=0.01)
    assert found.alarming
    assert found.beats_chance(epsilon=0.2) or tried < 400


def test_our_synthetic_rows_do_not() -> None:
    """By the test that copied rows fail, at their ε."""
    table, inside = survey(1600), GENERATOR.integers(0, 2, 400) == 1
    names = ["health", "age", "c0", "c1"]
    targets = {name: table[name][:400] for name in names}
    others = {name: table[name][400:] for name in names}
    data, lists = rows(targets, inside), {name: [0, 1, 2, 3, 4] for name in ("health", "c0", "c1")}
    facts = {"unit": dc.Row(), "budget": dc.PureDP(1), "table": "t", "values": lists, "bounds": {"age": (0, 90)}}
    with dc.connect(data, **facts) as session:
        made = session.synthesize("t", epsilon="0.2", bins={"age": 6}).to_arrow()
    for by in ("nearest", "density", "marginals"):
        found = trace_rows(made, targets, others, by=by, members=inside, alpha=0.01)
        assert not found.beats_chance(epsilon=0.2)


def test_equal_scores_are_decided_by_lots_and_not_by_their_order() -> None:
    same = {"a": np.zeros(400, int)}
    found = trace_rows(same, same, same, members=np.arange(400) >= 200, alpha=0.01)
    assert found.area == 0.5
    assert found.luck > 1e-9


def test_marginals_are_the_means_of_their_indicators() -> None:
    table = survey(500)
    pairs = Marginals(table, ["health", "c0"])
    shares = pairs.features(table).mean(axis=0)
    assert shares.size == len(pairs) == 5 + 5 + 25
    assert np.allclose(np.sort(shares[:5]), np.sort(np.bincount(table["health"]) / 500))
    assert pairs.features({"health": [99], "c0": [99]}).sum() == 0


def test_synthetic_rows_that_are_good_for_signatures_are_people() -> None:
    data = SignedData.generate(400)
    copied = data.trace(data.rows[:20])
    assert (copied.useful, copied.exposed, copied.forged) == (True, 20, 0)
    assert data.rows[0].message.hex() not in str(copied) + repr(copied)
    mixed = data.trace([*data.rows[:20], *recombined(data.rows, 20)])
    assert mixed.exposed == 20
    for synthesizer in (shuffled(data.rows[:20]), recombined(data.rows, 20)):
        found = data.trace(synthesizer)
        assert (found.useful, found.exposed, found.forged) == (False, 0, 0)


def test_a_person_who_was_replaced_cannot_be_found() -> None:
    data = SignedData.generate(30)
    other = SignedData(data.rows[1:])
    assert data.rows[0] not in other.trace(other.rows).valid
    altered = data.rows[0]._replace(message=bytes(32))
    assert not altered.valid
    assert not SignedRow(b"short", b"", b"").valid


def test_counts_of_signatures_can_be_told_privately() -> None:
    data = SignedData(SignedData.generate(50).rows * 1000)
    answers = noisy_answers(data, 1, test_entropy=Entropy.for_tests(0))
    assert np.abs(answers - np.round(answers)).max() < 0.3


def test_mixtures_of_fingerprints_are_traced_and_private_means_not() -> None:
    code = FingerprintCode.generate(users=200, coalition=12, test_entropy=Entropy.for_tests(1))
    members = np.arange(200) < 12
    mixture = code.words[:12].mean(axis=0)
    for pirate in (mixture, (mixture > 0.5) * 1, code.words[:12][np.arange(code.length) % 12, np.arange(code.length)]):
        found = code.accuse(pirate, members)
        assert found.claims[:12].any()
        assert found.claims[12:].sum() <= 5
    private = Laplace.for_epsilon(1, sensitivity=code.length, dimension=code.length)
    noisy = np.asarray(private.release(code.words[:12].sum(axis=0)).values, float) / 12
    assert not code.accuse(noisy, members).beats_chance(epsilon=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: trace_means([0.5], [[1, 0]], population=[0.5]), "one for each mean"),
        (lambda: trace_means([0.5], [[1]]), "give one of the two"),
        (lambda: trace_means([0.5], [[1]], population=[2]), "means of bits"),
        (lambda: trace_means([0.5], [[1]], reference=[[1]] * 5), "20 rows or more"),
        (lambda: trace_means([0.5], [[1]], reference=[[1], [0]] * 20, alpha=0.001), "more reference people"),
        (lambda: trace_rows({"a": [1]}, {"a": [1]}, {"a": [1]}, by="magic"), "nearest, density, marginals"),
        (lambda: trace_rows({"a": [1]}, {"b": [1]}, {"a": [1]}), "columns of synthetic"),
        (lambda: SignedData.generate(2).trace([]), "one row or more"),
    ],
    ids=["shape", "no null", "population", "few", "alpha", "score", "columns", "no rows"],
)
def test_what_cannot_be_done_is_said(call: object, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        call()
