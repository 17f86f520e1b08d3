"""A project with a config.py, from outside: planned and applied on Spark, looked at, formatted."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from tests.planner.cli.conftest import CommandLine

CODE = """import os
from pathlib import Path

from dotenv import load_dotenv
from sqlmesh.core.config import Config, GatewayConfig, ModelDefaultsConfig, SparkConnectionConfig
from sqlmesh.core.config import DuckDBConnectionConfig

load_dotenv()
SPARK = {"spark.sql.shuffle.partitions": int(os.getenv("PARTITIONS", "1"))}
local = GatewayConfig(connection=SparkConnectionConfig(config=SPARK), test_connection=DuckDBConnectionConfig())
config = Config(
    gateways={"local": local},
    model_defaults=ModelDefaultsConfig(dialect="spark"),
    variables={"stage": os.environ.get("STAGE", "dev")},
)
"""


@pytest.fixture(name="mergeplan")
def _mergeplan(tmp_path: Path, engine: SparkEngine) -> CommandLine:
    mergeplan = CommandLine(tmp_path, engine)
    mergeplan.write("config.py", CODE)
    mergeplan.write("models/staged.sql", "MODEL (name shop.staged, kind FULL);\nSELECT @stage AS stage")
    return mergeplan


def test_a_project_with_a_config_py_is_planned_and_applied(
    mergeplan: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mergeplan("plan", "--auto-apply").code == 0
    assert "dev" in mergeplan("fetchdf", "select * from shop.staged").out

    monkeypatch.setenv("STAGE", "live")
    assert mergeplan("plan", "--auto-apply").code == 0
    assert "live" in mergeplan("fetchdf", "select * from shop.staged").out


def test_adopt_looks_at_such_a_project(mergeplan: CommandLine) -> None:
    assert "1 model" in mergeplan("adopt").out


def test_what_cannot_be_read_is_told_with_its_line_by_every_verb(offline: CommandLine) -> None:
    offline.write("config.py", CODE.replace("local = GatewayConfig(", "local = gateway_of("))

    for verb in (["plan"], ["lint"], ["adopt"], ["format", "--check"], ["doctor"], ["render", "shop.a"]):
        ran = offline(*verb)
        assert ran.code == 1
        assert "config.py:10: NameError: name 'gateway_of' is not defined" in ran.out + ran.err
    assert "This is a project already" in offline("init").err


def test_format_lays_out_such_a_project(offline: CommandLine) -> None:
    offline.write("config.py", CODE)
    offline.write("models/staged.sql", "MODEL (name shop.staged, kind FULL);\nSELECT 1 AS n\n")

    assert offline("format").code == 0
    offline.edit("config.py", 'dialect="spark"', 'dialect="sprak"')
    assert "config.py:13: " in offline("format").err
