"""Project code over a real Spark: through the proxy, and not past it."""

from __future__ import annotations

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
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession

from mergeplan.planner.engine.protocol import Reading, Server
from mergeplan.planner.engine.spark.connect.connect_session import close_channel
from mergeplan.planner.engine.spark.connect.project_proxy import ProjectProxy
from mergeplan.planner.engine.spark.connect.proxied_session import SERVICE
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import RequestError
from mergeplan.planner.python.isolation import isolation_of
from tests.planner.asking import fill, run_codes
from tests.planner.engine.spark.attacks import ATTACKS
from tests.planner.shop import rows


@pytest.fixture
def items(engine: SparkEngine) -> SparkEngine:
    """A Spark with a table that may be read, and one that may not."""
    fill(engine)
    return engine


@pytest.fixture
def running_proxy(items: SparkEngine) -> Iterator[tuple[ProjectProxy, Path]]:
    """A proxy at a socket file; the folder's path is short because a socket's may not be long."""
    with tempfile.TemporaryDirectory(prefix="mp") as folder:
        path = Path(folder) / "s"
        proxy = items.connect_project(path, python=False)
        assert isinstance(proxy, ProjectProxy)
        proxy.admit(Reading(("phys.items",), {"given": "SELECT 5 AS id"}, "mergeplan_a"))
        yield proxy, path
        proxy.close()


@pytest.fixture
def client(running_proxy: tuple[ProjectProxy, Path]) -> Iterator[Any]:
    """A session through the proxy, closed before the proxy: pyspark asks an open one again when the process ends."""
    proxy, path = running_proxy

    class Socket(ChannelBuilder):
        def toChannel(self) -> Any:
            return self._insecure_channel(f"unix:{path}")

        @property
        def host(self) -> str:
            return "nowhere"

    builder = Socket(channelOptions=[("grpc.default_authority", "localhost")])
    builder.set(ChannelBuilder.PARAM_SESSION_ID, proxy.session)
    made: Any = SparkSession.builder
    spark = made.channelBuilder(builder).create()
    spark.client.set_retry_policies([DefaultPolicy(max_retries=1, max_backoff=50)])  # a test may close the proxy
    yield spark
    close_channel(spark)


def test_a_hostile_model_gets_nothing_but_reasons(items: SparkEngine, tmp_path: Path) -> None:
    answers = run_codes(items, tmp_path, {name: code for name, (code, _) in ATTACKS.items()})

    told = answers.pop("environment")
    assert {name: text for name, text in answers.items() if ATTACKS[name][1] not in text} == {}
    assert len(answers) == len(ATTACKS)
    assert "token" not in told
    assert "sc://" not in told
    assert rows(items, "SELECT id FROM shop.secret") == [(7,)]
    assert items.catalog.objects("shop") == {"secret"}
    assert len(rows(items, "SELECT id FROM phys.items")) == 3


def test_what_was_admitted_is_refused_when_the_model_has_answered(
    running_proxy: tuple[ProjectProxy, Path], client: Any
) -> None:
    assert client.sql("SELECT i.id FROM phys.items i JOIN given USING (id)").count() == 0
    client.range(1).createGlobalTempView("mergeplan_a_0")

    assert running_proxy[0].refuse() == ("global_temp.mergeplan_a_0",)
    with pytest.raises(SparkConnectGrpcException, match="is not a table that this model reads"):
        client.table("phys.items").count()


def test_a_view_that_could_not_be_made_is_no_name_to_read(client: Any) -> None:
    with pytest.raises(Exception, match="nothing"):
        client.table("phys.items").select("nothing").createOrReplaceTempView("mine")

    with pytest.raises(SparkConnectGrpcException, match="`mine` is not a table"):
        client.table("mine").count()


def test_a_function_in_python_is_refused_where_workers_are_not_isolated(client: Any) -> None:
    with pytest.raises(SparkConnectGrpcException, match="MERGEPLAN_ISOLATION_UDF=allow"):
        client.table("phys.items").mapInPandas(lambda parts: parts, "id int").count()


def test_an_error_of_spark_comes_without_its_stack(client: Any) -> None:
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN") as error:
        client.table("phys.items").select("nothing").collect()

    assert "org.apache" not in str(error.value)
    assert error.value.getCondition() == "UNRESOLVED_COLUMN.WITH_SUGGESTION"  # type: ignore[attr-defined]


def test_garbage_is_told_and_harms_nobody(running_proxy: tuple[ProjectProxy, Path], client: Any) -> None:
    chance = random.Random(5)  # noqa: S311  # a fuzz
    codes = set()
    with grpc.insecure_channel(
        f"unix:{running_proxy[1]}", options=[("grpc.default_authority", "localhost")]
    ) as channel:
        for method in ("Config", "AnalyzePlan", "ExecutePlan", "Interrupt", "CloneSession", "Nothing") * 20:
            with pytest.raises(grpc.RpcError) as error:
                channel.unary_unary(f"/{SERVICE}/{method}")(chance.randbytes(chance.randrange(60)), timeout=60)
            codes.add(error.value.code())  # type: ignore[attr-defined]

    assert codes == {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
    assert client.table("phys.items").count() == 3


def test_what_runs_ends_with_the_proxy(
    running_proxy: tuple[ProjectProxy, Path], client: Any, items: SparkEngine
) -> None:
    plan = client.range(10**12).selectExpr("max(id * id % 7)")._plan.to_proto(client.client)
    request = proto.ExecutePlanRequest(session_id=running_proxy[0].session, plan=plan)
    with grpc.insecure_channel(
        f"unix:{running_proxy[1]}", options=[("grpc.default_authority", "localhost")]
    ) as channel:
        answers = channel.unary_stream(f"/{SERVICE}/ExecutePlan")(request.SerializeToString())
        next(answers)  # it has begun

        running_proxy[0].close()

        with pytest.raises(grpc.RpcError):
            list(answers)
    assert rows(items, "SELECT count(*) FROM phys.items") == [(3,)]


def test_a_socket_with_too_long_a_path_is_told(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="Set TMPDIR to a shorter folder"):
        ProjectProxy(Server("sc://localhost:1"), tmp_path / ("x" * 100), python=False)


def test_functions_in_python_follow_the_operators_word_and_the_workers() -> None:
    assert isolation_of({"MERGEPLAN_ISOLATION_UDF": "allow"}).functions
    assert not isolation_of({"MERGEPLAN_ISOLATION": "none"}).functions
    with pytest.raises(RequestError, match="Use `allow`, or remove it"):
        isolation_of({"MERGEPLAN_ISOLATION_UDF": "yes"})
