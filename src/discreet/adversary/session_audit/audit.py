"""The audit of a session: its questions replayed on made-up neighbours of its tables. No private row is read.

For each question and each profile of a unit (`session_audit/neighbouring_tables.py`) two neighbours are made, and
`session_audit/replay.py` and `session_audit/sensitivity.py` check with frozen noise what may not depend on the data
and how far one unit moves what is measured; names, errors, sources, work and progress are looked at besides
(`session_audit/hostile_names.py`, `session_audit/surroundings.py`, `session_audit/process_watch.py`). On the pair that
uses up the largest part of the charge the release is then run many times with fresh noise, and `audit` looks for an
event that refutes the loss that a certificate would state. What that would have caught is said with it: a pair that
uses little of the charge, or few runs, catch little.

The engine is DuckDB, whatever the session's own: what other engines make of the same plan is for their own tests.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.adversary.auditing.auditor import Audit, audit
from discreet.adversary.session_audit.hostile_names import check_names
from discreet.adversary.session_audit.likelihood import Likelihood
from discreet.adversary.session_audit.neighbouring_tables import PROFILES, Data, Maker
from discreet.adversary.session_audit.process_watch import ProcessWatch, Watched
from discreet.adversary.session_audit.replay import alike, answered, check_record, opened, same_plan
from discreet.adversary.session_audit.sensitivity import CheckFailed, cuts_to_try, moved
from discreet.adversary.session_audit.surroundings import (
    check_errors,
    check_progress,
    check_sources,
    check_work,
    rows_of,
)
from discreet.charging.question import checked_rho
from discreet.core.display.text import visible
from discreet.core.errors import DiscreetError, InvalidArgument
from discreet.core.exact import Exactable
from discreet.core.losses import ApproxDP, Loss, PureDP
from discreet.noise.entropy import Entropy, chosen
from discreet.session.session import Session
from discreet.session.sql import SQL, exact_groups
from discreet.session.sql_question import Asked
from discreet.sql.answers.answer import Answer
from discreet.sql.catalog import Catalog
from discreet.sql.measuring.run import Noisy, Run
from discreet.sql.statement.dialect import quoted
from discreet.sql.statement.results import Groups

__all__ = ["QuestionAudit", "SessionAudit", "audit_session", "usual_questions"]

RUNS = 2_000
NAMED_AT_MOST = 20
"""Values of a public column that private ones of the same name may hold."""
Progress = Callable[[float], None] | None


@dataclass(frozen=True)
class QuestionAudit:
    """What became of one question."""

    question: str
    loss: Loss | None
    """What its certificate would state; None if it is refused before that is known."""
    refused: str | None
    faults: tuple[str, ...]
    """What was found wrong, with the profile of the unit that showed it."""
    strain: float
    """The largest part of the charge that a pair of neighbours used up before noise: 1 is all of it."""
    profile: str
    """The unit of that pair."""
    pairs: int
    audit: Audit | None
    """Fresh noise on that pair."""

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong."""
        return not self.faults and (self.audit is None or not self.audit.refuted)

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.faults:
            return f"BROKEN: {self.faults[0]}"
        if self.refused is not None:
            return f"Refused before any charge, on all neighbours alike: {self.refused}"
        if self.audit is not None and self.audit.refuted:
            return self.audit.verdict
        if not self.strain:
            return "Nothing was found, but no made-up unit moved the answer: this audit says little."
        used = f"one unit used up to {self.strain * 100:.0f} % of what is charged, never more"
        return f"Nothing was found on {self.pairs} pairs of neighbours; {used}."


@dataclass(frozen=True)
class SessionAudit:
    """What became of all questions."""

    questions: tuple[QuestionAudit, ...]
    engine: str
    """The session's own; the audit itself runs on DuckDB."""

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong anywhere."""
        return all(one.passed for one in self.questions)

    def page(self, title: str = "Audit of a session") -> str:
        """A page of HTML that stands alone."""
        from discreet.adversary.session_audit.report import page

        return page(self, title)

    def as_record(self) -> dict[str, Any]:
        """All of it for JSON."""
        from discreet.adversary.session_audit.report import record

        return record(self)

    def _repr_html_(self) -> str:
        from discreet.adversary.session_audit.report import summary
        from discreet.core.display.html import block

        return block(summary(self))

    def __str__(self) -> str:
        return visible("\n".join(f"{one.question}\n  {one.verdict}" for one in self.questions), lines=True)


def audit_session(
    session: Session,
    questions: Sequence[str] | None = None,
    *,
    epsilon: Exactable | None = None,
    rho: Exactable | None = None,
    runs: int = RUNS,
    profiles: Sequence[str] = PROFILES,
    confidence: Exactable = Fraction(999_999_999, 10**9),
    seed: int = 0,
    progress: Progress = None,
) -> SessionAudit:
    """Replay questions on made-up neighbours of the session's tables; without any, the usual ones. Each is asked for
    this ε, by default 1, or under a `ZCDP` budget for this ρ.

    Nothing is charged to the session and nothing is read but its schema and its public tables. `runs` is how often
    the release of each question is run on each of two neighbours; 0 leaves that out. `profiles` are the units that
    neighbours differ in.
    """
    price = _price(session, epsilon, rho)
    if unknown := {*profiles} - {*PROFILES}:
        raise InvalidArgument("profiles", sorted(unknown), f"among {PROFILES}", "leave it out for all of them")
    catalog = session._catalog
    asked = list(questions) if questions is not None else usual_questions(catalog)
    if not asked:
        raise InvalidArgument("questions", asked, "at least one", "write a question in SQL")
    public = {t.name: _rows(session, t.name) for t in catalog.tables if not t.private}
    found = []
    for place, text in enumerate(asked):
        step = None if progress is None else _within(progress, place / len(asked), 1 / len(asked))
        replayer = _Replayer(session, SQL(text, **price), public, seed)
        found.append(replayer.audited(profiles, runs, confidence, step))
    return SessionAudit(tuple(found), type(session._engine).__name__)


def _price(session: Session, epsilon: Exactable | None, rho: Exactable | None) -> dict[str, Exactable]:
    """What each question is asked for."""
    if rho is None:
        return {"epsilon": 1 if epsilon is None else epsilon}
    if epsilon is not None:
        raise InvalidArgument("epsilon, rho", (epsilon, rho), "at most one of the two", "leave one of them out")
    return {"rho": checked_rho(rho, session._budget)}


def usual_questions(catalog: Catalog) -> list[str]:
    """A count, a count by declared values, a sum and an average of a bounded column, a median, and groups not listed:
    those of the first table that its declarations allow."""
    table = catalog.tables[0]
    keys = [c.name for c in table.columns if c.values is not None and c.name != table.unit]
    numbers = [c.name for c in table.columns if c.bounds is not None and c.values is None]
    others = [c.name for c in table.columns if c.values is None and c.bounds is None and c.name != table.unit]
    name = quoted(table.name)
    asked = [f"SELECT COUNT(*) AS n FROM {name}"]
    asked += [f"SELECT {k}, COUNT(*) AS n FROM {name} GROUP BY {k}" for k in map(quoted, keys[:1])]
    for number in map(quoted, numbers[:1]):
        asked.append(f"SELECT SUM({number}) AS s, AVG({number}) AS a FROM {name}")
        asked.append(f"SELECT MEDIAN({number}) AS m FROM {name}")
    asked += [f"SELECT {k}, COUNT(*) AS n FROM {name} GROUP BY {k}" for k in map(quoted, others[:1])]
    return asked


class _Replayer:
    """One question on pairs of neighbours."""

    def __init__(self, session: Session, question: SQL, public: Data, seed: int) -> None:
        self.question, self.public = question, public
        self.catalog, self.unit, self.budget = session._catalog, session._unit, session._budget
        named = {**_public_values(public), **_named_in(question.text)}
        self.maker = Maker(self.catalog, self.unit, named, public, seed)
        self.planned: Asked | None = None
        self.answered = False
        self.first = ""
        self.unit_rows = 0
        self.faults: list[str] = []
        self.watch = ProcessWatch()
        self.best: tuple[float, str, Groups, Groups] | None = None
        self.refusals: set[str] = set()

    def audited(self, profiles: Sequence[str], runs: int, confidence: Exactable, progress: Progress) -> QuestionAudit:
        self.first = profiles[0] if profiles else ""
        for place, profile in enumerate(profiles):
            self._pair(profile)
            if progress is not None:
                progress((place + 1) / len(profiles) * (0.5 if runs else 1.0))
        refused = self.refusals.pop() if not self.answered and len(self.refusals) == 1 else None
        if self.refusals:
            self.faults.append(f"refused for some neighbours only, or for different reasons: {self.refusals.pop()}")
        found = None
        if runs and refused is None and self.planned is not None and self.best is not None:
            step = None if progress is None else _within(progress, 0.5, 0.5)
            found = self._distinguished(self.planned, self.best[2:], runs, confidence, step)
        loss = None if self.planned is None else self.planned.loss
        strain, profile = (0.0, "none") if self.best is None else self.best[:2]
        faults = tuple(dict.fromkeys(self.faults))
        return QuestionAudit(self.question.text, loss, refused, faults, strain, profile, len(profiles), found)

    def _pair(self, profile: str) -> None:
        """All checks with frozen noise on one pair."""
        data, neighbour = (rows | self.public for rows in self.maker.pair(profile))
        facts = self.catalog, self.unit, self.budget
        with closing(opened(*facts, data)) as mine, closing(opened(*facts, neighbour)) as theirs:
            plans = [self._plan(session) for session in (mine, theirs)]
            if plans[0] is None or plans[1] is None:
                if plans[0] is not plans[1]:
                    self.faults.append(f"with a unit that is {profile}: only one of two neighbours refuses it")
                return
            self.planned = plans[0]
            self.unit_rows = abs(rows_of(data) - rows_of(neighbour)) or rows_of(data)
            for check in (self._same, self._answers, self._moved, self._work):
                try:
                    check(profile, (mine, theirs), (plans[0], plans[1]))
                except CheckFailed as failed:
                    self.faults.append(f"with a unit that is {profile}: {failed}")
        if profile == self.first and self.answered:
            with closing(opened(*facts, data)) as mine, closing(opened(*facts, neighbour)) as theirs:
                self._surroundings(mine, theirs)

    def _surroundings(self, mine: Session, theirs: Session) -> None:
        """What does not depend on which unit differs is looked at once, with books that nothing was charged to."""
        checks: list[Callable[[], object]] = [
            lambda: check_names(mine, self.question),
            lambda: check_sources(mine, self.question),
            lambda: check_errors((mine, theirs), self.question),
            check_progress,
        ]
        for check in checks:
            try:
                check()
            except CheckFailed as failed:
                self.faults.append(str(failed))

    def _plan(self, session: Session) -> Asked | None:
        try:
            return self.question.bind(session._context).plan().decided
        except DiscreetError as error:
            self.refusals.add(str(error))
            return None

    def _same(self, _: str, __: tuple[Session, Session], plans: tuple[Asked, Asked]) -> None:
        same_plan(*plans)

    def _answers(self, _: str, sessions: tuple[Session, Session], plans: tuple[Asked, Asked]) -> None:
        outcomes = []
        for session in sessions:
            quote = session.price(self.question)
            outcomes.append(answered(session, self.question, Entropy.for_tests(0), quote.events))
        mine, theirs = outcomes
        if isinstance(mine, Answer) and isinstance(theirs, Answer):
            self.answered = True
            alike(plans[0], mine, theirs)
            for session, plan in zip(sessions, plans, strict=True):
                check_record(session, plan, self.question)
        elif type(mine) is not type(theirs):
            raise CheckFailed("shape", f"{type(mine).__name__} here and {type(theirs).__name__} on a neighbour")
        elif str(mine) != str(theirs):
            raise CheckFailed("shape", f"{type(mine).__name__} on both, in other words on a neighbour")
        else:
            self.refusals.add(str(mine))

    def _moved(self, profile: str, sessions: tuple[Session, Session], plans: tuple[Asked, Asked]) -> None:
        try:
            before, after = (exact_groups(plan, session._engine) for session, plan in zip(sessions, plans, strict=True))
        except Exception:
            raise CheckFailed("shape", "the engine failed") from None
        if self.best is None:
            self.best = 0.0, profile, before, after
        cuts = cuts_to_try(plans[0].measurement)
        strain = moved(plans[0], before, after, cuts, self._watched if profile == self.first else _as_they_are)
        if strain > self.best[0]:
            self.best = strain, profile, before, after

    def _watched(self, counts: Mapping[tuple[int, int], int]) -> Mapping[tuple[int, int], int]:
        return Watched(counts, self.watch)

    def _work(self, _: str, sessions: tuple[Session, Session], plans: tuple[Asked, Asked]) -> None:
        check_work(sessions, plans[0], self.unit_rows, rows_of(self.public))

    def _distinguished(
        self, planned: Asked, pair: Sequence[Groups], runs: int, confidence: Exactable, progress: Progress
    ) -> Audit:
        """What is stored of the question, again and again with fresh noise; answers are made from that alone."""
        source = chosen(None)

        likelihood = Likelihood(planned.measurement, (pair[0], pair[1]), sorted(pair[0].keys | pair[1].keys, key=repr))

        def release(groups: Groups) -> Any:
            noisy = Run(planned.measurement, groups, planned.listed, source).release()
            return (*_leaves(noisy), likelihood(noisy))

        claim = planned.loss
        if isinstance(claim, ApproxDP) and not claim.delta:
            claim = PureDP(claim.epsilon)
        features = {"how strongly it speaks for D": lambda outputs: np.array([output[-1] for output in outputs])}
        terms: dict[str, Any] = {"samples": runs, "confidence": confidence, "claim": claim, "features": features}
        return audit(release, *pair, **terms, progress=progress)


def _as_they_are(counts: Mapping[tuple[int, int], int]) -> Mapping[tuple[int, int], int]:
    return counts


def _leaves(noisy: Noisy) -> tuple[Any, ...]:
    """Everything that is stored, as one output."""
    tally = () if noisy.tally is None else (noisy.tally.lost, noisy.tally.kept)
    keys = tuple(repr(key) for key in noisy.keys)
    drawn = repr(noisy.drawn) if noisy.drawn else ""
    return (keys, noisy.sums.ravel(), noisy.norms or (), tally, drawn)


def _within(progress: Callable[[float], None], start: float, share: float) -> Callable[[float], None]:
    return lambda part: progress(start + share * part)


def _rows(session: Session, table: str) -> list[dict[str, Any]]:
    names = session._catalog.table(table).names
    columns = session.public_columns(table, names)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _public_values(public: Data) -> Mapping[str, Sequence[Any]]:
    """Values of public columns, by name: rows that join with them hold these."""
    found: dict[str, list[Any]] = {}
    for rows in public.values():
        for row in rows[:NAMED_AT_MOST]:
            for name, value in row.items():
                found.setdefault(name.lower(), []).append(value)
    return found


def _named_in(text: str) -> dict[str, list[Any]]:
    """Values that a question compares columns with, and numbers beside them."""
    import sqlglot
    from sqlglot import expressions as exp

    found: dict[str, list[Any]] = {}
    try:
        tree = sqlglot.parse_one(text, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        return found
    for column in tree.find_all(exp.Column):
        compared = column.parent
        if not isinstance(compared, exp.Predicate | exp.In | exp.Between):
            continue
        for literal in compared.find_all(exp.Literal):
            found.setdefault(column.name.lower(), []).extend(_readings(literal))
    return found


def _readings(literal: Any) -> list[Any]:
    """A literal as values of the types it may stand for."""
    said = str(literal.this)
    if literal.is_string:
        try:
            day = datetime.date.fromisoformat(said)
            return [said, day, datetime.datetime.combine(day, datetime.time())]
        except ValueError:
            return [said]
    number = float(said)
    near = [number, number + 1, number - 1]
    return [*(int(each) for each in near), *near] if number.is_integer() and abs(number) < 2**62 else near
