"""Commands run in a folder, and a small table of visits to run them on."""

import json
from contextlib import chdir
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow
import pyarrow.parquet
from typer.main import get_command
from typer.testing import CliRunner

from discreet.app.cli import app

COUNT = "SELECT city, COUNT(*) AS n FROM visits GROUP BY city"
INIT = (
    *("init", "visits.parquet", "--unit", "patient", "--max-rows", "2", "--epsilon", "3", "--delta", "1e-6"),
    *("--bounds", "cost=0:500", "--bounds", "age=0:120", "--values", "city=A,B,C"),
)
built = lru_cache(maxsize=1)(get_command)
"""The commands, made from their functions once: that takes longer than to run most of them."""
CANARY = "Zebedee Quux"
"""A name that is in the data and must never be seen outside it."""


class Commands:
    """Runs commands in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, code: int | None = 0, **options: Any) -> Any:
        """The result of a command, which must end with this code unless it is None."""
        with chdir(self.folder), patch("typer.testing._get_command", built):
            result = CliRunner().invoke(app, list(arguments), **options)
        assert code in (None, result.exit_code), result.output
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert CANARY not in result.output
        return result

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code).stdout)


def write_visits(path: Path) -> None:
    people = 3000
    generator = np.random.default_rng(0)
    columns = {
        "patient": np.arange(2 * people) % people,
        "name": np.array(["somebody"] * (2 * people - 1) + [CANARY]),
        "city": generator.choice(["A", "B", "C"], 2 * people, p=[0.6, 0.3, 0.1]),
        "age": generator.integers(0, 100, 2 * people),
        "cost": generator.uniform(0, 400, 2 * people),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
