"""Faults planted in questions and books, one at a time, as they shipped elsewhere; more are in tests/sql/faults.py."""

import json
import os
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from tests.attacks.faults import together

import discreet.charging.purchase
import discreet.estimation.request as estimation
import discreet.session.session
import discreet.synthesis.request as synthesis
from discreet.app.commands import verify as credentials
from discreet.charging import certificate
from discreet.charging.purchase import FAILED, Bought, Counter, Listener, Purchase, outcome
from discreet.core.errors import AnswerFailed
from discreet.engines.duckdb import csv_records as records
from discreet.engines.duckdb import engine as duckdb
from discreet.engines.duckdb import frames, snapshots
from discreet.engines.duckdb.engine import DuckDB
from discreet.ledger import Ledger, charges
from discreet.ledger import confirmation as attestation
from discreet.ledger import ledger as ledgers
from discreet.ledger.records import Charge
from discreet.noise import Entropy
from discreet.noise.entropy import chosen
from discreet.session import connect as connection
from discreet.session import mechanism_run
from discreet.session import sql as sql_kind
from discreet.session import sql_question as asked
from discreet.session.books import beside
from discreet.session.sql import SQL, BoundSQL
from discreet.session.sql_question import Parsed
from discreet.sql.analysis import canonical
from discreet.sql.bounding.clipping_norms import Caps, G, H
from discreet.sql.bounding.sums import Statistic, Sums
from discreet.sql.decimals import Decimals
from discreet.sql.functions import decimal_arithmetic as units
from discreet.sql.functions import registry as functions
from discreet.sql.functions.ranges import Interval
from discreet.sql.measuring import run
from discreet.sql.measuring.measurement import Measurement
from discreet.sql.measuring.run import Noisy, Run
from discreet.sql.parsing import names as vocabulary
from discreet.sql.relations import columns_of
from discreet.sql.statement import selection
from discreet.sql.statement.dialect import Dialect
from discreet.sql.statement.results import Bucketed, Groups
from discreet.sql.statement.selection import Selection


def identities_of_classes() -> Any:
    """What a question is known by is how our classes print themselves."""
    original = Parsed.identity
    return patch.object(
        Parsed, "identity", property(lambda self: f"{original.fget(self)} {self.planned().measurement.weights}")
    )


def identities_of_plans() -> Any:
    """What a question is known by is what it will run."""
    original = Parsed.identity
    return patch.object(
        Parsed, "identity", property(lambda self: f"{original.fget(self)} {self.planned().measurement.events}")
    )


def runs_repeated_for_free() -> Any:
    """Whoever finds a charge without an outcome may run the question again."""
    original = Ledger._again

    def again(self: Ledger, *given: Any) -> Any:
        charge = original(self, *given)
        return replace(charge, own=charge.own or charge.payload is None)

    return patch.object(Ledger, "_again", again)


def sizes_not_looked_at() -> Any:
    return patch.object(discreet.charging.purchase, "outcome", lambda run: run())


def progress_as_it_comes() -> Any:
    def call(self: Listener, share: float) -> None:
        if self._progress is not None:
            self._progress(share)

    return patch.object(Listener, "__call__", call)


def progress_of_what_there_was_to_run() -> Any:
    return patch.object(Listener, "during", lambda self, run: run())


def doubles_added_as_they_come() -> Any:
    return together(
        patch.object(Statistic, "steps", lambda self, value, *_: f"LEAST(GREATEST({value}, -1e16), 1e16)"),
        patch.object(Dialect, "divided", lambda self, value, parts: value),
    )


def values_rounded_to_floats() -> Any:
    original = Statistic.steps
    return patch.object(
        Statistic, "steps", lambda self, value, *how: original(self, f"CAST(CAST({value} AS FLOAT) AS DOUBLE)", *how)
    )


def decimals_in_doubles() -> Any:
    """What an analyst writes as 0.06 is the double next to it, and so is what is computed of it."""
    return patch.object(Decimals, "holding", lambda value: None)


def decimals_on_a_grid_of_two() -> Any:
    """Sums of decimals on the grid that sums of reals have."""
    return patch.object(Statistic, "_divide", lambda self, *given: False)


def decimals_of_any_size() -> Any:
    """Products as the engine has them, which fails where one has too many digits."""
    return patch.object(units, "HELD", Interval(Fraction(-(10**99)), Fraction(10**99)))


def totals_of_32_bits() -> Any:
    original = Bucketed.clipped

    def clipped(self: Bucketed, *given: Any) -> list[int]:
        return [(total + (1 << 31)) % (1 << 32) - (1 << 31) for total in original(self, *given)]

    return patch.object(Bucketed, "clipped", clipped)


def infinity_held() -> Any:
    """Ends that overflowed are the largest that bounds can have."""
    original = Interval.bounds

    def bounds(self: Interval) -> Any:
        ends = (max(min(end, 1e280), -1e280) for end in (self.lower, self.upper))
        return original(Interval(*map(Fraction, ends)))

    return patch.object(Interval, "bounds", bounds)


def columns_as_they_are() -> Any:
    return patch.object(selection, "_admitted", lambda name, kind, dialect: dialect.identifier(name))


def no_number_is_the_largest() -> Any:
    """As the engine sorts NaN: above all numbers."""

    def steps(self: Statistic, value: str, *_: Any) -> str:
        assert self.bounds is not None
        held = f"LEAST(GREATEST({value}, {float(self.bounds.lower)!r}), {float(self.bounds.upper)!r})"
        shifted = f"({held} - {float(self.middle)!r})"
        return f"CAST(FLOOR({shifted} * {float(self.fineness / self.grid.step)!r} + 0.5) AS INTEGER)"

    return together(columns_as_they_are(), patch.object(Statistic, "steps", steps))


def cuts_off_towards_minus_infinity() -> Any:
    floor = functions.FUNCTIONS["floor"]
    return patch.dict(functions.FUNCTIONS, trunc=replace(functions.FUNCTIONS["trunc"], render=floor.render))


def text_cast_as_the_engine_does() -> Any:
    return patch.object(Dialect, "text", lambda self, node: node.sql(dialect="duckdb").replace("TRY_CAST", "CAST"))


def a_counter_is_a_function_of_the_row() -> Any:
    return patch.dict(vocabulary.NAMED, nextval="length")


def every_unit_in_the_first_bucket() -> Any:
    return patch.object(Caps, "bucket", lambda self, norm, **_: "0")


def files_of_any_types() -> Any:
    return patch.object(frames, "_check_alike", lambda source: None)


def lines_taken_for_records() -> Any:
    def lines_of(lines: Any, delimiter: str, path: Path) -> Any:
        for number, line in enumerate(lines, 1):
            yield line.rstrip("\r\n").split(delimiter), number

    return patch.object(records, "_records", lines_of)


def files_parsed_by_each_question() -> Any:
    def read(self: DuckDB, path: Path, files: Any, *_: Any) -> Any:
        self._paths += files.paths
        return duckdb.Rows(f"FROM read_csv('{path}', all_varchar=true)", paths=files.paths, untyped=None)

    return patch.object(DuckDB, "_records", read)


def files_registered_by_each_session() -> Any:
    def registered(path: Path, files: Any, how: Any) -> snapshots.Snapshot:
        folder = Path(mkdtemp())
        snapshots.taken(path, files, how, folder, tell=True)
        return snapshots.Snapshot.read(folder)

    return patch.object(duckdb, "registered", registered)


def tables_taken_for_disjoint() -> Any:
    users = (asked, synthesis, estimation)
    return together(*(patch.object(module, "copies_in", lambda relation: 1) for module in users))


def rows_of_any_shape() -> Any:
    """Whatever can be gone through is taken for rows."""
    return patch.object(certificate, "_digest_of", lambda answer: certificate.digest(answer["columns"], answer["rows"]))


def questions_as_they_are_written() -> Any:
    return patch.object(certificate, "_indented", lambda question: question)


def objects_read_all_or_nothing() -> Any:
    """As Arrow converts texts, or else, if one value is none, as each is written."""

    def objects(values: list[Any], guess: bool, exact: bool) -> Any:
        try:
            return pa.array(values, type=pa.large_string(), from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            return pa.array([str(v) if isinstance(v, str | int | float) else None for v in values], pa.large_string())

    return patch.object(frames, "_objects", objects)


def only_twenty_rows() -> Any:
    original = Selection._scan
    return patch.object(Selection, "_scan", lambda *given: f"SELECT * FROM ({original(*given)}) AS l LIMIT 20")


def number_of_rows_taken_as_known() -> Any:
    """No noise for the count under an average."""
    original = Measurement.deviation

    def deviation(self: Measurement, index: int, cut: int) -> Fraction:
        return original(self, index, cut) / (1 << 40 if self.statistics[index].kind == "present" else 1)

    return patch.object(Measurement, "deviation", deviation)


def _released(change: Callable[[Measurement, Groups, Noisy], Noisy]) -> Any:
    original = Run.release

    def release(self: Run) -> Noisy:
        return change(self.measurement, self.groups, original(self))

    return patch.object(Run, "release", release)


def divided_by_the_rows_there_are() -> Any:
    def change(own: Measurement, groups: Groups, noisy: Noisy) -> Noisy:
        sums = noisy.sums.copy()
        for place, statistic in enumerate(own.statistics):
            if statistic.kind == "present":
                sums[:, place] = np.array(own.totals(groups, noisy.keys, (0, 0, 0))[place]) / (G * H)
        return replace(noisy, sums=sums)

    return _released(change)


def averages_of_any_size() -> Any:
    def answer(self: Sums, index: int, values: Any) -> Any:
        total, number = (np.asarray(values[self.statistics[place]]) for place in self.places(index)[-2:])
        return total / number

    return patch.object(Sums, "answer", answer)


def largest_groups_first() -> Any:
    def change(own: Measurement, groups: Groups, noisy: Noisy) -> Noisy:
        exact = own.totals(groups, noisy.keys, (0, 0, 0))[0]
        order = sorted(range(len(exact)), key=lambda place: -exact[place])
        return replace(noisy, keys=tuple(noisy.keys[place] for place in order), sums=noisy.sums[order])

    return _released(change)


def noise_in_whole_steps() -> Any:
    coarse = G * H

    def whole(scale: Fraction, size: int, *, entropy: Entropy) -> Any:
        return np.round(np.array([random.Random(7).gauss(0, 1)] * size) * float(scale) / coarse).astype(int) * coarse

    return together(*(patch.object(run, f"discrete_{law}", whole) for law in ("laplace", "gaussian")))


def threshold_forgets_the_noise() -> Any:
    return patch.object(Measurement, "_quantile", lambda self, tail: 0.0)


def limits_read_off_the_rows() -> Any:
    original = SQL.bind

    def bind(self: SQL, context: Any) -> BoundSQL:
        [(most,)] = context.engine.run('SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM "t" GROUP BY "who")')
        honest = original(self, context)
        query = honest.parsed.query
        query = replace(query, aggregate=replace(query.aggregate, max_rows=most))
        return replace(honest, parsed=replace(honest.parsed, query=query))

    return patch.object(SQL, "bind", bind)


def large_tables_read_twice() -> Any:
    original = sql_kind.exact_groups

    def measured(asked: Any, engine: Any) -> Groups:
        groups = original(asked, engine)
        many = sum(groups.by_groups.values()) + sum(groups.by_rows.values()) > 6
        return original(asked, engine) if many else groups

    return patch.object(sql_kind, "exact_groups", measured)


def refunded() -> Any:
    """Run first; what fails is not charged."""
    original = Counter.charge_and_run

    def bought(self: Counter, purchase: Purchase, run: Callable[[], bytes], *shown: Any) -> Bought:
        found = outcome(run)
        if found == FAILED:
            raise AnswerFailed()
        return original(self, purchase, lambda: found, *shown)

    return patch.object(Counter, "charge_and_run", bought)


def failures_not_stored() -> Any:
    def outcome(run: Callable[[], bytes]) -> bytes:
        try:
            return run()
        except Exception:
            raise AnswerFailed() from None

    return patch.object(discreet.charging.purchase, "outcome", outcome)


def failures_that_quote() -> Any:
    def outcome(run: Callable[[], bytes]) -> bytes:
        try:
            return run()
        except Exception as error:
            failed = AnswerFailed()
            failed.args = (f"the engine says: {error}",)
            raise failed from error

    return patch.object(discreet.charging.purchase, "outcome", outcome)


def a_full_budget_for_each_analyst() -> Any:
    def admit(filters: Any, unit: Any, event: Any) -> None:
        filters[max(filters, key=len)].charge(event)

    return patch.object(charges, "admit", admit)


def books_by_the_name_given() -> Any:
    def books(source: Any, dataset: Any, ledger: Any, paths: Any) -> Any:
        return ledger or beside(Path(os.path.abspath(source)))

    return patch.object(connection, "books_of", books)


def sums_remembered() -> Any:
    """What the books said once is believed for ever."""
    original, known = charges.lineage, dict[Any, Any]()

    def lineage(books: Any, path: Any) -> Any:
        return known.setdefault(path, original(books, path)) if len(path) == 1 else original(books, path)

    return patch.object(charges, "lineage", lineage)


def charges_written_at_the_end() -> Any:
    """Kept until the books are closed."""
    original = Ledger.charge
    kept: list[Any] = []

    def charge(self: Ledger, account: Any, events: Any, question: str, **more: Any) -> Charge:
        kept.append((account, events, question, more))
        return Charge(self.id, 0, "", account, question, "", "", True, None)

    def close(self: Ledger, closing: Any = Ledger.close) -> None:
        for account, events, question, more in kept:
            original(self, account, events, question, **more)
        closing(self)

    return together(patch.object(Ledger, "charge", charge), patch.object(Ledger, "close", close))


def seeds_in_earnest() -> Any:
    """All books are taken for temporary ones."""
    original = Counter.charge_and_run
    return patch.object(Counter, "charge_and_run", lambda self, *given: original(replace(self, lasting=False), *given))


def sources_that_vouch_for_themselves() -> Any:
    """Whether a source is private is what it says."""
    return patch.object(discreet.session.session, "for_release", chosen)


def seeds_unmarked() -> Any:
    """What a test seed drew is booked like anything else."""
    return patch.object(Purchase, "seeded", lambda self: self)


def spaces_run_together() -> Any:
    """Certificates are made of a question on one line."""
    original = Counter._says

    def says(self: Counter, purchase: Purchase, *given: Any) -> dict[str, Any]:
        return original(self, replace(purchase, text=" ".join(purchase.text.split())), *given)

    return patch.object(Counter, "_says", says)


def any_key_will_do() -> Any:
    """The key that was named is not looked at, and books take the one that a certificate brings."""
    verify, confirm = credentials.verify, Ledger.confirm
    return together(
        patch.object(credentials, "verify", lambda record, public, **given: verify(record, None, **given)),
        patch.object(Ledger, "confirm", lambda self, record, keys: confirm(self, record, keys=[record["key"]])),
    )


def nothing_left_to_check() -> Any:
    """A certificate that is not wrong is right."""
    original = credentials.checked
    return patch.object(credentials, "checked", lambda *given: replace(original(*given), unchecked=()))


def what_is_said_last_holds() -> Any:
    """Of two that a record says under one name, the last is taken."""
    return patch.object(credentials, "read_record", json.loads)


def books_that_compare_no_claims() -> Any:
    return patch.object(attestation, "_holds", lambda *_: True)


def books_that_compare_no_question() -> Any:
    original = attestation.confirm

    def confirm(books: Any, ledger: str, certificate: Any, keys: Any) -> Any:
        entry = books.entry(attestation.entry_of(certificate))
        told = {} if entry is None or "question" not in entry.content else {"canonical": entry.content["question"]}
        return original(books, ledger, {**certificate, **told}, keys)

    return patch.object(ledgers, "confirm", confirm)


def records_of_anybody() -> Any:
    """Records are read whoever put them there."""
    return patch.object(snapshots, "_is_own", lambda folder: True)


def joins_in_any_order() -> Any:
    """The identity of a join does not tell by which columns its right side is sorted."""

    def as_it_is(relation: Any) -> list[Any]:
        tokens = canonical._relation(relation)[1]
        return [tokens[name] for name in columns_of(relation)]

    return patch.object(canonical, "_implied", as_it_is)


def sensitivities_believed() -> Any:
    """A mechanism on counts is taken at its word."""
    return patch.object(mechanism_run._Counts, "assert_covered", lambda counts, mechanism: None)
