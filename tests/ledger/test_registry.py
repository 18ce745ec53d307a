"""The register that a steward publishes."""

import json
from datetime import timedelta
from fractions import Fraction as F

from tests.ledger.places import ANN, BOB, HEALTH, UNIT, Clock, Place, opened, pure

from discreet.core.events import Gaussian
from discreet.core.losses import ZCDP, ApproxDP, RenyiDP
from discreet.core.units import Row
from discreet.ledger import Ledger, readable


def test_the_register_adds_up_each_account_with_all_below_it(place: Place) -> None:
    ledger = opened(place.open())
    ledger.complete(ledger.charge(ANN, pure(1, 8), "a"), b"1")
    ledger.complete(ledger.charge(BOB, pure(1, 8), "b"), b"2")
    ledger.charge(HEALTH, pure(1, 4), "c")
    register = ledger.registry()
    assert json.loads(json.dumps(register)) == register
    assert register["ledger"] == ledger.id
    assert register["head"] == {"sequence": ledger.head().sequence, "hash": ledger.head().hash}
    [health] = register["data_sets"]
    assert (health["name"], health["unit"]["kind"], health["unit"]["column"]) == ("health", "User", "patient")
    lines = {tuple(line["account"]): line for line in health["accounts"]}
    counts = {path[-1]: (line["charges"], line["releases"], line["spent"]["epsilon"]) for path, line in lines.items()}
    assert counts == {"health": (3, 2, 0.5), "flu study": (2, 2, 0.25), "ann": (1, 1, 0.125), "bob": (1, 1, 0.125)}
    assert lines[HEALTH]["remaining"] == {
        "definition": "PureDP",
        "text": "PureDP(epsilon=0.5)",
        "epsilon": 0.5,
    }
    assert lines[BOB]["budget"] is lines[BOB]["remaining"] is lines[BOB]["promised"] is None
    assert lines[ANN]["first_charge"] == lines[ANN]["last_charge"] < lines[HEALTH]["last_charge"]
    text = readable(register)
    assert "health: spent PureDP(epsilon=0.5) of PureDP(epsilon=1), 50.0% used" in text
    assert "each User by 'patient' (add_remove neighbours)" in text


def test_the_rate_counts_the_days_since_the_first_charge(place: Place) -> None:
    clock = Clock()
    with Ledger(place.store(), clock=clock) as ledger:
        opened(ledger)
        assert ledger.registry()["data_sets"][0]["accounts"][0]["days_left"] is None
        ledger.charge(HEALTH, pure(1, 4), "a")
        [line, *_] = ledger.registry()["data_sets"][0]["accounts"]
        assert (line["used"], line["used_per_day"], line["days_left"]) == (0.25, 0.25, 3.0)
        clock.now += timedelta(days=10) - timedelta(minutes=2)
        [line, *_] = ledger.registry()["data_sets"][0]["accounts"]
        assert (line["used_per_day"], line["days_left"]) == (0.025, 30.0)


def test_every_definition_can_be_registered(place: Place) -> None:
    ledger = place.open()
    budgets = {"a": ApproxDP(1, "1e-6"), "r": RenyiDP((2, 4), (1, 2)), "z": ZCDP(1)}
    for name, budget in budgets.items():
        ledger.open((name,), budget=budget, unit=UNIT if name != "r" else Row(), source=name)
        ledger.charge((name,), Gaussian(F(10**6), F(10**4)), "q")
    register = ledger.registry()
    definitions = [dataset["accounts"][0]["spent"]["definition"] for dataset in register["data_sets"]]
    assert definitions == ["ApproxDP", "RenyiDP", "ZCDP"]
    assert register["data_sets"][1]["accounts"][0]["budget"]["epsilons"] == [1.0, 2.0]
    assert json.loads(json.dumps(register)) == register
    assert "protects each Row (add_remove neighbours)" in readable(register)
    assert "RenyiDP({2: 0.01, 4: 0.02})" in readable(register)


def test_an_empty_register_is_one(place: Place) -> None:
    assert place.open().registry()["data_sets"] == []
