"""SmallDB: every small database is a candidate, one unit moves no score by more than is paid for, bounds hold."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from discreet import ApproxDP, InvalidArgument
from discreet.noise import Entropy
from discreet.synopses.candidates import END, Kinds, held, misses, multisets, number_of_multisets
from discreet.synopses.domain import Attribute, Domain
from discreet.synopses.queries.workload import Workload
from discreet.synopses.small_database import MOST, SmallDatabase
from discreet.synopses.total_weight import LARGEST_SIZE, Population, total_weight
from discreet.synopses.walk import SmallDatabaseWalk

DOMAIN = Domain((Attribute("a", (0, 1, 2)), Attribute("b", (0, 1))))
MARGINALS = Workload.all_marginals(DOMAIN, 1)
FRACTIONAL = Workload.predicates(DOMAIN, [[0.25, 0, 0.5, 0, 0.75, 0.75], [0, 1, 0, 0.125, 0, 0]])
WORKLOADS = pytest.mark.parametrize("workload", [MARGINALS, FRACTIONAL], ids=["marginals", "fractional"])


@pytest.mark.parametrize(("kinds", "rows"), [(1, 3), (2, 5), (4, 3), (6, 1)])
def test_every_multiset_is_listed_once(kinds: int, rows: int) -> None:
    listed = multisets(kinds, rows, np.arange(number_of_multisets(kinds, rows)))
    chosen = combinations_with_replacement(range(kinds), rows)
    assert {tuple(line) for line in listed.tolist()} == {tuple(map(c.count, range(kinds))) for c in chosen}
    assert len(listed) == len({tuple(line) for line in listed.tolist()})


@WORKLOADS
def test_cells_of_one_kind_are_those_no_query_tells_apart(workload: Workload) -> None:
    kinds = Kinds.told_apart_by(workload, 100, "")
    columns = [tuple(workload.row(i)[cell] for i in range(len(workload))) for cell in range(DOMAIN.size)]
    for one, other in product(range(DOMAIN.size), repeat=2):
        assert (columns[one] == columns[other]) == (kinds.of[one] == kinds.of[other])
    database = np.arange(kinds.number)
    spread = workload.answers(kinds.spread(database, 2.0))
    assert spread == pytest.approx(kinds.answers(database[None])[0] * 2 / kinds.scale)


def _scores(workload: Workload, histogram: np.ndarray, rows: int, size: int) -> np.ndarray:
    kinds = Kinds.told_apart_by(workload, 100, "")
    databases = multisets(kinds.number, rows, np.arange(number_of_multisets(kinds.number, rows)))
    counts = held(workload, workload.domain.held(histogram), rows)
    return -misses(kinds.answers(databases), counts, rows, size)


@WORKLOADS
def test_one_unit_moves_no_score_by_more_than_the_sensitivity(workload: Workload) -> None:
    """Also where counts are held at an end, and where one unit is replaced by another."""
    rng = np.random.default_rng(5)
    weight, rows, size = 3, 2, 40
    chooser = SmallDatabase(workload=workload, epsilon=1, unit_weight=weight, size=size)._chooser(rows)
    reached = 0
    for top in (2, 10, 1 << 59, (1 << 62) - 1):
        for _ in range(40):
            data = rng.integers(0, top, DOMAIN.size, dtype=np.int64)
            one, other = (rng.multinomial(weight, np.eye(DOMAIN.size)[rng.integers(DOMAIN.size)]) for _ in range(2))
            with_one = _scores(workload, np.minimum(data, (1 << 62) - 4) + one, rows, size)
            for neighbour in (data, np.minimum(data, (1 << 62) - 4) + other):
                moved = np.abs(with_one - _scores(workload, np.minimum(neighbour, (1 << 62) - 4), rows, size)).max()
                assert moved <= chooser.sensitivity
                reached = max(reached, int(moved))
    assert reached == chooser.sensitivity


@WORKLOADS
def test_some_database_is_as_near_as_stated(workload: Workload) -> None:
    rng = np.random.default_rng(3)
    kinds = Kinds.told_apart_by(workload, 100, "")
    for rows in (1, 2, 5, 8):
        for _ in range(20):
            data = rng.multinomial(1000, rng.dirichlet(np.full(DOMAIN.size, 0.3)))
            best = -_scores(workload, data, rows, 1000).max() / (rows * kinds.scale)
            assert best <= 1000 * kinds.nearest(rows) + 1e-9


def test_the_release_is_near_the_truth_and_the_number_of_rows_serves_best() -> None:
    data = np.array([400, 0, 100, 300, 150, 50])
    small = SmallDatabase(workload=MARGINALS, epsilon=1, size=1000)
    bounds = {rows: small._accuracy(1000, rows, Fraction(1, 20)) for rows in (1, 2, 4, 8)}
    assert small.accuracy("0.05") <= min(bounds.values())
    for mechanism in (SmallDatabase(workload=MARGINALS, epsilon=1, rows=6), _book()):
        # Out of reach but for a chance of 1e-12.
        synopsis = mechanism.release(data).values
        assert np.abs(synopsis.answers(MARGINALS) - MARGINALS.answers(data)).max() <= synopsis.accuracy("1e-12")
        assert (synopsis.weights >= 0).all()


def _book() -> SmallDatabase:
    return SmallDatabase.for_alpha(workload=MARGINALS, epsilon=1, alpha="0.5", size=1000)


def test_the_book_has_its_own_rows_and_law() -> None:
    book = _book()
    assert book.rows == math.ceil(math.log(5) / 0.25)
    assert book.selection == "exponential"


def test_more_databases_than_can_be_listed_are_refused_with_their_number() -> None:
    wide = Domain((Attribute("a", tuple(range(60))),))
    work = Workload.prefixes(wide, "a")
    with pytest.raises(InvalidArgument, match=r"about 10\^\d+ databases.*MWEM"):
        SmallDatabase(workload=work, epsilon=1, size=100, rows=40)
    most = SmallDatabase(workload=work, epsilon=1, size=100)._most_rows(100)
    assert number_of_multisets(60, most) <= MOST < number_of_multisets(60, most + 1)
    many = Domain((Attribute("a", tuple(range(3000))),))
    with pytest.raises(InvalidArgument, match=r"2,895 kinds.*MWEM"):
        SmallDatabase(workload=Workload.marginals(many, [("a",)]), epsilon=1)
    huge = Domain(tuple(Attribute(name, tuple(range(100))) for name in "abc"))
    with pytest.raises(InvalidArgument, match=r"1,000,000 cells × 100 queries.*MWEM"):
        SmallDatabase(workload=Workload.marginals(huge, [("a",)]), epsilon=1)


def test_totals_are_held_and_bought_only_where_they_are_unknown() -> None:
    assert total_weight(np.full(3, 1 << 61)) == LARGEST_SIZE
    assert total_weight(np.array([5, -2, 7])) == 12
    assert Population(Fraction(1), 1, 12).found(np.array([99]), Entropy.for_tests(0)) == 12
    bought = Population(Fraction(1000), 2, None)
    assert abs(bought.found(np.array([99, 1]), Entropy.for_tests(0)) - 100) <= bought.doubt(Fraction(1, 10**12))
    assert bought.events[0].sensitivity == 2


def _walked(walk: SmallDatabaseWalk, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The law of the walk, and of the exponential mechanism it goes to, over all lists of rows."""
    kinds, counts = walk.kinds, held(walk.workload, data, walk.rows)
    states = list(product(range(kinds.number), repeat=walk.rows))
    tallies = np.array([np.bincount(state, minlength=kinds.number) for state in states])
    odds = np.exp(-float(walk.rate) * misses(kinds.answers(tallies), counts, walk.rows, walk.size))
    law = np.full(len(states), 1 / len(states))
    for _ in range(walk.steps):
        for place in range(walk.rows):
            others = [state[:place] + state[place + 1 :] for state in states]
            reached = {rest: sum(law[i] for i, other in enumerate(others) if other == rest) for rest in set(others)}
            total = {rest: sum(odds[i] for i, other in enumerate(others) if other == rest) for rest in set(others)}
            law = np.array([reached[rest] * odds[i] / total[rest] for i, rest in enumerate(others)])
    return law, odds / odds.sum()


@pytest.mark.parametrize("sweeps", [1, 2, 5])
def test_a_walk_is_as_near_its_goal_as_proven(sweeps: int) -> None:
    domain = Domain((Attribute("a", (0, 1)),))
    work = Workload.marginals(domain, [("a",)])
    data = np.array([1, 1])
    walk = SmallDatabaseWalk(workload=work, epsilon=2, size=2, rows=4, sweeps=sweeps)
    law, goal = _walked(walk, data)
    distance = np.abs(law - goal).sum() / 2
    assert 0 < distance <= walk.total_variation < 1
    assert walk.loss.delta == min(1, walk.events[0].delta)


def test_a_walk_says_when_it_proves_nothing() -> None:
    data = np.array([400, 0, 100, 300, 150, 50])
    hopeful = SmallDatabaseWalk(workload=MARGINALS, epsilon=1, size=1000, rows=20, sweeps=5)
    assert hopeful.loss == ApproxDP(1, 1)
    release = hopeful.release(data)
    assert not release.private
    assert math.isinf(release.values.accuracy(0.05))
    assert np.abs(release.values.answers(MARGINALS) - MARGINALS.answers(data)).max() < 200
    proven = SmallDatabaseWalk(workload=MARGINALS, epsilon="0.01", delta="1e-9", size=100, rows=5)
    assert proven.loss == ApproxDP("0.01", "1e-9")
    assert proven.release(data).private
    with pytest.raises(InvalidArgument, match="sweeps"):
        SmallDatabaseWalk(workload=MARGINALS, epsilon=1, delta="1e-9", size=1000, rows=20)
    with pytest.raises(InvalidArgument, match="size"):
        SmallDatabaseWalk(workload=MARGINALS, epsilon=1, sweeps=3)
    with pytest.raises(InvalidArgument, match="sweeps"):
        SmallDatabaseWalk(workload=MARGINALS, epsilon=1, size=10)


def test_sizes_past_the_arithmetic_are_refused_or_held() -> None:
    with pytest.raises(InvalidArgument, match="size"):
        SmallDatabase(workload=FRACTIONAL, epsilon=1, size=1 << 45)
    with pytest.raises(InvalidArgument, match="sensitivity"):
        SmallDatabase(workload=FRACTIONAL, epsilon=1, unit_weight=1 << 40)
    for held_at_the_end in (
        SmallDatabase(workload=MARGINALS, epsilon=1, rows=3),
        SmallDatabase(workload=FRACTIONAL, epsilon=1),
        SmallDatabase(workload=FRACTIONAL, epsilon=4, unit_weight=1 << 40),
    ):
        synopsis = held_at_the_end.release(np.full(DOMAIN.size, (1 << 62) - 1)).values
        assert synopsis.total <= END
