"""Spark as an engine: tables of a session and its frames, read where they are.

The statement of a question is one SELECT without functions of Python; it runs on the cluster and only its totals come
back, as Arrow. Settings that would change what it means are looked at before it runs (`spark/settings.py`).

What is read is the plan that was looked at, not a name that somebody may give to something else on the way: tables are
resolved for each statement, compared with what they were when the session began, and put into the statement as frames.
A frame is the one that was given. Over Spark Connect a plan is resolved by the server whenever it is used, so there
what was compared before a run is compared once more after it.

A session is given as it is, or by its address: `spark://…` for a cluster, `sc://…` for Spark Connect. Needs Java and
the driver: `pip install 'discreet[spark]'`.

>>> Spark.table_name("lake.ward.visits")
'visits'
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer
from typing import Any

from discreet.core.errors import EngineUnavailable, InvalidArgument
from discreet.core.forks import HomeLock
from discreet.engines.engine import LISTED, LOOKED_AT, unrunnable
from discreet.engines.engine import known as known_of
from discreet.engines.spark import catalog
from discreet.engines.spark import files as stored
from discreet.engines.spark.catalog import Reading
from discreet.engines.spark.dialect import SparkDialect, identifier
from discreet.engines.spark.footers import Footers, Scan, scans
from discreet.engines.spark.jobs import Jobs, jobs_of, number, unsaid
from discreet.engines.spark.names import marked, tables
from discreet.engines.spark.sessions import (
    is_address,
    is_alive,
    is_connect,
    is_interrupted,
    is_spark,
    is_spark_frame,
    opened,
    unless_lost,
)
from discreet.engines.spark.settings import TIMEOUT, check_settings
from discreet.engines.tables import FLEETING, ServerTables, whole_rows
from discreet.sql.catalog import Column, is_number
from discreet.sql.functions.registry import admit

__all__ = ["Spark"]

OLDEST = 4
"""The first version that will do."""
INFERRED = "spark.sql.sources.partitionColumnTypeInference.enabled"
"""The setting by which folders give columns types; without it they are text, whatever the folders are called."""
CHANGED = "a table changed, or can no longer be read: connect again"


@dataclass(frozen=True)
class _Held:
    name: str
    frame: Any
    given: bool
    """Whether it was given as a frame, and not by a name."""
    schema: Any
    identity: str
    sources: tuple[str, ...]
    paths: tuple[Path, ...]
    columns: tuple[Column, ...]
    omitted: tuple[tuple[str, str], ...]
    definition: str
    plan: str
    """What is read, where that is more than a table: the plan of a view or frame."""
    roots: tuple[str, ...]
    """Where the tables lie that it reads."""
    relations: str
    """The lines of its plan that stand for files."""
    scans: tuple[Scan, ...]
    """How its files are read, with the types that are declared for them."""
    failing: frozenset[str]
    """Columns of its files that cannot be read without fail."""
    barred: Mapping[str, str]
    """Which of its own columns those are, and why."""
    private: bool
    folders: frozenset[str] = frozenset()
    unique: tuple[str, ...] = ()
    units: str | None = None


class Spark(ServerTables[_Held]):
    """Tables of one session."""

    title = "Spark"
    schemes = ("sc", "spark")
    where = "on Spark"
    exact_types = "BIGINT or STRING"

    def __init__(self, source: object) -> None:
        super().__init__()
        self.dialect = SparkDialect()
        self._own = is_address(source)
        self._session: Any = opened(str(source)) if self._own else getattr(source, "sparkSession", source)
        self._lock = HomeLock()
        self._jobs: Jobs | None = None
        self._footers = Footers(self._session)
        self._cancelled = False
        if not is_alive(self._session):
            remedy = "make a new one: SparkSession.builder.getOrCreate()"
            raise InvalidArgument("source", "a session of Spark", "one that runs, and was not stopped", remedy)
        version = str(self._session.version)
        if int(version.split(".")[0]) < OLDEST:
            raise InvalidArgument("source", f"Spark {version}", f"version {OLDEST} or later", "use a newer one")
        check_settings(self._session)

    def __repr__(self) -> str:
        return f"Spark({', '.join(self._held)})"

    @classmethod
    def accepts(cls, source: object) -> bool:
        """A session, a frame in one, or the address of a cluster."""
        return is_spark(source)

    @classmethod
    def opened(cls, source: object) -> Spark:
        """The session that is given, or that of a frame; one is opened for an address."""
        return cls(source)

    @classmethod
    def first_table(cls, source: object, table: str | None) -> tuple[object, str]:
        """A frame itself, or the table that is named."""
        return (source, table or "data") if is_spark_frame(source) else super().first_table(source, table)

    @classmethod
    def table_name(cls, table: str) -> str:
        """The last part of a name, without backticks."""
        return catalog.named(table)[-1]

    def _described(self, table: str, source: object, private: bool) -> tuple[_Held, dict[str, Reading]]:
        held = self._source(table, source, private)
        readings, omitted = catalog.columns(held.frame, held.barred)
        return replace(held, omitted=omitted), readings

    def identity(self, table: str) -> str:
        """Where the table lies, with a digest of what a view or frame says; a frame has only its name."""
        held = self._of(table)
        return held.identity + held.definition

    def sources(self, table: str) -> tuple[str, ...]:
        """What the books know it by: itself, then the files and folders that it reads."""
        return self._of(table).sources

    def is_view(self, table: str) -> bool:
        """Whether it is a view or a frame."""
        return bool(self._of(table).definition)

    def definition(self, table: str) -> str:
        """Where the table is, since its books are also those of views and frames over the same files, and a digest of
        what those say; refused if that, or a column, is something else by now, or a view reads what lies elsewhere."""
        held = self._of(table)
        session = self._alive()
        with self._lock, unless_lost(session):
            same = self._looked_up(session, held) is not None
        if not same:
            raise self._changed(table)
        return held.identity + held.definition

    def paths(self, table: str) -> tuple[Path, ...]:
        """Its files, as far as they are on this machine."""
        return self._of(table).paths

    def prepare(self, statement: str) -> None:
        """Refuse what Spark cannot analyze under the settings of the session; it is not optimized, for which rows of
        frames may be looked at."""
        _check_selects(statement)
        code = None
        with self._lock:
            session = self._alive()
            with unless_lost(session):
                check_settings(session)
                try:
                    with unsaid():
                        _check_functions(session, statement)
                        _ = self._resolved(session, statement).schema
                except (EngineUnavailable, InvalidArgument):
                    raise
                except Exception as error:
                    if not is_alive(session):
                        raise
                    code = str(error.getCondition() if hasattr(error, "getCondition") else type(error).__name__)
        if code is not None:
            raise unrunnable("Spark", code)

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of one SELECT. Stopped by `cancel` or a signal, it raises KeyboardInterrupt: nothing has failed.

        A session that is lost raises EngineUnavailable; what fails for want of time or room may be due to the data.
        """
        _check_selects(statement)
        with self._lock:
            self._cancelled = False
            session = self._alive()
            lost, before = False, sys.exception()
            try:
                check_settings(session)
                _check_functions(session, statement)
                with unsaid(), self._running(session):
                    frame = self._resolved(session, statement)
                    found = frame.toDF(*(f"c{place}" for place in range(len(frame.columns)))).toArrow()
                    self._check_still(session, statement)
                    return whole_rows(zip(*(column.to_pylist() for column in found.columns), strict=True))
            except InvalidArgument as error:
                raise EngineUnavailable(str(error)) from None
            except Exception as error:
                # By Ctrl-C pyspark stops the jobs, and what they fail with can take the place of the signal.
                self._cancelled = self._cancelled or is_interrupted(error, before)
                lost = not self._cancelled and not is_alive(session)
                if not self._cancelled and not lost:
                    self._check_still(session, statement)
                    raise
        if lost:
            raise EngineUnavailable("the session of Spark was lost")
        raise KeyboardInterrupt

    def running(self) -> bool:
        """Whether a statement is being run, for other threads to ask."""
        jobs = self._jobs
        return jobs is not None and not self._lock.left and jobs.begun()

    def cancel(self) -> None:
        """Stop the running statement, if there is one; its `run` raises KeyboardInterrupt."""
        jobs = self._jobs
        if jobs is not None and not self._lock.left:
            self._cancelled = True
            jobs.cancel()

    def close(self) -> None:
        """Let go of the session; one that was opened for an address is left to others who share it."""
        if self._lock.left:
            self._session = None
            return
        with self._lock:
            self._session = None

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
        self._lock.check()
        if self._session is None:
            raise InvalidArgument("session", "closed", "open", "connect again")
        return self._session

    def _source(self, table: str, source: object, private: bool) -> _Held:
        """The source with its rows and where they come from; what its columns are is seen later."""
        session = self._alive()
        if is_spark_frame(source):
            frame: Any = source
            if frame.sparkSession is not session:
                raise InvalidArgument("source", table, "a frame of the same session", "make all of them in one session")
            given, name, identity = True, identifier(f"discreet_{number()}"), f"{FLEETING}{table}"
        elif isinstance(source, str) and not is_address(source):
            name, frame = catalog.found(session, source)
            given, identity = False, catalog.place(session, name)
        else:
            kind = "an address" if isinstance(source, str) else type(source).__name__
            remedy = 'write private={"orders": dc.Private("schema.orders")}, or give a frame of Spark'
            raise InvalidArgument("source", kind, "a table or frame of the same session of Spark", remedy)
        files, (shown, physical) = stored.listed(frame) or [], catalog.explained(session, frame)
        read = tuple(scans(physical))
        failing: dict[str, str] = {}
        if private:
            stored.check_kinds(shown)
            failing = self._footers.failing(files, read, _kinds(frame))
        inferred = str(session.conf.get(INFERRED, "true")).lower() != "false"
        by_folders = stored.typed_by_folders(shown, files) if private and inferred else {}
        barred = stored.outputs(shown, stored.unread(shown, failing) | by_folders)
        sources = (identity,) if identity.startswith("file:") else (identity, *catalog.sources(files))
        paths = catalog.local(files)
        said = _digest(session, frame, name, sources) if given else catalog.definition(session, name)
        plan = catalog.same_plan(shown) if said else ""
        roots = catalog.places(session, stored.tables(shown)) if said else (identity,)
        lines = stored.relations(shown), read, frozenset(failing), barred
        held = _Held(
            name, frame, given, frame.schema, identity, sources, paths, (), (), said, plan, roots, *lines, private
        )
        return replace(held, folders=_folders(held, files) | {*roots})

    def _looked_up(self, session: Any, held: _Held) -> Any:
        """The rows of a table as they are resolved now; None if it is not still where and what it was.

        A plan in this process stays what it is, and a frame is one; the server of Spark Connect resolves it anew. The
        files of a plan are found anew each time: a partition may lie anywhere.
        """
        if held.given and not is_connect(session):
            return held.frame if self._lies_still(held, held.frame, held.scans) else None
        try:
            frame = held.frame if held.given else catalog.found(session, held.name)[1]
        except InvalidArgument:
            return None
        shown, physical = catalog.explained(session, frame)
        same = catalog.same_columns(frame.schema, held.schema, held.barred)
        same = same and catalog.same_plan(shown, views=not held.plan) == held.plan
        same = same and (held.given or catalog.place(session, held.name) == held.identity)
        return frame if same and self._lies_still(held, frame, scans(physical)) else None

    def _lies_still(self, held: _Held, frame: Any, read: Sequence[Scan]) -> bool:
        """Whether all files of a frame are in folders that it had, and none of them is one to fail on."""
        files = stored.listed(frame)
        if files is None:
            return not held.relations
        if not _folders(held, files) <= held.folders or not self._footers.are_there(files):
            return False
        return not held.private or self._footers.failing(files, read, _kinds(frame)).keys() <= held.failing

    def _frames(self, session: Any, statement: str) -> dict[str, Any]:
        """The tables of a statement by their names in it; raises if one of them is something else by now."""
        frames = {held.name: self._looked_up(session, held) for held in self._used(statement)}
        if any(frame is None for frame in frames.values()):
            raise EngineUnavailable(CHANGED)
        return frames

    def _used(self, statement: str) -> list[_Held]:
        known = {held.name: held for held in self._held.values()}
        return [known[name] for name in tables(statement, known)]

    def _check_still(self, session: Any, statement: str) -> None:
        """That what a statement has read is what was compared before: on a server its plans, and everywhere its
        files."""
        if is_connect(session):
            self._frames(session, statement)
        elif not all(self._lies_still(held, held.frame, held.scans) for held in self._used(statement)):
            raise EngineUnavailable(CHANGED)

    def _resolved(self, session: Any, statement: str) -> Any:
        """A statement whose tables are the frames that were looked at."""
        frames = self._frames(session, statement)
        if not frames:
            return session.sql(statement)
        marks = {name: f"t{place}" for place, name in enumerate(frames)}
        return session.sql(marked(statement, marks), **dict(zip(marks.values(), frames.values(), strict=True)))

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
            f"MIN({sql}), MAX({sql})" if is_number(column.type) else "NULL, NULL"
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


def _digest(session: Any, frame: Any, name: str, sources: Iterable[str]) -> str:
    """What a frame reads and does, by which questions about it are known in the books."""
    view = name.strip("`")
    frame.createOrReplaceTempView(view)
    try:
        return catalog.digest(catalog.plan(session, name), *sources)
    finally:
        session.catalog.dropTempView(view)


def _check_selects(statement: str) -> None:
    if not re.match(r"\s*(SELECT|WITH)\b", statement):
        raise InvalidArgument("statement", statement, "one SELECT", "the engine only reads")


def _check_functions(session: Any, statement: str) -> None:
    """That no function of the session has the name of one that a statement uses: some versions would take that."""
    own = {str(row[0]).lower() for row in session.sql("SHOW USER FUNCTIONS").collect()}
    for name in sorted(own & {word.lower() for word in re.findall(r"\b([A-Z][A-Z0-9_]+)\(", statement)}):
        raise InvalidArgument("function", name, "that of Spark", f"DROP TEMPORARY FUNCTION {name}")


def _kinds(frame: Any) -> dict[str, str]:
    """The types of a frame's columns."""
    return {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}


def _folders(held: _Held, files: Iterable[str]) -> frozenset[str]:
    return frozenset(stored.folder(file, held.roots, held.relations) for file in files)
