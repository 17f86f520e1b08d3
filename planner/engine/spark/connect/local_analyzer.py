"""A Spark of this machine that compares plans in place of a Spark Connect server, which shows none."""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from mergeplan.planner.engine.analysis import Analysis, PairResult
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.classic_session import ClassicSession
from mergeplan.planner.engine.spark.process.java import profile_of
from mergeplan.planner.errors import RequestError

# Without tables, so that no catalog's folder is needed.
CONNECTION = Connection(conf=(("spark.sql.catalogImplementation", "in-memory"),), master="local[1]")
UNKNOWN_FUNCTION = re.compile(r"cannot resolve (the )?routine", re.IGNORECASE)
FUNCTIONS = "it calls a function of the server"


class LocalAnalyzer:
    """A JVM that starts with the first comparison and ends with `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened = ExitStack()
        self._session: ClassicSession | None = None

    def compare_queries(self, analysis: Analysis) -> tuple[PairResult, ...] | None:
        """Return what a Spark of this machine says of pairs of queries; None where none can be started.

        A function that only the server has leaves a pair unjudged.
        """
        with self._lock:
            try:
                session = self._session or self._start_session()
            except RequestError:  # pyspark is a client here, or this process has a Spark of its own
                return None
        return tuple(_excuse_function(result) for result in session.compare_queries(analysis))

    def close(self) -> None:
        self._session = None
        self._opened.close()

    def _start_session(self) -> ClassicSession:
        home = Path(self._opened.enter_context(TemporaryDirectory(prefix="mergeplan-analyzer-")))
        self._session = ClassicSession(CONNECTION, home, profile_of("metadata"), lock=None)
        self._opened.callback(self._session.close)
        return self._session


def _excuse_function(result: PairResult) -> PairResult:
    return replace(result, error="", unknown=FUNCTIONS) if UNKNOWN_FUNCTION.search(result.error) else result
