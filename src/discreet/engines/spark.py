"""Spark as an engine: tables of a session and its frames, read where they are.

The statement of a question is one SELECT without functions of Python; it runs on the cluster and only its totals come
back, as Arrow. Settings that would change what it means are looked at before it runs.

A session is given as it is, or by its address: `spark://…` for a cluster, `sc://…` for Spark Connect. Needs Java and
the driver: `pip install 'discreet[spark]'`.

>>> named("lake.ward.visits")
'visits'
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.core.processes import Home
from discreet.engines import spark_catalog as catalog
from discreet.engines.engine import LISTED, LOOKED_AT
from discreet.engines.engine import known as known_of
from discreet.engines.spark_catalog import Reading
from discreet.engines.spark_dialect import SparkDialect, identifier
from discreet.engines.spark_jobs import Jobs, jobs_of, number, unsaid
from discreet.engines.spark_sessions import is_address, is_alive, is_interrupted, is_spark_frame, opened, unless_lost
from discreet.engines.tables import Tables, check_types, whole_rows
from discreet.sql.catalog import Column, Type
from discreet.sql.dialect import Dialect
from discreet.sql.functions import admit
from discreet.sql.relations import OWNER

__all__ = ["Spark", "named"]

OLDEST = 4
"""The first version that will do."""
NEEDED = {
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.ctePrecedencePolicy": "corrected",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.path.enabled": "false",
}
"""What statements rely on: the settings as they are unless somebody changes them. With a path, functions of a schema
could stand in for those of Spark."""
REBASED = tuple(f"spark.sql.{kind}RebaseModeInRead" for kind in ("parquet.datetime", "parquet.int96", "avro.datetime"))
"""Settings by which one date of long ago could make a statement fail."""
TIMEOUT = "spark.discreet.timeout"
"""The setting for how many seconds a statement may take."""


def named(table: object) -> str:
    """What a table is called in questions: the last part of its name."""
    return catalog.named(table)[-1]


@dataclass(frozen=True)
class _Held:
    name: str
    frame: Any
    view: bool
    identity: str
    sources: tuple[str, ...]
    paths: tuple[Path, ...]
    columns: tuple[Column, ...]
    omitted: tuple[tuple[str, str], ...]
    definition: str
    folders: frozenset[str]
    unique: tuple[str, ...] = ()
    units: str | None = None


class Spark(Tables[_Held]):
    """Tables of one session."""

    def __init__(self, source: object) -> None:
        super().__init__()
        self._dialect = SparkDialect()
        self.dialect: Dialect = self._dialect
        self._own = is_address(source)
        self._session: Any = opened(str(source)) if self._own else getattr(source, "sparkSession", source)
        self._views: list[str] = []
        self._lock = Lock()
        self._home = Home()
        self._jobs: Jobs | None = None
        self._cancelled = False
        if not is_alive(self._session):
            remedy = "make a new one: SparkSession.builder.getOrCreate()"
            raise InvalidArgument("source", "a session of Spark", "one that runs, and was not stopped", remedy)
        version = str(self._session.version)
        if int(version.split(".")[0]) < OLDEST:
            raise InvalidArgument("source", f"Spark {version}", f"version {OLDEST} or later", "use a newer one")
        self._check_settings()

    def __repr__(self) -> str:
        return f"Spark({', '.join(self._held)})"

    def add(
        self,
        table: str,
        source: object,
        *,
        types: Mapping[str, Type] | None = None,
        hints: Mapping[str, Type] | None = None,
        unit: str | None = None,
        links: Iterable[str] = (),
        private: bool = True,
    ) -> None:
        """Register a table or view by its name, or a frame of the same session, as `table`.

        Types are those of the schema. Values of the `unit` column that name nobody (NaN, infinities, bytes that are no
        text) become NULL.
        """
        self._check_new(table)
        held = self._resolved(table, source)
        readings, omitted = _columns(held.frame)
        check_types(table, types, readings, "on Spark")
        shown = [f"{read.sql} AS {identifier(read.name)}" for read in readings.values()]
        owner = None if unit is None else self._owner(table, unit, readings, omitted)
        shown += [] if owner is None else [f"{owner.owner} AS {identifier(OWNER)}"]
        for link in links:
            read = readings.get(link.lower())
            if read is not None and (read.rounds or read.owner is None):
                remedy = "make it BIGINT or STRING, in a view if need be"
                raise InvalidArgument("link", link, "of a type that is read without rounding", remedy)
        self._dialect.tables[table] = f"SELECT {', '.join(shown)} FROM {held.name}"
        columns = tuple(Column(read.name, read.type) for read in readings.values())
        units = None if owner is None else owner.family
        self._held[table] = replace(held, columns=columns, omitted=omitted, units=units)
        if not private:
            self._held[table] = self._looked_at(table, self._held[table])

    def identity(self, table: str) -> str:
        """Where the table lies, with a digest of what a view or frame says; a frame has only its name."""
        held = self._of(table)
        return held.identity + held.definition

    def sources(self, table: str) -> tuple[str, ...]:
        """What the books know it by: itself, then the files and folders that it reads."""
        return self._of(table).sources

    def definition(self, table: str) -> str:
        """Where the table is, since its books are also those of views and frames over the same files, and a digest of
        what those say; refused if that, or a column, is something else by now, or a view reads what lies elsewhere."""
        held = self._of(table)
        if not held.view:
            session = self._alive()
            with unless_lost(session):
                same = self._is_same(session, held)
            if not same:
                raise self._changed(table)
        return held.identity + held.definition

    def paths(self, table: str) -> tuple[Path, ...]:
        """Its files, as far as they are on this machine."""
        return self._of(table).paths

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of one SELECT. Stopped by `cancel` or a signal, it raises KeyboardInterrupt: nothing has failed.

        A session that is lost raises EngineUnavailable; what fails for want of time or room may be due to the data.
        """
        if not re.match(r"\s*(SELECT|WITH)\b", statement):
            raise InvalidArgument("statement", statement, "one SELECT", "the engine only reads")
        with self._lock:
            self._cancelled = False
            session = self._alive()
            lost, before = False, sys.exception()
            try:
                self._check_settings()
                _check_functions(session, statement)
                with unsaid(), self._running(session):
                    frame = session.sql(statement)
                    found = frame.toDF(*(f"c{place}" for place in range(len(frame.columns)))).toArrow()
                    return whole_rows(zip(*(column.to_pylist() for column in found.columns), strict=True))
            except InvalidArgument as error:
                raise EngineUnavailable(str(error)) from None
            except Exception as error:
                # By Ctrl-C pyspark stops the jobs, and what they fail with can take the place of the signal.
                self._cancelled = self._cancelled or is_interrupted(error, before)
                lost = not self._cancelled and not is_alive(session)
                if not self._cancelled and not lost:
                    raise
        if lost:
            raise EngineUnavailable("the session of Spark was lost")
        raise KeyboardInterrupt

    def progress(self) -> float | None:
        """How many of the tasks that are known of are done, from 0 to 1, for other threads to ask."""
        jobs = self._jobs
        return None if jobs is None else jobs.progress()

    def cancel(self) -> None:
        """Stop the running statement, if there is one; its `run` raises KeyboardInterrupt."""
        jobs = self._jobs
        if jobs is not None:
            self._cancelled = True
            jobs.cancel()

    def close(self) -> None:
        """Let go of the session; one that was opened for an address is left to others who share it."""
        with self._lock:
            session, self._session = self._session, None
            if session is not None and not self._home.left and is_alive(session):
                for view in self._views:
                    session.catalog.dropTempView(view)

    @contextmanager
    def _running(self, session: Any) -> Iterator[None]:
        """Jobs that can be stopped and counted, within the time that is allowed."""
        self._jobs = jobs = jobs_of(session)
        allowed = session.conf.get(TIMEOUT, None)
        timer = None if allowed is None else Timer(float(allowed), jobs.cancel)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            with jobs:
                yield
        except KeyboardInterrupt:
            jobs.cancel()
            raise
        finally:
            self._jobs = None
            if timer is not None:
                timer.cancel()

    def _alive(self) -> Any:
        if self._home.left:
            raise InvalidArgument("session", "opened before a fork", "opened in the process that asks", "connect again")
        if self._session is None:
            raise InvalidArgument("session", "closed", "open", "connect again")
        return self._session

    def _check_settings(self) -> None:
        for name, wanted in NEEDED.items():
            found = str(self._session.conf.get(name, wanted)).lower()
            if found != wanted:
                raise InvalidArgument(name, found, wanted, f"spark.conf.set({name!r}, {wanted!r})")
        for name in REBASED:
            if str(self._session.conf.get(name, "corrected")).lower() == "exception":
                remedy = f"spark.conf.set({name!r}, 'CORRECTED')"
                raise InvalidArgument(name, "exception", "corrected or legacy, which fail on no date", remedy)
        allowed = str(self._session.conf.get(TIMEOUT, "1"))
        if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]+)?", allowed):
            raise InvalidArgument(TIMEOUT, allowed, "a number of seconds", f"spark.conf.set({TIMEOUT!r}, '600')")

    def _resolved(self, table: str, source: object) -> _Held:
        """The source with its rows and where they come from; what its columns are is seen later."""
        session = self._alive()
        if is_spark_frame(source):
            frame: Any = source
            if frame.sparkSession is not session:
                raise InvalidArgument("source", table, "a frame of the same session", "make all of them in one session")
            name = f"discreet_{number()}"
            frame.createOrReplaceTempView(name)
            self._views.append(name)
            view, name, identity = True, identifier(name), f"memory:{table}"
        elif isinstance(source, str) and not is_address(source):
            name, frame = catalog.found(session, source)
            view, identity = False, catalog.place(session, name)
        else:
            given = "an address" if isinstance(source, str) else type(source).__name__
            remedy = 'write private={"orders": dc.Private("schema.orders")}, or give a frame of Spark'
            raise InvalidArgument("source", given, "a table or frame of the same session of Spark", remedy)
        files = _files(frame)
        sources = (identity,) if identity.startswith("file:") else (identity, *catalog.sources(files))
        said = catalog.digest(catalog.plan(session, name), *sources) if view else catalog.definition(session, name)
        folders = catalog.folders(files)
        return _Held(name, frame, view, identity, sources, catalog.local(files), (), (), said, folders)

    def _is_same(self, session: Any, held: _Held) -> bool:
        """Whether a table is still where and what it was."""
        try:
            frame = catalog.found(session, held.name)[1]
        except InvalidArgument:
            return False
        same = frame.schema == held.frame.schema and catalog.place(session, held.name) == held.identity
        same = same and (not held.definition or catalog.folders(_files(frame)) <= held.folders)
        return same and catalog.definition(session, held.name) == held.definition

    def _owner(
        self, table: str, unit: str, readings: Mapping[str, Reading], omitted: Iterable[tuple[str, str]]
    ) -> Reading:
        read = self._owning(table, unit, readings, omitted)
        if read.owner is None:
            remedy = "CAST it to STRING COLLATE UTF8_BINARY in a view, in one spelling for each person"
            raise InvalidArgument("unit", unit, "compared by its bytes", remedy)
        return read

    def _looked_at(self, table: str, held: _Held) -> _Held:
        """With what the columns of a public table hold: bounds, values, and which of them hold no value twice."""
        source = self.dialect.table(table)
        admitted = [self.dialect.text(admit(column.name, column.type)) for column in held.columns]
        ends = [
            f"MIN({sql}), MAX({sql})" if column.type in ("integer", "real") else "NULL, NULL"
            for column, sql in zip(held.columns, admitted, strict=True)
        ]
        asked = ", ".join(f"COUNT(DISTINCT {sql}), {both}" for sql, both in zip(admitted, ends, strict=True))
        if self.run(f"SELECT COUNT(*) FROM (SELECT 1 FROM {source} LIMIT {LOOKED_AT + 1}) AS i")[0][0] > LOOKED_AT:
            return held
        [(rows, *found)] = self.run(f"SELECT COUNT(*), {asked} FROM {source}")
        each = [found[3 * place : 3 * place + 3] for place in range(len(admitted))]
        few = [0 < distinct <= LISTED for distinct, _, _ in each]
        lists = [
            f"SORT_ARRAY(COLLECT_SET({sql}))" if short else "ARRAY()" for sql, short in zip(admitted, few, strict=True)
        ]
        missing = [f"COUNT_IF({sql} IS NULL) > 0" for sql in admitted]
        [both] = self.run(f"SELECT {', '.join([*lists, *missing])} FROM {source}")
        columns, unique = [], []
        for place, column in enumerate(held.columns):
            distinct, least, most = each[place]
            listed = [*both[place], *([None] if few[place] and both[len(admitted) + place] else [])]
            columns.append(known_of(column, least, most, [(value,) for value in listed]))
            unique += [column.name] if distinct == rows else []
        return replace(held, columns=tuple(columns), unique=tuple(unique))


def _check_functions(session: Any, statement: str) -> None:
    """That no function of the session has the name of one that a statement uses: some versions would take that."""
    own = {str(row[0]).lower() for row in session.sql("SHOW USER FUNCTIONS").collect()}
    for name in sorted(own & {word.lower() for word in re.findall(r"\b([A-Z][A-Z0-9_]+)\(", statement)}):
        raise InvalidArgument("function", name, "that of Spark", f"DROP TEMPORARY FUNCTION {name}")


def _columns(frame: Any) -> tuple[dict[str, Reading], tuple[tuple[str, str], ...]]:
    readings: dict[str, Reading] = {}
    omitted = []
    names = Counter(column.name.lower() for column in frame.schema.fields)
    for column in frame.schema.fields:
        kind = column.dataType.simpleString()
        read = None if "${" in column.name else catalog.reading(column.name, kind)
        if read is None or names[column.name.lower()] > 1:
            # Of two with one name Spark reads neither.
            omitted.append((column.name, kind if read is None else "a name twice"))
        else:
            readings[column.name.lower()] = read
    if not readings:
        raise InvalidArgument("source", omitted, "with columns that queries can use", "CAST them in a view")
    return readings, tuple(omitted)


def _files(frame: Any) -> list[str]:
    """The files that a frame reads, as far as Spark knows."""
    try:
        return sorted(frame.inputFiles())
    except Exception:
        return []
