"""What `discreet attack trace` does: means or synthetic rows in, who of some people was in the data out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from discreet.adversary.linkage.records import Records, numbers
from discreet.adversary.membership.from_means import Tracing, trace_means
from discreet.adversary.membership.from_rows import SCORES, Score, trace_rows
from discreet.app.output.finding import telling
from discreet.app.output.verdicts import Output, tell
from discreet.core.errors import InvalidArgument
from discreet.core.exact import probability

__all__ = ["Tracking", "traced"]

YES = ("1", "true", "yes", "in")


@dataclass(frozen=True)
class Tracking:
    """Who is tried, against whom, and how."""

    targets: Path
    reference: Path
    by: str
    means: bool
    members: str | None
    alpha: str


def traced(release: Path, wish: Tracking, out: Output) -> None:
    """Tries each score that was asked for; the strongest finding is told first."""
    alpha = float(probability("alpha", wish.alpha))
    targets, reference = Records.read(wish.targets, "targets"), Records.read(wish.reference, "reference")
    members = None
    if wish.members is not None:
        members = [value.lower() in YES for value in targets.column(wish.members)]
        targets, reference = targets.without([wish.members]), reference.without([wish.members])
    if wish.means:
        tell([_from_means(release, targets, reference, members, alpha)], "Who is in the data", out)
        return
    if wish.by != "all" and wish.by not in SCORES:
        raise InvalidArgument("by", wish.by, f"all, or one of {', '.join(SCORES)}", "leave it out to try all")
    rows = Records.read(release, "release")
    if wish.members is not None:
        rows = rows.without([wish.members])
    found: list[Tracing] = []
    for score in SCORES if wish.by == "all" else (wish.by,):
        with telling(f"scoring by {score}") as heard:
            chosen = cast("Score", score)
            found.append(
                trace_rows(rows, targets, reference, by=chosen, members=members, alpha=alpha, progress=heard.hear)
            )
    found.sort(key=lambda each: each.luck)
    tell(found, "Who is in the data", out)


def _from_means(
    release: Path, targets: Records, reference: Records, members: list[bool] | None, alpha: float
) -> Tracing:
    """A file with the columns `column` and `mean`, one line for each published mean."""
    published = Records.read(release, "release")
    names = published.column("column")
    means = numbers(published.columns[published.having(["mean"])[0]])
    tables = [np.stack([numbers(t.columns[name]) for name in t.having(names)], axis=1) for t in (targets, reference)]
    return trace_means(means, tables[0], reference=tables[1], members=members, alpha=alpha)
