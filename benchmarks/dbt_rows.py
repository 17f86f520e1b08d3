"""A dbt project built day by day by `dbt build` and by mergeplan, each in a warehouse of its own: do rows differ?

Each folder of rows is a day: the rows of `NAME.csv` are added to the table `raw.NAME` before the day's build.

    python -m benchmarks.dbt_rows PROJECT --rows DAY1 --rows DAY2 [--format delta] [--leave-out TABLE]

The packages of the project lie in its `dbt_packages`. MERGEPLAN_DBT_PYTHON names the Python that has dbt and pyspark.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml

from mergeplan.planner.model.table_format import FORMATS
from mergeplan.planner.project.dbt.inputs import PYTHON

SCHEMA = "analytics"
SECONDS = 3600
PROGRAM = """
import json, pathlib, sys
from pyspark.sql import SparkSession
steps = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]")
for name, value in steps["conf"].items():
    builder = builder.config(name, value)
spark = builder.enableHiveSupport().getOrCreate()
for step, argument in steps["steps"]:
    if step == "load":
        spark.sql("CREATE DATABASE IF NOT EXISTS raw")
        for file in sorted(pathlib.Path(argument).glob("*.csv")):
            rows = spark.read.csv(str(file), header=True, inferSchema=True).coalesce(1)
            rows.write.mode("append").format("parquet").saveAsTable(f"raw.{file.stem}")
    elif step == "build":
        from dbt.cli.main import dbtRunner
        built = dbtRunner().invoke(["--quiet", "build", *argument])
        failed = [f"{r.node.unique_id}: {r.message}" for r in built.result or () if r.status in ("error", "fail")]
        assert built.success, built.exception or failed
    else:
        for table in argument:
            frame = spark.table(table)
            types = {field.name.lower(): field.dataType.simpleString() for field in frame.schema}
            rows = sorted(json.dumps(json.loads(row), sort_keys=True) for row in frame.toJSON().collect())
            print("TABLE " + json.dumps([table, types, rows]), flush=True)
"""


@dataclass(frozen=True)
class Table:
    types: Mapping[str, str]
    rows: list[str]


@dataclass(frozen=True)
class Warehouse:
    """A folder with the project, and the Spark settings of its tables."""

    place: Path
    options: argparse.Namespace

    @property
    def project(self) -> Path:
        return self.place / "project"

    @property
    def settings(self) -> dict[str, str]:
        settings = list_settings(self.place)
        if self.options.format:
            form = FORMATS[self.options.format]
            release = form.releases[0]
            settings |= {"spark.jars.packages": release.package, **dict(release.settings)}
            settings |= {"spark.sql.extensions": release.extension} if release.extension else {}
            settings |= dict(form.embedded_settings)
        return settings

    def lay_out(self) -> None:
        shutil.copytree(self.options.project, self.project)
        content = yaml.safe_load((self.project / "dbt_project.yml").read_text("utf-8"))
        profile = str(content.get("profile") or content["name"])
        output = {"type": "spark", "method": "session", "host": "none", "schema": SCHEMA, "threads": 1}
        (self.project / "profiles.yml").write_text(
            json.dumps({profile: {"target": "prod", "outputs": {"prod": output}}})
        )
        if self.options.format:
            for part in ("models", "snapshots", "seeds"):
                content[part] = {**(content.get(part) or {}), "+file_format": self.options.format}
            (self.project / "dbt_project.yml").write_text(yaml.safe_dump(content))
        gateways = {"spark": {"connection": {"type": "spark", "config": self.settings}}}
        settings = {"gateways": gateways, "dbt": {"adapter": "spark", "target_schema": SCHEMA}}
        (self.project / "config.yaml").write_text(json.dumps(settings))

    def run_steps(self, *steps: tuple[str, Any]) -> str:
        program = json.dumps({"conf": self.settings, "steps": steps})
        return _run([os.environ[PYTHON], "-c", PROGRAM, program], self.place)

    def build_by_dbt(self) -> None:
        folders = ["--project-dir", str(self.project), "--profiles-dir", str(self.project)]
        steps = [step for rows in self.options.rows for step in (("load", str(rows)), ("build", folders))]
        self.run_steps(*steps)

    def build_by_mergeplan(self) -> None:
        for number, rows in enumerate(self.options.rows):
            self.run_steps(("load", str(rows)))
            verb = ["run"] if number else ["plan", "--auto-apply"]
            moment = (date.today() - timedelta(days=len(self.options.rows) - 1 - number)).isoformat()
            command = [sys.executable, "-m", "mergeplan", *verb, "-p", str(self.project), "--execution-time", moment]
            _run(command, self.place)

    def list_tables(self) -> list[str]:
        """Return the tables and views of dbt's nodes."""
        manifest = json.loads((self.project / "target/manifest.json").read_text("utf-8"))
        nodes = [node for node in manifest["nodes"].values() if node["resource_type"] in ("model", "seed", "snapshot")]
        names = {f"{node['schema']}.{node['alias']}" for node in nodes if node["config"]["materialized"] != "ephemeral"}
        return sorted(names - set(self.options.leave_out))

    def read_tables(self, names: list[str]) -> dict[str, Table]:
        lines = self.run_steps(("dump", names)).splitlines()
        found = [json.loads(line.removeprefix("TABLE ")) for line in lines if line.startswith("TABLE ")]
        return {name: Table(types, rows) for name, types, rows in found}


def list_settings(place: Path) -> dict[str, str]:
    """Return the settings of a Spark whose metastore and tables lie in a folder."""
    return {
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={place}/store;create=true",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        "spark.driver.extraJavaOptions": f"-Dderby.stream.error.file={place}/derby.log",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }


def _run(command: list[str], folder: Path) -> str:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    environment |= {"PYSPARK_PYTHON": os.environ[PYTHON]}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])[:200]} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def compare_tables(names: list[str], dbt: Mapping[str, Table], ours: Mapping[str, Table]) -> bool:
    """Print a line for each table; return whether all are the same."""
    all_same = True
    for name in names:
        same_types, same_rows = dbt[name].types == ours[name].types, dbt[name].rows == ours[name].rows
        words = "same" if same_types and same_rows else "TYPES DIFFER" if same_rows else "ROWS DIFFER"
        sys.stdout.write(f"{name:48} {len(dbt[name].rows):8,} {len(ours[name].rows):8,}  {words}\n")
        all_same &= same_types and same_rows
    return all_same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path)
    parser.add_argument("--rows", type=Path, action="append", default=[], help="a folder of CSV files, for a day")
    parser.add_argument("--format", choices=sorted(FORMATS))
    parser.add_argument("--leave-out", action="append", default=[], help="a table whose rows depend on chance")
    parser.add_argument("--keep", action="store_true", help="keep the two warehouses, and say where they are")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="mergeplan-rows-"))
    options.rows = [rows.resolve() for rows in options.rows] or [place / "none"]
    try:
        houses = [Warehouse(place / name, options) for name in ("dbt", "ours")]
        for house in houses:
            house.lay_out()
        houses[0].build_by_dbt()
        houses[1].build_by_mergeplan()
        names = houses[0].list_tables()
        is_same = compare_tables(names, *(house.read_tables(names) for house in houses))
    finally:
        if options.keep:
            sys.stdout.write(f"The warehouses are in {place}\n")
        else:
            shutil.rmtree(place, ignore_errors=True)
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
