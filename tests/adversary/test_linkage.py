"""Tables without names: groups, rare combinations, a second table, records by what is known of people."""

import numpy as np
import pytest
from scipy.stats import binom

from discreet.adversary import Items, how_anonymous, intersect, match, uniqueness
from discreet.adversary.linkage.example_hospitals import FIRST, FIRST_NAMED, KNOWN, QUASI, SECOND, SENSITIVE
from discreet.adversary.linkage.matching import Matching
from discreet.core.errors import InvalidArgument
from discreet.mechanisms import Laplace


def test_the_two_hospitals() -> None:
    named = how_anonymous(FIRST_NAMED, ["age"], SENSITIVE)
    assert (named.k, named.unique, named.alarming) == (1, 9, True)
    blurred = how_anonymous(FIRST, QUASI, SENSITIVE)
    assert (blurred.k, blurred.diversity, blurred.alarming) == (2, 2, False)
    found = intersect({"A": FIRST, "B": SECOND}, QUASI, SENSITIVE, KNOWN)
    assert found.left == (frozenset({"AIDS"}),)
    assert [len(*sets) for sets in found.alone.values()] == [2, 3]
    assert found.verdict.startswith("BROKEN")
    for shown in (str(found), repr(found), found._repr_html_(), str(found.as_record())):
        assert "AIDS" not in shown
    assert "AIDS" in str(found.as_record(reveal=True))


def test_one_diagnosis_in_a_group_is_no_secret_however_large_the_group() -> None:
    table = {"age": ["50"] * 40 + ["60"] * 40, "illness": ["flu"] * 40 + ["flu", "gout"] * 20}
    found = how_anonymous(table, ["age"], "illness")
    assert (found.k, found.diversity, found.known) == (40, 1, 40)
    assert found.verdict.startswith("BROKEN")


def test_everybody_is_tried_where_nobody_is_named() -> None:
    found = intersect({"A": FIRST, "B": SECOND}, QUASI, SENSITIVE)
    assert len(found.left) == 4
    assert (found.present, found.pinned) == (1, 1)


def test_one_right_claim_may_be_luck_and_is_told_in_the_singular() -> None:
    films = Items.of_triples([0, 0, 1, 1, 2], [7, 9, 7, 8, 7], [5.0, 1, 5, 2, 1])
    found = match(films, [{7: 5, 9: 1}], eccentricity=0.5, truth=[0])
    words = "1 of 1 person was found among 3 records; 1 was claimed, too few to rule out luck."
    assert found.verdict == f"UNSURE: {words}"


def test_tables_that_blur_differently_are_compared_where_they_overlap() -> None:
    first = {"age": ["60-79"] * 4, "post": ["1901**"] * 4, "ill": ["flu", "gout", "acne", "mumps"]}
    second = {"age": ["60-69", "60-69", "70+", "70+"], "post": ["19****"] * 4, "ill": ["flu", "cold", "gout", "acne"]}
    found = intersect({"A": first, "B": second}, ["age", "post"], "ill")
    assert found.people == (("60-69", "1901**"), ("70-79", "1901**"))
    assert found.left == (frozenset({"flu"}), frozenset({"gout", "acne"}))
    assert found.verdict.startswith("BROKEN: of 2 kinds of people who can be in both tables, ill of 1 is left")
    apart = intersect({"A": first, "B": second | {"post": ["18****"] * 4}}, ["age", "post"], "ill")
    assert apart.verdict.startswith("NOTHING: nobody looked for can be in both tables")


def test_the_same_two_hospitals_answered_by_us_leave_a_guess() -> None:
    """Counts of ten illnesses at ε = 0.05 a hospital. Another illness of one patient moves both by two people.

    So all together are 0.2-DP, and a guess is right with a probability of at most e^0.2/(e^0.2 + 9).
    """
    truths, right = np.random.default_rng(0).integers(0, 10, 200), 0
    counts = Laplace.for_epsilon("0.05", sensitivity=1, dimension=10)
    for truth in truths.tolist():
        seen = np.zeros(10)
        for other in (truth + 1, truth + 3):
            seen += counts.release(np.bincount([truth, other % 10], minlength=10)).values
        right += int(seen.argmax()) == truth
    most = int(binom.isf(1e-9, 200, np.exp(0.2) / (np.exp(0.2) + 9)))
    assert most < 100  # Exact counts pin all 200.
    assert right <= most


def test_the_fewest_columns_that_single_out_most_records() -> None:
    generator = np.random.default_rng(0)
    table = {name: generator.integers(0, size, 5000) for name, size in (("a", 4), ("b", 90), ("c", 90), ("d", 2))}
    found = uniqueness(table, share=0.4)
    assert found.smallest == ("b", "c")
    by_hand = np.unique(table["b"] * 100 + table["c"], return_counts=True)[1]
    assert found.worst[1].unique == int((by_hand == 1).sum())
    assert uniqueness(table, largest=1).smallest is None
    with pytest.raises(InvalidArgument, match="20,000 combinations"):
        uniqueness({f"c{i}": [1, 2] for i in range(60)}, largest=4)


@pytest.fixture(scope="module")
def ratings() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """100,000 people who rated about ten of 5,000 films each."""
    generator = np.random.default_rng(1)
    popular = 1 / np.arange(1, 5001) ** 0.8
    held = generator.geometric(0.1, 100_000)
    who = np.repeat(np.arange(100_000), held)
    return who, generator.choice(5000, who.size, p=popular / popular.sum()), generator.integers(1, 6, who.size)


def test_few_noisy_ratings_find_a_record_among_a_hundred_thousand(
    ratings: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    who, what, stars = ratings
    generator, starts = np.random.default_rng(2), np.searchsorted(who, np.arange(100_001))
    targets = generator.choice(np.flatnonzero(np.diff(starts) >= 12), 60, replace=False)

    def known(place: int) -> dict[int, float]:
        chosen = generator.permutation(np.arange(starts[place], starts[place + 1]))[:8]
        right = {int(what[i]): float(stars[i] + generator.integers(-1, 2)) for i in chosen}
        return right | {int(generator.integers(5000)): 3.0}

    def invented() -> dict[int, float]:
        return {int(film): float(generator.integers(1, 6)) for film in generator.choice(5000, 9)}

    released, others = Items.of_triples(who, what, stars), [invented() for _ in range(60)]
    found = match(released, [known(int(t)) for t in targets], tolerance=1.0, truth=targets, controls=others)
    assert found.right is not None
    assert found.right >= 50
    assert found.verdict.startswith("BROKEN")
    assert found.chance is not None
    assert found.chance < 1e-6
    assert str(int(found.claims.max())) not in repr(found)
    nobody = match(released, [invented() for _ in range(60)], tolerance=1.0, controls=others)
    assert nobody.chance is not None
    assert nobody.chance > 1e-9


def test_records_of_a_table_are_found_by_numbers_that_are_a_little_off() -> None:
    generator = np.random.default_rng(3)
    table = {"age": generator.integers(0, 90, 2000), "income": generator.normal(30_000, 9000, 2000)}
    table["city"] = generator.choice([*"ABCDEFGH"], 2000)
    known = [
        {"age": table["age"][i] + 1, "income": table["income"][i] + 20, "city": table["city"][i]} for i in range(100)
    ]
    found = match(Items.of_table(table), known, tolerance={"age": 2, "income": 50}, eccentricity=0.3, truth=range(100))
    assert found.right is not None
    assert found.right >= 80


def test_guesses_that_are_right_by_luck_are_not_called_an_attack() -> None:
    apart = np.full(1000, 9.0)
    guesses = np.zeros(1000, np.int64)
    lucky = Matching(1000, guesses, guesses, apart, 1.5, None, np.r_[0, np.ones(999, np.int64)])
    assert (lucky.right, lucky.alarming) == (1, False)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: how_anonymous(FIRST, ["agee"]), "columns of table: name, age, sex"),
        (lambda: how_anonymous(FIRST, ["age", "diagnosis"], "diagnosis"), "leave it out of the columns"),
        (lambda: intersect({"A": FIRST}, QUASI, SENSITIVE), "two tables or more"),
        (lambda: intersect({"A": FIRST, "B": SECOND}, ["smokes"], SENSITIVE), "columns that all tables have"),
        (lambda: match(Items.of_table(FIRST_NAMED), []), "what is known of one person or more"),
        (lambda: uniqueness({"a": []}), "a table with rows"),
        (lambda: how_anonymous("nowhere.csv", ["a"]), "name one that exists"),
    ],
    ids=["column", "sensitive", "one table", "nothing shared", "nobody known", "no rows", "no file"],
)
def test_what_cannot_be_done_is_said(call: object, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        call()
