"""The command `discreet`: ask private questions, keep the books, check certificates.

Each command reads its arguments and calls one function of this folder; what takes long to load is loaded by the
command that needs it, so that help and completion come at once. Numbers such as ε stay text until the library reads
them exactly.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.app.commands.attack import attack_app
from discreet.app.commands.audit import audit_app
from discreet.app.commands.synth import synth
from discreet.app.options import (
    Analyst,
    BoundsOption,
    CsvOption,
    Epsilon,
    Error,
    Explain,
    Json,
    LinkOption,
    MaxRows,
    Neighbours,
    OnServer,
    Question,
    Reporting,
    Rho,
    RowLevel,
    Source,
    Study,
    TypesOption,
    UnitColumn,
    ValuesOption,
    Version,
)
from discreet.app.output.printing import say, say_exactly
from discreet.core.display.text import json_text

if TYPE_CHECKING:
    from discreet.app.commands.query import Asking
    from discreet.app.config.settings import Settings

__all__ = ["app"]


app = typer.Typer(cls=Reporting, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich")
budget_app = typer.Typer(invoke_without_command=True)
ledger_app = typer.Typer(invoke_without_command=True)


@app.callback()
def root(
    ctx: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(help="The configuration file, instead of the nearest discreet.toml.", envvar="DISCREET_CONFIG"),
    ] = None,
    version: Version = False,
) -> None:
    """Private answers from sensitive data: ask in SQL, know the price beforehand, get honest intervals."""
    ctx.meta["config"] = config


@app.command()
def init(
    source: Source = None,
    unit: UnitColumn = None,
    epsilon: Annotated[str | None, typer.Option(help="How much may ever be spent.", metavar="NUMBER")] = None,
    delta: Annotated[str | None, typer.Option(help="The chance of a worse loss; none by default.")] = None,
    rho: Annotated[str | None, typer.Option(help="Or how much in ρ, for zCDP.", metavar="NUMBER")] = None,
    name: Annotated[str | None, typer.Option(help="What the table is called in questions.")] = None,
    on_server: OnServer = None,
    row_level: RowLevel = False,
    neighbours: Neighbours = None,
    types: TypesOption = None,
    bounds: BoundsOption = None,
    values: ValuesOption = None,
    csv: CsvOption = None,
    max_rows: MaxRows = None,
    public: Annotated[list[str] | None, typer.Option(help="A table that protects nobody.", metavar="NAME=FILE")] = None,
    ledger: Annotated[
        str | None, typer.Option(help="Where the books are: a file, by default beside the source, or postgresql://…")
    ] = None,
    key: Annotated[str | None, typer.Option(help="The file of the key that signs, for books on a server.")] = None,
    dataset: Annotated[str | None, typer.Option(help="What the data is called in the books.", metavar="NAME")] = None,
    study: Study = None,
    analyst: Analyst = None,
) -> None:
    """Write discreet.toml: who is protected, and how much may ever be told."""
    asking = _attended()
    if asking and source is None:
        source = typer.prompt("Table (a Parquet or CSV file or folder, or a DuckDB file)")
    if asking and source is not None and unit is None and not row_level:
        unit = typer.prompt("Column that tells people apart (empty: each row is a person)", default="") or None
        row_level = unit is None
    if asking and epsilon is None and rho is None:
        epsilon = typer.prompt("Budget for ever, ε", default="1")
        delta = delta or typer.prompt("δ, the chance of a worse loss (0 for none)", default="1e-6")
    if epsilon is None and rho is None:
        raise typer.BadParameter("state how much may ever be spent", param_hint="--epsilon")
    if rho is not None and (epsilon is not None or delta is not None):
        raise typer.BadParameter("choose one of --epsilon, with --delta or without, and --rho", param_hint="--rho")
    from discreet.app.config.registration import NewTable, create

    table = None
    if source is not None:
        facts = types or (), bounds or (), values or ()
        there: dict[str, Any] = {"table": on_server, "csv": csv or ()}
        table = NewTable(source, name, unit, row_level, None, neighbours, *facts, max_rows, **there)
    others = {"dataset": dataset, "ledger": ledger, "key": key, "study": study, "analyst": analyst}
    stated = {"epsilon": epsilon, "delta": None if delta == "0" else delta, "rho": rho}
    numbers = {name: number for name, number in stated.items() if number is not None}
    path = create(Path.cwd(), numbers, table, public or (), others)
    say(f"Wrote {path.name}.")
    if table is None:
        say("Next: discreet add FILE --unit COLUMN")
    else:
        part = "--epsilon 0.1" if rho is None else "--rho 0.01"
        say(f'Next: discreet query "SELECT COUNT(*) AS n FROM {table.title()}" {part}')


@app.command()
def add(
    ctx: typer.Context,
    source: Source = None,
    unit: UnitColumn = None,
    name: Annotated[str | None, typer.Option(help="What the table is called in questions.")] = None,
    on_server: OnServer = None,
    row_level: RowLevel = False,
    link: LinkOption = None,
    neighbours: Neighbours = None,
    types: TypesOption = None,
    bounds: BoundsOption = None,
    values: ValuesOption = None,
    csv: CsvOption = None,
    max_rows: MaxRows = None,
    public: Annotated[bool, typer.Option("--public", help="It protects nobody.")] = False,
    disjoint: Annotated[bool, typer.Option("--disjoint", help="No row of it is in another table.")] = False,
) -> None:
    """Add a table to discreet.toml."""
    from discreet.app.config.registration import NewTable
    from discreet.app.config.registration import add as record
    from discreet.app.config.settings import find

    path = find(Path.cwd(), ctx.meta["config"])
    facts = types or (), bounds or (), values or ()
    there: dict[str, Any] = {"table": on_server, "csv": csv or (), "disjoint": disjoint}
    table = NewTable(source, name, unit, row_level, link, neighbours, *facts, max_rows, public, **there)
    say(f"Added {record(path, table)} to {path.name}.")


@app.command()
def query(
    ctx: typer.Context,
    question: Question,
    epsilon: Epsilon = None,
    rho: Rho = None,
    error: Error = None,
    level: Annotated[str, typer.Option(help="How sure intervals are.", metavar="NUMBER")] = "0.95",
    study: Study = None,
    analyst: Analyst = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write a page.", metavar="FILE")] = None,
    certificate: Annotated[Path | None, typer.Option(help="Also write the certificate.", metavar="FILE")] = None,
    plot: Annotated[bool, typer.Option(help="Draw answers with one key.")] = True,
    explain: Explain = False,
) -> None:
    """Answer a question; the same question again is free."""
    if as_json and as_csv:
        raise typer.BadParameter("choose one of --json and --csv")
    settings, text = _settings(ctx), _read(question)
    from discreet.app.commands.query import Asking, ask
    from discreet.app.config.output_paths import check_targets

    check_targets(settings, {"html": html, "certificate": certificate})
    asking = Asking(text, epsilon, error, study, analyst, rho)
    if explain:
        _print_statement(settings, asking, as_json)
        return
    outcome = ask(settings, asking, level)
    if html is not None:
        from discreet.app.output.page import page

        html.write_text(page(outcome, text), encoding="utf-8")
    if certificate is not None:
        certificate.write_text(json.dumps(outcome.answer.certificate, indent=2) + "\n", encoding="utf-8")
    if as_json:
        _print_json(outcome.as_record())
    elif as_csv:
        say_exactly(outcome.as_csv())
    else:
        from discreet.app.output.terminal import show_outcome

        show_outcome(outcome, plot=plot)


@app.command()
def price(
    ctx: typer.Context,
    question: Question,
    epsilon: Epsilon = None,
    rho: Rho = None,
    error: Error = None,
    study: Study = None,
    analyst: Analyst = None,
    as_json: Json = False,
    explain: Explain = False,
) -> None:
    """Tell what a question would cost and how it would be answered; nothing is spent."""
    settings, text = _settings(ctx), _read(question)
    from discreet.app.commands.query import Asking
    from discreet.app.commands.query import price as quoted

    asking = Asking(text, epsilon, error, study, analyst, rho)
    if explain:
        _print_statement(settings, asking, as_json)
        return
    priced = quoted(settings, asking)
    if as_json:
        _print_json(priced.as_record())
    else:
        from discreet.app.output.terminal import show_price

        show_price(priced)


@budget_app.callback()
def budget(ctx: typer.Context, as_json: Json = False) -> None:
    """Show what is spent and left, by data set, study and analyst."""
    if ctx.invoked_subcommand is not None:
        return
    from discreet.app.commands.books import outranked_caps, standing_cells, standings
    from discreet.app.output.outcome import standing_record

    found = standings(_settings(ctx))
    if as_json:
        _print_json([standing_record(standing) for standing in found])
    else:
        _print_grid(standing_cells(found))
        for line in outranked_caps(_settings(ctx)):
            say(line)


@budget_app.command()
def amend(
    ctx: typer.Context,
    epsilon: Annotated[str | None, typer.Option("--epsilon", "-e", help="The new budget.", metavar="NUMBER")] = None,
    delta: Annotated[str | None, typer.Option(help="The new δ; by default as it is.", metavar="NUMBER")] = None,
    rho: Annotated[str | None, typer.Option(help="The new budget, where it is in ρ.", metavar="NUMBER")] = None,
    study: Annotated[str | None, typer.Option(help="Of this study only.", metavar="NAME")] = None,
    analyst: Annotated[
        str | None, typer.Option(help="Of this analyst only, in that study or else in all.", metavar="NAME")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="The books do not know this name yet.")] = False,
    note: Annotated[str, typer.Option(help="Why, for the record.")] = "",
) -> None:
    """Change a budget on record: of the data set, or of a study or analyst in it."""
    if epsilon is None and rho is None:
        raise typer.BadParameter("state the new budget", param_hint="--epsilon")
    from discreet.app.commands.amend import amend as change

    stated = {"epsilon": epsilon, "delta": delta, "rho": rho}
    numbers = {name: number for name, number in stated.items() if number is not None}
    say("\n".join(change(_settings(ctx), numbers, study, analyst, note, new)))


@budget_app.command()
def answers(
    ctx: typer.Context,
    per: Annotated[str | None, typer.Option(help="Who may see them from now on: dataset or study.")] = None,
    note: Annotated[str, typer.Option(help="Why, for the record.")] = "",
) -> None:
    """Show or change who may see stored answers: all who may ask about the data set, or each study its own."""
    from discreet.app.commands.amend import answers as kept

    say(kept(_settings(ctx), per, note))


@ledger_app.callback()
def ledger(
    ctx: typer.Context,
    last: Annotated[int | None, typer.Option(min=1, help="Only so many entries, the latest.")] = None,
    as_json: Json = False,
) -> None:
    """Show the entries of the books."""
    if ctx.invoked_subcommand is not None:
        return
    from discreet.app.commands.books import entries, entry_cells

    found = entries(_settings(ctx), last)
    if as_json:
        _print_json(found)
    else:
        from discreet.app.output.terminal import console

        _print_grid(entry_cells(found, console().width))


@ledger_app.command()
def check(
    ctx: typer.Context,
    anchor: Annotated[
        str | None, typer.Option(help="A head noted earlier, as this command prints it.", metavar="NUMBER:HASH")
    ] = None,
    at: Annotated[str | None, typer.Option(help="Other books: a file or postgresql://…", metavar="PLACE")] = None,
    as_json: Json = False,
) -> None:
    """Read all the books again: the chain of hashes, every sum, every release."""
    from discreet.app.commands.books import anchor as noted
    from discreet.app.commands.books import opened
    from discreet.ledger import Ledger

    head = noted(anchor)
    with opened(_settings(ctx)) if at is None else Ledger.at(at, create=False) as books:
        report = books.check(head)
    fault = None if report.fault is None else {"entry": report.fault.sequence, "what": report.fault.what}
    place = f"{report.head.sequence}:{report.head.hash}"
    if as_json:
        _print_json({"sound": report.sound, "head": place, "fault": fault})
    elif fault is None:
        say(f"sound, {report.head.sequence} entries\nhead {place}")
    else:
        where = "the books" if fault["entry"] is None else f"entry {fault['entry']}"
        say(f"discreet: {where}: {fault['what']}", err=True, fg="red")
    raise typer.Exit(0 if report.sound else 1)


@ledger_app.command()
def migrate(
    source: Annotated[str, typer.Argument(help="Where the books are: a file or postgresql://…", metavar="FROM")],
    target: Annotated[str, typer.Argument(help="Where they go: a new file, or a database.", metavar="TO")],
) -> None:
    """Move the books to another place, with all hashes, and close the old ones."""
    from discreet.app.commands.migrate import moved

    say(moved(source, target))


@app.command()
def registry(ctx: typer.Context, as_json: Json = False) -> None:
    """Print what may be published: who is protected, what was spent, by which kinds of questions."""
    from discreet.app.commands.books import kinds_cells, protected, register, register_cells

    found = register(_settings(ctx))
    if as_json:
        _print_json(found)
        return
    say(f"ledger {found['ledger']}, entry {found['head']['sequence']}, {found['time']}")
    say("\n       ".join(["certificates are signed by", *(found["keys"] or ["nobody yet"])]))
    for dataset in found["data_sets"]:
        say(f"\n{dataset['name']} protects {protected(dataset['unit'])}")
        _print_grid(register_cells(dataset))
        if dataset["questions"]:
            _print_grid(kinds_cells(dataset["questions"]))


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(help="What --certificate wrote.", exists=True, dir_okay=False)],
    key: Annotated[str | None, typer.Option(help="The public key it must be signed by.", metavar="HEX")] = None,
    at: Annotated[
        str | None, typer.Option(help="Also compare it with the books: a file or postgresql://…", metavar="PLACE")
    ] = None,
    answer: Annotated[
        Path | None, typer.Option(help="Also compare the rows query --json printed.", exists=True, dir_okay=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a certificate: offline its signature and loss; with --at all it says, against the books (exit code 0)."""
    from discreet.app.commands.verify import checked

    found = checked(certificate, key, at, answer)
    if as_json:
        _print_json(found.as_record())
    elif found.certificate is not None:
        from discreet.app.output.terminal import console, facts

        console().print(facts(found.lines()))
    if found.reason:
        say(f"discreet: not valid: {found.reason}", err=True, fg="red")
    raise typer.Exit(found.code)


@app.command()
def demo(
    folder: Annotated[Path | None, typer.Option(help="Keep its files there, to play on.", file_okay=False)] = None,
) -> None:
    """Tell the whole story on a real health survey, with an attack at the end."""
    from discreet.app.commands.demo import run

    run(folder, app)


app.command()(synth)
app.add_typer(budget_app, name="budget")
app.add_typer(ledger_app, name="ledger")
app.add_typer(attack_app, name="attack")
app.add_typer(audit_app, name="audit")


def _settings(ctx: typer.Context) -> Settings:
    from discreet.app.config.settings import Settings, find

    return Settings.read(find(Path.cwd(), ctx.meta["config"]))


def _attended() -> bool:
    """Whether somebody is there to be asked."""
    return sys.stdin.isatty()


def _read(question: str) -> str:
    return sys.stdin.read() if question == "-" else question


def _print_statement(settings: Settings, asking: Asking, as_json: bool) -> None:
    from discreet.app.commands.query import price as quoted

    quote = quoted(settings, asking).quote
    if as_json:
        _print_json({"statement": quote.statement})
    else:
        say_exactly(f"{quote.indented_statement}\n")


def _print_json(record: object) -> None:
    say(json_text(record))


def _print_grid(columns: Any) -> None:
    from discreet.app.output.terminal import show_grid

    show_grid(columns)
