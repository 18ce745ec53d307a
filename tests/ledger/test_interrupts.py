"""Whenever Ctrl-C comes, the books can be used as before: by the same handle, and by others."""

import random
import signal
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.soak import whole_or_share

import discreet as dc
from discreet.core.events import Pure
from discreet.ledger import Ledger


@pytest.fixture
def interrupted() -> Iterator[None]:
    """An alarm is Ctrl-C."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_an_interrupt_leaves_nothing_locked_and_no_run_unpaid(tmp_path: Path, interrupted: None) -> None:
    rng, stopped, number = random.Random(1), 0, 0
    with Ledger.at(tmp_path / "books.db", patience=30) as books, Ledger.at(tmp_path / "books.db", patience=30) as other:
        account = books.open(("h",), budget=dc.PureDP(10**6), unit=dc.User("p"), source="s")
        begun = time.perf_counter()
        books.ask(account, Pure(Fraction(1)), "how long one takes", lambda: b"x")
        longest = time.perf_counter() - begun
        while stopped < whole_or_share(20_000, 250):
            number += 1
            ran: list[int] = []

            def run(ran: list[int] = ran) -> bytes:
                ran.append(1)
                return b"%d" % len(ran)

            try:
                try:
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 1.2 * longest))
                    books.ask(account, Pure(Fraction(1)), f"q{number}", run)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                stopped += 1
            # In turn by the same handle and by another one: neither waits for a run that is over.
            answer = (books, other)[number % 2].ask(account, Pure(Fraction(1)), f"q{number}", run)
            assert answer.payload == b"%d" % len(ran)
            assert len(ran) <= 2
        charges = sum(entry.content["kind"] == "charge" for entry in books.entries())
        assert books.spent(account) == dc.PureDP(charges)
        assert books.check().sound
