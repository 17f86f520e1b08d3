"""dbt-databricks over a local Spark with Delta: a stand-in for a workspace, which runs its own materializations.

Only `databricks.sql.connect` is replaced; the catalog `hive_metastore` is Spark's own. It says that it is a cluster of
Databricks Runtime 16.4. It shows neither Unity Catalog (`information_schema`, tags, `AS JSON`), nor a warehouse, nor
what a runtime from 17.1 on does instead (`REPLACE ON`), nor Databricks' own Spark.

`python workspace.py ROOT DAYS TABLES CREATE BATCHES SETTINGS` prints the rows of tables after a `dbt build` on each
day.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import date, datetime
from typing import Any

RUNTIME = "16.4.x-scala2.13"
DIALECT = {  # what Databricks understands, and Spark 4.1: a batch's columns are those of its table, in their order
    "`hive_metastore`": "`spark_catalog`",
    "USE CATALOG": "SET CATALOG",
    " BY NAME\n REPLACE WHERE": " REPLACE WHERE",
}
# Delta by itself knows no subquery in a DELETE: a MERGE deletes the same rows.
DELETE = re.compile(r"delete from (\S+)\s+where \S+\.(\w+) IN \(SELECT \2 FROM (\S+)\)\s*", re.IGNORECASE)
MERGE = r"MERGE INTO \1 AS t USING (SELECT DISTINCT \2 FROM \3) AS s ON t.\2 = s.\2 WHEN MATCHED THEN DELETE"
ASKED = "SET spark.databricks.clusterUsageTags.sparkVersion"


def literal(value: object) -> str:
    """A bound value as SQL."""
    if isinstance(value, date):
        return f"{'TIMESTAMP' if isinstance(value, datetime) else 'DATE'}'{value}'"
    if isinstance(value, str):
        return f"'{value}'"
    return "NULL" if value is None else str(value)


class Cursor:
    """A cursor of the DB API over a session."""

    query_id = "local"

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.description: list[tuple[str, ...]] | None = None
        self._rows: list[Any] = []

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def execute(self, sql: str, parameters: Any = None) -> Cursor:
        if parameters:  # of seeds
            sql = sql.replace("%s", "{}").format(*map(literal, parameters))
        if sql == ASKED:
            self.description, self._rows = [("key",), ("value",)], [("sparkVersion", RUNTIME)]
            return self
        for text, ours in DIALECT.items():
            sql = sql.replace(text, ours)
        frame = self.connection.spark.sql(DELETE.sub(MERGE, sql))
        self.description = [(name, kind, "", "", "", "", "") for name, kind in frame.dtypes]
        self._rows = [tuple(row) for row in frame.collect()]
        return self

    def schemas(self, catalog: str, schema: str | None = None) -> Cursor:
        self.execute("SHOW SCHEMAS" + (f" LIKE '{schema}'" if schema else ""))
        self.description = [("TABLE_SCHEM",), ("TABLE_CATALOG",)]
        self._rows = [(name, catalog) for (name,) in self._rows]
        return self

    def tables(self, catalog: str, schema: str) -> Cursor:
        self.execute(f"SHOW TABLES IN {schema}")
        self.description = [("TABLE_CAT",), ("TABLE_SCHEM",), ("TABLE_NAME",), ("TABLE_TYPE",)]
        self._rows = [(catalog, schema, name, "") for _, name, is_temporary in self._rows if not is_temporary]
        return self

    def fetchall(self) -> list[Any]:
        rows, self._rows = self._rows, []
        return rows

    def fetchmany(self, size: int) -> list[Any]:
        rows, self._rows = self._rows[:size], self._rows[size:]
        return rows

    def fetchone(self) -> Any:
        return next(iter(self.fetchmany(1)), None)

    def close(self) -> None:
        self._rows = []

    cancel = close


class Connection:
    """A connection of the DB API: all are the one session."""

    def __init__(self, spark: Any) -> None:
        self.spark = spark

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def cursor(self) -> Cursor:
        return Cursor(self)

    def get_session_id_hex(self) -> str:
        return "local"

    def close(self) -> None:
        pass


def main(root: str, days: str, tables: str, create: str, batches: str, settings: str) -> None:
    import databricks.sql
    from dbt.cli.main import dbtRunner
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config(map=json.loads(settings)).enableHiveSupport().getOrCreate()
    databricks.sql.connect = lambda **_: Connection(spark)
    spark.sql("CREATE DATABASE raw")
    spark.sql(create)
    since = json.loads(batches)
    for day, rows in json.loads(days).items():
        spark.sql(f"INSERT INTO raw.items VALUES {rows}")
        arguments = ["build", "--project-dir", root, "--profiles-dir", root, "--threads", "1"]
        arguments += ["--event-time-start", since[day], "--event-time-end", day]
        built = dbtRunner().invoke(arguments)
        assert built.success, built.exception or [
            (result.node.name, result.message) for result in built.result.results if result.status != "success"
        ]
    contents = {
        t: [json.loads(line) for line in spark.table(f"shop.{t}").toJSON().collect()] for t in json.loads(tables)
    }
    print("ROWS " + json.dumps(contents))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
