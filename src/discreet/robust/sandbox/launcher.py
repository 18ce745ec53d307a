"""Begins the process that forks blocks, as the first of its own namespace of processes, and ends with it.

Blocks have a copy of that process's memory. So nothing may be in it that the machine numbers for all: a block can move
such numbers, by beginning threads say, and a later one, or the trial of a price, would read how far. A fork alone would
not do, since the new process has the memory of one that had such a number. So it is forked, as the first of a new
namespace, and then replaced by a new Python (exec), which finds three descriptors that are /dev/null, and the socket to
the session as `CONTROL`: Python looks at what its standard files are, and sockets are numbered by the machine, too.

Run with nothing else of the library, like `sandbox/confinement.py`.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from discreet.robust.sandbox.confinement import begin_namespace, keep_powers, set_process_option
from discreet.robust.sandbox.linux import PR_SET_PDEATHSIG

__all__ = ["CONTROL", "launch"]

CONTROL = 3
"""The descriptor of the socket to the session, which is the standard input here."""
_ENDS = {signal.SIGTERM, signal.SIGCHLD}


def launch(program: list[str]) -> None:
    """Run a program there, until it ends or somebody ends this process, which then leaves nothing of it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as chosen:
        # Where memory runs out, the kernel ends a block and never the session, whose failure would tell of rows.
        chosen.write("1000")
    begin_namespace()
    child = os.fork()
    if child == 0:
        try:
            _become(program)
        finally:
            os._exit(1)
    os.close(0)
    signal.sigwait(_ENDS)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _become(program: list[str]) -> None:
    os.dup2(0, CONTROL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    keep_powers()
    set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    os.execv(program[0], program)
