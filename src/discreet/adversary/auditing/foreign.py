"""Mechanisms of other makers, run as they are: Python objects and functions, and programs.

A program gets one line of JSON for each run, the data, and writes one line for each: JSON, or any text. It is started
once for many runs, so it must draw fresh randomness for each line. What it writes is an output like any other.

>>> echo = Program("cat")
>>> echo([1, 2], 3)
[[1, 2], [1, 2], [1, 2]]
>>> loaded("random:randint", {"b": 5})(3) in (3, 4, 5)
True

Python mechanisms are recognised by how they are run: `release(data)` (ours), `randomise(value)` (diffprivlib's), or a
call (functions, OpenDP's measurements). `claimed` asks them what they guarantee.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from discreet.core.errors import InvalidArgument
from discreet.core.losses import ZCDP, ApproxDP, Loss, PureDP
from discreet.core.mechanism import Mechanism as Ours

if TYPE_CHECKING:
    from discreet.adversary.auditing.auditor import Mechanism

__all__ = ["Program", "claimed", "loaded", "runnable"]

_SHOWN = 300
"""Characters of a program's complaint that are repeated."""


@dataclass(frozen=True)
class Program:
    """A shell command as a source of outputs: Program(command)(data, runs)."""

    command: str
    seconds: float = 600.0
    """How long it may take for one batch of runs."""

    def __call__(self, data: Any, runs: int) -> list[Any]:
        """So many outputs; one process for all of them."""
        line = json.dumps(data) + "\n"
        process = subprocess.Popen(
            self.command,
            shell=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            said, complaint = process.communicate((line * runs).encode(), timeout=self.seconds)
        except subprocess.TimeoutExpired:
            bound = f"done with {runs} runs in {self.seconds:g} seconds"
            raise InvalidArgument("command", self.command, bound, "ask for fewer runs, or allow more time") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        if process.returncode:
            words = complaint.decode(errors="replace").strip()[-_SHOWN:] or "nothing"
            remedy = f"it ended with code {process.returncode} and said: {words}"
            raise InvalidArgument("command", self.command, "a program that ends without failure", remedy)
        lines = said.decode(errors="replace").splitlines()
        if len(lines) != runs:
            bound = f"one line of output for each of {runs} lines of input; there were {len(lines)}"
            raise InvalidArgument("command", self.command, bound, "write exactly one line for each run")
        return [_read(line) for line in lines]


def _read(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line


def loaded(target: str, options: Mapping[str, Any] | None = None) -> Any:
    """What `module:name` names, ready to be run.

    Options are keyword arguments: of a class, or of `module:name()`, which is called once to make the mechanism; of a
    function, which is called with them for each run.
    """
    module, colon, name = target.partition(":")
    given = dict(options or {})
    if not colon or not module or not name:
        raise InvalidArgument("target", target, "module:function", "write for example mine.noise:count")
    if module.endswith(".py"):
        path, _, file = module.removesuffix(".py").replace(os.sep, "/").rpartition("/")
        where = f" in the folder {path}" if path else ""
        raise InvalidArgument("target", target, "a module, not a file", f"write {file}:{name}{where}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in name.removesuffix("()").split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InvalidArgument("target", target, "something that can be imported", str(error)) from None
    if name.endswith("()") or inspect.isclass(found):
        try:
            return found(**given)
        except TypeError as error:
            raise InvalidArgument("option", given, f"arguments that {target} takes", str(error)) from None
    return partial(found, **given) if given else found


def runnable(mechanism: Any) -> Mechanism:
    """How a mechanism is run on data."""
    for name in ("release", "randomise"):
        method = getattr(mechanism, name, None)
        if callable(method):
            run: Mechanism = method
            return run
    if not callable(mechanism):
        remedy = "pass a function of data, or an object with release or randomise"
        raise InvalidArgument("mechanism", mechanism, "callable, or have a release or randomise method", remedy)
    return partial(_called, mechanism)


def _called(mechanism: Any, data: Any) -> Any:
    return mechanism(data)


def claimed(mechanism: Any, distance: Any = 1) -> Loss | None:
    """What a mechanism says it guarantees: ours by `loss`, OpenDP's by its map at this distance of data sets,
    diffprivlib's by its ε and δ; None if it says nothing."""
    if isinstance(mechanism, Ours):
        return mechanism.loss
    if hasattr(mechanism, "output_measure") and callable(getattr(mechanism, "map", None)):
        return _by_map(str(mechanism.output_measure), mechanism.map(distance))
    if callable(getattr(mechanism, "randomise", None)) and hasattr(mechanism, "epsilon"):
        delta = getattr(mechanism, "delta", 0.0)
        return ApproxDP(mechanism.epsilon, delta) if delta else PureDP(mechanism.epsilon)
    return None


def _by_map(measure: str, found: Any) -> Loss | None:
    if measure.startswith("Approximate(MaxDivergence"):
        return ApproxDP(found[0], found[1])
    if measure.startswith("MaxDivergence"):
        return PureDP(found)
    return ZCDP(found) if measure.startswith("ZeroConcentratedDivergence") else None
