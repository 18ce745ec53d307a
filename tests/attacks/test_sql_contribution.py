"""How far one unit can move what noise is added to, measured on the real engine against what is declared.

Lines of the list of known privacy bugs that are tested here: float sums in any order; a rounded mean of values near
2⁵⁰; integers that wrap; a product of bounds that overflows; a bound cut short by division; clipped data computed
and raw data used; the wrong end of the bounds; replacement moves twice; a bound that survives the redefinition of its
column; rows that move other rows (parity, resizing, order); a unit spread over groups, tables and NULL keys; an average
of unknown and empty numbers. The same for the parts alone: tests/attacks/test_arithmetic.py,
tests/sql/test_statement.py, tests/sql/test_quantiles.py.
"""

import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from tests.attacks import faults, sql_faults, statement_faults
from tests.attacks.register import attack
from tests.attacks.sql_neighbours import Exact, both, exact, largest_cuts, opened, strain
from tests.sql import faults as planted

import discreet as dc
from discreet.core.domains import Bounds
from discreet.sql.aggregates import Sum
from discreet.sql.bounding.clipping_norms import G, H
from discreet.sql.bounding.sums import Statistic
from discreet.sql.plan import Ref

CITIES = [chr(letter) for letter in range(97, 123)]
FACTS: dict[str, Any] = {"bounds": {"x": (-10, 90), "o.y": (0, 5)}, "values": {"c": CITIES}}
PUBLIC = {"code": np.repeat(np.array(CITIES[:3]), 40), "weight": np.arange(120) % 7}
QUESTIONS = [
    "SELECT c, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m, COUNT(DISTINCT who) AS u FROM t GROUP BY c",
    "SELECT c, STDDEV(x) AS d, MEDIAN(x) AS q, MAX(x) AS h, COUNT(x) AS p FROM t GROUP BY c",
    "SELECT COUNT(*) AS n, SUM(x * 1000) AS s FROM t",
    "SELECT UPPER(c) AS k, COUNT(*) AS n FROM t WHERE x > 3 OR x IS NULL GROUP BY 1",
    "SELECT COUNT(*) AS n, SUM(y) AS s FROM t JOIN o ON t.who = o.who",
    "SELECT c, COUNT(*) AS n FROM t LEFT JOIN o ON o.who = t.who AND o.y > 2 GROUP BY c",
    "SELECT COUNT(*) AS n FROM t JOIN p ON p.code = t.c JOIN p AS again ON again.code = t.c",
    "SELECT AVG(CLAMP(n, 0, 9)) AS a, MEDIAN(CLAMP(n, 0, 9)) AS m FROM (SELECT who, COUNT(*) AS n FROM t GROUP BY who)",
    "SELECT SUM(v) AS s FROM (SELECT who, x AS v FROM t UNION ALL SELECT who, y FROM o UNION ALL SELECT who, x FROM t)",
    "SELECT COUNT(*) AS n FROM (SELECT who, c FROM t UNION SELECT who, c FROM t)",
    "SELECT c, COUNT(*) AS n FROM t WHERE who IN (SELECT who FROM o WHERE y > 1) GROUP BY c",
    "SELECT c, COUNT(*) AS n FROM t WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.who = t.who) GROUP BY c",
]
UNLISTED = [
    "SELECT d, COUNT(*) AS n FROM t GROUP BY d",
    "SELECT weight, COUNT(*) AS n FROM t JOIN p ON p.code = t.c GROUP BY weight",
    "SELECT k, COUNT(*) AS n FROM (SELECT who, MAX(c) AS k FROM t GROUP BY who HAVING SUM(x) > 0) GROUP BY k",
]


def people(units: dict[int, tuple[int, int]]) -> tuple[pa.Table, dict[str, Any]]:
    """For each unit so many rows in t and so many in o, with every kind of odd value among them.

    What a unit has depends on nothing else.
    """
    numbers = [None, 0.0, -0.0, 1.0, 90.0, 91.0, -1e308, 1e308, math.nan, math.inf, -math.inf, 5e-324]
    first, second = [], []
    for who, (many, few) in units.items():
        own = random.Random(who)
        keys = [*CITIES, None, "?"], ["a", "A", "a ", None, ""]
        first += [(who, own.choice(keys[0]), own.choice(keys[1]), own.choice(numbers)) for _ in range(many)]
        second += [(who, own.choice([0.0, 2.5, 7.0, math.nan])) for _ in range(few)]
    random.Random(1).shuffle(first)
    columns = [list(column) for column in zip(*first, strict=True)]
    table = pa.table(
        {
            "who": pa.array(columns[0], pa.int64()),
            "c": pa.array(columns[1], pa.string()),
            "d": pa.array(columns[2], pa.string()),
            "x": pa.array(columns[3], pa.float64()),
        }
    )
    others = [list(column) for column in zip(*second, strict=True)] or [[], []]
    return table, {"o": {"who": np.array(others[0], dtype=np.int64), "y": np.array(others[1], dtype=np.float64)}}


@pytest.mark.parametrize("budget", [dc.ApproxDP(50, "1e-6"), dc.PureDP(50)], ids=["gaussian", "laplace"])
@pytest.mark.parametrize("heavy", [1, 60, 600])
@attack(18, finds=[planted.norm_forgets_groups], budget=dc.ApproxDP(50, "1e-6"), heavy=60)
def test_a_unit_moves_no_question_by_more_than_its_noise_is_made_for(budget: Any, heavy: int) -> None:
    rng = random.Random(heavy)
    units = {who: (rng.randrange(1, 9), rng.randrange(4)) for who in range(6)}
    sides = [people(units | extra) for extra in ({99: (heavy, heavy // 20)}, {})]
    worst = 0.0
    sessions = [opened(one, private=other, public={"p": PUBLIC}, budget=budget, **FACTS) for one, other in sides]
    for question in QUESTIONS + (UNLISTED if isinstance(budget, dc.ApproxDP) else []):
        first, second = (exact(session, question) for session in sessions)
        assert first.statement == second.statement
        found = strain(first, second)
        assert found <= 1 + 1e-9, question
        worst = max(worst, found)
    for session in sessions:
        session.close()
    assert worst > 0.5


@attack(13, finds=[planted.weights_ignored])
def test_a_unit_with_many_rows_weighs_no_more_than_its_limit() -> None:
    one = {"who": np.array([1, 2] + [3] * 500), "c": np.array(["a"] * 502)}
    without = {name: column[:2] for name, column in one.items()}
    question = "SELECT c, COUNT(*) AS n FROM t GROUP BY c"
    assert strain(*both(question, one, without, values={"c": CITIES})) <= 1


@attack(13, finds=[planted.values_not_clipped])
def test_a_value_far_outside_adds_no_more_than_its_bound() -> None:
    one = {"who": np.array([1, 2, 3]), "x": np.array([1.0, 2.0, 1e6])}
    without = {name: column[:2] for name, column in one.items()}
    for question in ("SELECT SUM(x) AS s FROM t", "SELECT AVG(x) AS m FROM t"):
        assert strain(*both(question, one, without, bounds={"x": (0, 10)}, max_rows=1)) <= 1


@attack(18, finds=[sql_faults.every_unit_in_the_first_bucket])
def test_a_unit_in_every_group_weighs_no_more_than_in_one() -> None:
    one = {"who": np.array([1, 2] + [3] * 26), "c": np.array(["a", "b", *CITIES])}
    without = {name: column[:2] for name, column in one.items()}
    question = "SELECT c, COUNT(*) AS n FROM t GROUP BY c"
    assert strain(*both(question, one, without, values={"c": CITIES})) <= 1


@attack(17, finds=[sql_faults.only_twenty_rows])
def test_one_unit_more_leaves_all_others_where_they_are() -> None:
    one = {"who": np.arange(26), "c": np.array(CITIES)}
    question = "SELECT c, COUNT(*) AS n FROM t GROUP BY c"
    facts: dict[str, Any] = {"values": {"c": CITIES}, "max_rows": 1, "budget": dc.PureDP(50)}
    for gone in (0, 7, 25):
        without = {name: np.delete(column, gone) for name, column in one.items()}
        assert strain(*both(question, one, without, **facts)) <= 1


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@attack(15, finds=[planted.exchange_counted_once], neighbours="replace")
def test_replacing_a_unit_moves_twice_as_much_and_noise_knows(neighbours: Any) -> None:
    mine = {"who": np.array([1, 3]), "c": np.array(["a", "b"])}
    other = {"who": np.array([1, 3]), "c": np.array(["a", "c"])}
    unit = dc.User("who", neighbours=neighbours)
    question = "SELECT c, COUNT(*) AS n FROM t GROUP BY c"
    found = strain(*both(question, mine, other, unit, values={"c": CITIES}, max_rows=1, budget=dc.PureDP(1)))
    # One row leaves group b and one comes to group c.
    assert found == pytest.approx(2 if neighbours == "add_remove" else 1, rel=1e-4)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_rows_that_are_units_move_as_far_as_noise_is_made_for(neighbours: Any) -> None:
    rng = np.random.default_rng(1)
    rows = {"c": rng.choice(CITIES, 50), "x": rng.choice([-1e308, -10.0, 3.0, 90.0, 1e308, np.nan], 50)}
    changed = {"c": rows["c"].copy(), "x": rows["x"].copy()}
    changed["c"][7], changed["x"][7] = "a", 90.0
    rows["c"][7], rows["x"][7] = "b", 90.0
    fewer = {name: np.delete(column, 7) for name, column in rows.items()}
    for question in QUESTIONS[:3]:
        text = question.replace(", COUNT(DISTINCT who) AS u", "")
        unit = dc.Row(neighbours=neighbours)
        other = changed if neighbours == "replace" else fewer
        assert strain(*both(text, rows, other, unit, bounds={"x": (-10, 90)}, values=FACTS["values"])) <= 1


@pytest.mark.parametrize(
    "question",
    [
        "SELECT SUM(x) AS s FROM (SELECT who, x * 1000 AS x FROM t)",
        "WITH t2(who, x) AS (SELECT who, 1000 * x FROM t) SELECT SUM(x) AS s FROM t2",
        "SELECT SUM(x) AS s FROM (SELECT who, CASE WHEN x > 1 THEN 1000 ELSE x END AS x FROM t)",
        "SELECT SUM(x) AS s FROM (SELECT who, x FROM t UNION ALL SELECT who, x * 1000 FROM t)",
        "SELECT SUM(x) AS s FROM (SELECT who, POWER(x, 3) AS x FROM t)",
        "SELECT SUM(big) AS s FROM (SELECT who, x AS big, x * 1000 AS x FROM t) WHERE x > 5",
    ],
)
@attack(
    16,
    finds=[planted.bounds_outlive_their_column],
    question="SELECT SUM(x) AS s FROM (SELECT who, x * 1000 AS x FROM t)",
)
def test_bounds_do_not_survive_the_redefinition_of_a_column(question: str) -> None:
    one = {"who": np.array([1, 2, 3]), "x": np.array([1.0, 2.0, 10.0])}
    without = {name: column[:2] for name, column in one.items()}
    first, second = both(question, one, without, bounds={"x": (0, 10)}, max_rows=1, budget=dc.PureDP(1))
    assert strain(first, second) <= 1 + 1e-9
    scale = first.measurement.scale(0, 0)
    assert scale >= 10 if "big" in question else scale >= 990


@pytest.mark.parametrize("bounds", [(0, 100), (-100, 0), (-100, 1), (-1, 100)])
@attack(14, finds=[faults.magnitude_of_the_lower_bound], bounds=(0, 100))
def test_noise_is_as_wide_as_the_farther_bound(bounds: tuple[int, int]) -> None:
    with opened({"x": np.array([1.0])}, dc.Row(), bounds={"x": bounds}, budget=dc.PureDP(1)) as session:
        summed = exact(session, "SELECT SUM(x) AS s FROM t").measurement.scale(0, 0)
        assert 100 <= summed <= 100.1


def test_no_value_adds_more_than_its_bound_wherever_the_bounds_lie() -> None:
    rng = random.Random(7)
    engine = duckdb.connect(config={"threads": 1})
    exceeded = 0
    for _ in range(400):
        low = Fraction(rng.uniform(-1, 1) * 10.0 ** rng.randint(-15, 15))
        width = rng.choice([abs(low) / 10**12, Fraction(3, 7), Fraction(rng.randint(0, 99)), Fraction(2) ** 40])
        for kind in ("raw", "centred", "squares"):
            statistic = Statistic(Sum(kind), Ref("v", "real"), Bounds(low, low + width))
            ends = [float(low), float(low + width)]
            near = [math.nextafter(end, to) for end in ends for to in (-math.inf, math.inf)]
            values = [*ends, *near, float(low + width / 3), 1e308, -1e308, math.inf, -math.inf, math.nan, -0.0, None]
            rows = engine.execute(f"SELECT {statistic.steps('v')} FROM (SELECT UNNEST(?::DOUBLE[]) AS v)", [values])
            steps = [abs(row[0]) for row in rows.fetchall() if row[0] is not None]
            most = statistic.bound * statistic.fineness
            assert max(steps) <= most
            exceeded += max(steps) > most - statistic.fineness
    # A bound cut short by one step would have been passed.
    assert exceeded > 100


@attack(3, finds=[sql_faults.doubles_added_as_they_come])
def test_sums_are_the_same_in_any_order_of_a_million_hostile_rows() -> None:
    values = np.tile(np.array([2.0**53, 1.0, -(2.0**53), 0.3, 1e300, -1e300, 5e-324, 0.1]), 125_000)
    who = np.arange(values.size) // 8
    order = np.random.default_rng(3).permutation(values.size)
    facts: dict[str, Any] = {"bounds": {"x": (-(2**53), 2**53)}}
    question = "SELECT SUM(x) AS s FROM t"
    sides = {"who": who, "x": values}, {"who": who[order], "x": values[order]}
    assert strain(*both(question, *sides, **facts)) == 0
    without = {"who": who[8:], "x": values[8:]}
    assert strain(*both(question, sides[0], without, **facts)) <= 1


@attack(4, finds=[sql_faults.values_rounded_to_floats])
def test_the_mean_of_values_near_two_to_the_fifty_moves_by_a_value_less() -> None:
    base = 2**50
    values = np.full(1024, base + 1, dtype=np.int64)
    changed = values.copy()
    changed[17] = base
    rows = {"who": np.arange(1024), "x": values}, {"who": np.arange(1024), "x": changed}
    unit = dc.User("who", neighbours="replace")
    first, second = both("SELECT AVG(x) AS m FROM t", *rows, unit, bounds={"x": (base, base + 1)}, max_rows=1)
    assert 0 < strain(first, second) <= 1
    centred = next(j for j, s in enumerate(first.measurement.statistics) if s.kind == "centred")
    step = float(first.measurement.statistics[centred].grid.step)
    totals = [each.totals([()])[centred][0] / (G * H) * step for each in (first, second)]
    assert totals[0] - totals[1] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
@attack(5, finds=[sql_faults.totals_of_32_bits], value=2**63 - 1)
def test_whole_numbers_at_the_end_of_their_type_do_not_wrap(value: int) -> None:
    rows = {"who": np.arange(100_000), "x": np.full(100_000, value, dtype=np.int64)}
    bounds = {"x": (-(2**63), 2**63 - 1)}
    with opened(rows, bounds=bounds, max_rows=1) as session:
        found = exact(session, "SELECT SUM(x) AS s, COUNT(*) AS n FROM t")
        step = found.measurement.statistics[0].grid.step
        total = found.totals([()])[0][0] * step / (G * H)
        assert abs(total / (value * 100_000) - 1) < Fraction(1, 1000)
        doubled = exact(session, "SELECT COUNT(*) AS n FROM t WHERE x + x IS NULL AND x * x IS NULL")
        assert doubled.totals([()]) == [[100_000 * G * H]]


@pytest.mark.parametrize("factor", ["1e300", "1e301", "1e308"])
@pytest.mark.parametrize("function", ["SUM", "AVG", "VARIANCE", "MEDIAN"])
@attack(6, finds=[sql_faults.infinity_held], factor="1e300", function="SUM")
def test_bounds_whose_product_overflows_are_refused_or_held_before_anything_is_charged(
    factor: str, function: str
) -> None:
    with opened({"who": np.arange(9), "x": np.linspace(0, 1e10, 9)}, bounds={"x": (0, 10**10)}) as session:
        with pytest.raises(dc.DiscreetError):
            session.sql(f"SELECT {function}(x * {factor} * {factor}) AS s FROM t", epsilon=1)
        assert session.spent == dc.ApproxDP(0, 0)


ROWS = {"who": np.arange(9), "x": np.arange(9.0), "c": np.array(list("abcabcabc"))}


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT who, ROW_NUMBER() OVER (ORDER BY x) % 2 AS v FROM t",
        "SELECT who, x AS v FROM t ORDER BY x LIMIT 3",
        "SELECT who, x AS v FROM t LIMIT 3 OFFSET 2",
        "SELECT who, x AS v FROM t USING SAMPLE 3",
        "SELECT who, x AS v FROM t TABLESAMPLE BERNOULLI (50)",
        "SELECT who, x - LAG(x) OVER (ORDER BY who) AS v FROM t",
        "SELECT who, RANK() OVER (ORDER BY x) AS v FROM t",
        "SELECT DISTINCT ON (c) who, x AS v FROM t",
        "SELECT who, x AS v FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY c ORDER BY x) = 1",
        "SELECT who, RANDOM() AS v FROM t",
        "SELECT who, x + (SELECT COUNT(*) FROM t) AS v FROM t",
        "SELECT a.who, b.x AS v FROM t AS a JOIN t AS b ON a.c = b.c",
        "SELECT a.who, b.x AS v FROM t AS a JOIN t AS b ON a.who = b.who + 0",
        "SELECT a.who, a.x AS v FROM t AS a WHERE a.c IN (SELECT c FROM t AS b)",
        "SELECT a.who, a.x AS v FROM t AS a WHERE EXISTS (SELECT 1 FROM t AS b WHERE b.c = a.c)",
        "SELECT c AS who, SUM(x) AS v FROM t GROUP BY c",
        "SELECT who, x AS v FROM t EXCEPT SELECT who, x FROM t",
        "SELECT who, FIRST(x) AS v FROM t GROUP BY who",
        "SELECT who, rowid AS v FROM t",
    ],
)
@attack(17, finds=[planted.people_meet], inner="SELECT a.who, b.x AS v FROM t AS a JOIN t AS b ON a.c = b.c")
def test_rows_that_look_at_other_peoples_rows_are_refused(inner: str) -> None:
    with opened(ROWS, bounds={"x": (0, 9)}) as session:
        with pytest.raises(dc.DiscreetError):
            session.sql(f"SELECT SUM(CLAMP(v, 0, 1)) AS s FROM ({inner})", epsilon=1)
        assert session.spent == dc.ApproxDP(0, 0)


@attack(24, finds=[sql_faults.divided_by_the_rows_there_are])
def test_an_average_never_divides_by_a_number_that_was_not_drawn() -> None:
    with opened(ROWS, bounds={"x": (0, 9)}) as session:
        found = exact(session, "SELECT AVG(x) AS m FROM t")
    kinds = [s.kind for s in found.measurement.statistics]
    assert sorted(kinds) == ["centred", "present"]
    drawn = {float(found.release(seed).sums[0, kinds.index("present")]) for seed in range(20)}
    assert len(drawn) == 20


@pytest.mark.parametrize("units", [1, 2, 9])
@attack(19, finds=[sql_faults.number_of_rows_taken_as_known], units=1)
def test_the_noise_of_an_average_does_not_suppose_how_many_rows_there_are(units: int) -> None:
    some = {"who": np.arange(units), "x": np.full(units, 9.0)}
    fewer = {name: column[1:] for name, column in some.items()}
    assert strain(*both("SELECT AVG(x) AS m FROM t", some, fewer, bounds={"x": (0, 9)}, max_rows=1)) <= 1


def test_linked_rows_count_for_their_owners_however_many_there_are() -> None:
    orders = {"who": np.array([1, 2, 3]), "id": np.array([10, 20, 30])}
    lines = {"order_id": np.array([10, 20, 20] + [30] * 300), "x": np.full(303, 9.0)}
    private = {"lines": dc.Private(lines, link=("order_id", "t", "id"), bounds={"x": (0, 9)})}
    less = {name: column[:2] for name, column in orders.items()}
    questions = [
        "SELECT COUNT(*) AS n, SUM(x) AS s FROM t JOIN lines ON lines.order_id = t.id",
        "SELECT COUNT(*) AS n FROM t LEFT JOIN lines ON lines.order_id = t.id",
        "SELECT SUM(CLAMP(n, 0, 9)) FROM (SELECT who, COUNT(*) AS n FROM t JOIN lines ON order_id = id GROUP BY 1)",
        "SELECT COUNT(*) AS n FROM t WHERE EXISTS (SELECT 1 FROM lines WHERE lines.order_id = t.id)",
    ]
    for question in questions:
        assert strain(*both(question, orders, less, private=private)) <= 1
    for text in ("SELECT COUNT(*) AS n FROM lines", "SELECT SUM(a.x) AS s FROM lines a JOIN lines b USING (order_id)"):
        with opened(orders, private=private) as session, pytest.raises(dc.DiscreetError):
            session.price(text, epsilon=1)


@pytest.mark.parametrize(
    "owners",
    [
        pa.array(["ann", "Ann", "ann ", "ann\0", "", "änn", "a\u0308nn"]),
        pa.array([0.0, -0.0, 1.0, 5e-324, -5e-324, 2.0**53, 2.0**53 + 2]),
        pa.array([2**63 - 1, -(2**63), 0, 1, 2, 3, 4], pa.int64()),
        pa.array([2**64 - 1, 2**63, 0, 1, 2, 3, 4], pa.uint64()),
        pa.array([True, False, True, True, False, False, True]),
        pa.array([0, 1, -1, 2**31 - 1, -(2**31), 5, 6], pa.int32()).cast(pa.date32()),
    ],
    ids=["text", "reals", "integers", "unsigned", "booleans", "dates"],
)
def test_units_are_told_apart_as_the_engine_joins_them(owners: pa.Array) -> None:
    """A unit that grouping splits and joining unites would count its rows twice."""
    table = pa.table({"who": pa.concat_arrays([owners] * 9), "c": pa.array(["a"] * 9 * len(owners))})
    with opened(table, values={"c": ["a"]}) as session:
        found = exact(session, "SELECT c, COUNT(*) AS n, COUNT(DISTINCT who) AS u FROM t GROUP BY c")
        rows, units = found.totals([("a",)], largest_cuts(found.measurement))
        assert rows == [table.num_rows * G * H]
        assert units == [sum(found.groups.by_groups.values()) * G * H]


SAMPLED = ["SELECT * FROM t WHERE random() < 0.001", "SELECT * FROM t TABLESAMPLE bernoulli(0.1 PERCENT)"]


@pytest.mark.parametrize("body", SAMPLED)
@attack(13, 18, finds=[statement_faults.views_taken_for_tables], body=SAMPLED[0])
def test_a_view_that_samples_is_read_once(tmp_path: Path, body: str) -> None:
    """A person with 2,000 rows, of which a view shows some two, others each time."""
    texts = ["SELECT c, COUNT(*) AS n, SUM(x) AS s FROM v GROUP BY c", "SELECT MEDIAN(x) AS m FROM v"]
    facts: dict[str, Any] = {"bounds": {"x": (0, 1)}, "values": {"c": [f"c{i}" for i in range(5)]}, "table": "v"}
    found: dict[int, list[list[Exact]]] = {}
    for many in (0, 2_000):
        with duckdb.connect(str(tmp_path / f"{many}.duckdb")) as file:
            file.execute("CREATE TABLE t (who INTEGER, c VARCHAR, x INTEGER)")
            file.execute(f"INSERT INTO t SELECT 7, 'c' || (i % 5), 1 FROM range({many}) AS r(i)")
            file.execute(f"CREATE VIEW v AS {body}")
        with opened(tmp_path / f"{many}.duckdb", ledger=tmp_path / f"books{many}", **facts) as session:
            found[many] = [[exact(session, text) for _ in range(40)] for text in texts]
    for empty, full in zip(found[0], found[2_000], strict=True):
        assert max(strain(empty[0], one) for one in full) <= 1
