"""SparkEngine: the engine's verbs on one Spark, classic or over Spark Connect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from mergeplan.planner.engine.analysis import Analysis, PairResult
from mergeplan.planner.engine.protocol import Connection, Engine, Operation, Operations, ProjectConnection, Rows
from mergeplan.planner.engine.spark.catalog import WAIT, is_embedded, spark_folder
from mergeplan.planner.engine.spark.connect.project_proxy import ProjectProxy
from mergeplan.planner.engine.spark.errors import is_spark, translate_error
from mergeplan.planner.engine.spark.open_session import open_session
from mergeplan.planner.engine.spark.process.java import profile_of
from mergeplan.planner.engine.spark.quoting import quote_name
from mergeplan.planner.engine.spark.scans import parse_relations
from mergeplan.planner.engine.spark.session import EngineSession, Frame
from mergeplan.planner.engine.spark.sessions import Sessions, wrap_query
from mergeplan.planner.engine.spark.spark_catalog import SparkCatalog
from mergeplan.planner.engine.spark.spark_tables import SparkTables
from mergeplan.planner.engine.spark.type_text import char_type, type_text
from mergeplan.planner.engine.spark.typed_rows import fetch_rows
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column


def open_engine(connection: Connection, home: Path, profile: str = "metadata", wait: float = WAIT) -> SparkEngine:
    """Return an engine on the Spark that the connection names; `wait` is for the embedded catalog."""
    session = open_session(connection, home, profile_of(profile), wait)
    folder = spark_folder(home) if is_embedded(connection) else None
    return SparkEngine(session, comments=connection.comments, functions=frozenset(connection.functions), folder=folder)


class SparkEngine:
    """The verbs of `Engine` on one Spark; they may be called from several threads at once."""

    def __init__(
        self,
        session: EngineSession,
        *,
        comments: bool = True,
        functions: frozenset[str] = frozenset(),
        folder: Path | None = None,
    ) -> None:
        self._shared = session
        self._sessions = Sessions(session, functions, folder)
        self.tables = SparkTables(self._sessions, comments=comments)
        self.catalog = SparkCatalog(self._sessions, comments=comments)

    def engine_for(self, gateway: str) -> Engine:
        """Return this engine: every gateway is this one Spark."""
        return self

    def separate_session(self, before: Sequence[str], after: Sequence[str]) -> AbstractContextManager[None]:
        return self._sessions.separate_session(before, after)

    @property
    def outlasts(self) -> bool:
        """True for a Spark that continues a write when its planner has gone: a Spark Connect server."""
        return self._shared.operations is not None

    @property
    def goes_on(self) -> bool:
        """True while a write runs that continues when this process ends."""
        return self._sessions.operations > 0

    @property
    def is_lost(self) -> bool:
        """True when its Spark ended, ran out of memory or stopped answering: only a new engine can go on."""
        return self._sessions.is_lost or self._shared.has_ended

    def guarding(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        return self._sessions.guarding(check)

    def reattaching(self, operations: Operations) -> AbstractContextManager[None]:
        return self._sessions.reattaching(operations)

    def end_operation(self, operation: Operation) -> None:
        if server := self._shared.operations:
            server.end(operation)

    def schema(self, sql: str) -> tuple[Column, ...]:
        with self._sessions.statement(sql):
            return _frame_columns(self._sessions.query(sql))

    def table_columns(self, name: str) -> tuple[Column, ...]:
        sql = f"SELECT * FROM {quote_name(name)}"
        with self._sessions.statement(sql):
            frame = self._sessions.query(sql)
            chars = map(char_type, frame.schema.fields)
            columns = zip(_frame_columns(frame), chars, strict=True)
            return tuple(replace(c, type=char) if char.startswith("char(") else c for c, char in columns)

    def reads(self, sql: str) -> frozenset[str] | None:
        with self._sessions.statement(sql):
            plan = self._sessions.current.parse_tree(wrap_query(sql))
            return None if plan is None else parse_relations(plan)

    def dry_run(self, sql: str) -> tuple[tuple[Column, ...], frozenset[str]]:
        with self._sessions.statement(sql):
            frame = self._sessions.query(sql)
            columns = _frame_columns(frame)
            return columns, parse_relations(self._sessions.current.frame_tree(frame, wrap_query(sql)))

    def fetch(self, sql: str, limit: int | None = None) -> Rows:
        """Run a query and return its rows; a TIMESTAMP is returned as an aware datetime in UTC."""
        with self._sessions.statement(sql):
            frame = self._sessions.run(sql.rstrip().rstrip(";"))
            if limit is not None:
                frame = frame.limit(limit)
            return Rows(tuple(frame.columns), fetch_rows(frame))

    def scan_bytes(self, sql: str) -> int | None:
        """Return the bytes of needed files that a query would read, without running it; None if Spark cannot tell."""
        try:
            with self._sessions.statement(sql):
                return self._sessions.current.scan_bytes(wrap_query(sql))
        except QueryError:
            return None

    def explain(self, sql: str) -> str:
        with self._sessions.statement(sql):
            rows = self._sessions.run(f"EXPLAIN FORMATTED {wrap_query(sql)}").collect()
        text = "\n".join(str(line) for (line,) in rows)
        if not text.startswith("=="):  # Spark returns what is wrong in place of a plan
            raise QueryError("Spark does not explain this query.")
        return text

    def compare_queries(self, analysis: Analysis, *, may_start: bool = True) -> tuple[PairResult, ...] | None:
        """Return the verdict of Spark's analyzer on pairs of queries over empty tables; None if no plan is shown.

        A Spark Connect server shows none: with `may_start`, a local Spark starts beside it. Raise RequestError for a
        text with a closed function, because the optimizer evaluates constants.
        """
        texts = (text for pair in analysis.pairs for text in (pair.first, pair.second))
        for text in (*texts, *(view.sql for view in analysis.views)):
            self._sessions.judge(text)
        with self._sessions.statement():
            return self._shared.compare_queries(analysis, may_start=may_start)

    def connect_project(self, path: Path, *, python: bool) -> ProjectConnection:
        return ProjectProxy(self._sessions.current.server(), path, python=python, functions=self._sessions.functions)

    def jobs(self) -> int:
        try:
            return self._shared.jobs()
        except Exception as error:
            if not is_spark(error):
                raise
            raise translate_error(error, "") from None

    def cancel(self) -> None:
        """End what runs now, without blocking: a signal handler may call it. The running verbs raise Cancelled."""
        self._sessions.cancel()

    def close(self) -> None:
        self._shared.close()


def _frame_columns(frame: Frame) -> tuple[Column, ...]:
    fields = ((field, field.metadata or {}) for field in frame.schema.fields)
    return tuple(Column(f.name.lower(), type_text(f.dataType), words.get("comment", "")) for f, words in fields)
