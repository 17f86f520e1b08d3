"""Every dbt of the table in docs/reference/dbt.md compiles a project to the same models, tests and seeds."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.parsing.files.dbt.nodes import DbtProject, DbtQuestion
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.project.dbt.answers import NOTHING, Answer, Answers
from mergeplan.planner.project.dbt.compile import compile_dbt
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.python.isolation import NO_ISOLATION

from .recorded import SHOP
from .test_real_questions import MACROS

ROOT = Path(__file__).parents[3]
VERSIONS = {  # of dbt-core and dbt-spark, by the folder of their environment
    ".venv-dbt-1.7": ("1.7.20", "1.7.1"),
    ".venv-dbt-1.8": ("1.8.10", "1.8.0"),
    ".venv-dbt-1.9": ("1.9.11", "1.9.3"),
    ".venv-dbt-1.10": ("1.10.23", "1.10.3"),
    ".venv-dbt": ("1.11.16", "1.11.0"),
    ".venv-dbt-1.12": ("1.12.6", "1.11.0"),
}
REFERENCE = ".venv-dbt"
ASKS = {
    "starred": "select {% if execute %}{{ star(ref('total')) }}{% endif %} 1 as one from {{ ref('total') }}",
    "pivoted": """select {% for code in distinct_values('code', source('raw', 'items')) -%}
        '{{ code }}' as {{ code }},{% endfor %} 1 as one""",
    "grown": """{{ config(materialized='incremental') }}
        select 1 as a{% if load_relation(this) %} where 1=0{% endif %}""",
}
# What dbt itself says otherwise, and no row follows from.
DEFAULTS = ("lookback",)
pytestmark = pytest.mark.prove


class Canned(Answers):
    """Rows and tables of a Spark that is not there."""

    def answer(
        self, project: DbtProject, questions: Sequence[DbtQuestion], remembered: Mapping[str, Answer] = NOTHING
    ) -> dict[str, Answer]:
        rows = {"query": {"names": ["v"], "rows": [["EUR"], ["USD"]]}, "exists": {"exists": True}}
        known = {question.key: rows[question.kind] for question in questions if question.kind in rows}
        rest = [question for question in questions if question.kind not in rows]
        return {**known, **super().answer(project, rest, remembered)} if rest else known


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The shop in the words that all these versions read."""
    root = Path(shutil.copytree(SHOP, tmp_path / "shop"))
    schema = root / "models/schema.yml"
    text = schema.read_text().replace("data_tests:", "tests:")
    schema.write_text(re.sub(r"arguments: \{(.*?)\}([,}])", r"\1\2", text))
    (root / "macros/asking.sql").write_text(MACROS)
    for name, text in ASKS.items():
        (root / f"models/{name}.sql").write_text(text)
    return root


def compiled(shop: Path, environment: str, monkeypatch: pytest.MonkeyPatch) -> DbtProject:
    python = ROOT / environment / "bin/python"
    if not python.exists():
        pytest.skip(f"no {environment}: `make {environment}/.ready` makes it, as `make prove` does")
    monkeypatch.setenv(PYTHON, str(python))
    return compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None), Canned())


def nodes(project: DbtProject) -> dict[str, dict[str, Any]]:
    """Each node as data, without what the versions' defaults say."""
    data = {node.id: node.model_dump(mode="json") for node in project.nodes}
    for node in data.values():
        node["settings"] = {name: value for name, value in node["settings"].items() if name not in DEFAULTS}
    return data


@pytest.mark.parametrize("environment", sorted(VERSIONS.keys() - {REFERENCE}))
def test_another_dbt_makes_the_same_models_tests_and_seeds(
    shop: Path, environment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = compiled(shop, environment, monkeypatch)
    reference = compiled(shop, REFERENCE, monkeypatch)

    assert project.dbt == VERSIONS[environment][0]
    assert nodes(project) == nodes(reference)
    assert not [node.error for node in project.nodes if node.error]
    assert (project.sources, project.exposures) == (reference.sources, reference.exposures)
    assert project.unit_tests in (reference.unit_tests, ())  # which dbt has since 1.8
    texts = {node.name: (node.text, node.later) for node in project.nodes}
    assert "`day`,`cents`,`items`," in texts["starred"][0]
    assert "'EUR' as EUR,'USD' as USD," in texts["pivoted"][0]
    assert ["where 1=0" in text for text in texts["grown"]] == [False, True]


def test_the_guide_names_the_versions() -> None:
    guide = (ROOT / "docs/reference/dbt.md").read_text()

    assert all(f"| {core} | {spark} |" in guide for core, spark in VERSIONS.values())
