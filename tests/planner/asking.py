"""A pyspark that speaks to nobody: what it would ask of Spark is judged instead."""

from __future__ import annotations

import atexit
import json
import os
from pathlib import Path
from typing import Any

from pyspark.sql.connect import proto
from pyspark.sql.connect.client import ChannelBuilder
from pyspark.sql.connect.session import SparkSession

from mergeplan.planner.engine.spark.connect.admission import Blocks, ReadScope, admit_request
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.python.running import open_runner
from tests.planner.python.test_models import DAY, project_with
from tests.planner.shop import NOW

ITEMS = "SELECT id, date'2026-01-01' + id day, 10 * id price FROM VALUES (1), (2), (3) AS t(id)"
EACH = """
import atexit
import json
import os
from sqlmesh import model
from pyspark.sql import functions as F

CODE = json.loads({code!r})


@model("shop.tried", columns={{"name": "string", "said": "string"}}, depends_on=["shop.items"])
def execute(context, **kwargs):
    import pandas

    spark, said = context.spark, []
    session = spark.client._session_id
    for name, code in CODE.items():
        try:
            exec(code, {{"spark": spark, "F": F, "table": context.table("shop.items")}})
            said.append((name, "done"))
        except Exception as error:
            said.append((name, str(error)))
        spark.client._session_id = session
    said.append(("environment", json.dumps(dict(os.environ)) + str(vars(context._execution))))
    return pandas.DataFrame(said, columns=["name", "said"])
"""
CLIENT = "SPARK_CONNECT_MODE_ENABLED"
SESSION = "11111111-1111-4111-8111-111111111111"
SCOPE = ReadScope(SESSION, frozenset({"phys.items"}), frozenset({"mine"}), "mergeplan_a", python=True)


class Asked(Exception):
    """A request that was admitted: there is nobody to answer it."""


class Judge:
    """In place of a channel of gRPC: judges each request."""

    def __init__(self, scope: ReadScope) -> None:
        self.scope = scope

    def unary_unary(self, path: str, **_: Any) -> Any:
        return self._config if path.endswith("/Config") else self._one

    def unary_stream(self, path: str, **_: Any) -> Any:
        return self._one

    def stream_unary(self, path: str, **_: Any) -> Any:
        return self._many

    def close(self) -> None:
        """Nothing is open."""

    def _one(self, request: Any, **_: Any) -> Any:
        if isinstance(request, proto.ArtifactStatusesRequest):
            admit_request(request, self.scope)
            return proto.ArtifactStatusesResponse(session_id=SESSION)
        admit_request(request, self.scope)
        if isinstance(request, proto.AnalyzePlanRequest) and request.HasField("ddl_parse"):
            return _parse_type(request.ddl_parse.ddl_string)
        raise Asked

    def _many(self, requests: Any, **_: Any) -> Any:
        blocks = Blocks()
        for request in requests:
            admit_request(request, self.scope)
            blocks.admit(request)
        raise Asked

    def _config(self, request: Any, **_: Any) -> Any:
        admit_request(request, self.scope)
        asked = request.operation
        keys = [*asked.get.keys, *asked.get_option.keys, *(pair.key for pair in asked.get_with_default.pairs)]
        answer = proto.ConfigResponse(session_id=SESSION)
        for key in keys:
            known = {"spark.sql.session.timeZone": "UTC", "spark.sql.timestampType": "TIMESTAMP_LTZ"}
            answer.pairs.add(key=key, value=known.get(key, "1048576" if "localRelation" in key else "false"))
        return answer


def asking(scope: ReadScope = SCOPE) -> Any:
    """A session of pyspark whose requests are judged."""

    class Channel(ChannelBuilder):
        def toChannel(self) -> Any:
            return Judge(scope)

        @property
        def host(self) -> str:
            return "nowhere"

    builder = Channel()
    builder.set(ChannelBuilder.PARAM_SESSION_ID, SESSION)
    made: Any = SparkSession.builder
    return never_closed(made.channelBuilder(builder).create())


def never_closed(spark: Any) -> Any:
    """A session that Python may collect at any moment: see `close_channel` in connect_session.py."""
    atexit.unregister(spark.client._cleanup_ml_cache)
    spark.client.close = lambda: None
    return spark


def _parse_type(ddl: str) -> Any:
    """What a text like `int` or `id int` says."""
    answer = proto.AnalyzePlanResponse(session_id=SESSION)
    if " " in ddl:
        for named in ddl.split(", "):
            field = answer.ddl_parse.parsed.struct.fields.add(name=named.partition(" ")[0])
            field.data_type.string.SetInParent()
    else:
        answer.ddl_parse.parsed.string.SetInParent()
    return answer


def run_untrusted(code: str, scope: ReadScope = SCOPE) -> None:
    """Run a piece of project code up to the first thing that it asks of Spark; Asked when that is admitted."""
    from pyspark.sql import functions as F

    session = asking(scope)
    before = os.environ.get(CLIENT)
    os.environ[CLIENT] = "1"  # as in the child: pyspark's functions are those of a client
    SparkSession._set_default_and_active_session(session)
    try:
        exec(code, {"spark": session, "F": F, "table": "phys.items"})  # noqa: S102
    finally:
        SparkSession._default_session = SparkSession._active_session.session = None
        if before is None:
            del os.environ[CLIENT]


def fill(engine: SparkEngine) -> None:
    """Make a table that may be read, `phys.items`, and one that may not, `shop.secret`."""
    for sql in (
        "CREATE SCHEMA phys",
        f"CREATE TABLE phys.items USING parquet AS {ITEMS}",
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.secret USING parquet AS SELECT 7 id",
    ):
        engine.fetch(sql)


def run_codes(engine: SparkEngine, root: Path, code: dict[str, str]) -> dict[str, str]:
    """What a model says of each piece of code that it ran."""
    project = project_with(root, {"models/tried.py": EACH.format(code=json.dumps(code))})
    with (
        open_runner(project.code, engine) as python,
        python.rows(project.models["shop.tried"], DAY, {"shop.items": "phys.items"}, NOW) as sql,
    ):
        return {str(name): str(text) for name, text in engine.fetch(sql).rows}
