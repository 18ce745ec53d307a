"""What `discreet attack difference` does: suppressed tables, or somebody who answers, in; a verdict out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.adversary.differencing.answerers import Aggregate, OfConnection, OfSession
from discreet.adversary.differencing.attack import ENOUGH, Differencing, difference, track
from discreet.adversary.differencing.suppression import margins, unsuppress
from discreet.app.output.finding import telling
from discreet.app.output.verdicts import Output, tell
from discreet.core.errors import InvalidArgument
from discreet.core.exact import at_least, positive

__all__ = ["Asking", "asked", "suppressed"]


@dataclass(frozen=True)
class Asking:
    """What is asked, of whom, about whom."""

    template: str
    targets: Sequence[str]
    covers: Sequence[str]
    trackers: Sequence[str]
    database: str | None
    epsilon: str | None
    step: str
    resolution: str
    config: Path | None


def suppressed(
    tables: Sequence[Path], total: str, count: str, block: str, least: int | None, step: str, out: Output
) -> None:
    """Counts that were left out of published tables; one table may have its totals among its rows."""
    named: dict[str, Any] = {}
    for path in tables:
        parts = margins(path, total=total, count=count, block=block)
        named |= {f"{path.stem}: {name}" if len(tables) > 1 else name: part for name, part in parts.items()}
    off = float(at_least("step", step, 0))
    with telling("bounding counts") as heard:
        found = unsuppress(named, least=least, step=off, block=block, count=count, progress=heard.hear)
    tell([found], "What the suppressed counts are", out)


def asked(asking: Asking, out: Output) -> None:
    """A database, or a session of ours."""
    if asking.database is not None:
        tell([_attacked(asking, OfConnection(asking.database, asking.template))], "What differences give away", out)
        return
    if asking.epsilon is None:
        raise InvalidArgument("epsilon", None, "what each question may cost", "add --epsilon, or --database")
    from discreet.app.config.settings import Settings, find
    from discreet.session.connect import connect

    settings = Settings.read(find(Path.cwd(), asking.config))
    with connect(**settings.arguments(study=None, analyst=None)) as session:
        found = _attacked(asking, OfSession(session, asking.template, asking.epsilon))
    tell([found], "What differences give away", out)


def _attacked(asking: Asking, aggregate: Aggregate) -> Differencing:
    if not asking.targets:
        raise InvalidArgument("target", None, "a condition that fits one person or few", "add --target")
    step, resolution = float(at_least("step", asking.step, 0)), float(positive("resolution", asking.resolution))
    crowds = dict.fromkeys(asking.trackers or asking.covers)
    if not step and len(crowds) < ENOUGH:
        name = "tracker" if asking.trackers else "cover"
        bound = f"given {ENOUGH} times or more, each different, where --step does not say how answers are rounded"
        remedy = f"add {ENOUGH - len(crowds)} more, such as 'age < 50': fewer cannot tell exact answers from noisy ones"
        raise InvalidArgument(name, list(crowds), bound, f"{remedy}; nothing was asked")
    with telling("asking") as heard:
        if asking.trackers:
            return track(
                aggregate, asking.targets, asking.trackers, step=step, resolution=resolution, progress=heard.hear
            )
        covers = asking.covers or ("1 = 1",)
        return difference(aggregate, asking.targets, covers, step=step, resolution=resolution, progress=heard.hear)
