"""What commands have in common: their options, and how their errors are told."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import discreet
from discreet.app.output.printing import say
from discreet.core.display.text import json_text

__all__ = [
    "Analyst",
    "BoundsOption",
    "CsvOption",
    "Epsilon",
    "Error",
    "Json",
    "LinkOption",
    "MaxRows",
    "Neighbours",
    "OnServer",
    "Question",
    "Reporting",
    "Rho",
    "RowLevel",
    "Source",
    "Study",
    "TypesOption",
    "UnitColumn",
    "ValuesOption",
    "Version",
    "complete_table",
]

ORDER = ("init", "add", "query", "price", "synth", "budget", "ledger", "registry", "verify", "attack", "audit", "demo")

CHARGING = ("query", "synth")


class Reporting(TyperGroup):
    """Commands whose errors become one message and an exit code, never a traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)

    def main(self, *arguments: Any, **settings: Any) -> Any:
        # A command is over before there is garbage worth looking for; loading libraries is quicker without the search.
        searching = gc.isenabled()
        gc.disable()
        try:
            return super().main(*arguments, **settings)
        finally:
            if searching:
                gc.enable()

    def invoke(self, ctx: Any) -> Any:
        try:
            with _telling_faults():
                return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            if ctx.invoked_subcommand in CHARGING:
                said = "stopped; what was charged stays charged, and asking again is charged again"
                say(f"discreet: {said}", err=True, fg="red")
            raise
        except Exception as error:
            if hasattr(error, "format_message"):
                raise
            from discreet.app.failures import Failure

            failure = Failure.of(error)
            if ctx.meta.get("json"):
                say(json_text(failure.as_record(), indent=None))
            say(f"discreet: {failure.message}", err=True, fg="red")
            raise typer.Exit(failure.code) from None


@contextmanager
def _telling_faults() -> Iterator[None]:
    """What was left out of a CSV file when it was registered, as a message to whoever does that."""
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            yield
    finally:
        for one in caught:
            if one.category.__name__ == "FaultyRecords":
                say(f"discreet: {one.message}", err=True, fg="yellow")
            else:
                warnings.showwarning(one.message, one.category, one.filename, one.lineno, one.file, one.line)


def _remember(ctx: typer.Context, value: bool) -> bool:
    ctx.meta["json"] = value
    return value


def _version(value: bool) -> None:
    if value:
        say(f"discreet {discreet.__version__}")
        raise typer.Exit


def complete_table(ctx: typer.Context, incomplete: str) -> list[str]:
    """The question so far, its last word completed to the name of a table."""
    from discreet.app.completion import completed

    return completed(incomplete, Path.cwd())


Question = Annotated[
    str, typer.Argument(help="The question in SQL; - reads it from standard input.", autocompletion=complete_table)
]
Epsilon = Annotated[str | None, typer.Option("--epsilon", "-e", help="What it may cost.", metavar="NUMBER")]
Rho = Annotated[
    str | None, typer.Option("--rho", help="Under a budget in ρ, what it may cost of that.", metavar="NUMBER")
]
Error = Annotated[str | None, typer.Option("--error", help="Or how far counts and sums may be off.", metavar="NUMBER")]
Study = Annotated[str | None, typer.Option(help="The study it is charged to.", metavar="NAME")]
Analyst = Annotated[str | None, typer.Option(help="The analyst it is charged to.", metavar="NAME")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.", callback=_remember, is_eager=True)]
Explain = Annotated[bool, typer.Option("--explain", help="Print the engine's SQL instead; nothing is spent.")]
Source = Annotated[
    str | None,
    typer.Argument(help="A Parquet or CSV file or folder, a DuckDB file, or a server: postgresql://…, sc://…"),
]
OnServer = Annotated[str | None, typer.Option("--table", help="The table on a server.", metavar="[SCHEMA.]TABLE")]
UnitColumn = Annotated[str | None, typer.Option("--unit", help="The column that tells people apart.", metavar="COLUMN")]
RowLevel = Annotated[bool, typer.Option("--row-level", help="Each row is a person of its own.")]
Neighbours = Annotated[str | None, typer.Option(help="add_remove (the default) or replace.", metavar="RELATION")]
LinkOption = Annotated[
    str | None, typer.Option("--link", help="Whose rows they are, by another table.", metavar="COLUMN=TABLE.COLUMN")
]
TypesOption = Annotated[
    list[str] | None, typer.Option("--types", help="Types, such as age=integer; for CSV.", metavar="COLUMN=TYPE")
]
CsvOption = Annotated[
    list[str] | None,
    typer.Option("--csv", help="How a CSV is written: encoding, delimiter, decimal, date.", metavar="WHAT=HOW"),
]
BoundsOption = Annotated[
    list[str] | None, typer.Option("--bounds", help="Ends of numbers, such as age=0:120.", metavar="COLUMN=LOW:HIGH")
]
ValuesOption = Annotated[
    list[str] | None, typer.Option("--values", help="All values, such as city=A,B,C.", metavar="COLUMN=A,B,…")
]
MaxRows = Annotated[int | None, typer.Option(min=1, help="The most rows a person has, if known.")]
Version = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]
