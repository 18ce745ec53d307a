"""The command in processes of its own: it starts light, ends with its codes, and everybody shares one set of books."""

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest
from tests.app.commands import COUNT, Commands
from tests.soak import whole_or_share

import discreet
from discreet.charging.certificate import SigningKey

SOURCE = Path(discreet.__file__).parent.parent
COMMAND = [sys.executable, "-c", "from discreet.app.shell import main; import sys; sys.argv[0] = 'discreet'; main()"]
HEAVY = {"numpy", "duckdb", "sqlglot", "pyarrow", "pandas", "scipy", "flint", "cryptography"}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE), "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}


def started(run: Commands, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    environment = ENVIRONMENT | variables
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen([*COMMAND, *arguments], cwd=run.folder, env=environment, text=True, **pipes)


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, errors = process.communicate(timeout=900)
    return process.returncode, out, errors


def loaded_after(run: Commands, *arguments: str) -> set[str]:
    program = (
        "import sys\nfrom discreet.app.cli import app\ntry:\n    app(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    command = [sys.executable, "-c", program, *arguments]
    result = subprocess.run(command, cwd=run.folder, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return set(result.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["query", "--help"], ["demo", "--help"]])
def test_help_loads_nothing_heavy(empty: Commands, arguments: list[str]) -> None:
    assert not HEAVY & loaded_after(empty, *arguments)


def test_a_query_loads_nothing_that_others_need(run: Commands) -> None:
    loaded = loaded_after(run, "query", COUNT, "-e", "0.5")
    assert {"duckdb", "sqlglot"} <= loaded
    assert not {"pandas", "polars", "pyarrow", "altair", "tomlkit", "platformdirs"} & loaded


def test_every_public_name_is_found_when_it_is_asked_for() -> None:
    assert all(getattr(discreet, name) is not None for name in discreet.__all__)
    assert set(discreet.__all__) <= set(dir(discreet))
    with pytest.raises(AttributeError):
        _ = discreet.nothing


def test_exit_codes_and_streams(run: Commands) -> None:
    code, out, errors = finished(started(run, "query", COUNT, "-e", "0.5"))
    assert (code, errors) == (0, "")
    assert "n by city" in out
    code, out, errors = finished(started(run, "query", COUNT, "-e", "50"))
    assert (code, out) == (3, "")
    assert errors.startswith("discreet: refused")
    assert "Traceback" not in errors
    code, _, errors = finished(started(run, "query", "SELECT ctiy FROM visits", "-e", "1"))
    assert code == 2
    assert "Traceback" not in errors


def test_a_reader_that_goes_away_is_no_error_to_shout_about(run: Commands) -> None:
    run("query", COUNT, "-e", "0.5")
    process = started(run, "ledger", "--json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.wait(timeout=900)
    process.stderr.close()


def test_processes_continue_the_same_books(run: Commands) -> None:
    both = [started(run, "query", COUNT, "-e", epsilon, "--json", "--analyst", epsilon) for epsilon in ("0.3", "0.4")]
    found = [finished(process) for process in both]
    assert [code for code, _, _ in found] == [0, 0]
    entries = sorted(json.loads(out)["certificate"]["ledger"]["entry"] for _, out, _ in found)
    assert entries[0] < entries[1]
    code, out, _ = finished(started(run, "query", COUNT, "-e", "0.3", "--json"))
    assert code == 0
    again = json.loads(out)
    assert again["free"]
    assert again["rows"] == json.loads(found[0][1])["rows"]
    standings = {"/".join(s["account"]): s["used"] for s in run.json("budget")}
    assert standings["visits"] == pytest.approx(standings["visits/0.3"] + standings["visits/0.4"])
    assert run.json("ledger", "check")["sound"]


def test_racing_processes_never_overspend(run: Commands) -> None:
    racers = [started(run, "query", COUNT, "-e", f"1.{n}", "--json") for n in range(1, whole_or_share(5, 3))]
    for _ in range(2):
        racers += [started(run, "query", COUNT, "-e", "2.5", "--json")]
    found = [finished(racer) for racer in racers]
    codes = [code for code, _, _ in found]
    assert set(codes) <= {0, 3}, found
    assert 0 in codes
    assert run.json("budget")[0]["used"] <= 1
    assert run.json("ledger", "check")["sound"]


def test_whoever_opens_the_books_second_takes_the_first_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, create, winners = tmp_path / "books.key", SigningKey.create, []

    def overtaken() -> SigningKey:
        # While this key is being made, another process opens the same books, from beginning to end.
        monkeypatch.setattr(SigningKey, "create", create)
        winners.append(SigningKey.at(path).public)
        return create()

    monkeypatch.setattr(SigningKey, "create", overtaken)
    assert [SigningKey.at(path).public, SigningKey.at(path).public] == winners * 2
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(empty: Commands, shell: str) -> None:
    detection = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    code, out, _ = finished(started(empty, "--show-completion", shell, **detection))
    assert code == 0
    assert "_DISCREET_COMPLETE" in out


def test_commands_and_tables_are_completed(run: Commands) -> None:
    def completions(*words: str) -> list[str]:
        typed = " ".join(["discreet", *words])
        ask = {"_DISCREET_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words))}
        return finished(started(run, **ask))[1].split("\n")

    assert "query" in completions("qu")
    assert "--epsilon" in completions("query", "--eps")
    typed = '"SELECT COUNT(*) FROM vi'
    ask = {"_DISCREET_COMPLETE": "complete_bash", "COMP_WORDS": f"discreet query {typed}", "COMP_CWORD": "2"}
    assert "SELECT COUNT(*) FROM visits" in finished(started(run, **ask))[1]


def at_a_terminal(run: Commands, *arguments: str, typed: str = "") -> tuple[int, str]:
    """The exit code and all that a terminal saw."""
    master, slave = pty.openpty()
    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    process = subprocess.Popen([*COMMAND, *arguments], cwd=run.folder, env=ENVIRONMENT | {"TERM": "xterm"}, **streams)
    os.close(slave)
    os.write(master, typed.encode())
    seen = b""
    while select.select([master], [], [], 60)[0]:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(master)
    return process.wait(timeout=900), seen.decode()


def test_at_a_terminal_init_asks_and_a_query_shows_that_it_runs(empty: Commands) -> None:
    code, seen = at_a_terminal(empty, "init", typed="visits.parquet\npatient\n2\n1e-6\n")
    assert code == 0
    assert "Budget for ever" in seen
    code, seen = at_a_terminal(empty, "query", "SELECT COUNT(*) AS n FROM visits", "-e", "0.5")
    assert code == 0
    assert "asking" in seen
    assert "± 95 %" in seen
