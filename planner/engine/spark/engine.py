"""SparkEngine: the engine's verbs on Apache Spark, over parquet tables whose files are never overwritten."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from planner.engine.protocol import Connection, Door, Merge, Rows, Table, Written
from planner.engine.spark.catalog import WAIT
from planner.engine.spark.content import question
from planner.engine.spark.described import Described
from planner.engine.spark.errors import WRAPPER, condition, is_spark, translated
from planner.engine.spark.java import profile_of
from planner.engine.spark.placing import Run, Spec, empty, listed, point, specs_of, specs_seen
from planner.engine.spark.quoting import literal, quoted
from planner.engine.spark.relay import Relay
from planner.engine.spark.scans import relations
from planner.engine.spark.session import Frame, Session, open_session
from planner.engine.spark.sharing import let_go, share
from planner.engine.spark.views import MARK, commented, creation, marked, properties_clause
from planner.errors import Cancelled, QueryError
from planner.intervals import Interval, Timeline
from planner.model.model import Column
from planner.snapshot.content_hash import ColumnSet, Found

ELSEWHERE = re.compile(r"at:[0-9a-f]+")
NO_OBJECT = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
BEFORE = "mergeplan.before"  # the property that says where a table pointed before its last merge


def open_engine(connection: Connection, home: Path, profile: str = "metadata", wait: float = WAIT) -> SparkEngine:
    """An engine on the Spark that the connection names; `wait` is for the embedded catalog."""
    return SparkEngine(open_session(connection, home, profile_of(profile), wait), comments=connection.comments)


class SparkEngine:
    """The engine's verbs on one Spark session; they may be called from several threads at once."""

    def __init__(self, session: Session, *, comments: bool = True) -> None:
        self._comments = comments
        self._shared = session
        self._own = threading.local()
        self._apart: list[Session] = []  # sessions that threads have for themselves
        self._lock = threading.RLock()  # a signal's handler may come in on top of a verb
        self._era = 0  # counts the calls of cancel()
        self._under_way: dict[int, int] = {}

    @property
    def _session(self) -> Session:
        """This thread's session: the one that all share, or its own inside of `beside`."""
        own: Session | None = getattr(self._own, "session", None)
        return own or self._shared

    @contextmanager
    def beside(self, before: Sequence[str], after: Sequence[str]) -> Iterator[None]:
        """A context in which this thread has a session of its own, with statements at its begin and at its end."""
        if not before and not after:
            yield
            return
        with self._verb():
            session = self._shared.apart()
        self._own.session = session
        with self._lock:
            self._apart.append(session)
        try:
            self._statements(before)
            yield
            self._statements(after)
        finally:
            del self._own.session
            with self._lock:
                self._apart.remove(session)
            session.let_go()

    def _statements(self, statements: Sequence[str]) -> None:
        for statement in statements:
            with self._verb(statement):
                self._run(statement)

    # Tables

    def schema(self, sql: str) -> tuple[Column, ...]:
        """The columns a query would return; nothing is run."""
        with self._verb(sql):
            fields = self._query(sql).schema.fields
            return tuple(
                Column(f.name.lower(), f.dataType.simpleString(), (f.metadata or {}).get("comment", "")) for f in fields
            )

    def reads(self, sql: str) -> frozenset[str] | None:
        """The names that Spark's own parser finds a query to read from; None where they are not all there yet."""
        with self._verb(sql):
            plan = self._session.parsed(_wrapped(sql))
            return None if plan is None else relations(plan)

    def create_table(self, table: Table) -> None:
        """Create the schema and the empty table; existing ones stay as they are."""
        columns = [self._definition(column) for column in table.columns]
        columns += [f"{quoted(part.column)} {part.type}" for part in table.cut if part.hidden]
        cut = ", ".join(quoted(part.column) for part in table.cut)
        partitioned = f" PARTITIONED BY ({cut})" if cut else ""
        comment = f" COMMENT {literal(table.comment)}" if table.comment and self._comments else ""
        with self._verb():
            options = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in table.options)
            said = f" TBLPROPERTIES ({options})" if options else ""
            definition = f"({', '.join(columns)}) USING {table.format}{partitioned}{comment}{said}"
            run = self._run if table.partitioning or table.listed or not cut else self._session.run_unlisted
            self._in_schema(table.name, f"CREATE TABLE IF NOT EXISTS {quoted(table.name)} {definition}", run)

    def take_over(self, table: Table, old: str, rows: Timeline) -> None:
        """Create the table over the files that another one points at, of these stretches of time or of all."""
        self.create_table(table)
        with self._verb():
            own, theirs = self._described(table.name), self._described(old)
            if own is None or theirs is None:
                raise QueryError(f"there is no table {old} to go on with.")
            name, place = quoted(table.name), own.location.encode().hex()
            self._run(f"ALTER TABLE {name} SET TBLPROPERTIES ('mergeplan.place' = '{place}')")
            if table.partitioning or (table.listed and table.cut):
                share(self._run, table, old, rows)
            else:
                self._run(f"ALTER TABLE {name} SET LOCATION {literal(theirs.location)}")

    def replace_table(self, table: Table, sql: str) -> Written:
        """Put the query's rows in place of all rows of a table that is not cut by time, by pointer."""
        with self._verb(sql) as check:
            return self._replace_all(table, self._query(sql), check)

    def replace_interval(self, table: Table, sql: str, interval: Interval) -> Written:
        """Put the query's rows in place of exactly the interval's partitions; days without rows end empty."""
        cut = table.partitioning
        if cut is None:
            raise ValueError(f"{table.name} is not cut by time")
        low, high = cut.bounds(interval)
        with self._verb(sql) as check:
            frame = _cut(table, self._query(sql))
            first, after = (f"cast({literal(text)} as {cut.type})" for text in (low, high))
            inside = frame.where(f"{quoted(cut.column)} >= {first} AND {quoted(cut.column)} < {after}")
            batch = self._batch(table.name)
            check()
            rows, written = self._write_parts(table, inside, batch)
            check()
            self._point_parts(table, batch, written, lambda spec: low <= (spec[0] or "") < high)
            return Written(rows, tuple(sorted({spec[0] or "" for spec in written})))

    def replace_partitions(self, table: Table, sql: str, *, first: str | None = None, others: bool = False) -> Written:
        """Put the query's rows in place of exactly the partitions that it returns rows for; others that begin with
        `first`, or all others, end empty."""
        with self._verb(sql) as check:
            batch = self._batch(table.name)
            check()
            rows, written = self._write_parts(table, _cut(table, self._query(sql)), batch)
            check()
            self._point_parts(table, batch, written, lambda spec: others or (first is not None and spec[0] == first))
            return Written(rows)

    def merge_table(self, table: Table, merge: Merge, mark: str) -> Written:
        """Put the rows of a merge in place of all rows, by pointer; a batch that is merged again starts from what the
        table held before it was merged the first time."""
        with self._verb() as check:
            known = self._table(table.name)
            if known.mark[:8] != mark[:8]:
                own = known.location == known.base or known.location.startswith(f"{known.base}/")
                folder = literal(known.location.removeprefix(known.base).lstrip("/") if own else _hexed(known.location))
                self._run(f"ALTER TABLE {quoted(table.name)} SET TBLPROPERTIES ('{BEFORE}' = {folder})")
            if known.mark != mark:
                return self._replace_all(table, self._query(merge(table.name)), check, mark)
            view = f"mergeplan_{uuid4().hex}"
            self._held(table, self._before(known, table.name)).createOrReplaceTempView(view)
            try:
                return self._replace_all(table, self._query(merge(view)), check, mark)
            finally:
                self._run(f"DROP VIEW IF EXISTS {view}")

    def unmerge_table(self, table: Table, mark: str) -> None:
        """Point the table at what it held before the first batch whose mark begins as this one; nothing when it bears
        no such mark."""
        with self._verb():
            known = self._table(table.name)
            if known.mark[:8] == mark[:8]:
                before = literal(self._before(known, table.name))
                self._run(f"ALTER TABLE {quoted(table.name)} SET LOCATION {before}")

    def replace_rows(self, table: Table, rows: Sequence[Sequence[str | None]]) -> Written:
        """Put rows of text (a seed) in place of all rows, cast to the columns' types; a bad cell is a QueryError."""
        names = [column.name for column in table.columns]
        with self._verb() as check:
            numbered = [(number, *row) for number, row in enumerate(rows, start=1)]
            ddl = ", ".join(["`#` bigint", *(f"{quoted(name)} string" for name in names)])
            frame = self._session.spark.createDataFrame(numbered, ddl)
            try:
                return self._replace_all(table, frame.drop("#"), check)
            except Exception as error:
                bad = self._bad_cell(table, frame) if is_spark(error) else None
                raise bad or error from None

    # Views

    def swap_view(
        self,
        name: str,
        sql: str,
        comment: str = "",
        columns: Sequence[Column] = (),
        properties: Sequence[tuple[str, str]] = (),
    ) -> bool:
        """Point the view at the query, creating it and its schema if need be; False when it already was so.

        `columns`, when given, are all of the query's, and are commented; an existing view takes its columns' comments
        from the table that it reads. Of properties, those that were set here earlier and are no longer given go.
        """
        text, comment = sql.strip(), comment if self._comments else ""
        wanted = {column.name: column.comment for column in columns} if self._comments else {}
        with self._verb(sql):
            known = self._described(name)
            if known is None:
                self._in_schema(name, creation(name, text, comment, wanted, dict(properties)))
                return True
            if not known.is_view:
                raise QueryError(
                    f"{name} is a table, and a view of that name is wanted.",
                    hint="Rename or drop that table.",
                    condition="EXPECT_VIEW_NOT_TABLE",
                )
            moved = known.details.get("View Text") != text or (bool(wanted) and known.comments != wanted)
            if moved:
                # Not CREATE OR REPLACE: that drops the view first, under its readers.
                self._run(f"ALTER VIEW {quoted(name)} AS\n{text}")
            if reworded := known.details.get("Comment", "") != comment:
                self._run(f"ALTER VIEW {quoted(name)} SET TBLPROPERTIES ('comment' = {literal(comment)})")
            return self._set_properties(name, known, dict(properties)) or moved or reworded

    def comment_columns(self, table: str, columns: Sequence[Column]) -> None:
        """Make the comments of a table's columns be these."""
        with self._verb():
            fields = self._run(f"SELECT * FROM {quoted(table)}").schema.fields if self._comments else ()
            said = {field.name.lower(): (field.metadata or {}).get("comment", "") for field in fields}
            for column in columns:
                if column.name in said and said[column.name] != column.comment:
                    named = quoted(column.name)
                    told = f"{named} {named} {column.type} COMMENT {literal(column.comment)}"
                    self._run(f"ALTER TABLE {quoted(table)} CHANGE COLUMN {told}")

    def drop_view(self, name: str) -> None:
        """Drop the view if it exists."""
        with self._verb():
            self._run(f"DROP VIEW IF EXISTS {quoted(name)}")

    # Housekeeping

    def drop_table(self, name: str) -> None:
        """Drop the table and its files if it exists (a view of that name is dropped as a view)."""
        with self._verb():
            known = self._described(name)
            if known is None:
                return
            if known.is_view:
                self._run(f"DROP VIEW IF EXISTS {quoted(name)}")
                return
            if known.has_others_files and "Partition Provider" in known.details:
                let_go(self._run, name, known.base)
            if known.base != known.location:  # a drop removes the files of the place the table points at
                self._run(f"ALTER TABLE {quoted(name)} SET LOCATION {literal(known.base)}")
            self._run(f"DROP TABLE IF EXISTS {quoted(name)}")

    def drop_schema_if_empty(self, name: str) -> None:
        """Drop a schema that holds nothing any more."""
        with self._verb():
            if self._objects(name):
                return
            try:
                self._run(f"DROP SCHEMA IF EXISTS {quoted(name)} RESTRICT")
            except Exception as error:  # something was put into it in the meantime
                if condition(error) != "SCHEMA_NOT_EMPTY":
                    raise

    def objects(self, schema: str) -> frozenset[str]:
        """Names of the tables and views in a schema; empty when there is no such schema."""
        with self._verb():
            return self._objects(schema)

    # Rows

    def refresh(self, name: str) -> None:
        """Forget what is remembered of a table's files: another Spark has written it."""
        with self._verb():
            self._run(f"REFRESH TABLE {quoted(name)}")

    def fetch(self, sql: str, limit: int | None = None) -> Rows:
        """Run a query and bring its rows here; a TIMESTAMP comes as an aware datetime in UTC."""
        with self._verb(sql):
            frame = self._run(sql.rstrip().rstrip(";"))
            if limit is not None:
                frame = frame.limit(limit)
            return Rows(tuple(frame.columns), _rows(frame))

    def contents(self, table: Table, column_sets: Sequence[ColumnSet], interval: Interval | None = None) -> Found:
        """What the table holds of each column set, by period; without an interval as a whole. Sets that cannot be
        compared are left out."""
        with self._verb():
            name = quoted(table.name)
            self._run(f"REFRESH TABLE {name}")  # another process may have pointed it at other files since
            asked = question(table, self._run(f"SELECT * FROM {name}").schema.fields, column_sets, interval)
            return asked.answer(self._run(asked.sql).collect() if asked.sets else ())

    def door(self, path: Path, *, python: bool) -> Door:
        """A way for project code to this Spark, at a socket file that is made for it; with `python` its functions may
        run in Spark's workers even where these are not isolated. RequestError when this Spark lets nobody else in."""
        return Relay(self._session.server(), path, python=python)

    def scan_bytes(self, sql: str) -> int | None:
        """How many bytes of files a query would read, only the partitions it needs; None when Spark cannot tell (or
        refuses the query). Nothing is run."""
        try:
            with self._verb(sql):
                return self._session.scan_bytes(_wrapped(sql))
        except QueryError:
            return None

    def jobs(self) -> int:
        """How many Spark jobs this session has started so far, counted by Spark itself."""
        return self._shared.jobs()

    def cancel(self) -> None:
        """End what runs now; the verbs under way raise Cancelled. It never blocks: a signal handler may call it."""
        with self._lock:
            era, self._era = self._era, self._era + 1
            if self._under_way.get(era):
                threading.Thread(target=self._interrupt, args=(era,), daemon=True).start()

    def close(self) -> None:
        """Let go of the session and of the embedded catalog."""
        self._shared.close()

    def _interrupt(self, era: int) -> None:
        """Interrupt until every verb of the era has ended: one of them may be just about to start its job."""
        pause = threading.Event()
        while self._under_way.get(era):
            try:
                for session in (self._shared, *self._apart):
                    session.interrupt(f"mergeplan-{id(self)}-{era}")
            except Exception:
                return
            pause.wait(0.2)

    @contextmanager
    def _verb(self, sql: str = "") -> Iterator[Callable[[], None]]:
        """Around each verb: its jobs go by the era's tag, and Spark's errors come out as ours.

        What it gives is called before each step that cannot be taken back.
        """
        with self._lock:
            era = self._era
            self._under_way[era] = self._under_way.get(era, 0) + 1

        def check() -> None:
            if self._era != era:
                raise Cancelled("the query was cancelled.")

        try:
            self._session.enter(f"mergeplan-{id(self)}-{era}")
            yield check
            check()
        except Exception as error:
            if not is_spark(error):
                raise
            check()
            raise translated(error, sql) from None
        finally:
            with self._lock:
                self._under_way[era] -= 1
                if not self._under_way[era]:
                    del self._under_way[era]

    # Steps

    def _run(self, sql: str) -> Frame:
        return self._session.spark.sql(sql)

    def _query(self, sql: str) -> Frame:
        return self._run(_wrapped(sql))

    def _in_schema(self, name: str, sql: str, run: Run | None = None) -> None:
        """Run a statement that creates an object, and create its schema first when it is missing."""
        run = run or self._run
        try:
            run(sql)
        except Exception as error:
            if condition(error) != "SCHEMA_NOT_FOUND":
                raise
            self._run(f"CREATE SCHEMA IF NOT EXISTS {quoted(name.rpartition('.')[0])}")
            run(sql)

    def _set_properties(self, name: str, known: Described, wanted: dict[str, str]) -> bool:
        """Set a view's properties, and take away those that were set here before; False when they were so already."""
        if not wanted and MARK not in known.details.get("Table Properties", ""):
            return False
        said = {row[0]: row[1] for row in self._run(f"SHOW TBLPROPERTIES {quoted(name)}").collect()}
        ours = [key for key in said.get(MARK, "").split(",") if key]
        now = {**wanted, **marked(wanted)}
        if gone := [key for key in (*ours, MARK) if key in said and key not in now]:
            listed = ", ".join(literal(key) for key in gone)
            self._run(f"ALTER VIEW {quoted(name)} UNSET TBLPROPERTIES IF EXISTS ({listed})")
        if new := {key: value for key, value in now.items() if said.get(key) != value}:
            self._run(f"ALTER VIEW {quoted(name)} SET{properties_clause(new)}")
        return bool(gone or new)

    def _definition(self, column: Column) -> str:
        return f"{quoted(column.name)} {column.type}{commented(column.comment if self._comments else '')}"

    def _described(self, name: str) -> Described | None:
        try:
            lines = self._run(f"DESCRIBE TABLE EXTENDED {quoted(name)}").collect()
        except Exception as error:
            if condition(error) in NO_OBJECT:
                return None
            raise
        titles = [line[0] for line in lines]
        start = titles.index("# Detailed Table Information")
        comments = {line[0].lower(): line[2] or "" for line in lines[:start] if line[0] and line[0][0] != "#"}
        return Described({line[0]: line[1] for line in lines[start + 1 :] if line[0]}, comments)

    def _objects(self, schema: str) -> frozenset[str]:
        try:
            found = self._run(f"SHOW TABLES IN {quoted(schema)}").collect()
        except Exception as error:
            if condition(error) in NO_OBJECT:
                return frozenset()
            raise
        return frozenset(row["tableName"] for row in found if not row["isTemporary"])

    def _table(self, name: str) -> Described:
        known = self._described(name)
        if known is None or known.is_view:
            raise QueryError(f"there is no table {name} to write to.")
        return known

    def _batch(self, name: str, mark: str = "") -> str:
        """A fresh folder for a batch of a table, in the place where the table was created."""
        return f"{self._table(name).base}/mergeplan-{mark}{uuid4().hex[len(mark) :]}"

    def _before(self, known: Described, name: str) -> str:
        """Where a table's rows lay before the batch whose mark it bears."""
        found = self._run(f"SHOW TBLPROPERTIES {quoted(name)} ('{BEFORE}')").collect()
        if ELSEWHERE.fullmatch(found[0][1]):
            return bytes.fromhex(found[0][1].removeprefix("at:")).decode()
        return f"{known.base}/{found[0][1]}".rstrip("/")

    def _held(self, table: Table, place: str) -> Frame:
        """The rows of a table as they lie in a place where it pointed before."""
        hidden = [f"{quoted(part.column)} {part.type}" for part in table.cut if part.hidden]
        ddl = ", ".join([*(f"{quoted(column.name)} {column.type}" for column in table.columns), *hidden])
        return self._session.spark.read.format(table.format).schema(ddl).load(place)

    def _replace_all(self, table: Table, frame: Frame, check: Callable[[], None], mark: str = "") -> Written:
        batch = self._batch(table.name, mark)
        frame, told = self._session.observed(_cut(table, frame), rows="count(1)")
        check()
        _written(table, _sorted(table, frame)).partitionBy(*(part.column for part in table.cut)).save(batch)
        check()
        self._run(f"ALTER TABLE {quoted(table.name)} SET LOCATION {literal(batch)}")
        return Written(told().get("rows", 0))

    def _write_parts(self, table: Table, frame: Frame, batch: str) -> tuple[int, frozenset[Spec]]:
        """Write rows aside, a folder per partition; how many there were, and which partitions."""
        frame, told = self._session.observed(frame, rows="count(1)", parts=specs_seen(table.cut))
        _written(table, _sorted(table, frame)).partitionBy(*(part.column for part in table.cut)).save(batch)
        seen = told()
        return seen.get("rows", 0), specs_of(seen.get("parts", ()))

    def _point_parts(self, table: Table, batch: str, written: frozenset[Spec], takes: Callable[[Spec], bool]) -> None:
        """Point what was written at the batch; other partitions that it `takes` the place of end empty."""
        existing = listed(self._run, table)
        point(self._run, table, batch, written, existing)
        if emptied := [spec for spec in existing - written if takes(spec)]:
            cut = [part.column for part in table.cut]
            nothing = self._run(f"SELECT * FROM {quoted(table.name)} WHERE false").drop(*cut)
            _written(table, nothing).save(f"{batch}/empty")
            empty(self._run, table, f"{batch}/empty", emptied)

    def _bad_cell(self, table: Table, frame: Frame) -> QueryError | None:
        """The first cell that cannot be read as its column's type."""
        cases = " ".join(
            f"WHEN {quoted(c.name)} IS NOT NULL AND try_cast({quoted(c.name)} as {c.type}) IS NULL THEN {index}"
            for index, c in enumerate(table.columns)
        )
        try:
            bad = frame.selectExpr("*", f"CASE {cases} END `#bad`").where("`#bad` IS NOT NULL").orderBy("`#`").first()
        except Exception:  # there is no such cast at all, and the first error says so
            return None
        if bad is None:
            return None
        column = table.columns[bad["#bad"]]
        said = f"row {bad['#']}, column '{column.name}': '{bad[column.name]}' is not a value of type {column.type}."
        return QueryError(said, line=int(bad["#"]) + 1)  # below the header


def _hexed(place: str) -> str:
    return f"at:{place.encode().hex()}"


def _cut(table: Table, frame: Frame) -> Frame:
    """A frame's rows in the table's types, with the columns that it is cut by."""
    frame = frame.selectExpr(*_cast(table, frame))
    parts = {part.column: f"cast({part.expression} as {part.type}) {quoted(part.column)}" for part in table.cut}
    if not parts:
        return frame
    visible = [parts.pop(column.name, quoted(column.name)) for column in table.columns]
    return frame.selectExpr(*visible, *parts.values())


def _sorted(table: Table, frame: Frame) -> Frame:
    """A frame's rows in the order in which they are to lie in each file."""
    if not table.sorted_by:
        return frame
    return frame.sortWithinPartitions(*(part.column for part in table.cut), *map(quoted, table.sorted_by))


def _written(table: Table, frame: Frame) -> Any:
    """The writer of a frame's rows as the table's files are written."""
    return frame.write.format(table.format).options(**dict(table.options))


def _wrapped(sql: str) -> str:
    """The query inside another, so that a text which is a command is refused and not run."""
    return f"{WRAPPER}{sql.rstrip().rstrip(';')}\n)"


def _cast(table: Table, frame: Frame) -> list[str]:
    """The table's columns out of a frame's, by name, in the table's order and types."""
    wanted = [column.name.lower() for column in table.columns]
    given = [name.lower() for name in frame.columns]
    for names, others, verb in ((wanted, given, "lacks"), (given, wanted, "has an unexpected")):
        if odd := [name for name in names if name not in others]:
            raise QueryError(f"the query for {table.name} {verb} column {', '.join(repr(name) for name in odd)}.")
    return [f"cast({quoted(c.name)} as {c.type}) {quoted(c.name)}" for c in table.columns]


# A cast would give the time of the session's own zone.
_IN_UTC = "timestampadd(MICROSECOND, unix_micros({0}), timestamp_ntz '1970-01-01 00:00:00')"


def _rows(frame: Frame) -> tuple[tuple[object, ...], ...]:
    """A frame's rows; instants come as aware datetimes in UTC, whatever the time zone of the machine.

    pyspark gives instants as naive local times, which do not even tell the two hours of an autumn night apart.
    """
    instants = [n for n, field in enumerate(frame.schema.fields) if field.dataType.typeName() == "timestamp"]
    if not instants:
        return tuple(tuple(row) for row in frame.collect())
    names = [f"c{n}" for n in range(len(frame.columns))]
    columns = [f"{_IN_UTC.format(name)} {name}" if n in instants else name for n, name in enumerate(names)]
    found = (list(row) for row in frame.toDF(*names).selectExpr(*columns).collect())
    return tuple(tuple(_aware(v) if n in instants else v for n, v in enumerate(row)) for row in found)


def _aware(value: object) -> object:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
