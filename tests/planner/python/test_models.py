"""Python models as people write them: read from their decorator, computed over Spark, told where they are wrong."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.apply.unit_tests import run_unit_tests
from mergeplan.planner.engine.protocol import ProjectConnection, Server
from mergeplan.planner.engine.spark.connect.project_proxy import ProjectProxy
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import Cancelled, MergeplanError, PlanMoved
from mergeplan.planner.intervals import Interval
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column
from mergeplan.planner.project.loader import Project, load_project, override_variables
from mergeplan.planner.python.running import open_runner
from mergeplan.planner.state.store import StateStore
from tests.planner.building import change_of
from tests.planner.project.test_loader import project_of
from tests.planner.shop import FILES, NOW, make_plan, plan_and_apply, rows
from tests.sampling import prove_rest

DAY = Interval(NOW - timedelta(hours=NOW.hour, days=1), NOW - timedelta(hours=NOW.hour))
TOTALS = """
import typing as t
import pandas as pd
from sqlmesh import ExecutionContext, model
from sqlmesh.core.model import ModelKindName
from helpers import doubled

@model(
    "shop.totals",
    kind=dict(name=ModelKindName.FULL),
    columns={"id": "int", "price": "bigint", "note": "text"},
    description="Twice the price",
    owner="ann",
    tags=["a", "b c"],
    audits=[("not_null", {"columns": ["id"]})],
    column_descriptions={"id": "the key"},
)
def execute(context: ExecutionContext, **kwargs: t.Any) -> pd.DataFrame:
    frame = context.fetchdf(f"SELECT id, price, NULL AS note FROM {context.table('shop.items')}")
    frame["PRICE"] = doubled(frame.pop("price"))
    return frame
"""
DAILY = '''
from mergeplan import model
from pyspark.sql import functions as F

@model(
    "shop.daily",
    kind={"name": "INCREMENTAL_BY_TIME_RANGE", "time_column": "day"},
    columns={"day": "date", "price": "int", "loud": "string"},
)
def execute(context, start, end, execution_time, **kwargs):
    """All but the second day, in two parts."""
    loud = F.udf(lambda price: f"{price}!")
    table = context.spark.table(context.resolve_table("shop.items"))
    for part in ("day < '2026-01-02'", "day > '2026-01-02'"):
        rows = table.where(F.col("day").between(start.date(), end.date())).where(part)
        yield rows.withColumn("loud", loud("price")).drop("id")
'''
HELPERS = "def doubled(x):\n    return x * 2\n"
ITEMS = {name: FILES[name] for name in ("config.yaml", "seeds/items.csv", "models/items.sql")}
PYTHON = {
    "models/totals.py": TOTALS,
    "models/daily.py": DAILY,
    "helpers.py": HELPERS,
    "models/sum.sql": "MODEL (name shop.sum, kind FULL);\nSELECT sum(price) AS total FROM shop.totals",
    "tests/totals.yaml": """
test_totals:
  model: shop.totals
  inputs: {shop.items: [{id: 1, price: 4}]}
  outputs: {query: [{id: 1, price: 8, note: null}]}
""",
}
COLUMNS = 'columns={"id": "int"}'


def project_with(root: Path, files: dict[str, str]) -> Project:
    return load_project(project_of(root, {**ITEMS, **files}), NOW)


def model_file(body: str, arguments: str = COLUMNS, name: str = "a") -> dict[str, str]:
    """A Python model shop.NAME, whose function's body begins in line 5."""
    head = f'from sqlmesh import model\n\n@model("shop.{name}", {arguments})\n'
    return {f"models/{name}.py": f"{head}def execute(context, **kwargs):\n    {body}\n"}


def test_a_decorator_says_what_a_model_block_says(tmp_path: Path) -> None:
    model = project_with(tmp_path, PYTHON).models["shop.totals"]

    assert (model.kind, model.metadata.description, model.metadata.owner, model.metadata.tags) == (
        Kind.FULL,
        "Twice the price",
        "ann",
        ("a", "b c"),
    )
    assert model.columns == (Column("id", "int"), Column("price", "bigint"), Column("note", "string"))
    assert model.depends_on == ("shop.items",)
    assert [(call.name, call.arguments) for call in model.checks.audits] == [("not_null", (("columns", "(id)"),))]
    assert model.metadata.column_descriptions == (("id", "the key"),)
    assert (str(model.place), model.sql) == ("models/totals.py:8", "")


def test_blueprints_make_a_model_each_and_sql_may_come_of_a_function(tmp_path: Path) -> None:
    text = """
from sqlmesh import model

BELOW = [{"which": "cheap", "below": 5}, {"which": "dear", "below": 99}]

@model("shop.@{which}_items", is_sql=True, kind="FULL", blueprints=BELOW)
def entrypoint(evaluator):
    return f"SELECT id FROM shop.items WHERE price < {evaluator.blueprint_var('below')}"
"""

    project = project_with(tmp_path, {"models/a.py": text})
    models = project.models

    assert models["shop.cheap_items"].sql == "SELECT id FROM shop.items WHERE price < 5"
    assert models["shop.dear_items"].sql == "SELECT id FROM shop.items WHERE price < 99"
    assert models["shop.dear_items"].python is None
    again = override_variables(project, models["shop.dear_items"], {"below": 7})
    assert again.sql == "SELECT id FROM shop.items WHERE price < 99"  # a blueprint's own hides the project's


@pytest.mark.parametrize(
    "dialect", ["spark", "tsql", "snowflake", "bigquery", "duckdb,normalization_strategy=case_sensitive"]
)
def test_texts_and_names_of_columns_may_hold_anything_in_every_dialect(tmp_path: Path, dialect: str) -> None:
    texts = """columns={"id": "int", "the price": "int", "ökning": "int"}, description="It's \\"odd\\"; (yes)",
    column_descriptions={"the price": "{'a': 'b, c'}", "ökning": "more"}"""
    files = model_file("...", texts)
    config = f"gateways: {{dev: {{connection: {{type: spark}}}}}}\nmodel_defaults: {{dialect: '{dialect}'}}\n"
    model = load_project(project_of(tmp_path, {"config.yaml": config, **files}), NOW).models["shop.a"]

    assert model.metadata.description == 'It\'s "odd"; (yes)'
    assert [column.name for column in model.columns] == ["id", "the price", "ökning"]
    assert model.metadata.column_descriptions == (("the price", "{'a': 'b, c'}"), ("ökning", "more"))


@pytest.mark.prove
def test_statements_run_around_the_code_of_a_python_model(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    """Those of its decorator and those of the defaults; a query is none, and one that makes a table is refused."""
    around = """columns={"id": "int"}, post_statements=[
        "ALTER TABLE @this_model SET TBLPROPERTIES ('made' = 'by code')", "ANALYZE TABLE @this_model COMPUTE STATISTICS"
    ]"""
    files = model_file('return context.spark.sql("SELECT 1 AS id")', around)
    project = project_with(tmp_path, files)
    plan_and_apply(project, engine, store)
    table = store.environments.get("prod").snapshots["shop.a"].table  # type: ignore[union-attr]

    model = project.models["shop.a"]
    assert [statement.head.split()[0] for statement in model.statements.post_statements] == ["ALTER", "ANALYZE"]
    assert ("made", "by code") in engine.fetch(f"SHOW TBLPROPERTIES {table}").rows
    for statement, says in (
        ("SELECT 1", "its rows come from its code"),
        ("CREATE TABLE x (a INT)", "not supported"),
        ("SET spark.sql.ansi.enabled = false", "a session of its own"),
    ):
        wrong = model_file("...", f'{COLUMNS}, post_statements=["{statement}"]', "b")
        with pytest.raises(MergeplanError, match=says):
            load_project(project_of(tmp_path / says[:5], {"config.yaml": ITEMS["config.yaml"], **wrong}), NOW)


def test_an_edit_of_code_is_undecided_and_one_of_a_comment_is_none(tmp_path: Path) -> None:
    before = project_with(tmp_path / "a", PYTHON).models
    edited = project_with(tmp_path / "b", {**PYTHON, "helpers.py": HELPERS.replace("2", "3")}).models
    comment = project_with(tmp_path / "c", {**PYTHON, "helpers.py": f"# twice\n{HELPERS}"}).models
    described = {**PYTHON, "models/totals.py": TOTALS.replace("Twice", "Double")}

    changes = change_of(before, edited)

    assert {name: str(change.category) for name, change in changes.items()} == {
        "shop.totals": "undecided",
        "shop.sum": "indirect_breaking",
    }
    assert changes["shop.totals"].reason.startswith("The effect of an edit of Python code on the rows is not known")
    assert change_of(before, comment) == {}
    assert str(change_of(before, project_with(tmp_path / "d", described).models)["shop.totals"].category) == "metadata"


SIZES = """
    from pathlib import Path
    path = Path("data") / ".".join(["rates", "csv"])
    return context.spark.createDataFrame([(path.stat().st_size, context.var("x", 1))], "id int, y int")"""


@pytest.mark.prove
def test_an_edit_of_a_file_that_code_may_read_computes_its_model_again(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    files = {**model_file(SIZES.strip()), "data/rates.csv": "a,1\n", "data/other.csv": "b"}
    plan_and_apply(project_with(tmp_path, files), engine, store)
    for name, text in (("other", "bb"), ("rates", "a,11\n")):
        edited = project_with(tmp_path, files | {f"data/{name}.csv": text})
        plan = make_plan(edited, store)

        change = next(change for change in plan.changes if change.name == "shop.a")

        assert (str(change.category), change.recomputed) == ("undecided", True)
        assert change.reason.startswith("A file that its Python code may read changed, so it counts as breaking.")
        assert "every file of the project because of `path.stat()` at models/a.py:7." in change.reason
    plan_and_apply(edited, engine, store)
    assert rows(engine, "SELECT id FROM shop.a") == [(5,)]


def test_a_model_that_opens_no_file_is_untouched_by_an_edit_of_one(tmp_path: Path) -> None:
    before = project_with(tmp_path / "a", {**PYTHON, "data/rates.csv": "1"}).models
    edited = project_with(tmp_path / "b", {**PYTHON, "data/rates.csv": "2", "notes.md": "new"}).models

    assert change_of(before, edited) == {}


def test_a_variable_counts_where_the_code_names_it(tmp_path: Path) -> None:
    def digests(**variables: int) -> list[str]:
        files = {**model_file("return context.var('Low')"), **model_file("return 1", name="b")}
        config = f"{FILES['config.yaml']}variables: {json.dumps(variables)}\n"
        models = project_with(tmp_path, {**files, "config.yaml": config}).models
        return [python.digest for name in ("shop.a", "shop.b") if (python := models[name].python)]

    before, low, other = digests(low=1, other=1), digests(low=2, other=1), digests(low=1, other=2)

    assert before[0] != low[0]
    assert before[1] == low[1]
    assert before == other


def test_python_models_are_computed_and_tested_like_others(tmp_path: Path, engine: SparkEngine) -> None:
    project = project_with(tmp_path, PYTHON)

    with closing(StateStore(f"sqlite:///{tmp_path}/state.db", "shop")) as store:
        plan_and_apply(project, engine, store).raise_failure()

    assert rows(engine, "SELECT id, price, note FROM shop.totals ORDER BY id") == [
        (1, 20, None),
        (2, 40, None),
        (3, 60, None),
    ]
    assert rows(engine, "SELECT total FROM shop.sum") == [(120,)]
    assert rows(engine, "SELECT CAST(day AS STRING), price, loud FROM shop.daily ORDER BY day") == [
        ("2026-01-01", 10, "10!"),
        ("2026-01-04", 30, "30!"),
    ]
    assert [result.message for result in run_unit_tests(engine, project, project.tests)] == [""]


@pytest.mark.parametrize(
    ("body", "told"),
    prove_rest(
        [
            ("raise ValueError('no luck\\nat all')", "models/a.py:5: `shop.a` failed: ValueError: no luck."),
            (
                "return None",
                "models/a.py:3: `shop.a` failed: TypeError: it returned nothing: return a Spark or pandas frame",
            ),
            (
                "return [1]",
                "models/a.py:3: `shop.a` failed: TypeError: it returned a list: return a Spark or pandas frame.",
            ),
            (
                "import os; print('bye'); os._exit(7)",
                "models/a.py:3: `shop.a` failed: Python ended with exit code 7, and wi",
            ),
            ("raise SystemExit(2)", "models/a.py:5: `shop.a` failed: It exited Python: SystemExit: 2."),
            (
                "context.table('shop.' + 'b')",
                "models/a.py:5: `shop.a` failed: ValueError: `shop.b` is not a table that this m",
            ),
            (
                "context.var('thresh' + 'old')",
                "models/a.py:5: `shop.a` failed: ValueError: the name of the variable `thresh",
            ),
            (
                "import pandas; yield pandas.DataFrame([[1, 2]], columns=['id', 'ID'])",
                "models/a.py:3: `shop.a` failed: ValueError: it returned the column `id` 2 times.",
            ),
            (
                "import pandas; yield pandas.DataFrame()",
                "models/a.py:3: `shop.a` failed: ValueError: it returned no column `id`, which the model declares; its",
            ),
            ("context.magic", "models/a.py:5: `shop.a` failed: AttributeError: `context.magic` is not supported."),
        ],
        2,
    ),
)
def test_code_that_fails_is_told_at_its_line(body: str, told: str, tmp_path: Path) -> None:
    config = f"{FILES['config.yaml']}variables: {{threshold: 1}}\n"
    files = {**model_file(body, f"{COLUMNS}, depends_on=['shop.items']"), "config.yaml": config}
    project = project_with(tmp_path, files)

    with pytest.raises(MergeplanError) as error:
        run(project)

    assert str(error.value).startswith(told)


def test_a_generator_that_yields_nothing_gives_no_rows(tmp_path: Path) -> None:
    project = project_with(tmp_path, model_file("yield from ()"))

    with open_runner(project.code, NoSpark()) as python, python.rows(project.models["shop.a"], DAY, {}, NOW) as sql:
        assert sql == "SELECT CAST(NULL AS int) AS `id` WHERE FALSE"


def test_values_of_a_column_of_two_types_leave_other_columns_as_they_are(tmp_path: Path, engine: SparkEngine) -> None:
    body = "import pandas; yield pandas.DataFrame({'id': [1, '2'], 'b': [bytes([255]), b'x'], 'a': [[1], [2]]})"
    columns = 'columns={"id": "int", "b": "binary", "a": "array<int>"}'
    project = project_with(tmp_path, model_file(body, columns))

    with open_runner(project.code, engine) as python, python.rows(project.models["shop.a"], DAY, {}, NOW) as sql:
        assert rows(engine, f"SELECT * FROM ({sql}) ORDER BY id") == [(1, b"\xff", [1]), (2, b"x", [2])]


def test_fields_of_a_struct_in_a_frame_go_by_their_names(tmp_path: Path, engine: SparkEngine) -> None:
    body = "yield context.spark.sql(\"SELECT named_struct('b', 1, 'a', 2) AS s, 7 AS id\")"
    columns = 'columns={"id": "int", "s": "struct<a: bigint, b: int>"}'
    project = project_with(tmp_path, model_file(body, columns))

    with open_runner(project.code, engine) as python, python.rows(project.models["shop.a"], DAY, {}, NOW) as sql:
        assert rows(engine, f"SELECT id, s.a, s.b FROM ({sql})") == [(7, 2, 1)]


def test_a_column_that_is_not_returned_is_told(tmp_path: Path) -> None:
    body = "import pandas; return pandas.DataFrame({'Key': [1]})"
    project = project_with(tmp_path, model_file(body))

    with pytest.raises(MergeplanError) as error:
        run(project)

    assert str(error.value) == (
        "models/a.py:3: `shop.a` failed: ValueError: it returned no column `id`, which the model declares; it returned "
        "`key`."
    )


def test_code_that_is_not_what_was_planned_is_not_run(tmp_path: Path) -> None:
    planned = project_with(tmp_path, model_file("return 1")).models["shop.a"]
    project = project_with(tmp_path, model_file("return 2"))

    with pytest.raises(PlanMoved, match="was planned with other Python code"):
        run(replace(project, models={"shop.a": planned}))


def test_a_run_that_is_stopped_is_cancelled(tmp_path: Path) -> None:
    project = project_with(tmp_path, model_file("import time; time.sleep(60)"))

    with pytest.raises(Cancelled), open_runner(project.code, NoSpark()) as python:
        threading.Timer(1.5, python.stop).start()
        with python.rows(project.models["shop.a"], DAY, {}, NOW):
            pass


def run(project: Project) -> None:
    with open_runner(project.code, NoSpark()) as python, python.rows(project.models["shop.a"], DAY, {}, NOW):
        pass


class NoSpark:
    """An engine that nothing is asked of but a connection."""

    def engine_for(self, gateway: str) -> NoSpark:
        return self

    def connect_project(self, path: Path, *, python: bool) -> ProjectConnection:
        return ProjectProxy(Server("sc://localhost:1"), path, python=python)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


RUNNING = """
from sqlmesh import model
import pandas as pd

@model("shop.running", kind={"name": "INCREMENTAL_BY_TIME_RANGE", "time_column": "day"},
       columns={"day": "date", "total": "bigint"})
def execute(context, start, end, execution_time, **kwargs):
    own, items = context.table("shop.running"), context.table("shop.items")
    before = context.fetchdf(f"SELECT coalesce(max(total), 0) AS t FROM {own}").iloc[0]["t"]
    new = context.fetchdf(f"SELECT coalesce(sum(price), 0) AS p FROM {items} WHERE day = '{start.date()}'").iloc[0]["p"]
    return pd.DataFrame({"day": [start.date()], "total": [int(before + new)]})
"""
RUNNING_TEST = """
test_running:
  model: shop.running
  inputs:
    shop.running: [{day: 2025-12-31, total: 5}]
    shop.items: [{id: 1, day: 2026-01-01, price: 4}]
  vars: {start: 2026-01-01, end: 2026-01-01}
  outputs: {query: [{day: 2026-01-01, total: 9}]}
"""


@pytest.mark.prove
@pytest.mark.parametrize("kind", ["INCREMENTAL_UNMANAGED", "FULL, partitioned_by (bucket(2, id))"])
@pytest.mark.parametrize("query", ["SELECT id, price FROM shop.items", "SELECT *, 1 AS one FROM RANGE(2)"])
def test_code_sees_no_hidden_column_of_a_table(tmp_path: Path, engine: SparkEngine, kind: str, query: str) -> None:
    """Another layout would otherwise be another result, although the readers keep their tables."""
    body = (
        "frame = context.spark.table(context.table('shop.m'))\n"
        "    return context.spark.createDataFrame([(' '.join(frame.columns), frame.count())], 'names string, n bigint')"
    )
    code = model_file(body, 'columns={"names": "string", "n": "bigint"}')
    project = project_with(tmp_path, {**code, "models/m.sql": f"MODEL (name shop.m, kind {kind});\n{query}"})

    with closing(StateStore(f"sqlite:///{tmp_path}/state.db")) as store:
        assert not plan_and_apply(project, engine, store).failures
    names = "id one" if "RANGE" in query else "id price"
    assert [row[0] for row in rows(engine, "SELECT names FROM shop.a")] == [names]


@pytest.mark.prove
def test_a_model_that_reads_itself_sees_its_table_as_it_was_before_the_batch(
    tmp_path: Path, engine: SparkEngine, store: StateStore
) -> None:
    project = project_with(tmp_path, {"models/running.py": RUNNING, "tests/running.yaml": RUNNING_TEST})

    plan_and_apply(project, engine, store)

    model = project.models["shop.running"]
    assert (model.reads_itself, model.depends_on, model.batches.batch_size) == (True, ("shop.items",), 1)
    assert rows(engine, "SELECT total FROM shop.running ORDER BY day") == [(10,), (30,), (30,), (60,), (60,)]
    assert [result.ok for result in run_unit_tests(engine, project, project.tests)] == [True]
