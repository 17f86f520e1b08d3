"""The files are read by programs of others: dbt itself, a parser of dbt's artifacts, and a documentation site's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.planner.cli.conftest import CommandLine

ROOT = Path(__file__).parents[3]
DBT, CONSUMERS = ROOT / ".venv-dbt/bin/python", ROOT / ".venv-consumers/bin"
EVERYTHING = ROOT / "tests/projects/everything"
MODELS, AUDITS = 15, 8
BOARD = "- name: Board\n  type: dashboard\n  owner: Ann\n  models: [shop.sales_summary]\n"
BY_DBT = """
import sys
from dbt.artifacts.schemas.catalog import CatalogArtifact
from dbt.artifacts.schemas.manifest import WritableManifest
from dbt.contracts.graph.manifest import Manifest
manifest = WritableManifest.read_and_check_versions(sys.argv[1] + "/manifest.json")
catalog = CatalogArtifact.read_and_check_versions(sys.argv[1] + "/catalog.json")
graph = Manifest.from_writable_manifest(manifest)
print(len(graph.nodes), len(graph.sources), len(graph.exposures), len(catalog.nodes), len(catalog.sources))
"""
BY_PARSER = """
import json, sys
from dbt_artifacts_parser.parser import parse_catalog_v1, parse_manifest_v12
manifest = parse_manifest_v12(json.load(open(sys.argv[1] + "/manifest.json")))
catalog = parse_catalog_v1(json.load(open(sys.argv[1] + "/catalog.json")))
print(len(manifest.nodes), len(manifest.sources), len(manifest.exposures), len(catalog.nodes), len(catalog.sources))
"""
pytestmark = pytest.mark.prove
needs_dbt = pytest.mark.skipif(not DBT.exists(), reason="no dbt: `make .venv-dbt/.ready` installs it")
needs_consumers = pytest.mark.skipif(
    not CONSUMERS.exists(), reason="no readers: `make .venv-consumers/.ready` installs them"
)


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """dbt's files of the project that has a model of every kind."""
    root = tmp_path_factory.mktemp("everything")
    shutil.copytree(EVERYTHING, root, dirs_exist_ok=True)
    (root / "exposures.yaml").write_text(BOARD)
    assert CommandLine(root)("docs", "--format", "dbt", "--output", "out").code == 0
    return root / "out"


def ask(python: Path, code: str, folder: Path) -> str:
    ran = subprocess.run([python, "-c", code, str(folder)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@needs_dbt
def test_dbt_reads_both_files_and_makes_its_graph_of_them(artifacts: Path) -> None:
    assert ask(DBT, BY_DBT, artifacts) == f"{MODELS + AUDITS} 3 1 {MODELS - 1} 3"


@needs_consumers
def test_a_parser_of_the_published_schemas_accepts_every_key(artifacts: Path) -> None:
    assert ask(CONSUMERS / "python", BY_PARSER, artifacts) == f"{MODELS + AUDITS} 3 1 {MODELS - 1} 3"


@needs_consumers
def test_a_documentation_site_is_made_of_them_with_lineage_by_column(artifacts: Path, tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: everything\nversion: '1'\nprofile: x\n")
    folders = ("--project-dir", str(tmp_path), "--target-dir", str(artifacts), "--output-dir", str(tmp_path / "site"))
    quiet = {**os.environ, "DO_NOT_TRACK": "1", "DOCGLOW_TELEMETRY": "0", "HOME": str(tmp_path)}
    ran = subprocess.run(
        [CONSUMERS / "docglow", "generate", *folders], capture_output=True, text=True, check=False, env=quiet
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    data = json.loads((tmp_path / "site/docglow-data.json").read_text())
    names = {model["name"] for model in data["models"].values()}
    assert {"daily_sales", "forecast", "sales_summary"} <= names
    assert "cents" in json.dumps(data["column_lineage"])


def test_another_project_of_ours_reads_them_as_external_tables(artifacts: Path, tmp_path: Path) -> None:
    reader = CommandLine(tmp_path)
    reader.write("config.yaml", (EVERYTHING / "config.yaml").read_text())
    reader.write("models/top.sql", "MODEL (name top.x, kind VIEW);\nSELECT * FROM shop.basket_sizes")
    ran = reader("create-external-models", "--dbt-manifest", str(artifacts / "manifest.json"))

    assert (ran.code, ran.err) == (0, "")
    assert "shop.basket_sizes" in (tmp_path / "external_models.yaml").read_text()
