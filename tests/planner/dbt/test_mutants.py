"""What dbt writes, spoiled at any place: a project opens, or a sentence says what is wrong. It is no defect."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack
import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.dbt_manifest import dbt_tables
from mergeplan.planner.project.loader import LoadOptions, load_project
from tests.mutants import mutants
from tests.planner.shop import NOW

from .recorded import SHOP

MANIFEST = json.loads(SHOP.with_name("shop_manifest.json").read_text())
CONFIG = """
gateways: {g: {connection: {type: spark}}}
model_defaults: {dialect: spark}
dbt: {manifest: ci/manifest.json, manifest_later: later/manifest.json}
"""
SNAPSHOT = """{% snapshot rates_kept %}
{{ config(strategy='check', check_cols=['rate'], unique_key='code', hard_deletes='invalidate') }}
select code, rate from {{ ref('rates') }}
{% endsnapshot %}
"""
COMPILED = {
    "total": "select sum(cents) as cents from shop.daily join shop.rates using (code)",
    "stg_items": "select id, day, code, price * 100 as cents from raw.items",
    "shown": "select cents from shop.total",
    "daily": "select id, day, code, cents from shop.stg_items",
    "rates_kept": "select code, rate from shop.rates",
    "no_negative": "select * from shop.total where cents < 0",
}
CATALOG = {
    "metadata": {"invocation_id": "1"},
    "nodes": {
        "seed.shop.rates": {
            "metadata": {"type": "table", "schema": "shop", "name": "rates", "owner": None},
            "columns": {
                name: {"type": kind, "index": index, "name": name, "comment": None}
                for index, (name, kind) in enumerate((("code", "string"), ("rate", "double"), ("since", "date")))
            },
            "stats": {},
        }
    },
    "sources": {},
    "errors": None,
}
RESULTS = {"metadata": {"invocation_id": "1"}, "args": {"full_refresh": True, "vars": {}}, "results": []}
KINDS = {"models": "model", "seeds": "seed", "macros": "macro", "snapshots": "snapshot", "tests": "singular_test"}
NO_JSON = ["", "[]", "null", "{", "[" * 100_000, '{"nodes": 1, "metadata": 1}', '"\\ud800"', "NaN", "\x00"]
Spoil = Callable[[Path, Any], None]


def make_manifest(later: str) -> dict[str, Any]:
    """The manifest with compiled texts, as they are in a first run or in a later one."""
    content: dict[str, Any] = json.loads(json.dumps(MANIFEST))
    content["metadata"]["invocation_id"] = "1"
    for node in content["nodes"].values():
        if node["resource_type"] != "seed":
            node["compiled_code"] = COMPILED.get(node["name"], "select 1 as failed from shop.daily where id is null")
    content["nodes"]["model.shop.daily"]["compiled_code"] += later
    return content


def make_partial_parse(root: Path) -> dict[str, Any]:
    """The content of partial_parse.msgpack."""
    files = {}
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root).as_posix()
        folder, _, path = name.partition("/")
        if path and folder in KINDS:
            kind = "schema" if path.endswith(".yml") else KINDS[folder]
            place = {"searched_path": folder, "relative_path": path, "project_root": "/ci", "modification_time": 0.0}
            files[f"shop://{name}"] = {
                "path": place, "checksum": _hash(file), "project_name": "shop", "parse_file_type": kind,
            }  # fmt: skip
    return {"files": files, "state_check": {"project_hashes": {"shop": _hash(root / "dbt_project.yml")}}}


def _hash(file: Path) -> dict[str, str]:
    return {"name": "sha256", "checksum": hashlib.sha256(file.read_text().strip().encode()).hexdigest()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project by manifests that dbt wrote."""
    root = tmp_path / "shop"
    shutil.copytree(SHOP, root, ignore=shutil.ignore_patterns("asks.sql", "target"))
    (root / "snapshots").mkdir()
    (root / "snapshots/rates_kept.sql").write_text(SNAPSHOT)
    (root / "config.yaml").write_text(CONFIG)
    for folder, later in (("ci", ""), ("later", " where day > '2026-01-01'")):
        (root / folder).mkdir()
        (root / folder / "manifest.json").write_text(json.dumps(make_manifest(later)))
        (root / folder / "partial_parse.msgpack").write_bytes(msgpack.packb(make_partial_parse(root)))
    (root / "ci/run_results.json").write_text(json.dumps(RESULTS))
    (root / "ci/catalog.json").write_text(json.dumps(CATALOG))
    return root


def write_manifest(root: Path, content: Any) -> None:
    (root / "ci/manifest.json").write_text(json.dumps(content))


def write_later(root: Path, content: Any) -> None:
    (root / "later/manifest.json").write_text(json.dumps(content))


def write_catalog(root: Path, content: Any) -> None:
    (root / "ci/catalog.json").write_text(json.dumps(content))


def write_results(root: Path, content: Any) -> None:
    (root / "ci/run_results.json").write_text(json.dumps(content))


def write_parsed(root: Path, content: Any) -> None:
    with suppress(OverflowError, ValueError):  # a number that msgpack cannot hold
        (root / "ci/partial_parse.msgpack").write_bytes(msgpack.packb(content))


DOORS: dict[str, tuple[Spoil, Any, int]] = {
    "manifest": (write_manifest, make_manifest(""), 10),
    "later": (write_later, make_manifest(" where day > '2026-01-01'"), 3),
    "catalog": (write_catalog, CATALOG, 2),
    "results": (write_results, RESULTS, 1),
}


def check(root: Path, spoil: Spoil, document: Any, count: int, seed: int) -> None:
    """AssertionError with each mutant that came to something else than a project or a sentence."""
    wrong = []
    for done, mutant in mutants(document, count, seed):
        spoil(root, mutant)
        try:
            project = load_project(root, NOW, options=LoadOptions(strict=False))
            messages = [error.message for refusal in project.refused.refusals for error in refusal.errors]
        except ProjectError as error:
            messages = [error.message]
            assert error.place
        except Exception as error:
            wrong.append(f"{done}: {type(error).__name__}: {error}"[:300])
            continue
        wrong += [f"{done}: {message}"[:300] for message in messages if not message or "Traceback" in message]
    assert not wrong, "\n".join(wrong)


def test_the_project_that_is_spoiled_opens(root: Path) -> None:
    project = load_project(root, NOW, options=LoadOptions(strict=False))

    assert not project.refused.refusals
    assert len(project.models) == 7  # a source among them


@pytest.mark.parametrize("door", DOORS)
def test_a_spoiled_file_of_dbt_is_said_in_a_sentence(root: Path, door: str) -> None:
    spoil, document, share = DOORS[door]
    check(root, spoil, document, 8 * share, seed=52)


def test_a_spoiled_memory_of_dbt_is_said_in_a_sentence(root: Path) -> None:
    check(root, write_parsed, make_partial_parse(root), 8, seed=52)


@pytest.mark.prove
@pytest.mark.parametrize("door", DOORS)
def test_thousands_of_spoiled_files_of_dbt_are_said_in_a_sentence(root: Path, door: str) -> None:
    spoil, document, share = DOORS[door]
    check(root, spoil, document, 300 * share, seed=7)


@pytest.mark.parametrize("text", NO_JSON)
@pytest.mark.parametrize("name", ["manifest.json", "catalog.json", "run_results.json"])
def test_what_is_no_json_is_said_at_its_file(root: Path, name: str, text: str) -> None:
    (root / "ci" / name).write_text(text)
    if text == "" and name != "manifest.json":
        return  # as if it were not there
    with pytest.raises(ProjectError) as failed:
        load_project(root, NOW)

    assert failed.value.place is not None
    assert failed.value.place.path == f"ci/{name}"


def test_a_wrong_key_is_named_with_its_node(root: Path) -> None:
    content = make_manifest("")
    content["nodes"]["model.shop.daily"]["columns"]["id"]["name"] = ["id"]
    write_manifest(root, content)
    with pytest.raises(ProjectError) as failed:
        load_project(root, NOW)

    assert str(failed.value).startswith("ci/manifest.json:1: `columns.id.name` of `model.shop.daily` is wrong: ")


def test_tables_of_spoiled_manifests_are_known_or_refused_in_a_sentence() -> None:
    for done, mutant in mutants(make_manifest(""), 400, seed=3):
        try:
            dbt_tables("manifest.json", json.dumps(mutant), json.dumps(CATALOG))
        except ProjectError as error:
            assert error.message, done
