"""The peers, what each needs, and which limits on a user's contribution to try."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tables import CACHE, Shape

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """A program to compare with. It runs in an environment of its own, made when it is first asked for."""

    name: str
    script: str
    packages: tuple[str, ...] = ()
    settings: tuple[tuple[int, ...], ...] = ((0,),)
    """Limits to search through: groups for each user, and rows in each group."""
    best: dict[Shape, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    """Those with the least error of counts and sums, and of means, on ten million rows."""
    slow: bool = False
    """Too slow for the whole table: it is asked about a tenth of it."""

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return CACHE / "venvs" / self.name / "bin" / "python" if self.packages else Path(sys.executable)

    def install(self) -> str | None:
        """What went wrong, if anything."""
        home = self.python.parent.parent
        done = home / "installed"
        if not self.packages or done.exists():
            return None
        steps = [[sys.executable, "-m", "venv", str(home)], self._pip("install", *self.packages)]
        for step in steps:
            ran = subprocess.run(step, capture_output=True, text=True, check=False)
            if ran.returncode:
                lines = [line for line in ran.stderr.splitlines() if "ERROR" in line] or ran.stderr.splitlines()
                return lines[0] if lines else f"exit status {ran.returncode}"
        done.touch()
        return None

    def _pip(self, *arguments: str) -> list[str]:
        return [str(self.python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]


_GRID = (
    (1, 1),
    (3, 1),
    (10, 1),
    (20, 1),
    (30, 1),
    (100, 1),
    (10, 10),
    (10, 30),
    (10, 100),
    (100, 10),
    (300, 10),
    (1000, 4),
    (1000, 10),
)
_FEW = ((3, 1), (30, 3))

OURS = Peer("discreet", "ours.py")
PLAIN = Peer("DuckDB", "plain.py")
PEERS = (
    Peer(
        "opendp",
        "opendp_polars.py",
        ("opendp[polars]==0.16.0",),
        _GRID,
        {"even": ((20, 1), (10, 1)), "heavy": ((1000, 10), (1000, 4), (3, 1))},
    ),
    Peer(
        "qrlew",
        "qrlew.py",
        ("pyqrlew==0.9.27", "pandas", "duckdb"),
        _GRID,
        {"even": ((10, 10),), "heavy": ((10, 100), (10, 30), (10, 10))},
    ),
    Peer(
        "smartnoise",
        "smartnoise.py",
        ("smartnoise-sql==1.0.10", "duckdb<2"),
        ((1,), (3,), (10,), (20,), (30,), (100,), (300,), (1000,)),
        {"even": ((20,), (10,)), "heavy": ((1000,), (3,))},
    ),
    Peer("pipelinedp", "pipelinedp.py", ("pipeline-dp==0.3.1", "dp-accounting", "pandas", "duckdb"), _FEW, slow=True),
    Peer("tumult", "tumult.py", ("tmlt.analytics==0.21.0",), _FEW, slow=True),
)
