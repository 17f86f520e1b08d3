"""The YAML files of a project, spoiled at any place: it opens, or a sentence says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mergeplan.airflow.graph import ScheduleError, graph_of_document
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.project.loader import LoadOptions, load_project
from tests.mutants import mutants
from tests.planner.shop import NOW

CONFIG = {
    "gateways": {
        "day": {
            "connection": {"type": "spark", "shared_catalog": "shop", "config": {"spark.sql.ansi.enabled": "true"}},
            "variables": {"best": 1},
        }
    },
    "default_gateway": "day",
    "model_defaults": {"dialect": "spark", "start": "2026-01-01", "cron": "@daily", "owner": "me", "audits": []},
    "variables": {"best": 2, "sizes": [1, 2]},
    "linter": {"enabled": True, "rules": ["ambiguousorinvalidcolumn"], "warn_rules": ["noselectstar"]},
    "environment_ttl": "in 3 days",
    "users": [{"username": "ann", "github_username": "ann", "roles": ["required_approver"]}],
    "cicd_bot": {"type": "github", "auto_categorize_changes": {"sql": "full"}},
}
EXTERNAL = [
    {"name": "raw.orders", "description": "What the till writes.", "columns": {"id": "int", "day": "date"}},
    {"name": "raw.prices", "columns": {"id": "int"}, "audits": ["not_null(columns := id)"], "tags": ["a"]},
]
TESTS = {
    "test_days": {
        "model": "shop.daily",
        "description": "a day",
        "inputs": {"raw.orders": [{"id": 1, "day": "2026-01-01"}]},
        "vars": {"start": "2026-01-01"},
        "outputs": {"query": {"partial": True, "rows": [{"id": 1}]}, "ctes": {}},
    }
}
EXPOSURES = [
    {"name": "board", "type": "dashboard", "url": "https://b.example", "owner": "me", "models": ["shop.daily"]}
]
PIPELINE = {
    "name": "shop", "storage": "x", "catalog": "spark_catalog", "database": "shop", "configuration": {"a": "b"},
    "libraries": [{"glob": {"include": "models/**"}}],
}  # fmt: skip
MODEL = "MODEL (name shop.daily, kind FULL);\nSELECT id, day FROM raw.orders"
DOORS: dict[str, Any] = {
    "config.yaml": CONFIG,
    "external_models.yaml": EXTERNAL,
    "tests/test_days.yaml": TESTS,
    "exposures.yaml": EXPOSURES,
    "spark-pipeline.yml": PIPELINE,
}
SCHEDULE = {
    "version": 1, "environment": "prod", "project": "shop", "revision": 3,
    "models": [{
        "name": "shop.daily", "kind": "FULL", "computed": True, "parents": [], "cron": "@daily", "time_zone": "UTC",
        "interval_unit": "day", "owner": "me", "description": "", "tags": ["a"], "audits": [{"name": "x"}],
        "table": "t", "view": "v", "path": "models/daily.sql",
    }],
}  # fmt: skip


def check(root: Path, name: str, count: int, seed: int) -> None:
    """AssertionError with each mutant that came to something else than a project or a sentence."""
    for path, content in DOORS.items():
        if path != "spark-pipeline.yml":
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(json.dumps(content))
    (root / "models").mkdir()
    (root / "models/daily.sql").write_text(MODEL)
    wrong = []
    for done, mutant in mutants(DOORS[name], count, seed):
        (root / name).write_text(json.dumps(mutant))
        try:
            load_project(root, NOW, options=LoadOptions(strict=False))
        except MergeplanError as error:
            assert error.message
        except Exception as error:
            wrong.append(f"{done}: {type(error).__name__}: {error}"[:300])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", DOORS)
def test_a_spoiled_file_is_said_in_a_sentence(tmp_path: Path, name: str) -> None:
    check(tmp_path, name, 20, seed=52)


@pytest.mark.prove
@pytest.mark.parametrize("name", DOORS)
def test_a_thousand_spoiled_files_are_said_in_a_sentence(tmp_path: Path, name: str) -> None:
    check(tmp_path, name, 1_000, seed=7)


def test_a_spoiled_schedule_is_said_in_a_sentence() -> None:
    for done, mutant in mutants(SCHEDULE, 2_000, seed=52):
        try:
            graph = graph_of_document(mutant)
            assert graph.task_parents.keys() <= graph.models.keys()
            assert graph.crons
        except ScheduleError as error:
            assert str(error), done
