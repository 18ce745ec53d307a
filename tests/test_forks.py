"""A forked child takes nothing from its parent: no answer without paying, no books, no crash."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from discreet.core.errors import BudgetExceeded
from discreet.core.forks import Home, folder
from discreet.mechanisms import SparseVector

PARENT = """
import os, sys
import numpy as np
import discreet as dc
people = {"who": np.arange(2000) % 500, "k": np.array(list("abcd") * 500)}
facts = {"unit": dc.User("who"), "budget": dc.ApproxDP(4, "1e-6"), "table": "t", "values": {"k": list("abcd")}}
ASKED = "SELECT UPPER(k) AS u, COUNT(*) AS n FROM t GROUP BY u ORDER BY n"
session = dc.connect(people, **facts)
session.sql(ASKED, epsilon=1)
child = os.fork()
if child == 0:
    for ask in (lambda: session.sql(ASKED, epsilon=0.5), lambda: session.price(ASKED, epsilon=0.5)):
        try:
            ask()
        except dc.InvalidArgument as error:
            print(error)
    with dc.connect(people, **facts) as own:
        own.sql(ASKED, epsilon=1)
    session.close()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0, "the child crashed"
print(session.spent.epsilon)
print(len(session.sql(ASKED, epsilon=0.5).rows))
"""


def test_a_session_is_of_the_process_that_opened_it() -> None:
    ran = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    *refusals, spent, rows = ran.stdout.strip().split("\n")
    assert len(refusals) == 2
    assert all("opened before a fork" in refusal and "connect again" in refusal for refusal in refusals)
    assert float(spent) <= 1
    assert rows == "4"


def test_a_run_of_sparse_vector_answers_only_where_it_was_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    run = SparseVector.for_epsilon(1, 10).start()
    run.ask(0)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(BudgetExceeded, match="forked"):
        run.ask(0)


def test_folders_are_removed_by_the_process_that_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    path, remove = folder()
    here = Home()
    assert oct(os.stat(path).st_mode)[-3:] == "700"
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "getpid", lambda: -1)
        assert here.left
        remove()
        assert Path(path).is_dir()
    assert not here.left
    remove()
    assert not Path(path).exists()
