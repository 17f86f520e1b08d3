"""Jars that cannot be fetched, a format that a running Spark lacks, and formats that a catalog remembers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.catalog import spark_folder
from mergeplan.planner.engine.spark.process.format_settings import check_formats, remember_formats, starting_conf
from mergeplan.planner.errors import RequestError

# In a process of its own: this one may have its Spark already.
OPENING = """
import json, sys
from pathlib import Path
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.engine import open_engine
from mergeplan.planner.errors import RequestError
conf = tuple(map(tuple, json.loads(sys.argv[1])))
try:
    open_engine(Connection(conf=conf, master="local[1]", formats=("delta",)), Path(sys.argv[2]))
except RequestError as error:
    print(error.message, error.hint)
"""


def test_jars_that_cannot_be_fetched_are_an_error_that_says_what_to_do(home: Path) -> None:
    nowhere = Path(home.parent, "ivy.xml")
    pattern = f'<artifact pattern="{home}/[artifact].jar"/>'
    resolvers = f'<resolvers><filesystem name="none">{pattern}</filesystem></resolvers>'
    nowhere.write_text(f'<ivysettings><settings defaultResolver="none"/>{resolvers}</ivysettings>')
    conf = (("spark.jars.ivySettings", str(nowhere)), ("spark.jars.ivy", str(home.parent / "ivy")))

    ran = subprocess.run([sys.executable, "-c", OPENING, json.dumps(conf), str(home)], capture_output=True, text=True)

    assert ran.stdout.startswith("Spark cannot fetch io.delta:delta-spark_4.1_2.13:4.4.0."), ran.stderr
    assert "`jars_dir`" in ran.stdout
    assert "https.proxyHost" in ran.stdout


def test_a_running_spark_without_the_format_is_refused() -> None:
    with pytest.raises(RequestError, match=r"without Delta, which this project's tables need\."):
        check_formats(["delta"], {"spark.sql.extensions": "x.Y"}, "sc://here")


def test_the_embedded_catalog_remembers_the_formats_of_its_tables(home: Path) -> None:
    spark_folder(home).mkdir(parents=True)
    first = starting_conf(Connection(formats=("delta",)), home)
    assert "spark.sql.extensions" not in starting_conf(Connection(), home)  # until a Spark has started with it

    remember_formats(Connection(formats=("delta",)), home)

    assert starting_conf(Connection(), home) == first
    with pytest.raises(RequestError, match=r"cannot have tables of delta and iceberg.*table_formats lists the formats"):
        starting_conf(Connection(formats=("iceberg",)), home)
