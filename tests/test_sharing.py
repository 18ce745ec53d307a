"""Stored answers between studies, as sessions show them: shared and free, or each study's own and paid for."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.core.errors import AnswerFailed
from discreet.ledger import Ledger
from discreet.session import sql as sql_kind
from discreet.session import sql_question as asked
from discreet.session.session import Session
from discreet.session.sql_question import Asked
from discreet.sql.measuring import planner

ROWS = {"who": np.arange(100), "k": np.array(["a", "b"] * 50)}
COUNT = "SELECT COUNT(*) AS n FROM t"


def session(folder: Path, **who: Any) -> Session:
    given: dict[str, Any] = {"unit": dc.User("who"), "budget": dc.ApproxDP(3, "1e-6"), "table": "t"}
    return dc.connect(ROWS, ledger=folder / "books", **given, **who)


def test_a_price_says_what_this_caller_will_pay(tmp_path: Path) -> None:
    with session(tmp_path, study="flu") as flu, session(tmp_path, study="covid") as covid:
        before = covid.price(COUNT, epsilon="0.5")
        assert (before.stored, before.pays) == (False, before.loss)
        answer = flu.sql(COUNT, epsilon="0.5")
        shared = covid.price(COUNT, epsilon="0.5")
        assert (shared.stored, shared.pays.epsilon, shared.loss) == (True, 0, before.loss)
        assert "costs nothing: it was answered before" in str(shared)
        assert covid.sql(COUNT, epsilon="0.5").rows == answer.rows
        assert covid.spent.epsilon == 0


def test_all_prices_say_alike_that_something_is_stored(tmp_path: Path) -> None:
    with session(tmp_path, values={"k": ["a", "b"]}) as opened:
        before = [opened.price(COUNT, epsilon="0.5"), opened.price(dc.SyntheticRows(["k"], epsilon="0.5"))]
        assert [(quote.stored, quote.pays) for quote in before] == [(False, quote.loss) for quote in before]
        for quote in before:
            assert "within what is left" in quote._repr_html_()
        opened.sql(COUNT, epsilon="0.5")
        opened.synthesize(["k"], epsilon="0.5")
        for quote in (opened.price(COUNT, epsilon="0.5"), opened.price(dc.SyntheticRows(["k"], epsilon="0.5"))):
            assert (quote.stored, quote.failed, quote.pays.epsilon) == (True, False, 0)
            assert "costs nothing: it was answered before" in str(quote)
            assert "nothing: it was answered before" in quote._repr_html_()
            assert "what is left" not in quote._repr_html_()


def test_a_stored_failure_is_no_answer_and_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(statement: str) -> Any:
        raise RuntimeError(statement)

    with session(tmp_path, values={"k": ["a", "b"]}) as opened:
        with monkeypatch.context() as patched:
            patched.setattr(opened._engine, "run", fails)
            for ask in (lambda: opened.sql(COUNT, epsilon="0.5"), lambda: opened.synthesize(["k"], epsilon="0.5")):
                with pytest.raises(AnswerFailed):
                    ask()
        spent = opened.spent
        for quote in (opened.price(COUNT, epsilon="0.5"), opened.price(dc.SyntheticRows(["k"], epsilon="0.5"))):
            assert (quote.stored, quote.failed, quote.pays.epsilon) == (False, True, 0)
            for told in (str(quote), quote._repr_html_()):
                assert "failed; asking again gives that failure again" in told
                assert "answered before" not in told
        with pytest.raises(AnswerFailed):
            opened.sql(COUNT, epsilon="0.5")
        assert opened.spent == spent


def test_who_waits_is_shown_what_another_version_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its events, its plan and its limits, not those that this version would have chosen."""
    waits, runs = Event(), Event()
    text = "SELECT k, COUNT(*) AS n FROM t GROUP BY k"
    with session(tmp_path, values={"k": ["a", "b"]}) as first, session(tmp_path, values={"k": ["a", "b"]}) as later:
        measured = sql_kind.exact_groups

        def slow(question: Asked, engine: Any) -> Any:
            runs.set()
            assert waits.wait(300)
            return measured(question, engine)

        def another(statistics: Any, **given: Any) -> Any:
            return planner.plan(statistics, **given | {"epsilon": given["epsilon"] / 2})

        def waiting(self: Ledger, *given: Any) -> None:
            waits.set()
            waited(self, *given)

        waited = Ledger._wait_for
        monkeypatch.setattr(sql_kind, "exact_groups", slow)
        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(first.sql, text, epsilon=1)
            assert runs.wait(300)
            monkeypatch.setattr(asked, "plan", another)
            monkeypatch.setattr(Ledger, "_wait_for", waiting)
            shown, made = later.sql(text, epsilon=1), running.result()
        assert (shown.rows, shown.loss, shown.certificate) == (made.rows, made.loss, made.certificate)
        assert shown.intervals(0.9) == made.intervals(0.9)
        assert later.spent == first.spent == made.loss
        assert later._ledger.confirm(shown.certificate, keys=[shown.certificate["key"]]) == ()


def test_kept_per_study_a_price_depends_on_nothing_that_others_asked(tmp_path: Path) -> None:
    with session(tmp_path, study="flu") as flu, session(tmp_path, study="covid") as covid:
        with Ledger.at(tmp_path / "books") as books:
            books.keep_answers(("t",), per="study")
        before = covid.price(COUNT, epsilon="0.5")
        flu.sql(COUNT, epsilon="0.5")
        assert flu.price(COUNT, epsilon="0.5").stored
        assert covid.price(COUNT, epsilon="0.5") == before
        own = covid.sql(COUNT, epsilon="0.5")
        assert covid.spent.epsilon == flu.spent.epsilon > 0
        assert own.certificate["ledger"]["entry"] > 0
        with Ledger.at(tmp_path / "books") as books:
            books.confirm(own.certificate, keys=[own.certificate["key"]])
            assert books.check().sound
