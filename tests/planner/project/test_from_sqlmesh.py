"""What SQLMesh projects on Spark say and SQLMesh honours opens as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.project.loader import Project, load_project
from tests.planner.project.test_loader import CONFIG, NOW, project_of

ORDERS = "MODEL (name shop.orders, kind FULL, grains ['id AS order_id', (id, day)]);\nSELECT 1 AS id, 2 AS day"


def open_project(root: Path, config: str, **models: str) -> Project:
    """The project of a folder with more lines of config.yaml, and with these models, by file."""
    files = {f"models/{name.replace('__', '/')}.sql": text for name, text in models.items()}
    return load_project(project_of(root, {"config.yaml": CONFIG + config, **files}), NOW)


def test_a_character_of_private_use_is_no_variable(tmp_path: Path) -> None:
    assert open_project(tmp_path, 'variables: {x: "a\\ue0007\\ue001"}\n').defaults.variables == {"x": "a\ue0007\ue001"}


def test_keys_without_effect_are_accepted(tmp_path: Path) -> None:
    project = open_project(
        tmp_path,
        """      pre_ping: true
    test_connection: {type: duckdb}
    state_schema: sqlmesh
    scheduler: {type: builtin}
default_test_connection: {type: duckdb}
default_scheduler: {type: builtin}
username: ann
env_vars: {}
time_column_format: '%Y-%m-%d'
infer_python_dependencies: false
gateway_managed_virtual_layer: false
plan:
  auto_categorize_changes: {sql: full, python: 'off'}
  use_finalized_state: true
  always_recreate_environment: true
""",
        orders=ORDERS,
    )

    assert project.models["shop.orders"].metadata.grain == ("id", "day")


def test_a_gateway_without_a_connection_has_the_default_one(tmp_path: Path) -> None:
    config = "gateways:\n  dev:\n    variables: {n: 1}\ndefault_connection:\n  type: spark\n  concurrent_tasks: 7\n"
    project = load_project(project_of(tmp_path, {"config.yaml": config, "models/a.sql": ORDERS}), NOW)

    assert (project.gateway, project.config.gateways["dev"].connection.concurrent_tasks) == ("dev", 7)


def test_a_dialect_may_say_how_it_folds_names(tmp_path: Path) -> None:
    named = ORDERS.replace("(", "(dialect 'snowflake, normalization_strategy = uppercase', ", 1)

    project = open_project(
        tmp_path, "model_defaults:\n  dialect: spark,normalization_strategy=lowercase\n", orders=named
    )

    assert project.defaults.dialect == "spark"
    assert project.models["shop.orders"].dialect == "snowflake"


def test_names_that_differ_by_case_alone_are_one_name_in_spark(tmp_path: Path) -> None:
    """A project that distinguishes them elsewhere opens, and two models of one name are refused."""
    keeps = "model_defaults:\n  dialect: duckdb, normalization_strategy=case_sensitive\n"
    assert list(open_project(tmp_path / "one", keeps, orders=ORDERS.replace("orders", "Orders")).models) == [
        "shop.orders"
    ]

    with pytest.raises(ProjectError, match=r"shop\.orders"):
        open_project(tmp_path / "two", keeps, orders=ORDERS, other=ORDERS.replace("orders", "ORDERS"))


def test_names_are_inferred_from_paths_when_config_says_so(tmp_path: Path) -> None:
    models = {
        "shop__orders": "MODEL (kind FULL);\nSELECT 1 AS id",
        "deep__raw__days": "MODEL (name a.b);\nSELECT 1 AS x",
    }

    project = open_project(tmp_path, "model_naming: {infer_names: true}\n", **models)

    assert sorted(project.models) == ["a.b", "shop.orders"]


def test_session_properties_are_settings_before_the_query(tmp_path: Path) -> None:
    defaults = "model_defaults:\n  session_properties: {spark.sql.shuffle.partitions: 8, query_label: nightly}\n"
    own = "session_properties ('spark.sql.ansi.enabled' = false, spark.executor.cores = 2)"

    model = open_project(tmp_path, defaults, a=f"MODEL (name a.b, kind FULL, {own});\nSELECT 1 AS x").models["a.b"]

    assert [statement.head for statement in model.statements.pre_statements] == [
        "SET spark.sql.shuffle.partitions = 8",
        "SET spark.sql.ansi.enabled = false",
    ]
    assert [statement.head for statement in model.statements.shaping] == ["SET spark.sql.ansi.enabled = false"]


def test_settings_of_the_defaults_are_not_those_of_code_and_its_own_are_refused(tmp_path: Path) -> None:
    code = """
from sqlmesh import model
@model("shop.a", kind="FULL", columns={"id": "int"}%s)
def execute(context, **_):
    ...
"""
    project_of(tmp_path, {"models/a.py": code % ""})
    project = open_project(tmp_path, "model_defaults:\n  session_properties: {spark.sql.ansi.enabled: false}\n")
    assert project.models["shop.a"].statements.pre_statements == ()

    project_of(tmp_path, {"models/a.py": code % ', session_properties={"spark.sql.ansi.enabled": False}'})
    with pytest.raises(ProjectError, match=r"^models/a.py:3: .*has no effect on a Python model"):
        open_project(tmp_path, "")


QUOTED = """
t:
  model: '"s"."a"'
  inputs: {'NAME': [{id: 1}]}
  outputs: {query: [{id: 1}]}
"""


def test_names_in_yaml_may_be_quoted_as_in_any_dialect(tmp_path: Path) -> None:
    """As `create_test` and `create_external_models` write them."""
    for name in ('"raw"."Days"', "[raw].[Days]", "`raw`.`days`"):
        files = {
            "config.yaml": CONFIG,
            "external_models.yaml": f"- name: '{name}'\n  columns: {{id: int}}\n",
            "models/a.sql": "MODEL (name s.a, kind VIEW);\nSELECT id FROM raw.days",
            "tests/a.yaml": QUOTED.replace("NAME", name),
        }
        project = load_project(project_of(tmp_path / str(len(name)) / name[0], files), NOW)

        assert sorted(project.models) == ["raw.days", "s.a"]
        assert [test.model for test in project.tests] == ["s.a"]


def test_external_tables_of_gateways_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    text = "- name: '\"raw\".`Days`'\n- name: raw.other\n  gateway: local\n"
    (tmp_path / "external_models.yaml").write_text(text)

    assert list(open_project(tmp_path, "").models) == ["raw.days"]


def test_jinja_may_append_to_its_own_lists(tmp_path: Path) -> None:
    sql = "{% set names = ['a'] %}{% do names.append('b') %}SELECT {% for n in names %}1 AS {{ n }}, {% endfor %}2 AS c"

    model = open_project(tmp_path, "", a=f"MODEL (name a.b, kind FULL);\nJINJA_QUERY_BEGIN;\n{sql}\nJINJA_END;").models[
        "a.b"
    ]

    assert model.sql == "SELECT 1 AS a, 1 AS b, 2 AS c"


def test_schemas_are_created_by_mergeplan_alone(tmp_path: Path) -> None:
    sql = "MODEL (name a.b, kind FULL);\nCREATE SCHEMA IF NOT EXISTS `a`;\nSELECT 1 AS x;\n"
    sql += "create database if not exists c"

    model = open_project(tmp_path, "", a=sql).models["a.b"]

    assert (model.statements.pre_statements, model.statements.post_statements) == ((), ())


def test_a_macro_may_ask_for_the_columns_of_any_model(tmp_path: Path) -> None:
    macro = """
from sqlmesh import macro
@macro()
def every(evaluator):
    types = evaluator.columns_to_types("shop.b")
    return [f"{name} AS {name}_{kind.sql('spark').lower()}" for name, kind in types.items()]
"""
    project_of(tmp_path, {"macros/all.py": macro})
    models = {"a": "MODEL (name shop.a, kind FULL);\nSELECT @every() FROM shop.b", "b": ORDERS.replace("orders", "b")}

    model = open_project(tmp_path, "", **models).models["shop.a"]

    assert model.sql == "SELECT id AS id_int, day AS day_int FROM shop.b"


def test_a_macro_that_asks_for_unknown_columns_is_told_what_to_do(tmp_path: Path) -> None:
    macro = "from sqlmesh import macro\n@macro()\ndef every(evaluator):\n    evaluator.columns_to_types('raw.x')"
    project_of(tmp_path, {"macros/all.py": macro})

    with pytest.raises(ProjectError, match=r"^macros/all.py:4: .*the columns of `raw.x` are not known: declare them"):
        open_project(tmp_path, "", a="MODEL (name shop.a, kind FULL);\nSELECT @every() FROM raw.x")


def test_a_python_model_that_writes_sql_may_ask_for_columns_too(tmp_path: Path) -> None:
    code = """
from sqlmesh import model
@model("shop.{}", is_sql=True, kind="FULL", session_properties={{"label": "x"}})
def entrypoint(evaluator):
    return "SELECT " + ", ".join(evaluator.columns_to_types("shop.{}")) + " FROM shop.{}"
"""
    files = {"models/a.py": code.format("a", "b", "b"), "models/b.py": code.format("b", "orders", "orders")}
    project_of(tmp_path, files)

    project = open_project(tmp_path, "", orders=ORDERS)

    assert project.models["shop.a"].sql == "SELECT id, day FROM shop.b"


def test_lists_may_be_arrays(tmp_path: Path) -> None:
    sql = "MODEL (name a.b, kind FULL, grain ARRAY[x], audits ARRAY[not_null(columns = ARRAY[x])]);\nSELECT 1 AS x"

    model = open_project(tmp_path, "", a=sql).models["a.b"]

    assert (model.metadata.grain, [audit.name for audit in model.checks.audits]) == (("x",), ["not_null"])
