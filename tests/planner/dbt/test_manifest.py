"""A manifest that was made elsewhere, as in CI: what it says, and where it would say something old or half of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgpack
import pytest

from mergeplan.planner.errors import ProjectError, ProjectErrors
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from tests.planner.shop import NOW

CONFIG = """
gateways: {g: {connection: {type: spark}}}
model_defaults: {dialect: spark}
dbt: {manifest: ci/manifest.json, manifest_later: later/manifest.json}
"""
FILES = {
    "dbt_project.yml": "name: shop",
    "config.yaml": CONFIG,
    "models/total.sql": "select sum(a) as a from {{ ref('daily') }}\n",
    "models/daily.sql": "select a from {{ ref('rates') }} {% if is_incremental() %}where a > 1{% endif %}",
    "seeds/rates.csv": "a\n1\n",
    "macros/x.sql": "{% macro x() %}1{% endmacro %}",
    "models/t.yml": "models: [{name: total}]",
    "dbt_packages/more/dbt_project.yml": "name: more",
    "dbt_packages/more/macros/y.sql": "{% macro y() %}1{% endmacro %}",
    "dbt_packages/more/seeds/rates.csv": "town\nPrague\n",
}
KINDS_OF_FILES = {"models": "model", "seeds": "seed", "macros": "macro"}
TESTED = {"input": "ref('daily')", "rows": [{"a": 1}]}


def node(type_: str, path: str, compiled: str = "", **config: Any) -> dict[str, Any]:
    name = Path(path).stem
    return {
        "unique_id": f"{type_}.shop.{name}", "resource_type": type_, "name": name, "original_file_path": path,
        "package_name": "shop", "relation_name": f"s.{name}", "config": config, "compiled_code": compiled,
        "checksum": {"name": "sha256", "checksum": hashlib.sha256(FILES[path].strip().encode()).hexdigest()},
        "depends_on": {"nodes": ["model.shop.daily"] if name == "total" else ["seed.shop.rates"]},
    }  # fmt: skip


def manifest(daily: str) -> dict[str, Any]:
    nodes = [
        node("model", "models/total.sql", "select sum(a) as a from s.daily", materialized="table"),
        node("model", "models/daily.sql", daily, materialized="incremental", incremental_strategy="append"),
        node("seed", "seeds/rates.csv", column_types={"a": "int"}),
    ]
    nodes[1]["depends_on"]["macros"] = ["macro.dbt.is_incremental"]
    macro = {
        "package_name": "shop",
        "name": "x",
        "original_file_path": "macros/x.sql",
        "macro_sql": FILES["macros/x.sql"],
    }
    test = {
        "unique_id": "unit_test.shop.total.adds", "name": "adds", "original_file_path": "models/t.yml",
        "depends_on": {"nodes": ["model.shop.total"]}, "given": [TESTED], "expect": {"rows": [{"a": 1}]},
    }  # fmt: skip
    return {
        "metadata": {"adapter_type": "spark", "project_name": "shop", "invocation_id": "1", "dbt_version": "1.11.16"},
        "nodes": {item["unique_id"]: item for item in nodes},
        "macros": {"macro.shop.x": macro},
        "unit_tests": {"unit_test.shop.total.adds": test},
    }


def hash_of(text: str) -> dict[str, str]:
    return {"name": "sha256", "checksum": hashlib.sha256(text.encode()).hexdigest()}


def parsed_by_dbt() -> bytes:
    """What dbt writes beside a manifest that a job made in another folder."""
    files = {}
    for name, text in FILES.items():
        package, root = ("more", "/ci/shop/dbt_packages/more") if "packages" in name else ("shop", "/ci/shop")
        searched, _, path = name.removeprefix("dbt_packages/more/").partition("/")
        kind = "schema" if path.endswith(".yml") else KINDS_OF_FILES.get(searched)
        if kind:
            place = {"searched_path": searched, "relative_path": path, "project_root": root, "modification_time": 0.0}
            files[f"{package}://{name}"] = {
                "path": place, "checksum": hash_of(text.strip()), "project_name": package, "parse_file_type": kind,
            }  # fmt: skip
    projects = {"shop": FILES["dbt_project.yml"], "more": FILES["dbt_packages/more/dbt_project.yml"]}
    hashes = {name: hash_of(text) for name, text in projects.items()}
    return bytes(msgpack.packb({"files": files, "state_check": {"project_hashes": hashes}}))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with both manifests of `dbt compile`, and a catalog."""
    results = {"metadata": {"invocation_id": "1"}, "args": {"full_refresh": True}}
    catalog = {"nodes": {"seed.shop.rates": {"columns": {"a": {"name": "a", "type": "bigint", "index": 1}}}}}
    more = {
        "ci/manifest.json": json.dumps(manifest("select a from s.rates")),
        "ci/run_results.json": json.dumps(results),
        "ci/catalog.json": json.dumps(catalog),
        "later/manifest.json": json.dumps(manifest("select a from s.rates where a > 1")),
    }
    for name, text in (FILES | more).items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    for folder in ("ci", "later"):
        (tmp_path / folder / "partial_parse.msgpack").write_bytes(parsed_by_dbt())
    return tmp_path


def load(root: Path) -> Project:
    return load_project(root, NOW, options=LoadOptions(strict=False))


def change(root: Path, name: str, old: str, new: str) -> None:
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))


@pytest.fixture
def root_with_vars(root: Path) -> Path:
    """A project of dbt 1.12, whose manifests were made with `vars.yml`, profile `shop` and target `ci`."""
    # Of such a project dbt-core 1.12.6 wrote this hash.
    hashed = {"name": "sha256", "checksum": "024cdc8febae3c2226cc32d2276998e4dfc398a29f181d6cfc7680201c2410aa"}
    (root / "vars.yml").write_text("vars: {n: 3}\n")
    (root / "dbt_project.yml").write_text(FILES["dbt_project.yml"] + "\nprofile: shop")
    for folder in ("ci", "later"):
        parsed = msgpack.unpackb((root / folder / "partial_parse.msgpack").read_bytes())
        parsed["state_check"]["vars_hash"] = hashed
        parsed["state_check"]["project_hashes"]["shop"] = hash_of((root / "dbt_project.yml").read_text())
        (root / folder / "partial_parse.msgpack").write_bytes(msgpack.packb(parsed))
        change(root, f"{folder}/manifest.json", "1.11.16", "1.12.6")
    change(root, "config.yaml", "dbt: {", "dbt: {target: ci, ")
    return root


def test_a_manifest_that_was_made_with_the_variables_of_vars_yml_is_read(root_with_vars: Path) -> None:
    assert {*load(root_with_vars).models} == {"s.daily", "s.rates", "s.total"}


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("vars.yml", "vars: {n: 4}", "vars.yml:1"),
        ("vars.yml", "", "ci/manifest.json:1"),
        ("dbt_packages/more/vars.yml", "vars: {m: 1}", "dbt_packages/more/vars.yml:1"),
    ],
)
def test_a_manifest_that_was_made_with_other_variables_is_refused(
    root_with_vars: Path, name: str, text: str, place: str
) -> None:
    (root_with_vars / name).write_text(text)

    with pytest.raises((ProjectError, ProjectErrors), match=f"^{place}: ci/manifest.json "):
        load(root_with_vars)


def test_a_manifest_is_read_without_a_dbt(root: Path) -> None:
    project = load(root)

    assert {name: model.kind for name, model in project.models.items()} == {
        "s.daily": Kind.INCREMENTAL_UNMANAGED,
        "s.rates": Kind.SEED,
        "s.total": Kind.FULL,
    }
    assert [column.type for column in project.models["s.rates"].columns] == ["int"]
    assert "where a > 1" in project.models["s.daily"].source
    assert [(test.name, [*test.inputs]) for test in project.tests] == [("total.adds", ["s.daily"])]


def test_the_seed_of_a_package_is_that_of_its_own_file(root: Path) -> None:
    """dbt's path of it is that from the package's folder, where the project may have another file."""
    towns = {**node("seed", "seeds/rates.csv", column_types={"town": "string"}), "unique_id": "seed.more.rates"}
    towns |= {"package_name": "more", "relation_name": "s.towns", "depends_on": {}}
    columns = {"town": {"name": "town", "type": "string", "index": 1}}
    for name in ("ci/manifest.json", "later/manifest.json", "ci/catalog.json"):
        content = json.loads((root / name).read_text())
        content["nodes"]["seed.more.rates"] = towns if "manifest" in name else {"columns": columns}
        (root / name).write_text(json.dumps(content))

    seed = load(root).models["s.towns"].seed
    assert seed is not None
    assert (seed.path, seed.header) == ("dbt_packages/more/seeds/rates.csv", ("town",))


@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("models/daily.sql", "> 1", "> 2", "`s.daily`: Its file is another one than when the manifest was made"),
        ("config.yaml", ", manifest_later: later/manifest.json", "", "`manifest_later` does not have it"),
        ("later/manifest.json", " where a > 1", "", "Both manifests have the same form of it"),
        ("ci/manifest.json", "select a from s.rates", "", "has no compiled code of it"),
        ("ci/manifest.json", '"append"', '"microbatch"', "does not say how it reads a batch"),
    ],
)
def test_a_node_of_which_a_manifest_says_too_little_is_refused_alone(
    root: Path, name: str, old: str, new: str, why: str
) -> None:
    change(root, name, old, new)

    (error,) = load(root).refused.errors
    assert why in error.message


@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("ci/run_results.json", "true", "false", "ci/manifest.json:1: This manifest is not of `dbt compile --full"),
        ("ci/run_results.json", '"1"', '"2"', "ci/manifest.json:1: This manifest is not of `dbt compile --full"),
        ("ci/manifest.json", '"spark"', '"duckdb"', "ci/manifest.json:1: The manifest was made for `duckdb`"),
        ("macros/x.sql", "1", "2", "macros/x.sql:1: It is another file than when ci/manifest.json was made"),
        ("models/t.yml", "total", "daily", "models/t.yml:1: It is another file than when ci/manifest.json was made"),
        ("dbt_project.yml", "name: shop", "name: shop\nvars: {a: 1}", "dbt_project.yml:1: It is another file than"),
        ("dbt_packages/more/macros/y.sql", "1", "2", "dbt_packages/more/macros/y.sql:1: It is another file than when"),
        (
            "dbt_packages/more/dbt_project.yml",
            "more",
            "more\nvars: {}",
            "dbt_packages/more/dbt_project.yml:1: It is",
        ),
        ("ci/manifest.json", '"shop", "invocation', '"other", "invocation', "ci/manifest.json:1: The manifest is that"),
        (
            "ci/catalog.json",
            "shop.rates",
            "shop.other",
            "seeds/rates.csv:1: dbt cannot compile `s.rates`: The types of",
        ),
        ("config.yaml", "ci/manifest", "../manifest", "config.yaml:1: There is no `../manifest.json` in the project"),
        ("ci/manifest.json", '"models/total.sql"', '"models/old.sql"', "models/total.sql:1: ci/manifest.json does not"),
    ],
)
def test_a_manifest_that_is_old_or_another_one_is_an_error(root: Path, name: str, old: str, new: str, why: str) -> None:
    change(root, name, old, new)

    with pytest.raises((ProjectError, ProjectErrors)) as error:
        load(root)
    assert str(error.value).startswith(why)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("models/new.yml", "models/new.yml:1: ci/manifest.json does not know"),
        (
            "dbt_packages/more/macros/z.sql",
            "dbt_packages/more/macros/z.sql:1: ci/manifest.json does not know this file",
        ),
    ],
)
def test_a_file_that_dbt_did_not_read_is_an_error(root: Path, name: str, why: str) -> None:
    (root / name).write_text("{}")

    with pytest.raises(ProjectError) as error:
        load(root)
    assert str(error.value).startswith(why)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (None, "later/manifest.json:1: There is no partial_parse.msgpack beside the manifest"),
        (b"\xc1", "later/manifest.json:1: This is not what dbt writes beside a manifest"),
        (b"{}", "later/manifest.json:1: This is not what dbt writes beside a manifest"),
    ],
)
def test_a_manifest_whose_files_nobody_knows_is_an_error(root: Path, data: bytes | None, why: str) -> None:
    path = root / "later/partial_parse.msgpack"
    path.unlink()
    if data is not None:
        path.write_bytes(data)

    with pytest.raises(ProjectError) as error:
        load(root)
    assert str(error.value).startswith(why)


def test_a_manifest_of_200_mb_is_not_read(root: Path) -> None:
    with (root / "ci/manifest.json").open("r+b") as file:
        file.truncate(200_000_000)

    with pytest.raises(ProjectError, match=r"ci/manifest\.json:1: The file has 200 MB: of what dbt writes, 100 MB are"):
        load(root)
