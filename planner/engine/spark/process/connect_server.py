"""The Spark Connect server in a driver of our own, for clients on this machine that know the token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mergeplan.planner.engine.spark.session import USER

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def serving_conf(token: str) -> dict[str, str]:
    """Return the settings by which our own Spark also serves Spark Connect, on this machine and with this token."""
    return {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.connect.serverStacktrace.enabled": "false",
        "spark.connect.authenticate.token": token,
    }


def local_url(port: int, token: str) -> str:
    # By that name and no other pyspark sends a token without TLS.
    return f"sc://localhost:{port}/;token={token};user_id={USER}"


class ConnectServer:
    """The server of one driver; `token` is what a client must say, '' where none is served. Nobody else makes one."""

    def __init__(self, spark: SparkSession, token: str) -> None:
        self._spark, self.token = spark, token

    @property
    def port(self) -> int:
        service = getattr(self._spark._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$")
        return int(getattr(service, "MODULE$").localPort())

    def client_jobs(self, user: str, session: str, tag: str) -> int:
        java: Any = self._spark._jvm
        named = java.org.apache.spark.sql.connect.service.ExecuteSessionTag.apply(user, session, tag)
        scala: Any = self._spark.sparkContext._jsc.sc()
        scala.listenerBus().waitUntilEmpty()  # the books are kept by a thread of their own
        return len(scala.statusTracker().getJobIdsForTag(named))
