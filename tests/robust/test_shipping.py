"""Functions on their way to another process, from one that has threads and is forked."""

import subprocess
import sys
from pathlib import Path

from discreet.robust.sandbox.shipping import name_of, shipped

FORKED = """
import os, signal, threading
import cloudpickle, mine
from discreet.robust.sandbox import shipping

begun, over = threading.Event(), threading.Event()

class Slow:
    def __reduce__(self):
        begun.set()
        over.wait()
        return int, ()

held = Slow()
sending = threading.Thread(target=shipping.shipped, args=(lambda rows: held,))
sending.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)  # ends it where it waits for a thread that it does not have
    left = cloudpickle.list_registry_pickle_by_value()
    os._exit(2 if left else 0 if shipping.shipped(lambda rows: mine.one) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "mine" in cloudpickle.list_registry_pickle_by_value())
over.set()
sending.join()
print(cloudpickle.list_registry_pickle_by_value())
"""


def test_a_process_forked_while_a_function_is_sent_sends_others(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("one = 1\n")
    (tmp_path / "script.py").write_text(FORKED)
    ran = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.stdout == "0 True\nset()\n", ran.stdout + ran.stderr


def test_a_name_that_goes_on_and_on_is_cut_short() -> None:
    def named(rows: object) -> float:
        return 0.5

    named.__qualname__ = "x" * 10**6
    assert len(name_of(named)) == 1000


def test_large_constants_are_no_reason_to_refuse_a_function() -> None:
    listed = eval(f"lambda rows: rows in {(*range(10**5),)}")
    assert len(shipped(listed)) > 10**5
