"""The address of Spark's own pages about what a plan computes, as the gateway names it."""

from __future__ import annotations

from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.parsing.files.schema import ConnectionConfig

APPLICATION = "{application_id}"


def spark_ui(connection: ConnectionConfig, engine: Engine) -> str:
    """Return the gateway's `spark_ui` with this application's id; '' if it has none. Raise QueryError.

    A history server or a proxy lists applications by their id, which a Spark Connect server knows too.
    """
    address = connection.spark_ui or ""
    if APPLICATION not in address:
        return address
    return address.replace(APPLICATION, str(engine.fetch("SET spark.app.id").rows[0][1]))
