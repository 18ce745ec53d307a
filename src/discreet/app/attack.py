"""The commands `discreet attack …`: what a release gives away, tried by whoever is about to publish it.

Commands say how much they found and never what, unless asked with `--reveal`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from discreet.app.options import Json

__all__ = ["attack_app"]

attack_app = typer.Typer(no_args_is_help=True, help="Try to read secrets off a release, before somebody else does.")

Page = Annotated[Path | None, typer.Option(help="Also write a page.", metavar="FILE", dir_okay=False)]
Picture = Annotated[Path | None, typer.Option(help="Also draw it: .png or .svg.", metavar="FILE", dir_okay=False)]
Reveal = Annotated[bool, typer.Option("--reveal", help="Print the secrets that were found.")]


@attack_app.command()
def reconstruct(
    ctx: typer.Context,
    answers: Annotated[
        Path | None, typer.Argument(help="A CSV file of answers, in a column `answer`.", exists=True, dir_okay=False)
    ] = None,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file of weights: a query a row, a person a column; by default in the file of answers.",
            metavar="FILE",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(help="Instead of answers: a published table of counts.", metavar="NAME=FILE"),
    ] = None,
    block: Annotated[str, typer.Option(help="The column of blocks in tables.", metavar="COLUMN")] = "block",
    count: Annotated[str, typer.Option(help="The column of counts in tables.", metavar="COLUMN")] = "count",
    ask: Annotated[
        str | None,
        typer.Option(help="Instead of answers: ask this, with {subset} for the people.", metavar="SQL"),
    ] = None,
    people: Annotated[
        Path | None,
        typer.Option(help="A CSV file whose column KEY lists the people to ask about.", exists=True, dir_okay=False),
    ] = None,
    key: Annotated[str, typer.Option(help="The column that tells people apart.", metavar="COLUMN")] = "id",
    database: Annotated[
        str | None,
        typer.Option(
            help="Whom to ask: postgresql://… or a DuckDB file; by default our own session, which is charged."
        ),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", "-e", help="What each question to our session may cost.")
    ] = None,
    questions: Annotated[int | None, typer.Option(min=1, help="How many to ask; by default 4 for each person.")] = None,
    method: Annotated[
        str | None, typer.Option(help="least squares, robust, linear program or all candidates.", metavar="NAME")
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(help="The true bits (column `bit`), or people; only compared.", exists=True, dir_okay=False),
    ] = None,
    html: Page = None,
    plot: Picture = None,
    reveal: Reveal = False,
    as_json: Json = False,
) -> None:
    """Read secret bits off answers about groups, or people off published tables of counts."""
    from discreet.app import reconstruct as tried
    from discreet.app.exhibit import check_files

    if sum(given is not None and given != [] for given in (answers, table, ask)) != 1:
        raise typer.BadParameter("give a file of answers, or --table NAME=FILE …, or --ask SQL")
    check_files({"html": html, "plot": plot}, (answers, queries, people, truth))
    output = tried.Output(html, plot, reveal, as_json)
    if table:
        tried.from_tables(table, block, count, truth, output)
    elif answers is not None:
        tried.from_answers(answers, queries, method, truth, output)
    elif ask is not None:
        asking = tried.Asking(ask, people, key, database, epsilon, questions, ctx.meta["config"])
        tried.from_database(asking, method, truth, output)
