"""The settings of a gateway on a Spark of its own: honoured from the query to what readers see, or refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.prove

ROOT = Path(__file__).parents[4]
SCRIPT = """
import json, sys
from datetime import datetime
from pathlib import Path

from mergeplan.planner.cli.workspace import open_workspace
from mergeplan.planner.engine.protocol import Connection, Server
from mergeplan.planner.errors import RequestError
from mergeplan.planner.engine.spark.catalog import Owner, session_conf
from mergeplan.planner.engine.spark.engine import open_engine
from mergeplan.planner.engine.spark.connect.connect_session import ConnectSession
from tests.planner.cli.conftest import CommandLine

root, told = Path(sys.argv[1]), {}
NEW_YORK = (("spark.sql.ansi.enabled", "false"), ("spark.sql.session.timeZone", "America/New_York"))
small = (("spark.driver.memory", "700m"), ("spark.sql.shuffle.partitions", "1"))
engine = open_engine(Connection(conf=(*small, *NEW_YORK), master="local[2]", serves=True), root / "home", "metadata")
ours = CommandLine(root, engine)
first = ours("plan", "--auto-apply", "--output", "json")
told["planned"] = [first.code, first.err]
assert not first.code, first.out + first.err
ask = "SELECT h, d, wrong FROM s.{} ORDER BY h"
told["rows"] = {name: [list(map(str, row)) for row in engine.fetch(ask.format(name)).rows] for name in ("t", "v", "p")}
with engine.separate_session(("SET TIME ZONE 'UTC'", "SET spark.sql.ansi.enabled = true"), ()):
    told["read in UTC"] = {n: [list(map(str, row)) for row in engine.fetch(ask.format(n)).rows] for n in ("t", "v")}
told["seed"] = [row[0].isoformat() for row in engine.fetch("SELECT at FROM s.seed").rows]
told["instant"] = [row[0].isoformat() for row in engine.fetch("SELECT timestamp_seconds(0)").rows]
ours.edit("config.yaml", "America/New_York", "UTC")
again = ours("plan", "dev", "--skip-backfill", "--output", "json").result["plan"]
told["to UTC"] = {each["name"]: [each["category"], each["rule"]] for each in again["models"]}

url = engine._sessions.current.server().url
def connected(conf, owner=None):
    try:
        session = ConnectSession(Server(url, tuple(session_conf(Connection(conf=conf)).items())), owner)
    except RequestError as error:
        return str(error)
    said = [session.spark.conf.get(key) for key, _ in NEW_YORK]
    session.close()
    return said
told["server"] = [connected(()), connected(NEW_YORK), connected((), Owner(1, "warm"))]
engine.close()
print(json.dumps(told))
"""
CONFIG = """
gateways:
  spark:
    connection:
      type: spark
      config:
        spark.sql.ansi.enabled: false
        spark.sql.session.timeZone: America/New_York
model_defaults:
  start: 2026-01-01
"""
QUERY = "SELECT hour(at) AS h, CAST(at AS DATE) AS d, CAST('x' AS INT) AS wrong FROM s.seed\n"
PYTHON = """
from mergeplan import model
@model("s.p", kind="FULL", columns={"h": "int", "d": "date", "wrong": "int"})
def execute(context, **kwargs):
    table = context.table("s.seed")
    return context.spark.sql(f"SELECT hour(at) AS h, CAST(at AS DATE) AS d, CAST('x' AS INT) AS wrong FROM {table}")
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What came of a project, and of its server, on a Spark with ANSI off and another time zone."""
    root = tmp_path_factory.mktemp("settings")
    files = {
        "config.yaml": CONFIG,
        "models/seed.sql": "MODEL (name s.seed, kind SEED (path '../seeds/s.csv'), columns (at TIMESTAMP));\n",
        "seeds/s.csv": "at\n2026-01-02 23:30:00\n",
        "models/t.sql": f"MODEL (name s.t, kind FULL);\n{QUERY}",
        "models/v.sql": f"MODEL (name s.v, kind VIEW);\n{QUERY}",
        "models/p.py": PYTHON,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(root)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    yield json.loads(ran.stdout.splitlines()[-1])


def test_the_time_zone_and_ansi_that_are_configured_hold_for_every_kind(answers: dict[str, Any]) -> None:
    local = [["23", "2026-01-02", "None"]]

    assert answers["planned"] == [0, ""]
    assert answers["rows"] == {"t": local, "v": local, "p": local}
    assert answers["read in UTC"] == {"t": local, "v": local}  # a view keeps what it was made under


def test_a_seed_is_read_in_the_time_zone_and_handed_on_in_utc(answers: dict[str, Any]) -> None:
    assert answers["seed"] == ["2026-01-03T04:30:00+00:00"]
    assert answers["instant"] == ["1970-01-01T00:00:00+00:00"]


def test_another_time_zone_computes_every_model_anew(answers: dict[str, Any]) -> None:
    assert answers["to UTC"] == {f"s.{name}": ["breaking", "settings-changed"] for name in ("seed", "t", "v", "p")}


def test_a_server_with_settings_of_its_own_is_refused_until_they_are_written_down(answers: dict[str, Any]) -> None:
    refused, same, warm = answers["server"]

    assert "settings that config.yaml does not have: `spark.sql.ansi.enabled: false`" in refused
    assert same == ["false", "America/New_York"]
    assert warm == ["true", "UTC"]  # a warm Spark of ours is told what it lacks
