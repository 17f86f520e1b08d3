"""The models of `peer_apply` in a script as people write it: a table from each query, in four threads, and its view.

python -m benchmarks.hand_written CASE FOLDER     FOLDER holds the project whose Spark settings are taken
"""

from __future__ import annotations

import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import yaml
from pyspark.sql import SparkSession

from benchmarks.peer_apply import models_of, query_of

THREADS = 4
DAYS = {"@start_date": "DATE'2025-01-01'", "@end_date": "DATE'2025-12-31'"}


def open_spark(folder: Path) -> SparkSession:
    connection = yaml.safe_load((folder / "config.yaml").read_text())["gateways"]["local"]["connection"]
    builder = SparkSession.builder
    for key, setting in connection["config"].items():
        builder = builder.config(key, setting)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def build_tables(spark: SparkSession, queries: dict[str, str]) -> None:
    """Create a table of each query once those that it reads are there, and then the views; parents come first."""
    built: dict[str, Future[object]] = {}

    def create_table(name: str, query: str) -> None:
        for parent, done in list(built.items()):
            if f"physical.{parent} " in f"{query} ":
                done.result()
        spark.sql(f"CREATE TABLE physical.{name} USING parquet AS {query}")

    with ThreadPoolExecutor(THREADS) as pool:
        for name, query in queries.items():
            built[name] = pool.submit(create_table, name, query)
        for done in built.values():
            done.result()
        list(pool.map(lambda name: spark.sql(f"CREATE VIEW shop.{name} AS SELECT * FROM physical.{name}"), queries))


def main(case: str, folder: Path) -> None:
    queries = {}
    for name, text in models_of(case).items():
        query = query_of(text).replace("source.", "physical.").replace("shop.", "physical.")
        for macro, day in DAYS.items():
            query = query.replace(macro, day)
        queries[name] = query
    spark = open_spark(folder)
    for schema in ("physical", "shop"):
        spark.sql(f"CREATE SCHEMA {schema}")
    build_tables(spark, queries)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
