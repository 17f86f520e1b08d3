"""What is said of an environment before and after a plan is applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.apply.backfill.before_after_all import AFTER, BEFORE, statements_of
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.state.store import StateStore
from tests.planner.builders import environment, snapshot
from tests.planner.project.test_loader import CONFIG, project_of
from tests.planner.shop import FILES, NOW, plan_and_apply, rows, write_shop

VIEWS = environment("dev", snapshot("shop.a"), snapshot("shop.b"))


def ran_statements(root: Path, key: str, statement: str, shown: Environment = VIEWS) -> list[str]:
    """The statements that run for an environment."""
    project = load_project(project_of(root, {"config.yaml": f"{CONFIG}{key}:\n- {statement}\n"}), NOW)
    return [text for _, text in statements_of(project, shown, key)]


@pytest.mark.parametrize(
    ("statement", "texts"),
    [
        (
            "'@EACH(@views, v -> GRANT SELECT ON VIEW @v TO ROLE x)'",
            [f"GRANT SELECT ON VIEW shop__dev.{name} TO ROLE x" for name in "ab"],
        ),
        ("'@EACH(@schemas, s -> GRANT USAGE ON SCHEMA @s TO y)'", ["GRANT USAGE ON SCHEMA shop__dev TO y"]),
        ("\"@IF(@this_env = 'prod', GRANT SELECT ON VIEW shop.a TO x)\"", []),
        ("CREATE SCHEMA IF NOT EXISTS udfs", []),  # mergeplan creates the schemas that it needs
        (
            "\"ALTER VIEW shop__dev.a SET TBLPROPERTIES ('env' = @this_env)\"",
            ["ALTER VIEW shop__dev.a SET TBLPROPERTIES ('env' = 'dev')"],
        ),
    ],
)
def test_statements_are_about_the_environments_own_views(statement: str, texts: list[str], tmp_path: Path) -> None:
    assert ran_statements(tmp_path, AFTER, statement) == texts


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DROP TABLE shop.a", "config.yaml:6: `DROP TABLE` in `before_all` is not supported. Allowed are GRANT"),
        ("SET spark.sql.ansi.enabled = true", "config.yaml:6: `SET spark.sql.ansi.enabled` in `before_all` is not"),
        (
            "GRANT SELECT ON VIEW shop.a TO x",
            "config.yaml:6: `before_all` may not change `shop.a`, which is no view or",
        ),
        ("GRANT SELECT ON VIEW @nobody TO x", "config.yaml:6: There is no macro or variable `@nobody`."),
    ],
)
def test_a_statement_that_reaches_further_is_refused(statement: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as error:
        ran_statements(tmp_path, BEFORE, f"'{statement}'")

    assert str(error.value).startswith(told)


def test_they_run_around_the_application(tmp_path: Path, engine: SparkEngine) -> None:
    none = dict.fromkeys(("items", "daily", "total", "shown"), "")
    both = "after_all: \"@EACH(@views, v -> ALTER VIEW @v SET TBLPROPERTIES ('env' = @this_env))\"\n"
    store = StateStore(f"sqlite:///{tmp_path}/state.db")

    plan_and_apply(write_shop(tmp_path / "shop", **none, config=FILES["config.yaml"] + both), engine, store)

    assert ("env", "prod") in rows(engine, "SHOW TBLPROPERTIES shop.apart")
    store.close()
