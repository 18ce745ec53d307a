"""The command `discreet audit session`: questions replayed on made-up neighbours of the configured tables.

The steward's tables are opened for their schema alone, with books of their own that are thrown away: no private row is
read and nothing is charged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.app.failures import FAILED
from discreet.app.options import Json, Rho

if TYPE_CHECKING:
    from discreet.session.session import Session

__all__ = ["session"]


def session(
    ctx: typer.Context,
    question: Annotated[list[str] | None, typer.Argument(help="Questions in SQL; without any, the usual ones.")] = None,
    epsilon: Annotated[
        str | None, typer.Option("--epsilon", "-e", help="What each may cost; by default 1.", metavar="NUMBER")
    ] = None,
    rho: Rho = None,
    demo: Annotated[bool, typer.Option("--demo", help="The survey and questions of discreet demo.")] = False,
    runs: Annotated[int, typer.Option(min=0, help="Releases on each of two neighbours; 0 leaves them out.")] = 2000,
    confidence: Annotated[str, typer.Option(help="How sure bounds are.", metavar="NUMBER")] = "0.999999999",
    seed: Annotated[int, typer.Option(help="Other neighbours for other numbers.")] = 0,
    html: Annotated[Path | None, typer.Option(help="Also write a page.", metavar="FILE", dir_okay=False)] = None,
    as_json: Json = False,
) -> None:
    """Replay questions on made-up neighbours, with frozen and fresh noise; ends with 1 if one breaks its promise."""
    from discreet.adversary.session_audit.audit import audit_session
    from discreet.app.output.finding import check_files, print_json, telling

    check_files({"html": html}, ())
    asked = question or (_demo_questions() if demo else None)
    with _opened(ctx, demo) as opened, telling("replaying") as heard:
        terms: dict[str, Any] = {"epsilon": epsilon, "rho": rho, "runs": runs, "confidence": confidence, "seed": seed}
        found = audit_session(opened, asked, **terms, progress=heard.hear)
    if html is not None:
        html.write_text(found.page(), encoding="utf-8")
    if as_json:
        print_json(found.as_record())
    else:
        from discreet.adversary.session_audit.report import SCOPE, columns, verdict
        from discreet.app.output.terminal import console, show_grid, worded

        out = console()
        out.print(worded(verdict(found), style="bold green" if found.passed else "bold red"))
        show_grid(columns(found))
        for one in found.questions:
            for fault in one.faults:
                out.print(worded(f"{one.question}\n  {fault}", style="red"))
        out.print(worded(SCOPE, style="dim italic"))
    raise typer.Exit(0 if found.passed else FAILED)


@contextmanager
def _opened(ctx: typer.Context, demo: bool) -> Iterator[Session]:
    """A session of the settings, or of the demo, whose books nobody keeps."""
    from discreet.session.connect import connect

    with TemporaryDirectory(prefix="discreet-audit-") as place:
        arguments = _survey() if demo else _configured(ctx)
        with connect(**arguments | {"ledger": Path(place) / "books.db"}) as opened:
            yield opened


def _configured(ctx: typer.Context) -> dict[str, Any]:
    from discreet.app.config.settings import Settings, find

    found = Settings.read(find(Path.cwd(), ctx.meta["config"])).arguments()
    return {name: value for name, value in found.items() if name not in ("key", "study", "analyst")}


def _survey() -> dict[str, Any]:
    """The survey as the steward of the demo declares it."""
    from discreet.core.losses import ApproxDP
    from discreet.core.units import User
    from discreet.samples import rand_hie

    return {
        "source": rand_hie(),
        "table": "survey",
        "unit": User("person"),
        "budget": ApproxDP(3, "1e-6"),
        "max_rows": 5,
        "bounds": {"spending": (0, 2000), "doctor_visits": (0, 30)},
        "values": {"health": ["excellent", "good", "fair", "poor"]},
    }


def _demo_questions() -> list[str]:
    from discreet.app.commands.demo import AGES, COSTS, EVERYBODY, LAST

    return [COSTS, AGES, EVERYBODY, LAST]
