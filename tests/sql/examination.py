"""Questions put to the test: charged before they run, moved by one unit no more than declared, alike on neighbours, and
equal to DuckDB's own answer once the noise is off.

`Examination(seed)` opens a world and some of its neighbours; `question(number)` examines one question and raises a
`CheckFailed` that says how to see it again: `replay(seed, number)`. The checks:

- "plan": what must be refused is refused (this is part of each of the others).
- "session": the question is priced, charged and answered by sessions on the data and on a neighbour; the books, the
  words, the shape, and without noise the numbers are compared.
- "movement": its statement runs on the data and on a neighbour, and the totals at several norms are compared.
- "totals": the totals at some norms are compared with those of DuckDB's own rows.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Literal

from tests.sql.exact import Exact, plain_key
from tests.sql.findings import alike, as_duckdb, cap_of, compare, cuts_of, several_cuts
from tests.sql.generator import Question, question
from tests.sql.worlds import Dice, World

from discreet.adversary.session_audit.replay import answered
from discreet.adversary.session_audit.sensitivity import CheckFailed, moved, weighed_cells
from discreet.core.errors import BudgetExceeded, DiscreetError
from discreet.noise import Entropy
from discreet.session import sql
from discreet.session.session import Session
from discreet.session.sql import SQL
from discreet.sql.answers.answer import Answer
from discreet.sql.bounding.clipping_norms import G, H
from discreet.sql.measuring.modes import Mode
from discreet.sql.statement.results import Groups
from discreet.sql.statement.rows import only_listed

Check = Literal["plan", "session", "movement", "totals"]
CHECKS: tuple[Check, ...] = ("session", "movement", "totals")
QUIET = 0x7FFF_FFFF_C000_0000
"""A word under which discrete Laplace and Gaussian noise is 0, or less than a millionth of a step."""
MANY_WORDS = 30_000
FEW_KEYS = 250
"""More keys are drawn from tables, where no one word means 0."""


def replay(seed: int, number: int) -> None:
    """Examine one question again, with all checks."""
    examination = Examination(seed)
    try:
        examination.question(number)
    finally:
        examination.close()


def quiet() -> Entropy:
    """Entropy under which no noise is added."""
    return Entropy.scripted_for_tests([QUIET] * MANY_WORDS)


class Examination:
    """A world with sessions on its data and on neighbours of it."""

    def __init__(self, seed: int, neighbours: int = 2) -> None:
        self.world = World(seed)
        self.session = self.world.connect(self.world.data)
        self.others = [self.world.connect(self.world.neighbour(number)) for number in range(neighbours)]
        self.asked: set[str] = set()
        self.seen: Counter[str] = Counter()
        catalogs = {repr(session._catalog) for session in (self.session, *self.others)}
        if len(catalogs) != 1:
            raise CheckFailed("shape", f"neighbours have different catalogs; World({seed})")

    def close(self) -> None:
        for session in (self.session, *self.others):
            session.close()
        self.world.close()

    def question(self, number: int, *checks: Check) -> None:
        """The checks of one question; without any named, all of them."""
        asked = question(self.world, number)
        self.seen.update(["questions", *asked.tags])
        try:
            self._examined(asked, number, checks or CHECKS)
        except Exception as error:
            finding = error if isinstance(error, CheckFailed) else CheckFailed("crash", repr(error))
            note = f"\n{asked.text}\nepsilon={asked.epsilon}; replay({self.world.seed}, {number})"
            finding.args = (finding.args[0] + note + self._plan(asked),)
            raise finding from error

    def _plan(self, asked: Question) -> str:
        try:
            planned = SQL(asked.text, asked.epsilon).bind(self.session._context).plan().decided
        except Exception as error:
            return f"\nrefused: {error!r}"
        return f"\n{planned.words}\n{planned.statement}"

    def _examined(self, asked: Question, number: int, checks: Sequence[Check]) -> None:
        planned: Any = None
        try:
            planned = SQL(asked.text, asked.epsilon).bind(self.session._context).plan().decided
        except DiscreetError:
            self.seen["refused questions"] += 1
        if asked.refused and planned is not None:
            raise CheckFailed("refusal", "what must be refused is answered")
        if "session" in checks:
            self._same_words(asked, planned)
            self._through_session(asked, planned, Dice(self.world.seed, number, 3))
        if planned is None:
            return
        self.seen["answered questions"] += 1
        if not {"movement", "totals"} & {*checks}:
            return
        before = measured(self.session, planned)
        if "movement" in checks:
            after = measured(self.others[number // 2 % len(self.others)], planned)
            moved(planned, before, after, several_cuts(planned.measurement, Dice(self.world.seed, number, 1)))
        if "totals" in checks and asked.exact:
            self._totals(asked, planned, before, Dice(self.world.seed, number, 2))

    def _same_words(self, asked: Question, planned: Any) -> None:
        """Plan, price and statement follow from what is declared alone."""
        try:
            theirs = SQL(asked.text, asked.epsilon).bind(self.others[0]._context).plan().decided
        except DiscreetError as error:
            if planned is not None:
                raise CheckFailed("shape", f"a neighbour refuses it: {error}") from None
            return
        if planned is None:
            raise CheckFailed("shape", "only a neighbour answers it")
        for name in ("statement", "former_identity", "words", "listed", "query", "loss", "errors"):
            if getattr(theirs, name) != getattr(planned, name):
                raise CheckFailed("shape", f"neighbours differ in {name}")
        if theirs.measurement.events != planned.measurement.events:
            raise CheckFailed("shape", "neighbours differ in their events")

    def _through_session(self, asked: Question, planned: Any, dice: Dice) -> None:
        """Charge, answer and shape, on the data and always the same neighbour, so that both have the same books."""
        silent = dice.chance(0.7) and (planned is None or len(planned.listed or ()) <= FEW_KEYS)
        known = planned is not None and planned.former_identity in self.asked
        quote = None if planned is None else self.session.price(asked.text, epsilon=asked.epsilon)
        events = None if quote is None else quote.events
        put = SQL(asked.text, asked.epsilon)
        mine, theirs = (
            answered(session, put, quiet() if silent else Entropy.for_tests(0), events, known)
            for session in (self.session, self.others[0])
        )
        if isinstance(mine, Answer) and isinstance(theirs, Answer):
            alike(asked, planned, mine, theirs)
            self.seen["answers"] += 1
            if silent and not known and asked.exact:
                self._as_shown(asked, planned, mine)
            self.asked.add(planned.former_identity)
        elif type(mine) is not type(theirs):
            raise CheckFailed("shape", f"{type(mine).__name__} here and {type(theirs).__name__} on a neighbour")
        elif planned is not None and not isinstance(mine, BudgetExceeded):
            raise CheckFailed("refusal", f"a question with a plan ends in {mine!r}")

    def _columns(self, asked: Question, planned: Any) -> dict[Any, int] | None:
        """Which argument of the question is which of the plan's."""
        measures = planned.query.aggregate.measures
        if [m.function for m in measures] != [one.function for one in asked.aggregates]:
            return None
        return {measure.argument: place for place, measure in enumerate(measures)}

    def _exact(self, asked: Question, planned: Any) -> tuple[Exact, dict[Any, int]] | None:
        columns = self._columns(asked, planned)
        if columns is None:
            return None
        self.seen["compared"] += 1
        exact = Exact.of(self.world, asked)
        return (exact if self.world.by_row else exact.within(only_listed(planned.query.aggregate))), columns

    def _totals(self, asked: Question, planned: Any, groups: Groups, dice: Dice) -> None:
        """The totals before noise are the clipped sums of the rows that DuckDB finds, at any norm."""
        found = self._exact(asked, planned)
        if found is None:
            return
        exact, columns = found
        measurement = planned.measurement
        keys = [*groups.keys]
        cuts = cuts_of(measurement, dice)
        norm = measurement.norm
        for j, totals in enumerate(measurement.totals(groups, keys, cuts)):
            statistic = measurement.statistics[j]
            step = float(statistic.grid.step) / (G * H)
            here = {plain_key(key): total * step for key, total in zip(keys, totals, strict=True)}
            column = columns.get(statistic.argument, 0)
            there = exact.sums(statistic, column, norm, cap_of(measurement, statistic.weighing, cuts))
            compare(here, *there, f"{statistic.kind} at cuts {cuts}")
        for place, (argument, rank) in enumerate(planned.ranked):
            sums: dict[Any, float] = defaultdict(float)
            if isinstance(rank, Mode):
                for (key, value), weight in weighed_cells(measurement, groups, place, cuts).items():
                    sums[plain_key((*key, value))] += weight / (G * H)
                compare(sums, *exact.counted(columns[argument], norm, cap_of(measurement, 0, cuts)), f"mode at {cuts}")
                continue
            line = rank.cells.line
            for (key, cell), weight in weighed_cells(measurement, groups, place, cuts).items():
                sums[plain_key(key)] += line.value(cell) * weight / (G * H)
            cap = cap_of(measurement, 0, cuts)
            there = exact.ranked(line.bounds, columns[argument], float(line.step), norm, cap)
            compare(sums, *there, f"{rank.kind} at cuts {cuts}")
        if self.world.tame:
            self._bounds(exact, asked, planned)

    def _bounds(self, exact: Exact, asked: Question, planned: Any) -> None:
        """Where the data keeps to what is declared, no value lies outside the bounds that the plan derives from it."""
        for place, measure in enumerate(planned.query.aggregate.measures):
            values = [row[place] for _, _, row in exact.rows if row[place] is not None]
            if measure.bounds is None or not values or measure.argument is None:
                continue
            lower, upper = float(measure.bounds.lower), float(measure.bounds.upper)
            slack = 1e-9 * max(abs(lower), abs(upper), 1.0)
            if min(values) < lower - slack or max(values) > upper + slack:
                raise CheckFailed("result", f"{asked.aggregates[place].text} leaves its bounds {measure.bounds}")

    def _as_shown(self, asked: Question, planned: Any, answer: Answer) -> None:
        """Without noise, released sums are the clipped ones; where none is clipped, DuckDB answers the same."""
        found = self._exact(asked, planned)
        if found is None:
            return
        exact, columns = found
        noisy, measurement = answer.spans.noisy, planned.measurement
        if planned.listed is not None and list(noisy.keys) != planned.listed:
            raise CheckFailed("shape", "the listed groups are not those released")
        clipped = False
        for j, statistic in enumerate(measurement.statistics):
            cap = None if noisy.norms is None else noisy.norms[statistic.weighing]
            units = statistic.kind == "units" and not self.world.by_row
            clipped = clipped or (cap is not None and exact.heaviest(measurement.norm, units) > cap)
            sums, slack = exact.sums(statistic, columns.get(statistic.argument, 0), measurement.norm, cap)
            here = {plain_key(key): row[j] for key, row in zip(noisy.keys, noisy.sums, strict=True)}
            there = {key: sums.get(key, 0.0) for key in here}
            faint = 1e-5 * float(statistic.grid.step)
            compare(here, there, {key: slack.get(key, 0.0) + faint for key in here}, f"released {statistic.kind}")
            if noisy.hidden_below is not None and statistic.kind == "units":
                shown = {key for key, total in sums.items() if total > noisy.hidden_below + slack[key]}
                if not shown <= here.keys():
                    raise CheckFailed("result", f"groups above the threshold are withheld: {shown - here.keys()}")
        if self.world.tame and not clipped:
            self.seen["as DuckDB"] += 1
            as_duckdb(asked, planned, answer, exact, self.world.reference.execute(asked.own).fetchall())


def measured(session: Session, planned: Any) -> Groups:
    """What the engine gave for a planned question, just before noise is added."""
    try:
        return sql.exact_groups(planned, session._engine)
    except Exception as error:
        raise CheckFailed("shape", "the engine failed") from error
