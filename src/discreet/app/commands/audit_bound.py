"""The command `discreet audit bound`: the least error that any private answer can have, beside what mechanisms get."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.app.options import Json

if TYPE_CHECKING:
    from discreet.adversary.lower_bounds.least_error import LeastError

__all__ = ["bound"]


def bound(
    epsilon: Annotated[str, typer.Option("--epsilon", "-e", help="The guarantee.", metavar="NUMBER")],
    delta: Annotated[str, typer.Option(help="The chance of a worse loss.", metavar="NUMBER")] = "0",
    queries: Annotated[int | None, typer.Option(min=1, help="So many queries, the hardest there are.")] = None,
    universe: Annotated[int | None, typer.Option(min=2, help="Kinds of records there can be.")] = None,
    records: Annotated[int | None, typer.Option(min=1, help="Records in the data.")] = None,
    marginals: Annotated[
        int | None, typer.Option(min=1, help="All counts of so many attributes together, instead of --queries.")
    ] = None,
    attribute: Annotated[
        list[str] | None, typer.Option(help="For --marginals: an attribute and how many values it has.", metavar="A=N")
    ] = None,
    prefixes: Annotated[int | None, typer.Option(min=1, help="All counts up to each of so many values.")] = None,
    ranges: Annotated[int | None, typer.Option(min=1, help="All counts of runs of so many values.")] = None,
    counter: Annotated[int | None, typer.Option(min=1, help="A count after each of so many rounds.")] = None,
    replaced: Annotated[bool, typer.Option("--replace", help="Neighbours have one record replaced.")] = False,
    beta: Annotated[str, typer.Option(help="How often errors may be larger.", metavar="NUMBER")] = "0.05",
    html: Annotated[Path | None, typer.Option(help="Also write a page.", metavar="FILE", dir_okay=False)] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw it: .png or .svg.", metavar="FILE")] = None,
    as_json: Json = False,
) -> None:
    """Tell how wrong private answers have to be, whoever makes them."""
    kinds = {"queries": queries, "marginals": marginals, "prefixes": prefixes, "ranges": ranges, "counter": counter}
    given = [name for name, value in kinds.items() if value is not None]
    if len(given) != 1:
        raise typer.BadParameter(f"give one of {', '.join('--' + name for name in kinds)}")
    if queries is not None and (universe is None or records is None):
        raise typer.BadParameter("--queries needs --universe and --records")
    from discreet.adversary.lower_bounds.least_error import counter_error, queries_error
    from discreet.app.output.finding import check_files, print_json, show, write

    check_files({"html": html, "plot": plot}, ())
    terms = {"epsilon": epsilon, "delta": delta, "beta": beta}
    if queries is not None and universe is not None and records is not None:
        found = queries_error(queries, universe=universe, records=records, **terms)
    elif counter is not None:
        found = counter_error(counter, **terms)
    else:
        found = _of_workload(marginals, attribute or [], prefixes, ranges, records, 2 if replaced else 1, terms)
    write(found, "The least error", html, plot)
    if as_json:
        print_json(found.as_record())
    else:
        show(found, found.columns(), ())


def _of_workload(
    marginals: int | None,
    attributes: list[str],
    prefixes: int | None,
    ranges: int | None,
    records: int | None,
    changes: int,
    terms: dict[str, str],
) -> LeastError:
    from discreet.adversary.lower_bounds.least_error import marginals_error, runs_error

    if marginals is None:
        size, kind = (prefixes, "prefixes") if prefixes is not None else (ranges, "ranges")
        return runs_error(size or 1, kind, records=records, changes=changes, **terms)
    sizes = {}
    for given in attributes:
        name, _, number = given.partition("=")
        if not number.isdigit() or not int(number):
            raise typer.BadParameter(f"{given!r} is not NAME=NUMBER", param_hint="--attribute")
        sizes[name] = int(number)
    if len(sizes) < marginals:
        raise typer.BadParameter(f"{marginals} attributes at least, such as sex=2", param_hint="--attribute")
    return marginals_error(sizes, marginals, records=records, changes=changes, **terms)
