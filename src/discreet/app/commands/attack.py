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
Database = Annotated[
    str | None,
    typer.Option(help="Whom to ask: postgresql://… or a DuckDB file; by default our own session, which is charged."),
]
Price = Annotated[str | None, typer.Option("--epsilon", "-e", help="What each question to our session may cost.")]


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
    database: Database = None,
    epsilon: Price = None,
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
    from discreet.app.commands import attack_reconstruct as tried
    from discreet.app.output.finding import check_files

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


@attack_app.command()
def link(
    released: Annotated[
        list[Path], typer.Argument(help="Tables without names: CSV or Parquet files.", exists=True, dir_okay=False)
    ],
    columns: Annotated[list[str] | None, typer.Option(help="What others may know of people.", metavar="A,B,…")] = None,
    sensitive: Annotated[str | None, typer.Option(help="What nobody should know.", metavar="COLUMN")] = None,
    known: Annotated[
        Path | None, typer.Option(help="A table of people with what is known of them.", exists=True, dir_okay=False)
    ] = None,
    controls: Annotated[
        Path | None,
        typer.Option(help="People who are not in the release, to tell luck from success.", exists=True, dir_okay=False),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="The column that tells whose record is whose; only compared.", metavar="COLUMN")
    ] = None,
    tolerance: Annotated[
        list[str] | None, typer.Option(help="How far off known numbers may be, such as age=2.", metavar="COLUMN=NUMBER")
    ] = None,
    eccentricity: Annotated[
        str | None, typer.Option(help="Standard deviations by which a record must stand out.", metavar="NUMBER")
    ] = None,
    largest: Annotated[int, typer.Option(min=1, help="Combinations of how many columns to try, at most.")] = 3,
    html: Page = None,
    plot: Picture = None,
    reveal: Reveal = False,
    as_json: Json = False,
) -> None:
    """Find people in tables without names: by rare values, by what is known of them, by a second table."""
    from discreet.app.commands.attack_link import Linking, linked
    from discreet.app.output.finding import check_files
    from discreet.app.output.verdicts import Output

    check_files({"html": html, "plot": plot}, (*released, known, controls))
    facts = Linking(columns or (), sensitive, known, controls, key, tolerance or (), eccentricity, largest)
    linked(released, facts, Output(html, plot, reveal, as_json))


@attack_app.command()
def difference(
    ctx: typer.Context,
    tables: Annotated[
        list[Path] | None,
        typer.Argument(help="Published tables with suppressed counts: CSV files.", exists=True, dir_okay=False),
    ] = None,
    total: Annotated[str, typer.Option(help="What stands for a total among the values.", metavar="TEXT")] = "total",
    count: Annotated[str, typer.Option(help="The column of counts in tables.", metavar="COLUMN")] = "count",
    block: Annotated[str, typer.Option(help="The column of blocks in tables.", metavar="COLUMN")] = "block",
    least: Annotated[
        int | None, typer.Option(min=2, help="Counts below this are suppressed, if that is known.")
    ] = None,
    ask: Annotated[
        str | None, typer.Option(help="Instead of tables: ask this, with {condition} for the people.", metavar="SQL")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="A condition that fits one person, or few.", metavar="SQL")
    ] = None,
    cover: Annotated[
        list[str] | None, typer.Option(help="A crowd to ask about with and without them; everybody.", metavar="SQL")
    ] = None,
    tracker: Annotated[
        list[str] | None,
        typer.Option(help="Half of the people, to pad questions that are refused for being small.", metavar="SQL"),
    ] = None,
    database: Database = None,
    epsilon: Price = None,
    step: Annotated[str, typer.Option(help="What numbers are rounded to, if known.", metavar="NUMBER")] = "0",
    resolution: Annotated[
        str, typer.Option(help="How well a value must be known to count as read.", metavar="NUMBER")
    ] = "1",
    html: Page = None,
    plot: Picture = None,
    reveal: Reveal = False,
    as_json: Json = False,
) -> None:
    """Find what one person has in aggregates: by differences, by trackers, by totals around suppressed counts."""
    from discreet.app.commands import attack_difference as tried
    from discreet.app.output.finding import check_files
    from discreet.app.output.verdicts import Output

    if bool(tables) == (ask is not None):
        raise typer.BadParameter("give files of tables, or --ask SQL with --target SQL")
    check_files({"html": html, "plot": plot}, tables or ())
    out = Output(html, plot, reveal, as_json)
    if tables:
        tried.suppressed(tables, total, count, block, least, step, out)
    elif ask is not None:
        crowds = target or (), cover or (), tracker or ()
        tried.asked(tried.Asking(ask, *crowds, database, epsilon, step, resolution, ctx.meta["config"]), out)


@attack_app.command()
def trace(
    release: Annotated[
        Path,
        typer.Argument(
            help="Synthetic rows; with --means, a file of `column` and `mean`.", exists=True, dir_okay=False
        ),
    ],
    targets: Annotated[Path, typer.Option(help="The people to try, one a row.", exists=True, dir_okay=False)],
    reference: Annotated[
        Path, typer.Option(help="Other people of the same kind, who are not in the data.", exists=True, dir_okay=False)
    ],
    means: Annotated[bool, typer.Option("--means", help="The release is a list of means.")] = False,
    by: Annotated[str, typer.Option(help="nearest, density, marginals or all.", metavar="SCORE")] = "all",
    members: Annotated[
        str | None, typer.Option(help="The column of targets that says who is in the data.", metavar="COLUMN")
    ] = None,
    alpha: Annotated[str, typer.Option(help="The false alarm rate for one person.", metavar="NUMBER")] = "0.01",
    html: Page = None,
    plot: Picture = None,
    reveal: Reveal = False,
    as_json: Json = False,
) -> None:
    """Find out who was in the data, of which only means or synthetic rows were published."""
    from discreet.app.commands.attack_trace import Tracking, traced
    from discreet.app.output.finding import check_files
    from discreet.app.output.verdicts import Output

    check_files({"html": html, "plot": plot}, (release, targets, reference))
    wish = Tracking(targets, reference, by, means, members, alpha)
    traced(release, wish, Output(html, plot, reveal, as_json))


@attack_app.command()
def demo() -> None:
    """Tell the story of these attacks: each works on an unprotected release, and none on ours."""
    from discreet.app.commands.attack_demo import run

    run()
