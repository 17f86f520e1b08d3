"""A dbt project by the manifests that the configuration names: `dbt` itself is not needed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.files.dbt.manifest import Manifest, load_manifest, manifest_project
from mergeplan.planner.parsing.files.dbt.nodes import DbtProject
from mergeplan.planner.parsing.files.dbt_manifest import catalog_types
from mergeplan.planner.parsing.files.schema import DbtConfig

RESULTS, CATALOG = "run_results.json", "catalog.json"


def read_manifests(root: Path, config: DbtConfig, files: Iterable[str]) -> DbtProject:
    """The project of `dbt: {manifest: ..., manifest_later: ...}`; ProjectErrors."""
    first = _manifest(root, config.manifest)
    later = _manifest(root, config.manifest_later) if config.manifest_later else None
    catalog = _sibling(root, config.manifest, CATALOG)
    types = catalog_types(json.loads(catalog)) if catalog else {}
    return manifest_project(first, later, types, files, lambda path: _text(root, path))


def _manifest(root: Path, path: str) -> Manifest:
    text = _text(root, path)
    if text is None:
        hint = "`dbt compile --full-refresh` writes it to target/manifest.json."
        raise ProjectError(f"There is no `{path}` in the project.", place=Place("config.yaml", 1), hint=hint)
    return load_manifest(path, text, _sibling(root, path, RESULTS))


def _sibling(root: Path, path: str, name: str) -> str | None:
    return _text(root, str(Path(path).with_name(name)))


def _text(root: Path, path: str) -> str | None:
    """The text of a file of the project, None where there is none within it."""
    file = (root / path).resolve()
    with suppress(OSError, UnicodeDecodeError):
        return file.read_text("utf-8") if file.is_relative_to(root.resolve()) else None
    return None
