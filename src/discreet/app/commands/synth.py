"""The command `discreet synth`: synthetic rows of a table in a file, and a page that tells how good they are.

What is wrong with the arguments is told before anything is charged, names of files included.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from discreet.app.options import Analyst, Epsilon, Json, Rho, Study, complete_table
from discreet.app.output.printing import say
from discreet.core.display.text import json_text

__all__ = ["synth"]

KINDS = (".parquet", ".csv")


def _methods(ctx: typer.Context, incomplete: str) -> list[str]:
    from discreet.synthesis.methods import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


Workload = Annotated[
    list[str] | None,
    typer.Option(
        help="What they should be good for: SELECT a, b, COUNT(*) FROM … GROUP BY a, b; a file of these; a,b; or 2.",
        metavar="SQL|FILE|COLUMNS|N",
    ),
]
Bins = Annotated[
    list[str] | None, typer.Option(help="Bins of a number: how many, or their ends.", metavar="COLUMN=N|A:B:C…")
]


def synth(
    ctx: typer.Context,
    table: Annotated[
        str, typer.Argument(help="The table, or a SELECT that lists columns.", autocompletion=complete_table)
    ],
    epsilon: Epsilon = None,
    rho: Rho = None,
    columns: Annotated[list[str] | None, typer.Option(help="Only these columns.", metavar="A,B,…")] = None,
    workload: Workload = None,
    method: Annotated[
        str | None, typer.Option(help="How, instead of the way that suits.", autocompletion=_methods)
    ] = None,
    bins: Bins = None,
    max_rows: Annotated[int | None, typer.Option(min=1, help="The most rows a person weighs.")] = None,
    check: Annotated[
        str, typer.Option(help="The part of the price that finds out how far off they are.", metavar="NUMBER")
    ] = "0.1",
    rows: Annotated[int | None, typer.Option(min=1, help="How many; by default about as many as there are.")] = None,
    out: Annotated[Path | None, typer.Option(help="Where they go: .parquet or .csv.", metavar="FILE")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a page on how good they are.", metavar="FILE")] = None,
    compare: Annotated[
        str | None, typer.Option(help="Show true counts of this public table on the page.", metavar="TABLE")
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Also write the certificate.", metavar="FILE")] = None,
    price: Annotated[bool, typer.Option("--price", help="Tell the price instead; nothing is spent.")] = False,
    study: Study = None,
    analyst: Analyst = None,
    as_json: Json = False,
) -> None:
    """Make synthetic rows that nobody has, good for the counts you name; the same again is free."""
    if epsilon is None and rho is None:
        raise typer.BadParameter("say what it may cost", param_hint="--epsilon")
    if not price and (out is None or out.suffix not in KINDS):
        raise typer.BadParameter("name a file that ends in .parquet or .csv", param_hint="--out")
    if compare is not None and report is None:
        raise typer.BadParameter("it is for the page: add --report FILE", param_hint="--compare")
    from discreet.app.commands.synth_run import Wish, made, priced
    from discreet.app.config.output_paths import check_targets
    from discreet.app.config.settings import Settings, find

    settings = Settings.read(find(Path.cwd(), ctx.meta["config"]))
    check_targets(settings, {"out": out, "report": report, "certificate": certificate})
    asked = (columns or (), workload or (), method, bins or (), max_rows, check, study, analyst)
    wish = Wish(table, epsilon, *asked, rho)
    if price:
        quoted = priced(settings, wish)
        if as_json:
            say(json_text(quoted.as_record()))
        else:
            from discreet.app.output.terminal import show_price

            show_price(quoted)
        return
    assert out is not None
    found = made(settings, wish, rows, compare)
    found.synthesis.write(out)
    if report is not None:
        report.write_text(found.page(), encoding="utf-8")
    if certificate is not None:
        certificate.write_text(json.dumps(found.synthesis.certificate, indent=2) + "\n", encoding="utf-8")
    if as_json:
        say(json_text(found.as_record(out)))
    else:
        found.show(out)
