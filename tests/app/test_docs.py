"""The consoles of docs/cli.md: every command runs, in order, and says what the page shows.

Answers are noisy, and keys and hashes are new each time: figures, bars and hexadecimal numbers may differ, words not,
except where the page has three dots.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from tests.app.commands import Commands
from typer.main import get_command

from discreet.app.cli import app
from discreet.app.options import ORDER
from discreet.samples import rand_hie

PAGE = Path(__file__).parent.parent.parent / "docs" / "cli.md"
CONSOLES = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)


def steps(console: str) -> list[tuple[str, str]]:
    """Commands with the output that follows them."""
    found = []
    for part in re.split(r"(?m)^\$ ", console)[1:]:
        command, _, output = re.sub(r"\\\n\s*", "", part).partition("\n")
        while command.count('"') % 2:
            more, _, output = output.partition("\n")
            command += f" {more.strip()}"
        found.append((command, output))
    return found


def skeleton(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, mark in (
        (r"\b[0-9a-f]{8,}\b", "hex"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d\+00:00)?", "time"),
        (r"[█░├─●┤│]+", " "),
        (r"−?\d[\d,.]*(e-?\d+)?", "0"),
        (r"\s+", " "),
    ):
        text = re.sub(pattern, mark, text)
    return text.strip()


@pytest.mark.slow
def test_the_page_shows_what_the_commands_say(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table(rand_hie()), tmp_path / "survey.parquet")
    run, code = Commands(tmp_path), 0
    for command, shown in [step for console in CONSOLES for step in steps(console)]:
        name, *arguments = shlex.split(command)
        if name == "cat":
            assert shown.strip() in (tmp_path / arguments[0]).read_text()
            continue
        if name == "echo":
            assert shown.strip() == str(code)
            continue
        assert name == "discreet"
        result = run(*arguments, code=None)
        code = result.exit_code
        wanted = r"\s*.*\s*".join(map(re.escape, re.split(r"\s*\.\.\.\s*", skeleton(shown))))
        assert re.fullmatch(wanted, skeleton(result.output)), f"$ {command}\n{result.output}"


def options(command: Any) -> Iterator[str]:
    """The long options of a command and of those below it."""
    for parameter in command.params:
        yield from (option for option in parameter.opts if option.startswith("--"))
    for below in getattr(command, "commands", {}).values():
        yield from options(below)


def test_the_page_names_every_command_and_option() -> None:
    text = PAGE.read_text()
    assert [name for name in ORDER if f"discreet {name}" not in text] == []
    assert {option for option in options(get_command(app)) if option not in text} == set()
