"""Catalogs that a gateway does not have, met when a plan is made and applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.session.session import Session
from mergeplan.planner.session.settings import SessionSettings

CONFIG = "gateways:\n  spark:\n    connection: {{type: spark}}\nmodel_defaults: {{dialect: spark}}\n{more}\n"
EXTERNAL = "- name: memory.raw.b\n  columns: {x: int}\n"


def write_project(folder: Path, sql: str, more: str = "") -> Path:
    (folder / "models").mkdir()
    (folder / "config.yaml").write_text(CONFIG.format(more=more))
    (folder / "models/a.sql").write_text(f"MODEL (name shop.a, kind FULL);\n\n{sql}\n")
    (folder / "external_models.yaml").write_text(EXTERNAL)
    return folder


def settings(folder: Path) -> SessionSettings:
    return SessionSettings(folder, open_engine=_no_engine)


def _no_engine(*_: object) -> Engine:
    raise AssertionError("nothing here is asked of Spark")


def test_what_reads_a_catalog_that_is_not_there_is_planned_and_not_applied(tmp_path: Path) -> None:
    with Session(settings(write_project(tmp_path, "SELECT x FROM memory.raw.b"))) as session:
        plan = session.plan("prod")

        assert [change.name for change in plan.changes] == ["memory.raw.b", "shop.a"]
        with pytest.raises(
            ProjectError, match=r"`memory.raw.b` is in the catalog `memory`, which the gateway `spark`"
        ) as no:
            plan.apply()
    assert str(no.value.place) == "models/a.sql:3"


def test_an_environment_whose_views_have_no_catalog_is_refused_by_name(tmp_path: Path) -> None:
    folder = write_project(tmp_path, "SELECT 1 AS x", "environment_suffix_target: catalog")

    with Session(settings(folder)) as session, pytest.raises(ProjectError, match="`spark_catalog__dev`") as no:
        session.plan("dev")
    assert str(no.value.place).startswith("config.yaml")
