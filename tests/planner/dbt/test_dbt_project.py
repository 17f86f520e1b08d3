"""A dbt project as it is: opened, planned, computed and edited, by what its dbt said of it."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError, ProjectErrors, RequestError
from mergeplan.planner.model.exposure import Exposure
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.project.dbt.inputs import PYTHON, find_python, lies_apart, project_files, visible_variables
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from tests.planner.cli.conftest import Lent
from tests.planner.shop import NOW, rows

from .recorded import ANSWER, SHOP, record, times_asked

LENIENT = LoadOptions(strict=False)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shop's folder; its dbt is a recorded one."""
    root = tmp_path / "shop"
    shutil.copytree(SHOP, root)
    monkeypatch.setenv(PYTHON, str(record(tmp_path, root=root)))
    monkeypatch.setenv("MERGEPLAN_CACHE", str(tmp_path / "cache"))
    return root


def load(root: Path) -> Project:
    return load_project(root, NOW, options=LENIENT)


def test_nodes_are_models_of_our_kinds(shop: Path) -> None:
    models = load(shop).models

    assert {name: model.kind for name, model in models.items()} == {
        "raw.items": Kind.EXTERNAL,
        "shop.daily": Kind.INCREMENTAL_UNMANAGED,
        "shop.rates": Kind.SEED,
        "shop.shown": Kind.VIEW,
        "shop.stg_items": Kind.EMBEDDED,
        "shop.total": Kind.FULL,
    }
    assert [column.type for column in models["shop.rates"].columns] == ["string", "double", "date"]


def test_a_model_has_the_text_of_its_file_and_says_where_prod_is(shop: Path) -> None:
    notes = load(shop).notes
    profiles = shop / "profiles.yml"
    profiles.write_text(profiles.read_text().replace("prod", "dev"))
    project = load(shop)
    daily = project.models["shop.daily"]

    assert daily.written.dbt_text == (shop / daily.path).read_text() and "{{" in daily.written.dbt_text
    assert "MODEL (" in daily.source
    assert project.notes[0].startswith("prod is what dbt's target `dev` names: its tables are in `")
    assert project.notes[1:] == notes


def test_what_is_only_said_of_a_model_is_taken_along(shop: Path) -> None:
    daily = load(shop).models["shop.daily"]

    assert (daily.metadata.description, daily.metadata.owner, daily.metadata.tags) == (
        "Each item's price in cents.",
        "Ada",
        ("core",),
    )
    assert daily.metadata.column_descriptions == (("id", "The item."),)
    assert (daily.path, daily.line) == ("models/daily.sql", 1)


def test_tests_are_audits_that_block_or_warn_as_in_dbt(shop: Path) -> None:
    project = load(shop)
    audits = {call.name: project.audits[call.name].blocking for call in project.models["shop.total"].checks.audits}
    daily = {call.name: project.audits[call.name] for call in project.models["shop.daily"].checks.audits}

    assert sorted(audits.values()) == [False, True]  # an error from the second row on, a warning from the first
    assert [audit.blocking for name, audit in daily.items() if "accepted_values" in name] == [False]
    assert all("shop.daily" not in audit.sql for audit in daily.values())
    assert [name for name in daily if "no_negative" in name] == ["shop_no_negative"]


def test_a_model_that_asks_the_warehouse_is_refused_alone(shop: Path) -> None:
    project = load(shop)

    (error,) = project.refused.errors
    assert str(error).startswith("models/asks.sql:1: dbt cannot compile `shop.asks`: It runs `SHOW` while it is")
    assert (project.refused.names, project.refused.clear) == ({"shop.asks"}, True)


def test_what_reads_a_refused_model_is_left_out_where_names_have_the_default_catalog(
    shop: Path, tmp_path: Path
) -> None:
    answer = {"ok": json.loads(ANSWER.read_text().replace('"shop.', '"main.shop.').replace(" shop.", " main.shop."))}
    next(node for node in answer["ok"]["nodes"] if node["name"] == "daily")["error"] = "It asks something"
    record(tmp_path, answer, root=shop)
    connection = "{type: spark, default_catalog: main}"
    (shop / "config.yaml").write_text(f"gateways: {{g: {{connection: {connection}}}}}\n")

    project = load(shop)

    assert project.refused.names == {"shop.asks", "shop.daily", "shop.total", "shop.shown"}
    assert [reader.model for reader in project.refused.left_out] == ["shop.shown", "shop.total"]


def test_without_a_configuration_the_catalog_of_the_profile_is_the_default_one(shop: Path, tmp_path: Path) -> None:
    answer = {"ok": json.loads(ANSWER.read_text().replace('"shop.', '"main.shop.').replace(" shop.", " main.shop."))}
    record(tmp_path, answer, root=shop)
    (shop / "config.yaml").unlink(missing_ok=True)
    target = {"type": "databricks", "schema": "shop", "catalog": "Main"}
    (shop / "profiles.yml").write_text(json.dumps({"shop": {"target": "prod", "outputs": {"prod": target}}}))

    project = load(shop)

    assert project.catalogs.default == "main"
    assert {"shop.total", "shop.daily", "shop.rates"} <= project.models.keys()


def test_exposures_of_dbt_use_our_models(shop: Path, tmp_path: Path) -> None:
    answer = {"ok": json.loads(ANSWER.read_text())}
    nodes = ["model.shop.total", "source.shop.raw.items"]
    words = {"name": "Weekly", "type": "dashboard", "url": "ftp://x", "owner": "Ann"}
    answer["ok"]["exposures"] = [{**words, "depends_on": nodes}, {**words, "name": "Raw", "depends_on": nodes[1:]}]
    record(tmp_path, answer, root=shop)

    assert load(shop).exposures == (Exposure("Weekly", ("shop.total",), "dashboard", "Ann"),)


def test_what_dbt_runs_beside_models_is_named(shop: Path, tmp_path: Path) -> None:
    answer = {"ok": json.loads(ANSWER.read_text())}
    answer["ok"]["hooks"] = ["grant select on x to y"]
    answer["ok"]["unit_tests"][0]["error"] = "it overrides variables"
    record(tmp_path, answer, root=shop)

    assert load(shop).notes == (
        "models/schema.yml: The unit test `total_sums` does not run: it overrides variables. `dbt test` runs it.",
        "`on-run-start` and `on-run-end` do not run (1 statements).",
    )


def test_unit_tests_of_dbt_are_ours_on_the_line_where_they_stand(shop: Path) -> None:
    (test,) = load(shop).tests

    assert (test.name, test.model, str(test.place)) == ("total.total_sums", "shop.total", "models/schema.yml:34")
    assert test.inputs["shop.daily"].rows == ({"id": 1, "day": "2026-01-01", "code": "EUR", "cents": 100},)
    assert test.query is not None
    assert (test.query.rows, test.query.partial) == (({"cents": 100},), True)


def test_a_unit_test_of_dbt_fails_where_dbts_would(shop: Path, tmp_path: Path, engine: SparkEngine) -> None:
    def mergeplan_test() -> int:
        return run(VERBS, ["test", "-p", str(shop)], lambda *_: Lent(engine))  # type: ignore[arg-type, return-value]

    assert mergeplan_test() == 0
    answer = {"ok": json.loads(ANSWER.read_text())}
    answer["ok"]["unit_tests"][0]["expect"]["rows"][0]["cents"] = 101
    record(tmp_path, answer, root=shop)
    (shop / "models/other.sql").write_text("select 1 as a")

    assert mergeplan_test() == 1


def test_dbt_starts_again_only_when_a_file_changed(shop: Path, tmp_path: Path) -> None:
    arguments = ["plan", "-p", str(shop), "--no-prompts", "--skip-tests"]
    program = tmp_path / "dbt-python"

    assert [run(VERBS, arguments), run(VERBS, arguments)] == [0, 0]
    assert times_asked(program) == 1
    (shop / "macros/other.sql").write_text("{% macro other() %}1{% endmacro %}")
    assert run(VERBS, arguments) == 0
    assert times_asked(program) == 2


@pytest.mark.parametrize(
    "name", [".dbtignore", "models/logs/m.sql", "models/.drafts/m.sql", "dbt_packages/p/.dbtignore"]
)
def test_each_file_that_dbt_reads_counts(shop: Path, name: str) -> None:
    before = list(project_files(shop))
    (shop / name).parent.mkdir(parents=True, exist_ok=True)
    (shop / name).write_text("select 1")
    (shop / "logs").mkdir()
    (shop / "logs/dbt.log").write_text("what dbt writes")

    assert sorted({*before, name}) == sorted(project_files(shop))


@pytest.mark.parametrize(
    ("settings", "is_apart"),
    [
        ({}, False),
        ({"model-paths": ["models", "more/models"]}, False),
        ({"model-paths": ["../shared"]}, True),
        ({"seed-paths": [".data"]}, True),
        ({"macro-paths": ["target/macros"]}, True),
        ({"test-paths": ["{{ env_var('DBT_TESTS') }}"]}, True),
        ({"model-paths": ["."]}, True),
        ({"model-paths": ["/srv/models"]}, True),
    ],
)
def test_folders_whose_files_nobody_looks_at_are_known(
    shop: Path, settings: dict[str, list[str]], is_apart: bool
) -> None:
    assert lies_apart(shop, settings) is is_apart


def test_files_that_lie_elsewhere_are_read_each_time(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/x.sql").write_text("{% macro x() %}1{% endmacro %}")
    (shop / "dbt_packages").mkdir()
    (shop / "dbt_packages/shared").symlink_to(tmp_path / "shared")
    answer = {"ok": json.loads(ANSWER.read_text())}
    answer["ok"]["files"].append("dbt_packages/shared/x.sql")
    program = record(tmp_path, answer, root=shop)

    assert [run(VERBS, ["plan", "-p", str(shop), "--no-prompts", "--skip-tests"]) for _ in range(2)] == [0, 0]
    assert times_asked(program) == 2


def test_a_dbt_project_is_computed_by_its_first_run_and_by_later_ones(shop: Path, engine: SparkEngine) -> None:
    def open_engine(_connection: Connection, _home: Path, _profile: str) -> Engine:
        return Lent(engine)  # type: ignore[return-value]

    def mergeplan(verb: str, day: str) -> int:
        arguments = ["-p", str(shop), "--execution-time", day]
        return run(VERBS, [verb, *arguments, *(("--auto-apply",) if verb == "plan" else ())], open_engine)

    engine.fetch("CREATE DATABASE raw")
    engine.fetch("CREATE TABLE raw.items (id INT, day DATE, code STRING, price INT) USING parquet")
    engine.fetch("INSERT INTO raw.items VALUES (1, DATE'2026-01-01', 'EUR', 2), (2, DATE'2026-01-02', 'USD', 3)")
    assert mergeplan("plan", "2026-01-03") == 0
    assert rows(engine, "SELECT * FROM shop.total ORDER BY day")[-1][1:] == (270.0, 1)
    engine.fetch("INSERT INTO raw.items VALUES (3, DATE'2026-01-01', 'EUR', 9), (4, DATE'2026-01-03', 'EUR', 5)")
    assert mergeplan("run", "2026-01-04") == 0

    assert rows(engine, "SELECT id, cents FROM shop.daily ORDER BY id") == [(1, 200), (2, 300), (4, 500)]  # 3 is late
    assert rows(engine, "SELECT count(*) FROM shop.shown") == [(3,)]


def test_without_a_dbt_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestError, match="there is no dbt") as error:
        find_python({"PATH": "/nowhere"})
    assert PYTHON in error.value.hint


def test_the_python_of_a_dbt_may_be_named_from_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)

    assert find_python({PYTHON: "./python"}) == str(tmp_path / "python")
    with pytest.raises(RequestError, match="which is no program"):
        find_python({PYTHON: "./nothing"})


def test_a_projects_templates_see_no_secret() -> None:
    environment = {
        "DBT_SHOP_SCHEMA": "a", "DBT_ENV_SECRET_TOKEN": "b", "DBT_PROFILES_DIR": "c", "MERGEPLAN_STATE_URL": "d",
        "REGION": "e", "OTHER": "f", "MERGEPLAN_DBT_VARIABLES": "REGION, DBT_ENV_SECRET_TOKEN",
    }  # fmt: skip

    assert visible_variables(environment) == {"DBT_SHOP_SCHEMA": "a", "REGION": "e"}


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        ("shop: {target: prod, outputs: {prod: {type: duckdb}}}", "profiles.yml:1: The target `prod` is of the type"),
        ("shop: {target: dev, outputs: {prod: {type: spark}}}", "profiles.yml:1: profiles.yml has no target"),
        ("shop: {target: prod, outputs: {prod: {type: spark}}}", "profiles.yml:1: The target `prod` has no `schema`"),
        ("- 1", "profiles.yml:1: profiles.yml has no target"),
    ],
)  # fmt: skip
def test_a_profile_that_is_none_of_sparks_is_an_error_at_its_line(shop: Path, profiles: str, message: str) -> None:
    (shop / "profiles.yml").write_text(profiles)

    with pytest.raises(ProjectError, match=r"profiles\.yml") as error:
        load(shop)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("name", ["MERGEPLAN_STATE_URL", "GITHUB_TOKEN", "DBT_ENV_SECRET_SCHEMA"])
def test_no_secret_becomes_a_name_by_the_projects_own_profile(
    shop: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "hidden-7")
    output = f"{{type: spark, schema: \"{{{{ env_var('{name}') }}}}\"}}"
    (shop / "profiles.yml").write_text(f"shop: {{target: prod, outputs: {{prod: {output}}}}}")

    with pytest.raises(ProjectError, match=f"profiles.yml reads the environment variable `{name}`") as error:
        load(shop)
    assert "hidden-7" not in str(error.value)


def test_a_profile_of_the_operators_own_reads_variables_that_templates_do_not(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLACE", "live")
    monkeypatch.setenv("DBT_PROFILES_DIR", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    output = "{type: spark, schema: \"{{ env_var('PLACE') }}\"}"
    (tmp_path / "own/profiles.yml").write_text(f"shop: {{target: prod, outputs: {{prod: {output}}}}}")

    assert load(shop).models
    assert '\\"schema\\": \\"live\\"' in (tmp_path / "dbt-python.log").read_text()


def test_config_yaml_names_the_schema_where_there_is_no_profile(shop: Path, tmp_path: Path) -> None:
    (shop / "profiles.yml").unlink()
    (shop / "config.yaml").write_text("dbt: {target_schema: live, vars: {a: 1}}\n")

    assert load(shop).gateway == "spark"
    (asked,) = (tmp_path / "dbt-python.log").read_text().splitlines()
    assert '\\"schema\\": \\"live\\"' in asked
    assert json.loads(json.loads(asked)["vars"]) == {"a": 1}


@pytest.mark.parametrize("config", ["# later\n", "dbt: {target: production, target_schema: live}\n"])
def test_a_template_sees_the_targets_own_name(shop: Path, tmp_path: Path, config: str) -> None:
    output = "{type: spark, method: session, schema: live}"
    (shop / "profiles.yml").write_text(f"shop: {{target: production, outputs: {{production: {output}}}}}")
    (shop / "config.yaml").write_text(config)

    load(shop)

    (asked,) = (tmp_path / "dbt-python.log").read_text().splitlines()
    profile = json.loads(json.loads(asked)["profiles"])["shop"]
    assert (profile["target"], list(profile["outputs"])) == ("production", ["production"])


def test_format_leaves_templates_alone(shop: Path) -> None:
    before = (shop / "models/daily.sql").read_text()

    assert run(VERBS, ["format", "-p", str(shop)]) == 1
    assert (shop / "models/daily.sql").read_text() == before


def test_an_error_of_dbt_is_one_sentence_at_its_file(shop: Path, tmp_path: Path) -> None:
    wrong = {"message": "unexpected '}'", "path": "models/daily.sql", "line": 3, "called": False}
    record(tmp_path, {"error": wrong})

    with pytest.raises((ProjectError, ProjectErrors), match=r"models/daily.sql:3: unexpected '}'."):
        load(shop)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TEAM", "1", ("which a dbt project does not see", "`export MERGEPLAN_DBT_VARIABLES=TEAM`. ")),
        ("TEAM", None, ("which is not set", "`export TEAM=... MERGEPLAN_DBT_VARIABLES=TEAM`. ")),
        ("DBT_TEAM", None, ("which is not set", "`export DBT_TEAM=...`. ")),
    ],
)
def test_a_variable_that_templates_do_not_see_is_named(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str | None, said: tuple[str, str]
) -> None:
    missing = f"Env var required but not provided: '{name}'"
    record(tmp_path, {"error": {"message": missing, "path": "", "line": 0, "called": False}})
    monkeypatch.delenv(name, raising=False)
    if value:
        monkeypatch.setenv(name, value)

    with pytest.raises(
        ProjectError, match=rf"A template reads the environment variable `{name}`, {said[0]}\."
    ) as error:
        load(shop)
    assert error.value.hint.startswith(f"{said[1]}A name that begins with DBT_")


def test_without_a_profile_and_a_configuration_it_is_said_what_to_write(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / "profiles.yml").unlink()
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(ProjectError, match=r"There is no profiles\.yml\.") as error:
        load(shop)
    assert "`dbt: {adapter: ..., target_schema: ...}`" in error.value.hint


def test_a_seed_that_hooks_load_is_an_external_table_and_an_edit_of_how_changes_its_readers(
    shop: Path, tmp_path: Path
) -> None:
    answer = {"ok": json.loads(ANSWER.read_text())}
    seed = next(node for node in answer["ok"]["nodes"] if node["type"] == "seed")
    stamps = []
    for source in ("s3://b/x", "s3://b/y"):
        seed["post_hooks"] = [f"copy into {seed['relation']} from '{source}'"]
        record(tmp_path, answer, root=shop)
        project = load(shop)
        rates = project.models["shop.rates"]
        assert (rates.kind, [column.name for column in rates.columns][:1]) == (Kind.EXTERNAL, ["code"])
        assert "`shop.rates` is among the seeds that hooks load" in "".join(project.notes)
        (shop / "dbt_project.yml").write_text((shop / "dbt_project.yml").read_text() + "# edited\n")
        stamps.append(rates.stamp)
    assert "" not in stamps and len({*stamps}) == 2


def test_a_place_of_tables_has_no_effect_and_is_named(shop: Path, tmp_path: Path) -> None:
    answer = {"ok": json.loads(ANSWER.read_text())}
    total = next(node for node in answer["ok"]["nodes"] if node["name"] == "total")
    total["settings"]["location_root"] = "s3://b/tables"
    record(tmp_path, answer, root=shop)

    assert load(shop).notes == ("`location_root` has no effect (1 models): tables are where their schema is.",)
    assert load(shop).models["shop.total"].kind == Kind.FULL


def test_a_key_that_stands_twice_is_no_error_of_a_dbt_project(shop: Path) -> None:
    text = (shop / "dbt_project.yml").read_text()
    (shop / "dbt_project.yml").write_text(f"profile: other\n{text}clean-targets: [a]\nclean-targets: [b]\n")

    assert "shop.total" in load(shop).models


HIVE_PROFILE = """shop:
  target: prod
  outputs:
    prod: {type: databricks, schema: shop, host: h, http_path: /p, token: t}
"""
GATEWAY = "gateways: {lake: {connection: {type: spark}}}\ndefault_gateway: lake\n"


@pytest.mark.parametrize("config", ["", GATEWAY, f"{GATEWAY}dbt: {{adapter: databricks, target_schema: shop}}\n"])
def test_a_target_of_databricks_without_a_catalog_is_in_sparks_own(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str
) -> None:
    named = re.sub(r"(?<![\w.])(shop|raw)\.(?=\w)", r"`hive_metastore`.`\1`.", ANSWER.read_text())
    answer = json.loads(named.replace("raw`.items", "raw`.`items`"))
    monkeypatch.setenv(PYTHON, str(record(tmp_path, {"ok": answer}, root=shop)))
    (shop / "profiles.yml").write_text(HIVE_PROFILE)
    if config:
        (shop / "config.yaml").write_text(config)

    project = load(shop)

    assert project.refused.names == {"shop.asks"}  # by itself, as without this target: it asks Spark
    assert {"raw.items", "shop.daily", "shop.rates", "shop.stg_items", "shop.total"} <= project.models.keys()


def test_lint_counts_models_seeds_and_tests(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(VERBS, ["lint", "-p", str(shop)])

    assert "\n4 models, 1 seed and 7 tests opened. 1 error" in capsys.readouterr().out


def test_tests_in_our_own_format_count_beside_those_of_dbt(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "mergeplan_tests").mkdir()
    text = "a: {model: total, outputs: {table: []}}\nb: {macro: cents, call: '{{ cents(1) }}', outputs: {text: x}}\n"
    (shop / "mergeplan_tests/own.yaml").write_text(text)
    run(VERBS, ["lint", "-p", str(shop)])
    own = {test.name: test for test in load(shop).tests}

    assert "\n4 models, 1 seed and 9 tests opened." in capsys.readouterr().out
    assert own["a"].model == "shop.total"
    assert "a manifest stands for dbt here" in own["b"].error  # what was recorded has no text for it
