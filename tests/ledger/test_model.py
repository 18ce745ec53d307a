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

from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.events import Event, Gaussian, Pure
from discreet.core.losses import ZCDP, Loss, PureDP

Names = tuple[str, ...]
NAMES = st.sampled_from(["a", "b"])
PATHS = st.one_of(st.tuples(NAMES), st.tuples(NAMES, NAMES), st.tuples(NAMES, NAMES, NAMES))
SOURCES = st.sampled_from(["s", "t", "u"])
AMOUNTS = st.sampled_from([F(1, 12), F(1, 7), F(1, 3), F(1, 2), F(1)])
QUESTIONS = st.sampled_from(["p", "q", "r", "v", "w", "x"])
REQUESTS = st.sampled_from([None, None, None, "1", "2"])


@dataclass
class Account:
    budget: F | None
    spent: F = F(0)


@dataclass
class Asked:
    path: Names
    cost: F
    payload: bytes | None = None


@dataclass
class Model:
    accounts: dict[Names, Account] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    asked: dict[tuple[str, str], Asked] = field(default_factory=dict)
    requests: set[tuple[str, str]] = field(default_factory=set)

    def lineage(self, path: Names) -> list[Account]:
        return [self.accounts[path[:depth]] for depth in range(1, len(path) + 1)]


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

    def teardown(self) -> None:
        report = self.ledger.check()
        self._stack.close()
        assert report.sound, report

    @rule()
    def another_process(self) -> None:
        self.ledger = self.place.open()

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
        if path[:-1] not in model.accounts or (known and budget is not None and known.budget != budget):
            with pytest.raises(InvalidArgument):
                self.ledger.open(path, budget=loss)
        else:
            assert self.ledger.open(path, budget=loss) == path
            model.accounts.setdefault(path, Account(budget))

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
    @rule(path=PATHS, question=QUESTIONS, cost=AMOUNTS, request=REQUESTS)
    def charge(self, path: Names, question: str, cost: F, request: str | None) -> None:
        model, key = self.model, (path[0], question)
        if path not in model.accounts:
            with pytest.raises(InvalidArgument):
                self.ledger.charge(path, self.event(cost), question, request=request)
            return
        earlier = model.asked.get(key)
        if earlier is not None and earlier.cost == cost:
            charge = self.ledger.charge(path, self.event(cost), question, request=request)
            assert (charge.fresh, charge.account, charge.payload) == (False, earlier.path, earlier.payload)
        elif earlier is not None or (path[0], request) in model.requests:
            with pytest.raises(InvalidArgument):
                self.ledger.charge(path, self.event(cost), question, request=request)
        elif any(a.budget is not None and a.spent + cost > a.budget for a in model.lineage(path)):
            with pytest.raises(BudgetExceeded):
                self.ledger.charge(path, self.event(cost), question, request=request)
        else:
            charge = self.ledger.charge(path, self.event(cost), question, request=request)
            assert charge.fresh
            for account in model.lineage(path):
                account.spent += cost
            model.asked[key] = Asked(path, cost)
            model.requests |= {(path[0], request)} if request else set()

    @precondition(lambda self: self.model.asked)
    @rule(data=st.data(), payload=st.binary(max_size=3))
    def complete(self, data: st.DataObject, payload: bytes) -> None:
        (name, question), asked = data.draw(st.sampled_from(sorted(self.model.asked.items(), key=lambda item: item[0])))
        charge = self.ledger.charge((name,), self.event(asked.cost), question)
        asked.payload = payload if asked.payload is None else asked.payload
        assert self.ledger.complete(charge, payload) == asked.payload

    @precondition(lambda self: self.model.accounts)
    @rule(data=st.data(), budget=AMOUNTS)
    def amend(self, data: st.DataObject, budget: F) -> None:
        path = data.draw(st.sampled_from(sorted(self.model.accounts)))
        account = self.model.accounts[path]
        if budget < account.spent:
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


LIMITS = settings(max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck))
TestBooks = Books.TestCase
TestBooks.settings = LIMITS
TestConcentratedBooks = ConcentratedBooks.TestCase
TestConcentratedBooks.settings = LIMITS
