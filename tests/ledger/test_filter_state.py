"""A filter that is written down and revived after every event is the filter that never was."""

import json
import tempfile
from fractions import Fraction as F
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.places import HEALTH, UNIT
from tests.soak import third

from discreet.accounting import Filter
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotAccountable
from discreet.core.events import (
    Approximate,
    BoundedRange,
    Event,
    FixedSizeSampled,
    Gaussian,
    Laplace,
    PoissonSampled,
    Pure,
)
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP, RenyiDP
from discreet.ledger import Ledger

BUDGETS: list[tuple[Loss, dict[str, Any]]] = [
    (PureDP(1), {}),
    (ZCDP("0.1"), {}),
    (RenyiDP((2, 8), ("0.2", "0.8")), {}),
    (ApproxDP(1, 0), {}),
    (ApproxDP(1, "1e-6"), {}),
    (ApproxDP(1, "1e-6"), {"order": 7, "delta_share": "0.25"}),
    (ApproxDP(1, "1e-6"), {"composition": "zcdp", "delta_share": 0}),
    (ApproxDP(1, "1e-6"), {"composition": "basic"}),
]
SIZES = st.fractions(F(1, 1000), F(1, 3), max_denominator=1000)
EVENTS = st.one_of(
    SIZES.map(Pure),
    SIZES.map(BoundedRange),
    SIZES.map(lambda size: Laplace(1 / size, 1)),
    SIZES.map(lambda size: Gaussian(F(10**6), 10**6 * size**2)),
    SIZES.map(lambda size: Approximate(size, size / 10**6)),
    SIZES.map(lambda size: PoissonSampled(size, Gaussian(F(10**6), F(10**6)))),
    SIZES.map(lambda size: FixedSizeSampled(1, size.denominator, Pure(F(1)))),
)


def outcome(filter: Filter, event: Event) -> str:
    try:
        filter.charge(event)
    except (BudgetExceeded, NotAccountable) as refusal:
        return str(refusal)
    return "admitted"


@pytest.mark.parametrize(("budget", "options"), BUDGETS)
@settings(max_examples=third(25), deadline=None)
@given(events=st.lists(EVENTS, max_size=12))
def test_reviving_changes_nothing(budget: Loss, options: dict[str, Any], events: list[Event]) -> None:
    lasting, revived = Filter(budget, **options), Filter(budget, **options)
    for event in events:
        revived = Filter.revive(budget, json.loads(json.dumps(revived.state())))
        assert outcome(revived, event) == outcome(lasting, event)
        assert revived.state() == lasting.state()
        assert (revived.spent, revived.remaining, revived.used) == (lasting.spent, lasting.remaining, lasting.used)
        assert revived.covers(lasting)


@pytest.mark.parametrize(("budget", "options"), BUDGETS)
@settings(max_examples=third(8), deadline=None)
@given(events=st.lists(EVENTS, max_size=12))
def test_the_ledger_admits_what_a_filter_in_memory_admits(
    budget: Loss, options: dict[str, Any], events: list[Event]
) -> None:
    lasting = Filter(budget, **options)
    with tempfile.TemporaryDirectory() as folder:
        for number, event in enumerate(events):
            with Ledger.at(f"{folder}/books.db") as ledger:
                ledger.open(HEALTH, budget=budget, unit=UNIT, source="s", **options)
                relation = isinstance(event, FixedSizeSampled) and event.population > 1
                if relation or outcome(lasting, event) != "admitted":
                    with pytest.raises((BudgetExceeded, NotAccountable)):
                        ledger.charge(HEALTH, event, f"{number}")
                else:
                    ledger.charge(HEALTH, event, f"{number}")
                assert ledger.spent(HEALTH) == lasting.spent
                assert ledger.remaining(HEALTH) == lasting.remaining
                assert ledger.check().sound


def test_numbers_of_any_length_survive() -> None:
    faint = Filter(PureDP(1))
    faint.charge(Pure(F(1, 2**20000)))
    revived = Filter.revive(PureDP(1), json.loads(json.dumps(faint.state())))
    assert revived.spent == PureDP(F(1, 2**20000))
    assert not Filter.revive(PureDP(1), Filter(PureDP(1)).state()).covers(faint)


def test_the_price_of_what_does_not_fit_is_told() -> None:
    cap = Filter(ApproxDP(1, "1e-6"))
    assert F("4.99") < cap.price(Pure(F(5))).epsilon <= 5
    assert cap.price(Approximate(F(1), F(1))) == ApproxDP(1, 1)
    assert type(cap.price(Gaussian(F(1), F(100)))) is ApproxDP
    with pytest.raises(NotAccountable):
        Filter(PureDP(1)).price(Gaussian(F(1), F(1)))


@pytest.mark.parametrize(
    "change",
    [
        {"sums": [["2"]]},
        {"sums": [["-1"]]},
        {"sums": [["1/0"]]},
        {"sums": [["half"]]},
        {"sums": [["0", "0"]]},
        {"sums": [["0"], ["0"]]},
        {"sums": []},
        {"sums": [None]},
        {"sums": 3},
        {"relation": "cousins"},
        {"composition": "renyi"},
        {"delta_share": None},
        {"order": 3},
    ],
)
def test_a_state_that_no_filter_wrote_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        Filter.revive(PureDP(1), Filter(PureDP(1)).state() | change)
    with pytest.raises(InvalidArgument):
        Filter.revive(PureDP(1), {})
