"""A warehouse in which dbt builds a project again and again, and the tables whose types or rows a build changed."""

from __future__ import annotations

import json
import os
from pathlib import Path

from benchmarks.dbt_rows import list_settings
from benchmarks.replay import Peer
from mergeplan.planner.project.dbt.inputs import PYTHON

PROGRAM = """
import hashlib, io, json, pathlib, sys
from contextlib import redirect_stdout
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

TYPES = [part for kind in ("model", "seed", "snapshot") for part in ("--resource-type", kind)]

def open_spark(settings, rows):
    global spark
    builder = SparkSession.builder.master("local[2]")
    for name, value in json.loads(settings).items():
        builder = builder.config(name, value)
    spark = builder.enableHiveSupport().getOrCreate()
    spark.sql("CREATE DATABASE IF NOT EXISTS raw")
    for file in sorted(pathlib.Path(rows).glob("*.csv")) if rows else ():
        spark.read.csv(str(file), header=True, inferSchema=True).coalesce(1).write.saveAsTable(f"raw.{file.stem}")

def build_project(root, profile, target):
    arguments = ["--quiet", "--no-partial-parse", "build", "--full-refresh", *TYPES, "--project-dir", root,
                 "--profiles-dir", root, "--profile", profile, "--target-path", target, "--log-path", target]
    with redirect_stdout(io.StringIO()):
        done = dbtRunner().invoke(arguments)
    if done.exception:
        raise done.exception
    return {r.node.unique_id: str(r.message)[:300] for r in done.result or () if str(r.status) in ("error", "skipped")}

def read_digests(tables):
    built = [table for table in tables.split() if spark.catalog.tableExists(table)]
    return {table: read_digest(spark.table(table)) for table in built}

def read_digest(frame):
    rows = sorted(json.dumps(json.loads(row), sort_keys=True) for row in frame.toJSON().collect())
    return hashlib.sha256(json.dumps([sorted(frame.dtypes), rows]).encode()).hexdigest()

VERBS = {"open": open_spark, "build": build_project, "read": read_digests}
for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = {"error": "", "result": VERBS[request.pop("verb")](**request)}
    except Exception as error:
        answer = {"error": str(error)[:500]}
    print("SAYS " + json.dumps(answer), flush=True)
"""


class DbtWarehouse:
    """A Spark of its own with a metastore in a folder."""

    def __init__(self, place: Path, rows: Path | None) -> None:
        place.mkdir()
        environment = {"PYSPARK_PYTHON": os.environ[PYTHON], "SPARK_LOCAL_IP": "127.0.0.1"}
        self._peer = Peer(os.environ[PYTHON], PROGRAM, DBT_SEND_ANONYMOUS_USAGE_STATS="false", **environment)
        settings = json.dumps(list_settings(place))
        self._peer.ask(verb="open", settings=settings, rows=str(rows.resolve()) if rows else "")
        self._target = str(place / "target")
        self._digests: dict[str, str] = {}

    def build_project(self, root: Path, profile: str) -> None:
        """Build a project whole; a node that fails keeps its table."""
        failed = self._peer.ask(verb="build", root=str(root), profile=profile, target=self._target)["result"]
        for node, message in failed.items():
            print(f"  dbt did not build {node}: {' '.join(message.split())}")

    def find_changed(self, tables: frozenset[str]) -> frozenset[str]:
        """Return the tables that are new, or have other types or rows than when they were asked before."""
        digests = self._peer.ask(verb="read", tables=" ".join(sorted(tables)))["result"]
        before, self._digests = self._digests, self._digests | digests
        return frozenset(name for name, digest in digests.items() if before.get(name) != digest)

    def close(self) -> None:
        self._peer.close()
