"""A package in dbt_packages that is hostile: none of what the service knows comes out, and its code does not run."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.dbt.nodes import LONGEST, DbtNode, DbtProject
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.project.dbt.compile import compile_dbt
from mergeplan.planner.project.dbt.folder import DbtFolder
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.loader import LoadOptions, load_project
from mergeplan.planner.python.dbt_code import child
from mergeplan.planner.python.isolation import NO_ISOLATION, Isolation
from tests.planner.dbt.admission import admit_project_code
from tests.planner.shop import NOW

from .recorded import SHOP
from .test_real_dbt import DBT, pytestmark  # noqa: F401 - the marks too

SECRETS = ("DBT_ENV_SECRET_TOKEN", "MERGEPLAN_STATE_URL", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY")
READABLE = (*SECRETS[1:], "PATH", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV", "LANG")
MACROS = """
{% macro steal() %}{% set got = [] %}
{% for name in NAMES %}{% do got.append(env_var(name, 'none')) %}{% endfor %}
{{ print(got) }}{{ log(got, info=true) }}{{ return(got | join(' ')) }}{% endmacro %}
{% macro ref() %}{{ evil.steal() }}{{ return(builtins.ref(*varargs, **kwargs)) }}{% endmacro %}
{% macro generate_schema_name(custom, node) %}{{ return(env_var('GITHUB_TOKEN', 'none')) }}{% endmacro %}
{% macro default__generate_schema_name(custom, node) %}{{ return(evil.steal()) }}{% endmacro %}
""".replace("NAMES", str([*READABLE]))
MODELS = {  # what it tries while it is compiled
    "asks": "select '{{ evil.steal() }}' as a from {{ ref('shop', 'total') }}",
    "secret": "select '{{ env_var('DBT_ENV_SECRET_TOKEN') }}' as a",
    "raises": "{{ exceptions.raise_compiler_error(evil.steal()) }}",
    "classes": "select '{{ ''.__class__.__mro__ }}' as a",
    "globals": "select '{{ cycler.__init__.__globals__.os.environ }}' as a",
    "functions": "select '{{ lipsum.__globals__ }}{{ adapter | attr('__init__') }}' as a",
    "runs": """select '{{ fromyaml("!!python/object/apply:os.system [touch MARK]") }}' as a""",
    "zones": "select '{{ modules.pytz.timezone('../../../../../../../etc/passwd') }}' as a",
    "files": "{% set t = run_query('select * from text.`/etc/passwd`') %}select '{{ t }}' as a",
    "config": "select '{{ adapter.config.credentials }}' as a",
    "moves": "select '{{ flags.PROFILES_DIR }}' as a",
    "lies": "select '{{ adapter.config.project_root }}' as a",
    "prints": "select '{{ adapter }}' as a",
}
PROGRAMS = ("setup.py", "conftest.py", "sitecustomize.py", "dbt/__init__.py", "agate.py", "yaml.py", "dbt_evil.py")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project with the package `evil`; `outside` beside it is nobody's."""
    monkeypatch.setenv(PYTHON, str(DBT))
    for name in SECRETS:
        monkeypatch.setenv(name, "hidden-7")
    (tmp_path / "outside").mkdir()
    for name in ("secret.sql", "secret.csv", "secret.yml"):
        (tmp_path / "outside" / name).write_text("select 'hidden-8' as a")
    root = Path(shutil.copytree(SHOP, tmp_path / "shop"))
    (root / "models/asks.sql").unlink()
    package = root / "dbt_packages/evil"
    for folder in ("macros", "models", "seeds", "dbt", ".git/hooks"):
        (package / folder).mkdir(parents=True)
    settings = {"name": "evil", "version": "1.0", "profile": "shop", "models": {"evil": {"+materialized": "table"}}}
    (package / "dbt_project.yml").write_text(json.dumps(settings))
    (package / "macros/evil.sql").write_text(MACROS)
    admit_project_code(tmp_path)
    yield root


def compiled(root: Path, isolation: Isolation = NO_ISOLATION) -> DbtProject:
    return compile_dbt(Folder(root, Cache(None)), DbtConfig(), os.environ, isolation, Cache(None))


def of_package(project: DbtProject) -> dict[str, DbtNode]:
    return {node.name: node for node in project.nodes if node.package == "evil"}


@pytest.mark.parametrize("isolation", [NO_ISOLATION, Isolation(required=True)])
def test_a_packages_templates_find_nothing_of_the_service(
    shop: Path, tmp_path: Path, isolation: Isolation, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, text in MODELS.items():
        text = text.replace("MARK", str(shop / "owned"))
        text = text if "ref(" in text else f"{{% if execute %}}{text}{{% endif %}}"
        (shop / f"dbt_packages/evil/models/{name}.sql").write_text(text)
    project = compiled(shop, isolation)
    nodes = of_package(project)
    texts = "".join(node.text + node.error for node in project.nodes)
    said = project.model_dump_json() + "".join(capfd.readouterr())

    assert nodes.keys() == MODELS.keys()
    assert not any(secret in said for secret in ("hidden-7", "root:x:"))
    assert not any(part in texts for part in (str(tmp_path), "0x7f"))
    assert nodes["asks"].text == f"select '{' '.join('none' for _ in READABLE)}' as a from shop.total"
    assert {name for name, node in nodes.items() if not node.error} == {"asks", "functions", "runs", "config"}
    assert all("another one on each machine" in nodes[name].error for name in ("moves", "lies", "prints"))
    assert not (shop / "owned").exists()


def test_a_packages_programs_and_hooks_do_not_run_and_nothing_is_fetched(shop: Path, tmp_path: Path) -> None:
    package, owned = shop / "dbt_packages/evil", shop / "owned"
    program = f"open({str(owned)!r}, 'w').write('x')\n"
    for folder in (shop, package):
        for name in PROGRAMS:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(program)
    (package / "models/code.py").write_text(f"{program}def model(dbt, session):\n    return session.table('x')\n")
    (package / ".git/hooks/post-checkout").write_text(f"#!/bin/sh\ntouch {owned}\n")
    (package / ".env").write_text("GITHUB_TOKEN=hidden-9\n")
    (package / "profiles.yml").write_text((shop / "profiles.yml").read_text().replace("'shop')", "'elsewhere')"))
    settings = json.loads((package / "dbt_project.yml").read_text())
    hooks = {"on-run-start": ["{{ evil.steal() }}", "drop table x"], "on-run-end": "drop table y"}
    (package / "dbt_project.yml").write_text(json.dumps({**settings, **hooks}))
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/evil.git"
        (package / "packages.yml").write_text(json.dumps({"packages": [{"git": address}, {"local": "../../.."}]}))
        (shop / "packages.yml").write_text(json.dumps({"packages": [{"git": address, "revision": "main"}]}))
        project = compiled(shop)
        with pytest.raises(BlockingIOError):
            server.accept()

    assert not owned.exists()
    assert [node.table for node in project.nodes if node.name == "total"] == ["shop.total"]
    assert DbtFolder(Folder(shop, Cache(None)), project).notes == (
        "`on-run-start` and `on-run-end` do not run (3 statements).",
    )


def test_the_secret_by_which_packages_are_fetched_is_not_needed(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBT_ENV_SECRET_TOKEN")
    address = "https://{{ env_var('DBT_ENV_SECRET_TOKEN') }}@git.shop/evil.git"
    (shop / "packages.yml").write_text(json.dumps({"packages": [{"git": address, "revision": "main"}]}))
    (shop / "models/secret.sql").write_text("select '{{ env_var('DBT_ENV_SECRET_TOKEN') }}' as a")

    with pytest.raises(ProjectError, match=r"Secret env vars are allowed only in profiles\.yml or packages\.yml"):
        compiled(shop)
    (shop / "models/secret.sql").unlink()
    assert [node.table for node in compiled(shop).nodes if node.name == "total"] == ["shop.total"]


@pytest.mark.parametrize("link", ["models/secret.sql", "models/secret.yml", "seeds/secret.csv", "macros/environ.sql"])
def test_a_packages_link_out_of_the_project_is_an_error_at_its_file(shop: Path, tmp_path: Path, link: str) -> None:
    target = "/proc/self/environ" if "environ" in link else tmp_path / "outside" / Path(link).name
    (shop / "dbt_packages/evil" / link).symlink_to(target)

    with pytest.raises(ProjectError) as error:
        compiled(shop, Isolation(required=True))
    assert "Permission denied" in str(error.value)
    assert not any(secret in str(error.value) for secret in ("hidden-7", "hidden-8"))


def test_a_package_that_reads_folders_outside_finds_them_empty(shop: Path) -> None:
    settings = json.loads((shop / "dbt_packages/evil/dbt_project.yml").read_text())
    folders = {"model-paths": ["models", "../../../outside"], "seed-paths": ["../../../outside"]}
    (shop / "dbt_packages/evil/dbt_project.yml").write_text(json.dumps({**settings, **folders}))
    project = compiled(shop, Isolation(required=True))

    assert not of_package(project)
    assert "hidden-8" not in project.model_dump_json()


def test_a_packages_seed_and_model_are_those_of_its_own_files(shop: Path) -> None:
    package = shop / "dbt_packages/evil"
    (package / "macros/evil.sql").unlink()
    (package / "seeds/rates.csv").write_text("town\nPrague\n")
    (package / "seeds/schema.yml").write_text("seeds: [{name: rates, config: {alias: towns}}]")
    (package / "models/total.sql").write_text(
        "{{ config(alias='theirs') }} select town from {{ ref('evil', 'rates') }}"
    )
    (shop / "models/schema.yml").write_text((shop / "models/schema.yml").read_text())
    project = load_project(shop, NOW, options=LoadOptions(strict=False))

    assert project.models["shop.theirs"].path == "dbt_packages/evil/models/total.sql"
    seed = project.models["shop.towns"].seed
    assert seed is not None
    assert (seed.path, seed.header) == ("dbt_packages/evil/seeds/rates.csv", ("town",))


EVERY = {"view", "table", "incremental", "ephemeral"}


@pytest.mark.parametrize(
    ("macro", "named", "refused"),
    [
        ("{% materialization table, adapter='spark' %}{{ return({'relations': []}) }}{% endmaterialization %}",
         "materialization_table", {"table"}),
        ("{% materialization table, default %}{{ return({'relations': []}) }}{% endmaterialization %}"
         "{% materialization incremental, adapter='spark' %}{{ return({'relations': []}) }}{% endmaterialization %}",
         "materialization_incremental", {"incremental"}),  # dbt-spark's own goes before one for any adapter
        ("{% macro spark__get_merge_sql(a, b, c, d, e) %}x{% endmacro %}", "get_merge_sql", {"incremental"}),
        ("{% macro is_incremental() %}{{ return(true) }}{% endmacro %}", "is_incremental", EVERY),
        ("{% macro should_full_refresh() %}{{ return(true) }}{% endmacro %}", "should_full_refresh", {"incremental"}),
        ("{% macro default__get_merge_update_columns(a, b, c) %}{{ return(['x']) }}{% endmacro %}",
         "get_merge_update_columns", {"incremental"}),
        ("{% macro get_column_names() %}id{% endmacro %}", "get_column_names", set()),  # which contracts alone call
    ],
)  # fmt: skip
def test_what_a_project_makes_in_another_way_than_dbt_is_refused(
    shop: Path, macro: str, named: str, refused: set[str]
) -> None:
    (shop / "macros/own.sql").write_text(macro)
    models = [node for node in compiled(shop).nodes if node.type == "model"]

    assert {node.materialized for node in models if node.error} == refused
    errors = {node.error for node in models} - {""}
    why = f"It is made by the macro `{named}` of the project's own, which mergeplan does not follow"
    assert errors == ({why} if refused else set())


def test_a_contract_whose_columns_a_macro_of_the_project_selects_is_refused(shop: Path) -> None:
    (shop / "macros/own.sql").write_text("{% macro get_select_subquery(sql) %}select 1 as id{% endmacro %}")
    (shop / "models/held.sql").write_text("{{ config(materialized='table') }} select 2 as id")
    contract = {
        "name": "held",
        "config": {"contract": {"enforced": True}},
        "columns": [{"name": "id", "data_type": "int"}],
    }
    (shop / "models/held.yml").write_text(json.dumps({"models": [contract]}))

    errors = {node.name: node.error for node in compiled(shop).nodes if "get_select_subquery" in node.error}
    assert errors.keys() == {"held", "daily"}  # the latter is incremental: also without a contract


def test_a_text_that_is_too_long_refuses_its_model_alone(shop: Path) -> None:
    (shop / "models/long.sql").write_text("select '{{ 'x' * LONGEST }}' as a".replace("LONGEST", str(LONGEST)))
    errors = {node.name: node.error for node in compiled(shop).nodes if node.type == "model" and node.error}

    assert errors == {"long": "Its text has more than 2,000,000 characters. Keep rows as a seed or a table"}
    assert LONGEST == child.LONGEST
