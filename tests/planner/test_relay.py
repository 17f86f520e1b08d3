"""Project code over a real Spark: through the door, and not past it."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect import proto
from pyspark.sql.connect.client import ChannelBuilder
from pyspark.sql.connect.session import SparkSession

from planner.code.isolation import NO_ISOLATION, Isolation
from planner.code.running import admits_functions, running
from planner.engine import Reading, Server
from planner.errors import RequestError
from planner.spark.engine import SparkEngine
from planner.spark.relay import Relay
from planner.spark.upstream import SERVICE
from tests.planner.attacks import ATTACKS, IN_PYTHON, ORDINARY
from tests.planner.code.test_models import DAY, project_with
from tests.planner.shop import NOW, rows

ITEMS = "SELECT id, date'2026-01-01' + id day, 10 * id price FROM VALUES (1), (2), (3) AS t(id)"
EACH = """
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


@pytest.fixture
def items(engine: SparkEngine) -> SparkEngine:
    """A Spark with a table that may be read, `phys.items`, and one that may not, `shop.secret`."""
    for sql in (
        "CREATE SCHEMA phys",
        f"CREATE TABLE phys.items USING parquet AS {ITEMS}",
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.secret USING parquet AS SELECT 7 id",
    ):
        engine.fetch(sql)
    return engine


@pytest.fixture
def relay(items: SparkEngine) -> Iterator[tuple[Relay, Path]]:
    """A door at a socket file; the folder's path is short because a socket's may not be long."""
    with tempfile.TemporaryDirectory(prefix="mp") as folder:
        path = Path(folder) / "s"
        door = items.door(path, python=False)
        assert isinstance(door, Relay)
        door.admit(Reading(("phys.items",), {"given": "SELECT 5 AS id"}, "mergeplan_a"))
        yield door, path
        door.close()


def connected(relay: tuple[Relay, Path]) -> Any:
    door, path = relay

    class Socket(ChannelBuilder):
        def toChannel(self) -> Any:
            return self._insecure_channel(f"unix:{path}")

        @property
        def host(self) -> str:
            return "nowhere"

    builder = Socket(channelOptions=[("grpc.default_authority", "localhost")])
    builder.set(ChannelBuilder.PARAM_SESSION_ID, door.session)
    made: Any = SparkSession.builder
    return made.channelBuilder(builder).create()


def said(engine: SparkEngine, root: Path, code: dict[str, str]) -> dict[str, str]:
    """What a model says of each piece of code that it ran."""
    project = project_with(root, {"models/tried.py": EACH.format(code=json.dumps(code))})
    with (
        running(project.code, engine) as python,
        python.rows(project.models["shop.tried"], DAY, {"shop.items": "phys.items"}, NOW) as sql,
    ):
        return {str(name): str(text) for name, text in engine.fetch(sql).rows}


def test_a_hostile_model_gets_nothing_but_reasons(items: SparkEngine, tmp_path: Path) -> None:
    found = said(items, tmp_path, {name: code for name, (code, _) in ATTACKS.items()})

    told = found.pop("environment")
    assert {name: text for name, text in found.items() if ATTACKS[name][1] not in text} == {}
    assert len(found) == len(ATTACKS)
    assert "token" not in told
    assert "sc://" not in told
    assert rows(items, "SELECT id FROM shop.secret") == [(7,)]
    assert items.objects("shop") == {"secret"}
    assert len(rows(items, "SELECT id FROM phys.items")) == 3


def test_an_ordinary_model_misses_nothing(items: SparkEngine, tmp_path: Path) -> None:
    found = said(items, tmp_path, {**ORDINARY, **IN_PYTHON})

    del found["environment"]
    assert {name: text for name, text in found.items() if text != "done"} == {}


def test_what_was_admitted_is_refused_when_the_model_has_answered(relay: tuple[Relay, Path]) -> None:
    spark = connected(relay)
    assert spark.sql("SELECT i.id FROM phys.items i JOIN given USING (id)").count() == 0
    spark.range(1).createGlobalTempView("mergeplan_a_0")

    assert relay[0].refuse() == ("global_temp.mergeplan_a_0",)
    with pytest.raises(SparkConnectGrpcException, match="is not among what this model reads"):
        spark.table("phys.items").count()


def test_a_view_that_could_not_be_made_is_no_name_to_read(relay: tuple[Relay, Path]) -> None:
    spark = connected(relay)
    with pytest.raises(Exception, match="nothing"):
        spark.table("phys.items").select("nothing").createOrReplaceTempView("mine")

    with pytest.raises(SparkConnectGrpcException, match="`mine` is not among"):
        spark.table("mine").count()


def test_a_function_in_python_is_refused_where_workers_are_not_isolated(relay: tuple[Relay, Path]) -> None:
    spark = connected(relay)

    with pytest.raises(SparkConnectGrpcException, match="MERGEPLAN_ISOLATION_UDF=allow"):
        spark.table("phys.items").mapInPandas(lambda parts: parts, "id int").count()


def test_an_error_of_spark_comes_without_its_stack(relay: tuple[Relay, Path]) -> None:
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN") as error:
        connected(relay).table("phys.items").select("nothing").collect()

    assert "org.apache" not in str(error.value)
    assert error.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"  # type: ignore[attr-defined]


def test_garbage_is_told_and_harms_nobody(relay: tuple[Relay, Path]) -> None:
    chance = random.Random(5)  # noqa: S311  # a fuzz
    codes = set()
    with grpc.insecure_channel(f"unix:{relay[1]}", options=[("grpc.default_authority", "localhost")]) as channel:
        for method in ("Config", "AnalyzePlan", "ExecutePlan", "Interrupt", "CloneSession", "Nothing") * 20:
            with pytest.raises(grpc.RpcError) as error:
                channel.unary_unary(f"/{SERVICE}/{method}")(chance.randbytes(chance.randrange(60)), timeout=60)
            codes.add(error.value.code())  # type: ignore[attr-defined]

    assert codes == {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
    assert connected(relay).table("phys.items").count() == 3


def test_what_runs_ends_with_the_door(relay: tuple[Relay, Path], items: SparkEngine) -> None:
    query = connected(relay).range(10**12).selectExpr("max(id * id % 7)")._plan.to_proto
    request = proto.ExecutePlanRequest(session_id=relay[0].session, plan=query(connected(relay).client))
    with grpc.insecure_channel(f"unix:{relay[1]}", options=[("grpc.default_authority", "localhost")]) as channel:
        answers = channel.unary_stream(f"/{SERVICE}/ExecutePlan")(request.SerializeToString())
        next(answers)  # it has begun

        relay[0].close()

        with pytest.raises(grpc.RpcError):
            list(answers)
    assert rows(items, "SELECT count(*) FROM phys.items") == [(3,)]


def test_a_socket_with_too_long_a_path_is_told(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="Set TMPDIR to a shorter folder"):
        Relay(Server("sc://localhost:1"), tmp_path / ("x" * 100), python=False)


def test_functions_in_python_follow_the_operators_word() -> None:
    assert admits_functions(NO_ISOLATION, {})
    assert not admits_functions(Isolation(required=True), {})
    assert admits_functions(Isolation(required=True), {"MERGEPLAN_ISOLATION_UDF": "allow"})
