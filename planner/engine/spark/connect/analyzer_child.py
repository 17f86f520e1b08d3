"""The process of a LocalAnalyzer: a Spark that compares plans, a line each way; it ends with its standard input."""

import json
import os
import queue
import sys
import threading
from pathlib import Path

from mergeplan.planner.engine.analysis import Analysis, EmptyTable, QueryPair
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.classic_session import ClassicSession
from mergeplan.planner.engine.spark.plans.comparing import PlanComparing
from mergeplan.planner.engine.spark.process.java import profile_of
from mergeplan.planner.engine.spark.session import silence_libraries
from mergeplan.planner.errors import QueryError, RequestError
from mergeplan.planner.model.model import Column
from mergeplan.planner.serial import decode_json, encode_json

STARTED, REFUSED, RESULT, DONE, ERROR = "started", "refused", "result", "done", "error"
# Compared before the process counts as started: the first comparison of a JVM takes long.
FIRST = Analysis((EmptyTable("mergeplan_first", (Column("a", "int"),)),), (), (QueryPair("SELECT 1 AS a", "SELECT 2"),))
# Without tables, so that no catalog's folder is needed.
CONF = (("spark.sql.catalogImplementation", "in-memory"), ("spark.ui.enabled", "false"))


def main() -> None:
    """Start a Spark, and answer each analysis by a line for each pair."""
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read_lines, args=(lines,), daemon=True).start()
    silence_libraries()
    try:
        session = ClassicSession(
            Connection(conf=CONF, master="local[1]"), Path(sys.argv[1]), profile_of("metadata"), None
        )
    except RequestError as error:
        return _say(REFUSED, error.message)
    plans = PlanComparing(session.new_session().spark)
    tuple(plans.compare(FIRST))
    _say(STARTED, session.jvm.process.pid)
    while True:
        analysis = decode_json(Analysis, json.loads(lines.get()))
        if plans.settings != analysis.settings:
            plans = PlanComparing(session.new_session().spark, analysis.settings)
        try:
            for result in plans.compare(analysis):
                _say(RESULT, encode_json(result))
            _say(DONE, None)
        except QueryError as error:
            _say(ERROR, error.message)


def _read_lines(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(0)  # Java ends with its standard input


def _say(word: str, value: object) -> None:
    sys.stdout.write(f"{json.dumps([word, value])}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
