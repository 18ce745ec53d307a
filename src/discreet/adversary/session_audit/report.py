"""The audit of a session as people and programs read it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from discreet.adversary.auditing import report
from discreet.core.display.columns import Cells
from discreet.core.display.html import Html, facts, folded, joined, note, table
from discreet.core.display.numbers import floored, loss, loss_record

if TYPE_CHECKING:
    from discreet.adversary.session_audit.audit import QuestionAudit, SessionAudit

__all__ = ["columns", "page", "record", "summary", "verdict"]

SCOPE = (
    "All tables were made up from what is declared: no private row was read and nothing was charged. The audit runs on "
    "DuckDB; it says what was found on these neighbours, and is no proof for others."
)


def verdict(found: SessionAudit) -> str:
    """One sentence."""
    broken = sum(not one.passed for one in found.questions)
    if broken:
        return f"BROKEN: {broken} of {len(found.questions)} questions do not keep what they state."
    refused = sum(one.refused is not None for one in found.questions)
    asked = len(found.questions) - refused
    rest = f"; {refused} {'was' if refused == 1 else 'were'} refused, which tells nothing" if refused else ""
    kept = "question keeps what it states" if asked == 1 else "questions keep what they state"
    return f"Nothing was found: {asked} {kept}, as far as this audit sees{rest}."


def columns(found: SessionAudit) -> list[Cells]:
    """One line for each question."""
    rows = found.questions
    return [
        Cells("question", [one.question for one in rows]),
        Cells("states", ["refused" if one.loss is None else loss(one.loss, digits=3) for one in rows]),
        Cells("used by one unit", [f"{one.strain * 100:.0f} %" for one in rows], right=True),
        Cells("proven ε", [_proven(one) for one in rows], right=True),
        Cells("caught from ε", [_caught(one) for one in rows], right=True),
        Cells("verdict", [_word(one) for one in rows]),
    ]


def _word(one: QuestionAudit) -> str:
    if not one.passed:
        return "BROKEN"
    return "sound" if one.refused is None else "refused"


def _proven(one: QuestionAudit) -> str:
    return "–" if one.audit is None else floored(one.audit.epsilon)


def _caught(one: QuestionAudit) -> str:
    """The least ε that the runs would have caught, by an event in half of them."""
    if one.audit is None or one.audit.terms is None or one.audit.claim is None:
        return "–"
    least = one.audit.terms.least_caught(one.audit.claim, 0.5)
    return "none" if math.isinf(least) else f"{least:.3g}"


def summary(found: SessionAudit) -> Html:
    """Verdict, table, and for each question what was found."""
    head = report.verdict_html(verdict(found), alarm=not found.passed)
    return joined(head, table(columns(found)), *map(_question, found.questions), note(SCOPE))


def _question(one: QuestionAudit) -> Html:
    parts = [facts([("verdict", one.verdict), ("checked on", f"{one.pairs} pairs of neighbours")])]
    parts += [note(fault, alarm=True) for fault in one.faults]
    if one.audit is not None:
        parts.append(note(f"Fresh noise on the pair whose unit is {one.profile}:"))
        parts.append(report.summary(one.audit))
    return folded(one.question, joined(*parts))


def page(found: SessionAudit, title: str) -> Html:
    """A whole file."""
    return report.document(title, summary(found))


def record(found: SessionAudit) -> dict[str, Any]:
    """For JSON."""
    return {"passed": found.passed, "engine": found.engine, "questions": [_record(one) for one in found.questions]}


def _record(one: QuestionAudit) -> dict[str, Any]:
    return {
        "question": one.question,
        "passed": one.passed,
        "verdict": one.verdict,
        "loss": None if one.loss is None else loss_record(one.loss),
        "faults": list(one.faults),
        "strain": one.strain,
        "pairs": one.pairs,
        "audit": None if one.audit is None else report.record(one.audit),
    }
