"""Guarantees of released libraries that do not hold, proven by our auditor from running them.

    python benchmarks/peer_violations.py [runs]

Each package is installed, alone and in the version named, into a folder that is thrown away, and run as a program in a
process of its own. Where it cannot be installed, that is said. Lines end with the ε that is proven at confidence
1 − 10⁻⁹ beside the one that is claimed, and how the two data sets are told apart.

The flaw of all three is that noise in doubles, added to 0 and to 1, leaves low-order bits that tell which: Mironov
(2012); Haney, Desfontaines, Hartman, Shrestha and Hay (2022), arXiv 2207.13793; issues 19 and 94 of
IBM/differential-privacy-library, and 414 of opendp/opendp, since mended there.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from discreet.adversary import audit
from discreet.adversary.auditing.foreign import Program
from discreet.core.errors import InvalidArgument
from discreet.core.losses import PureDP

# The package's own __init__ imports models, which newer versions of scikit-learn break; mechanisms do without.
DIFFPRIVLIB = """
import json, sys, types, warnings
warnings.simplefilter("ignore")
package = types.ModuleType("diffprivlib")
package.__path__ = [sys.argv[1] + "/diffprivlib"]
sys.modules["diffprivlib"] = package
"""
LAPLACE = (
    DIFFPRIVLIB
    + """
from diffprivlib.mechanisms import Laplace
try:
    mechanism = Laplace(epsilon=1, sensitivity=1)
except TypeError:
    mechanism = Laplace().set_epsilon(1).set_sensitivity(1)
for line in sys.stdin:
    print(float(mechanism.randomise(json.loads(line))))
"""
)
OPENDP = """
import json, sys
sys.path.insert(0, sys.argv[1])
from opendp.meas import make_base_laplace
from opendp.mod import enable_features
enable_features("contrib", "floating-point")
mechanism = make_base_laplace(scale=1.0)
for line in sys.stdin:
    print(mechanism(float(json.loads(line))))
"""


@dataclass(frozen=True)
class Case:
    """A package in a version, a program that runs it, and neighbours on which it claims ε = 1."""

    package: str
    what: str
    program: str
    d: Any
    d_prime: Any


CASES = (
    Case("diffprivlib==0.6.6", "Laplace(epsilon=1, sensitivity=1)", LAPLACE, 0.0, 1.0),
    Case("diffprivlib==0.4.1", "Laplace(epsilon=1, sensitivity=1)", LAPLACE, 0.0, 1.0),
    Case("opendp==0.3.0", "make_base_laplace(scale=1), sensitivity 1", OPENDP, 0.0, 1.0),
)


def main() -> None:
    """Print one line for each case."""
    runs = int(float(sys.argv[1])) if len(sys.argv) > 1 else 20_000
    print(f"{'package':<20}{'what':<46}{'claimed':>8}{'proven':>8}{'seconds':>9}   told apart by")
    for case in CASES:
        start = time.perf_counter()
        try:
            proven, event = examined(case, runs)
        except (InvalidArgument, subprocess.SubprocessError) as error:
            print(f"{case.package:<20}{case.what:<46}could not be run: {str(error)[:160]}")
            continue
        taken = time.perf_counter() - start
        print(f"{case.package:<20}{case.what:<46}{1:>8}{proven:>8.2f}{taken:>9.1f}   {event[:90]}")


def examined(case: Case, runs: int) -> tuple[float, str]:
    """The ε that is proven, and the event that proves it."""
    with TemporaryDirectory(prefix="discreet-peer-") as place:
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", place, case.package]
        subprocess.run(install, check=True, capture_output=True, timeout=300)
        script = Path(place) / "discreet_runs_this.py"
        script.write_text(case.program)
        batch = Program(f"{sys.executable} {script} {place}")
        found = audit(None, case.d, case.d_prime, samples=runs, claim=PureDP(1), batch=batch)
    return found.epsilon, found.event


if __name__ == "__main__":
    main()
