"""The ledger beside a model in a few dictionaries of exact numbers, under any sequence of calls."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction as F
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.ledger.places import UNIT, SQLitePlace
from tests.soak import third

from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.events import Event, Gaussian, Pure
from discreet.core.losses import ZCDP, Loss, PureDP
from discreet.ledger import Charge

Names = tuple[str, ...]
NAMES = st.sampled_from(["a", "b"])
PATHS = st.one_of(st.tuples(NAMES), st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES, NAMES))
SOURCES = st.sampled_from(["s", "t", "u"])
AMOUNTS = st.sampled_from([F(1, 12), F(1, 7), F(1, 3), F(1, 2), F(1)])
QUESTIONS = st.sampled_from(["p", "q", "r", "v", "w", "x"])


@dataclass
class Account:
    budget: F | None
    spent: F = F(0)


@dataclass
class Asked:
    path: Names
    cost: F
    payload: bytes | None = None
    alive: bool = True
    """Whether somebody may still store an outcome of the last attempt."""


@dataclass
class Model:
    accounts: dict[Names, Account] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    asked: dict[tuple[str, str], Asked] = field(default_factory=dict)

    def lineage(self, path: Names) -> list[Account]:
        """All accounts that a charge counts at; a middle name that is empty stands for every study."""
        names = {(path[0], "", name) for name in path[1:] if name} & self.accounts.keys()
        tree = [] if "" in path else [path[:depth] for depth in range(2, len(path) + 1)]
        return [self.accounts[each] for each in ((path[0],), *names, *tree)]

    def fits(self, path: Names, budget: F) -> bool:
        """Whether no cap above, of the tree or of a name in every study, is smaller."""
        tree = {path[:1]} if "" in path else {path[:depth] for depth in range(1, len(path))}
        names = set() if "" in path else {(path[0], "", name) for name in path[1:]}
        caps = [self.accounts[each].budget for each in (tree | names) & self.accounts.keys()]
        return all(cap is None or budget <= cap for cap in caps)


class Books(RuleBasedStateMachine):
    """Budgets of ε, paid by pure events."""

    loss: Callable[[F], Loss] = PureDP
    event: Callable[[F], Event] = Pure

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        folder = self._stack.enter_context(tempfile.TemporaryDirectory())
        self.place = SQLitePlace(Path(folder), self._stack)
        self.ledger = self.place.open()
        self.model = Model()
        self.charges: dict[tuple[str, str], Charge] = {}
        """Charges of runs that this process has not ended."""

    def teardown(self) -> None:
        report = self.ledger.check()
        self._stack.close()
        assert report.sound, report

    @rule()
    def another_process(self) -> None:
        self.ledger.close()
        self.ledger = self.place.open()
        self.charges.clear()
        for asked in self.model.asked.values():
            asked.alive = False

    @rule(name=NAMES, source=SOURCES, budget=AMOUNTS)
    def open_data_set(self, name: str, source: str, budget: F) -> None:
        model, owner = self.model, self.model.sources.get(source)
        taken = model.accounts.get((name,))
        wrong = (owner is None and taken) or (owner not in (None, name) and taken)
        kept = model.accounts[(owner,)].budget if owner else budget
        if wrong or kept != budget:
            with pytest.raises(InvalidArgument):
                self.ledger.open((name,), budget=self.loss(budget), unit=UNIT, source=source)
            return
        path = self.ledger.open((name,), budget=self.loss(budget), unit=UNIT, source=source)
        assert path == (owner or name,)
        if owner is None:
            model.accounts[(name,)] = Account(budget)
            model.sources[source] = name

    @precondition(lambda self: self.model.accounts)
    @rule(path=PATHS, budget=st.none() | AMOUNTS)
    def open_account(self, path: Names, budget: F | None) -> None:
        assume(len(path) > 1)
        model, loss = self.model, None if budget is None else self.loss(budget)
        known = model.accounts.get(path)
        different = known and budget is not None and known.budget != budget
        unknown = path[:-1] not in model.accounts
        if unknown or different or (known is None and budget is not None and not model.fits(path, budget)):
            with pytest.raises(InvalidArgument):
                self.ledger.open(path, budget=loss, new=True)
        else:
            assert self.ledger.open(path, budget=loss, new=True) == path
            model.accounts.setdefault(path, Account(budget))

    @precondition(lambda self: self.model.accounts)
    @rule(dataset=NAMES, name=NAMES, budget=AMOUNTS)
    def cap_everywhere(self, dataset: str, name: str, budget: F) -> None:
        model, path = self.model, (dataset, "", name)
        known, above = model.accounts.get(path), model.accounts.get((dataset,))
        costs = [asked.cost for asked in model.asked.values() if asked.path[0] == dataset and name in asked.path[1:]]
        small = known is None and above is not None and (sum(costs, F(0)) > budget or budget > (above.budget or budget))
        if above is None or (known is not None and known.budget != budget) or small:
            with pytest.raises(InvalidArgument):
                self.ledger.open(path, budget=self.loss(budget))
        else:
            assert self.ledger.open(path, budget=self.loss(budget)) == path
            model.accounts.setdefault(path, Account(budget, sum(costs, F(0))))

    @precondition(lambda self: self.model.accounts)
    @rule(name=NAMES, source=SOURCES)
    def attach(self, name: str, source: str) -> None:
        owner = self.model.sources.get(source)
        if (name,) not in self.model.accounts or owner not in (None, name):
            with pytest.raises(InvalidArgument):
                self.ledger.attach((name,), source)
        else:
            self.ledger.attach((name,), source)
            self.model.sources[source] = name

    @precondition(lambda self: self.model.accounts)
    @rule(path=PATHS, question=QUESTIONS, cost=AMOUNTS)
    def charge(self, path: Names, question: str, cost: F) -> None:
        model, key = self.model, (path[0], question)
        earlier = model.asked.get(key)
        open = earlier is not None and not earlier.alive and earlier.payload is None
        if path not in model.accounts:
            with pytest.raises(InvalidArgument):
                self.ledger.charge(path, self.event(cost), question)
        elif earlier is not None and not open:
            charge = self.ledger.charge(path, self.event(cost), question)
            assert charge.events == (self.event(earlier.cost),)  # those that were paid, whatever is given
            seen = charge.fresh, charge.own, charge.account, charge.payload
            assert seen == (False, False, earlier.path, earlier.payload)
        elif any(a.budget is not None and a.spent + cost > a.budget for a in model.lineage(path)):
            with pytest.raises(BudgetExceeded):
                self.ledger.charge(path, self.event(cost), question)
        else:
            self.charges[key] = self.ledger.charge(path, self.event(cost), question)
            assert self.charges[key].fresh
            for account in model.lineage(path):
                account.spent += cost
            model.asked[key] = Asked(path, cost)

    @precondition(lambda self: self.charges)
    @rule(data=st.data(), payload=st.binary(max_size=3))
    def complete(self, data: st.DataObject, payload: bytes) -> None:
        key = data.draw(st.sampled_from(sorted(self.charges)))
        asked = self.model.asked[key]
        asked.payload = payload if asked.payload is None else asked.payload
        assert self.ledger.complete(self.charges[key], payload) == asked.payload

    @precondition(lambda self: self.charges)
    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.charges)))
        self.ledger.abandon(self.charges.pop(key))
        self.model.asked[key].alive = False

    @precondition(lambda self: self.model.accounts)
    @rule(data=st.data(), budget=AMOUNTS)
    def amend(self, data: st.DataObject, budget: F) -> None:
        path = data.draw(st.sampled_from(sorted(self.model.accounts)))
        account = self.model.accounts[path]
        if budget < account.spent or not self.model.fits(path, budget):
            with pytest.raises((InvalidArgument, BudgetExceeded)):
                self.ledger.amend(path, self.loss(budget))
        else:
            self.ledger.amend(path, self.loss(budget))
            account.budget = budget

    @invariant()
    def books_and_model_agree(self) -> None:
        model = self.model
        assert self.ledger.accounts() == tuple(sorted(model.accounts))
        for path, account in model.accounts.items():
            assert self.ledger.spent(path) == self.loss(account.spent)
            left = [a.budget - a.spent for a in model.lineage(path) if a.budget is not None]
            assert self.ledger.remaining(path) == self.loss(min(left))
        for (name, question), asked in model.asked.items():
            assert self.ledger.replay((name,), question) == asked.payload


class ConcentratedBooks(Books):
    """Budgets of ρ, paid by Gaussian events."""

    loss = ZCDP

    @staticmethod
    def event(cost: F) -> Event:
        return Gaussian(F(10**6), 2 * cost * 10**6)


LIMITS = settings(max_examples=third(25), stateful_step_count=30, suppress_health_check=list(HealthCheck))
TestBooks = Books.TestCase
TestBooks.settings = LIMITS
TestConcentratedBooks = ConcentratedBooks.TestCase
TestConcentratedBooks.settings = LIMITS
