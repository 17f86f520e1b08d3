"""Sessions on a Spark Connect server, and what is left of them."""

from __future__ import annotations

import gc
import weakref
from threading import Thread
from typing import Any

import pytest
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator as Iterator

from mergeplan.planner.engine.protocol import Connection, Server
from mergeplan.planner.engine.spark.catalog import session_conf
from mergeplan.planner.engine.spark.connect.connect_session import ConnectSession
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.engine.spark.session import LISTED


def connect(engine: SparkEngine) -> ConnectSession:
    url = engine._sessions.current.server().url
    return ConnectSession(Server(url, tuple(session_conf(Connection()).items())))


def close_session(session: ConnectSession) -> Any:
    session.close()
    return session.spark


def clone_session(session: ConnectSession) -> Any:
    frame: Any = session.run_unlisted("SELECT 1")
    session.close()
    return frame.sparkSession


def test_a_table_may_be_created_in_a_clone_of_the_session(engine: SparkEngine) -> None:
    """A server's answer is the same as that of a Spark of this process, and the setting reaches nothing else."""
    session = connect(engine)
    try:
        session.run_unlisted("CREATE TABLE made (id int) USING parquet")
        assert session.spark.conf.get(LISTED) != "false"
        assert session.spark.table("made").columns == ["id"]
    finally:
        session.close()


@pytest.mark.parametrize("left", [close_session, clone_session])
def test_a_closed_session_may_be_collected_while_pyspark_hands_over_a_task(engine: SparkEngine, left: Any) -> None:
    spark = left(connect(engine))
    pool: Any = Iterator._get_or_create_release_thread_pool()

    collected = Thread(target=spark.__del__, daemon=True)
    with pool._shutdown_lock:
        collected.start()
        collected.join(5)
        waits = collected.is_alive()

    assert not waits


def test_a_closed_session_is_not_kept_until_the_process_ends(engine: SparkEngine) -> None:
    session = connect(engine)
    client = weakref.ref(session.spark.client)

    session.close()
    del session
    gc.collect()

    assert client() is None
