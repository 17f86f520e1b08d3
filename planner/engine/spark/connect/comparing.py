"""Plans compared by the warm Spark: one line of JSON each way, on the port at which it counts jobs."""

import json
import socket

from mergeplan.planner.engine.analysis import Analysis, PairResult
from mergeplan.planner.engine.spark.catalog import Owner
from mergeplan.planner.engine.spark.connect.local_analyzer import LocalAnalyzer
from mergeplan.planner.errors import MergeplanError, QueryError
from mergeplan.planner.serial import decode_json, encode_json

WAIT = 1800.0  # seconds for an answer
LINE_MAX = 64 * 1024 * 1024  # bytes of a request
WORD = "compare"


def ask_to_compare(owner: Owner, analysis: Analysis) -> tuple[PairResult, ...]:
    """Return the warm Spark's verdict on pairs of queries; raise QueryError if it does not answer."""
    with socket.create_connection(("127.0.0.1", owner.counter), timeout=WAIT) as line:
        line.sendall(f"{owner.token} {WORD} {json.dumps(encode_json(analysis))}\n".encode())
        answer = line.makefile().readline()
    if not answer:
        raise QueryError("the warm Spark does not compare plans.", hint="Start it again: it is of another version.")
    results = json.loads(answer)
    if isinstance(results, str):
        raise QueryError(results)
    return decode_json(tuple[PairResult, ...], results)


def answer_comparison(analyzer: LocalAnalyzer, request: str) -> str:
    try:
        results = analyzer.compare_queries(decode_json(Analysis, json.loads(request)))
    except MergeplanError as error:
        return json.dumps(error.message)
    return json.dumps("no Spark can be started to compare plans." if results is None else encode_json(results))
