"""The whole story on a real survey, told in commands that anybody can type.

A steward opens the RAND Health Insurance Experiment to analysts with a budget; an analyst asks, pays, asks again for
free; somebody tries to read one woman's medical bills off two sums, once on raw answers and once on ours; the budget
ends; a certificate is checked. Each `$` line is run as it stands.
"""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Sequence
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from discreet.app.failures import FAILED, REFUSED
from discreet.app.output.printing import say
from discreet.samples import rand_hie

__all__ = ["run"]

SOURCE = "survey.parquet"
STEWARD = (
    f"init {SOURCE} --unit person --max-rows 5 --epsilon 3 --delta 1e-6"
    " --bounds spending=0:2000 --bounds doctor_visits=0:30 --values health=excellent,good,fair,poor"
)
COSTS = "SELECT health, AVG(spending) AS cost, COUNT(*) AS n FROM survey GROUP BY health"
AGES = "SELECT FLOOR(age / 10) * 10 AS decade, AVG(doctor_visits) AS visits FROM survey GROUP BY 1 ORDER BY 1"
EVERYBODY = "SELECT SUM(LEAST(spending, 2000)) AS dollars FROM survey WHERE year = 1"
LAST = "SELECT AVG(doctor_visits) AS visits FROM survey WHERE age > 60"
NOT_HER = f"{EVERYBODY} AND NOT (site = 6 AND age = 35 AND family_size = 7 AND health = 'poor')"


def run(folder: Path | None, app: typer.Typer) -> None:
    """Tells the story in commands of `app`; its files go to `folder`, or are thrown away."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        _tell(folder, app)
        say(f"Everything is in {folder}: go there and ask on.")
        return
    with TemporaryDirectory(prefix="discreet-demo-") as place:
        _tell(Path(place), app)


def _tell(folder: Path, app: typer.Typer) -> None:
    with chdir(folder):
        _write_survey()
        _say(
            "A steward holds a real table: the RAND Health Insurance Experiment, 20,190 person-years of 5,912 people."
            " The steward says who is protected (a person, with all their years), how much may ever be told"
            " (ε = 3, δ = 10⁻⁶), and what is known without a look: nobody has more than five years, and a year's bill"
            " above $2,000 counts as $2,000."
        )
        _do(app, STEWARD)
        _say("An analyst asks what health costs. First the price, from declared facts alone:")
        _do(app, "price", COSTS, "--epsilon", "1")
        _say("Then the answer. It is charged before the data is touched, and every number says how wrong it may be:")
        _do(app, "query", COSTS, "--epsilon", "1", "--certificate", "answer.json")
        _say("The same question, written otherwise, is free, and its answer the same: noise cannot be averaged away.")
        _do(app, "query", COSTS.lower().replace(" as ", " "), "--epsilon", "1", "--no-plot")
        _say("Decades of age are not declared. Only those that many people share may show:")
        _do(app, "query", AGES, "--epsilon", "1")
        _attack(app)
        _say("What is left, for everybody, for ever:")
        _do(app, "budget")
        _say("One question too many is refused, and says so before anything is looked at:")
        _do(app, "query", LAST, "--epsilon", "3", code=REFUSED)
        _say("Anybody can check a certificate: its signature and its loss, and against the books all that it says.")
        _do(app, "verify", "answer.json", "--at", f"{SOURCE}.ledger")
        _say("And the books, entry by entry:")
        _do(app, "ledger", "check")


def _attack(app: typer.Typer) -> None:
    """Two sums that differ by one person, raw and through the session."""
    _say(
        "Now an attack. Somebody knows a woman in the survey: 35 years old, site 6, a family of seven, in poor health."
        " Two harmless sums, one of them without her, and their difference is her medical bill. On raw answers:"
    )
    with_her, without = _raw(EVERYBODY), _raw(NOT_HER)
    say(f"  everybody       {with_her:>12,.2f}\n  everybody else  {without:>12,.2f}")
    say(f"  her bill        {with_her - without:>12,.2f}   exactly", bold=True)
    _say("The same two questions here:")
    ours = [_answer(app, question) for question in (EVERYBODY, NOT_HER)]
    for name, (value, low, high) in zip(("everybody     ", "everybody else"), ours, strict=True):
        say(f"  {name}  {value:>12,.0f} ± {(high - low) / 2:,.0f}")
    bill = ours[0][0] - ours[1][0]
    reach = sum((high - low) / 2 for _, low, high in ours)
    say(f"  her bill        {bill:>12,.0f} ± {reach:,.0f}   which says nothing", bold=True)


def _answer(app: typer.Typer, question: str) -> tuple[float, float, float]:
    """The value and the ends of its interval, by the command's JSON."""
    out = StringIO()
    words = ["query", question, "--epsilon", "0.25", "--json"]
    _echo(words)
    with redirect_stdout(out):
        app(words, standalone_mode=False)
    found = json.loads(out.getvalue())
    [[value]], [[low, high]] = found["rows"], found["intervals"]["dollars"]
    return value, low, high


def _raw(question: str) -> float:
    """What an unprotected database answers."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        say(textwrap.fill(question, 78, initial_indent="> ", subsequent_indent="  "), fg="yellow")
        [[value]] = connection.execute(question.replace("FROM survey", f"FROM '{SOURCE}'")).fetchall()
    return float(value)


def _write_survey() -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(rand_hie()), SOURCE)


def _say(words: str) -> None:
    say("\n" + textwrap.fill(words, 80) + "\n", bold=True)


def _do(app: typer.Typer, *words: str, code: int = 0) -> None:
    """Shows a command and runs it; the story ends where one does not end as it should."""
    arguments = shlex.split(words[0]) if len(words) == 1 else list(words)
    _echo(arguments)
    found = int(app(arguments, standalone_mode=False) or 0)
    if found != code:
        raise typer.Exit(found or FAILED)


def _echo(words: Sequence[str]) -> None:
    """The command as one would type it, in lines of the terminal's width where its words allow."""
    parts: list[str] = []
    for word in words:
        text = textwrap.fill(f'"{word}"', 74, subsequent_indent="     ") if " " in word else shlex.quote(word)
        if parts and parts[-1].startswith("--") and " " not in parts[-1] and not word.startswith("-"):
            parts[-1] += f" {text}"
        else:
            parts.append(text)
    lines = ["$ discreet"]
    for text in parts:
        if len(lines[-1]) + len(text) > 76 and len(lines[-1]) > 12:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {text}"
    say("\n".join(lines), fg="green")
