"""Which engine a source is for, and an engine that comes from another package."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.core.errors import InvalidArgument
from discreet.engines import registry
from discreet.engines.engine import Engine

CONTRIBUTING = Path(__file__).parents[2] / "CONTRIBUTING.md"
ASKED = """
import json, sys, discreet as dc
facts = {"table": "visits", "unit": "patient", "budget": dc.ApproxDP(9, "1e-6"), "max_rows": 1}
with dc.connect("archive://ward", ledger=sys.argv[1], **facts) as session:
    print(json.dumps([type(session._engine).__name__, session.sql("SELECT COUNT(*) FROM visits", epsilon=4).rows]))
"""
COMMAND = "from discreet.app.shell import main; main()"


def installed(folder: Path, module: str, named: str) -> None:
    """A package with an entry point, as an installer leaves it."""
    (folder / "archive_engine.py").write_text(module)
    (folder / "archive_engine-1.0.dist-info").mkdir(parents=True)
    about = folder / "archive_engine-1.0.dist-info"
    (about / "METADATA").write_text("Name: archive_engine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[discreet.engines]\narchive = {named}\n")


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    there = {"PYTHONPATH": str(folder), "ARCHIVE": str(folder / "archive")}
    given: dict[str, Any] = {"cwd": folder, "env": os.environ | there, "capture_output": True, "text": True}
    return subprocess.run([sys.executable, "-c", *arguments], check=False, **given)


def test_an_engine_of_another_package_is_reached_by_python_and_by_commands(tmp_path: Path) -> None:
    shown = re.findall(r"^```python\n(.*?)^```", CONTRIBUTING.read_text(), re.M | re.S)
    [module] = [text for text in shown if "class Archive" in text]
    [entry] = re.findall(r'^archive = "(.*)"$', CONTRIBUTING.read_text(), re.M)
    installed(tmp_path, module, entry)
    (tmp_path / "archive" / "ward").mkdir(parents=True)
    rows = pa.table({"patient": list(range(900)), "age": [i % 90 for i in range(900)]})
    pyarrow.parquet.write_table(rows, tmp_path / "archive" / "ward" / "visits.parquet")
    asked = run(tmp_path, ASKED, "books")
    kind, [[count]] = json.loads(asked.stdout or "null") or pytest.fail(asked.stderr)
    assert kind == "Archive"
    assert abs(count - 900) < 30
    facts = ("--unit", "patient", "--epsilon", "5", "--max-rows", "1", "--ledger", "other")
    begun = run(tmp_path, COMMAND, "init", "archive://ward", "--table", "visits", *facts)
    assert begun.returncode == 0, begun.stderr
    answered = run(tmp_path, COMMAND, "query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "4", "--json")
    assert answered.returncode == 0, answered.stderr
    assert abs(json.loads(answered.stdout)["rows"][0][0] - 900) < 30


def test_what_is_no_engine_is_refused_with_the_package_that_named_it(tmp_path: Path) -> None:
    installed(tmp_path, "Archive = int\n", "archive_engine:Archive")
    ended = run(tmp_path, ASKED, "books")
    assert "archive_engine:Archive" in ended.stderr
    assert "uninstall that package" in ended.stderr


@pytest.mark.parametrize("engine", [*registry.BUILT_IN, registry.DuckDB])
def test_engines_are_complete(engine: type[Engine]) -> None:
    assert not getattr(engine, "__abstractmethods__", None)
    assert engine.title
    for scheme in engine.schemes:
        assert registry.engine_for(f"{scheme}://data.example/x") is engine
        assert registry.is_on_server(f"{scheme}://data.example/x")


def test_a_source_that_nobody_knows_is_refused_unseen() -> None:
    facts: dict[str, Any] = {"unit": "patient", "budget": dc.PureDP(1), "table": "visits", "ledger": "books"}
    with pytest.raises(InvalidArgument, match="of a kind that is known") as refusal:
        dc.connect("mysql://ann:secret@data.example/ward", **facts)
    assert "secret" not in str(refusal.value)
    assert "trino://" in str(refusal.value)
    with pytest.raises(InvalidArgument, match="a warehouse that ibis can connect to") as refusal:
        dc.connect("trino://ann:secret@localhost:9/lake/ward", **facts)
    assert "secret" not in str(refusal.value)
