"""What dbt itself does: the recorded answer is its own, its tables hold the rows of ours, and it sees no secret."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.dbt.texts import model_text
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.project.dbt.compile import compile_dbt
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.loader import LoadOptions, load_project
from mergeplan.planner.python.isolation import NO_ISOLATION, Isolation
from tests.planner.cli.conftest import Lent
from tests.planner.dbt.admission import admit_project_code
from tests.planner.shop import NOW, rows

from .recorded import ANSWER, SHOP, compile_shop

DBT = Path(__file__).parents[3] / ".venv-dbt/bin/python"
pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not DBT.exists(), reason="no dbt: `make .venv-dbt/.ready` installs it, as `make prove` does"),
]
DAYS = {  # what comes in by a day; the third day brings a late row
    "2026-01-02": "(1, DATE'2026-01-01', 'EUR', 2), (2, DATE'2026-01-01', 'USD', 3)",
    "2026-01-03": "(3, DATE'2026-01-02', 'EUR', 4)",
    "2026-01-04": "(4, DATE'2026-01-01', 'EUR', 9), (5, DATE'2026-01-03', 'USD', 5)",
}
LATE = {  # the second day's late row is of the batch before the last, the third day's of one before that
    "2026-01-02": "(1, DATE'2026-01-01', 'EUR', 2)",
    "2026-01-03": "(2, DATE'2026-01-02', 'EUR', 4), (3, DATE'2026-01-01', 'USD', 3)",
    "2026-01-04": "(4, DATE'2026-01-01', 'EUR', 9), (5, DATE'2026-01-03', 'USD', 5)",
}
SINCE = {"2026-01-02": "2026-01-01", "2026-01-03": "2026-01-01", "2026-01-04": "2026-01-02"}  # with a lookback of 1
BATCHED = """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='day', begin='2026-01-01',
          batch_size='day', partition_by=['day'], file_format='parquet') }}
select id, code, price, day from {{ source('raw', 'items') }}
"""
TABLES = ("daily", "total", "shown", "rates")
CREATE = "CREATE TABLE raw.items (id INT, day DATE, code STRING, price INT) USING parquet"
PROGRAM = """
import json, sys
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession
root, days, tables = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
batches = json.loads(sys.argv[5])
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").enableHiveSupport().getOrCreate()
spark.sql("CREATE DATABASE raw")
spark.sql(sys.argv[4])
for day, rows in days.items():
    spark.sql(f"INSERT INTO raw.items VALUES {rows}")
    folders = ["--project-dir", root, "--profiles-dir", root]
    times = ["--event-time-start", batches[day], "--event-time-end", day] if batches else []
    built = dbtRunner().invoke(["build", *folders, *times, "--exclude", "asks", "resource_type:unit_test"])
    assert built.success, built.exception
found = {t: [json.loads(line) for line in spark.table(f"shop.{t}").toJSON().collect()] for t in tables}
print("ROWS " + json.dumps(found))
"""


@pytest.fixture(autouse=True)
def _dbt(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(PYTHON, str(DBT))
    yield


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHOP, tmp_path / "shop"))


def test_the_recorded_answer_is_dbts_own() -> None:
    assert compile_shop().model_dump(mode="json") == json.loads(ANSWER.read_text())


def text_of_row(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)


def built_by_dbt(
    shop: Path,
    days: dict[str, str],
    tables: tuple[str, ...],
    batches: dict[str, str] | None = None,
    conf: dict[str, str] | None = None,
) -> dict[str, list[dict[str, Any]]]:
    """The rows of dbt's own tables after a `dbt build` on each day; `batches` are since when those of a day are, `conf`
    are settings of Spark."""
    arguments = (str(shop), json.dumps(days), json.dumps(tables), CREATE, json.dumps(batches or {}))
    environment = {**os.environ, "PYSPARK_PYTHON": str(DBT), "SPARK_LOCAL_IP": "127.0.0.1"}
    settings = "".join(f".config({name!r}, {value!r})" for name, value in (conf or {}).items())
    program = PROGRAM.replace(".enableHiveSupport()", f"{settings}.enableHiveSupport()")
    done = subprocess.run([str(DBT), "-c", program, *arguments], cwd=shop.parent, env=environment, capture_output=True,
                          text=True, timeout=1800, check=False)  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ROWS ")] or [done.stdout + done.stderr]
    contents: dict[str, list[dict[str, Any]]] = json.loads(line.removeprefix("ROWS "))
    return contents


def build(shop: Path, engine: SparkEngine, days: dict[str, str]) -> None:
    """What mergeplan makes of the same days."""

    def open_engine(_connection: Connection, _home: Path, _profile: str) -> Engine:
        return Lent(engine)  # type: ignore[return-value]

    engine.fetch("CREATE DATABASE raw")
    engine.fetch(CREATE)
    for number, (day, values) in enumerate(days.items()):
        engine.fetch(f"INSERT INTO raw.items VALUES {values}")
        verb = ["run"] if number else ["plan", "--auto-apply"]
        assert run(VERBS, [*verb, "-p", str(shop), "--execution-time", day], open_engine) == 0


def assert_same_rows(engine: SparkEngine, expected: dict[str, list[dict[str, Any]]]) -> None:
    for table in expected:
        names = sorted({name for row in expected[table] for name in row})  # JSON leaves out what is NULL
        ours = rows(engine, f"SELECT to_json(struct({', '.join(names)})) FROM shop.{table}")
        assert sorted(map(text_of_row, (json.loads(row[0]) for row in ours))) == sorted(
            map(text_of_row, expected[table])
        )


def test_tables_hold_the_rows_of_dbt_build_over_days_with_late_rows(
    shop: Path, tmp_path: Path, engine: SparkEngine
) -> None:
    expected = built_by_dbt(Path(shutil.copytree(shop, tmp_path / "dbt/shop")), DAYS, TABLES)
    build(shop, engine, DAYS)

    assert_same_rows(engine, expected)


def test_batches_hold_the_rows_of_dbts_own_and_take_late_ones_within_the_lookback(
    shop: Path, tmp_path: Path, engine: SparkEngine
) -> None:
    (shop / "models/batched.sql").write_text(BATCHED)
    schema = shop / "models/schema.yml"
    schema.write_text(schema.read_text().replace("description: What was sold.", "config: {event_time: day}"))
    expected = built_by_dbt(Path(shutil.copytree(shop, tmp_path / "dbt/shop")), LATE, ("batched",), SINCE)
    build(shop, engine, LATE)

    assert [row["id"] for row in sorted(expected["batched"], key=text_of_row)] == [1, 2, 3, 5]
    assert_same_rows(engine, expected)


@pytest.mark.parametrize("isolation", [NO_ISOLATION, Isolation(required=True)])
def test_a_projects_templates_and_packages_see_no_secret(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: Isolation
) -> None:
    for name in ("DBT_ENV_SECRET_TOKEN", "MERGEPLAN_STATE_URL", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "hidden-7")
    asks = [f"{{{{ env_var('{name}', 'none') }}}}" for name in ("MERGEPLAN_STATE_URL", "GITHUB_TOKEN")]
    (shop / "macros/steal.sql").write_text(
        f"{{% macro steal() %}}'{' '.join(asks)} {{{{ env_var('DBT_OPEN') }}}}'{{% endmacro %}}"
    )
    (shop / "models/stolen.sql").write_text("select {{ steal() }} as stolen")
    monkeypatch.setenv("DBT_OPEN", "seen")
    admit_project_code(tmp_path)

    project = compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, isolation, Cache(None))

    assert "hidden-7" not in project.model_dump_json()
    assert [node.text for node in project.nodes if node.name == "stolen"] == ["select 'none none seen' as stolen"]


@pytest.mark.parametrize(
    ("expression", "is_read"),
    [
        ("model.batch.event_time_start", True),
        ("model.batch.id", False),
        ("model.batch.event_time_start.day", False),
        ("(model.batch.event_time_start | string)[:10]", False),
        ("model.batch.event_time_start + modules.datetime.timedelta(days=1)", False),
    ],
)
def test_a_template_may_say_where_its_batch_begins_and_nothing_else_of_it(
    shop: Path, expression: str, is_read: bool
) -> None:
    where = "{% if model.batch %} where day >= '{{ XX }}' and day < '{{ model.batch.event_time_end }}'{% endif %}"
    (shop / "models/batched.sql").write_text(BATCHED.rstrip() + where.replace("XX", expression))

    project = compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))
    (node,) = [node for node in project.nodes if node.name == "batched"]
    assert ("reads its batch otherwise" in node.error) is not is_read
    assert ("<= @end_ts" in model_text(node)) if is_read else not node.text


def test_a_template_that_reads_the_connection_is_an_error_of_its_model(shop: Path) -> None:
    for name, text in (("a", "target.host"), ("b", "target.get('threads')"), ("c", "target.schema")):
        (shop / f"models/{name}.sql").write_text(f"select '{{{{ {text} }}}}' as x")

    project = compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))

    nodes = {node.name: node.error or node.text for node in project.nodes if node.name in "abc"}
    assert nodes["a"] == "It reads `target.host`, which mergeplan does not know"
    assert nodes["b"] == "It reads `target.threads`, which mergeplan does not know"
    assert nodes["c"] == "select 'shop' as x"


def test_a_setting_by_the_time_of_the_run_is_an_error_of_its_model(shop: Path) -> None:
    day = "run_started_at.strftime('%Y%m%d')"
    settings = {"alias": f"'total_' ~ {day}", "partition_by": f"['a', {day}]", "meta": f"{{'at': {day}}}"}
    for name, value in settings.items():
        (shop / f"models/by_{name}.sql").write_text(f"{{{{ config({name}={value}) }}}} select 1 as a")

    project = compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))

    errors = {node.name: node.error for node in project.nodes if node.name.startswith("by_")}
    assert errors["by_meta"] == ""
    for name in ("alias", "partition_by"):
        assert errors[f"by_{name}"].startswith(f"It sets `{name}` by the time of the run, which another run has not")


def test_what_a_project_lacks_is_said_with_what_to_do(shop: Path) -> None:
    profile = shop / "profiles.yml"
    own = profile.read_text()
    profile.write_text(own.replace("type: spark", "type: databricks"))
    with pytest.raises(ProjectError, match=r"has dbt without dbt-databricks\. Install it there"):
        compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))

    profile.write_text(own)
    (shop / "models/bad.yml").write_text("models:\n  - name: x\n   bad: [\n")
    with pytest.raises(ProjectError, match=r"^models/bad\.yml:3: .*Syntax error near line 3: while parsing") as error:
        compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))
    assert "---" not in error.value.message


def test_what_is_wrong_with_a_semantic_model_is_said(shop: Path) -> None:
    (shop / "models/semantic.yml").write_text("""
semantic_models:
  - {name: total, model: ref('total'), entities: [{name: code, type: primary}],
     dimensions: [{name: day, type: time, expr: code, type_params: {time_granularity: day}}],
     measures: [{name: n, agg: count, expr: code}]}
metrics: [{name: n, label: N, type: simple, type_params: {measure: n}}]
models: [{name: spine, time_spine: {standard_granularity_column: at}, columns: [{name: at, granularity: day}]}]
""")
    (shop / "models/spine.sql").write_text("select date'2026-01-01' as at\n")

    with pytest.raises(ProjectError, match=r"Semantic Manifest validation failed: .*`day`"):
        compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))


def test_a_space_in_the_header_of_a_seed_is_part_of_a_name_where_dbt_quotes_it(shop: Path) -> None:
    for name, quotes in (("plain", "false"), ("quoted", "true")):
        (shop / f"seeds/{name}.csv").write_text("a, b\n1,x\n")
        (shop / f"seeds/{name}.yml").write_text(f"seeds: [{{name: {name}, config: {{quote_columns: {quotes}}}}}]")

    project = load_project(shop, NOW, options=LoadOptions(strict=False))

    assert [(column.name, column.type) for column in project.models["shop.plain"].columns] == [
        ("a", "bigint"), ("b", "string"),
    ]  # fmt: skip
    assert "shop.quoted" in project.refused.names


def test_an_empty_seed_is_an_error_of_its_own(shop: Path) -> None:
    (shop / "seeds/empty.csv").write_text("")

    project = compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))

    (error,) = (node.error for node in project.nodes if node.name == "empty")
    assert error == "Its file is empty: the first line of a seed names its columns"


def test_the_time_that_a_template_writes_is_asked_by_sql_and_what_follows_from_it_is_an_error(shop: Path) -> None:
    texts = {
        "a": "select '{{ run_started_at }}' as x",
        "b": "select '{{ now() }}' as x",
        "c": "select {{ 1 if run_started_at.hour < 5 else 2 }} as x",
        "d": "{% set year %}{{ now() }}{% endset %}select {{ 1 if year[:4] > '2000' else 2 }} as x, '{{ now() }}' as y",
    }
    for name, text in texts.items():
        (shop / f"models/{name}.sql").write_text(text)
    (shop / "macros/now.sql").write_text("{% macro now() %}{{ modules.datetime.datetime.now().date() }}{% endmacro %}")

    project = compile_dbt(Folder(shop, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))

    nodes = {node.name: node for node in project.nodes if node.name in texts}
    assert "current_timestamp(), current_timezone()), 'yyyy-MM-dd HH:mm:ss" in model_text(nodes["a"])
    assert "select date_format(current_timestamp(), 'yyyy-MM-dd') as x" in model_text(nodes["b"])
    assert nodes["c"].error.startswith("Its text is another one each time: it reads `run_started_at`")
    assert nodes["d"].error == "Its text is another one each time: it follows from the time of the run"
