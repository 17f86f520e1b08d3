"""Plans that a Spark Connect server does not show are compared by a Spark of this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.engine.spark.connect.test_reattach import settings

pytestmark = pytest.mark.prove

CLIENT = """
import json, sys
from contextlib import closing
from pathlib import Path
from mergeplan.planner.engine.analysis import SCHEMA, Analysis, EmptyTable, QueryPair
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import open_engine
from mergeplan.planner.model.model import Column

table = f"FROM {SCHEMA}.mergeplan_table_t"
pairs = [
    (f"SELECT a + 1 AS x {table}", f"SELECT 1 + a AS x {table}"),
    (f"SELECT a AS x {table}", f"SELECT -a AS x {table}"),
    ("", f"SELECT of_the_server(a) AS x {table}"),
    ("", "SELECT try_cast('x' AS int) IS NULL AND cast('x' AS int) IS NULL AS x"),
]
analysis = Analysis((EmptyTable("mergeplan_table_t", (Column("a", "int"),)),), (), tuple(QueryPair(*p) for p in pairs))
remote, conf = json.loads(sys.argv[1])
with closing(open_engine(Connection(conf=tuple(map(tuple, conf)), remote=remote), Path(sys.argv[2]))) as engine:
    unstarted = engine.compare_queries(analysis, may_start=False)
    answers = engine.compare_queries(analysis)
print(json.dumps([unstarted, [answer.same for answer in answers], [answer.unknown for answer in answers]]))
"""


def test_a_server_that_shows_no_plans_is_not_needed_for_them(engine: SparkEngine, tmp_path: Path) -> None:
    connection = json.dumps([engine._shared.server().url, settings(engine)])

    argv = [sys.executable, "-c", CLIENT, connection, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=True, cwd=Path(__file__).parents[5])

    unstarted, same, unknown = json.loads(done.stdout)
    assert unstarted is None
    assert same == [True, False, False, False]
    assert unknown == ["", "", "it calls a function of the server", ""]
    assert done.stderr == ""
