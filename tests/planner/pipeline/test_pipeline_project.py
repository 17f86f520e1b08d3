"""A Spark Declarative Pipeline as it is: opened, computed, and refused where it streams."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.errors import ProjectError, ProjectErrors
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.parsing.files.pipeline.spec import parse_spec
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from tests.planner.cli.conftest import Lent
from tests.planner.shop import NOW, rows

PIPELINE = Path(__file__).parents[2] / "projects/pipeline"


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PIPELINE, tmp_path / "pipeline"))


def load(root: Path) -> Project:
    return load_project(root, NOW, options=LoadOptions(strict=False))


def add(pipeline: Path, text: str, name: str = "more.sql") -> Project:
    (pipeline / "transformations" / name).write_text(text)
    return load(pipeline)


def test_views_of_a_pipeline_are_models_by_its_schema(pipeline: Path) -> None:
    models = load(pipeline).models

    assert {name: model.kind for name, model in models.items()} == {
        "shop.sold": Kind.EMBEDDED,
        "shop.orders": Kind.FULL,
        "shop.total": Kind.FULL,
    }
    orders = models["shop.orders"]
    assert (orders.depends_on, orders.storage.partitioned_by, orders.metadata.description) == (
        ("shop.sold",), ("code",), "One row for each order.",
    )  # fmt: skip
    assert orders.storage.physical_properties == (("team", "sales"),)
    assert (orders.path, orders.line) == ("transformations/orders.sql#shop.orders", 5)


def test_the_configuration_of_a_pipeline_is_that_of_its_spark(pipeline: Path) -> None:
    assert load(pipeline).config.gateways["spark"].connection.config == {"spark.sql.session.timeZone": "UTC"}


@pytest.mark.parametrize("key", ["database", "schema", "catalog"])
@pytest.mark.parametrize("name", ["a; b", "a b", "a`b", "(", "", "a.b'", "x\n"])
def test_a_schema_that_is_no_name_is_refused_at_its_line(key: str, name: str) -> None:
    with pytest.raises(ProjectError) as caught:
        parse_spec("spark-pipeline.yml", f"name: a\n{key}: {json.dumps(name)}\n")

    assert (str(caught.value.place), f"`{key}` of the pipeline" in caught.value.message) == (
        "spark-pipeline.yml:2",
        True,
    )


def test_names_lie_in_the_catalog_and_schema_of_the_specification() -> None:
    spec = parse_spec("spark-pipeline.yml", "{name: a, storage: x, catalog: lake, schema: s}")

    assert spec.schema_name == "lake.s"
    assert parse_spec("p", "{name: a, storage: x, catalog: spark_catalog}").schema_name == "default"


@pytest.mark.parametrize(
    ("include", "path", "is_read"),
    [
        ("transformations/**", "transformations/a/b.sql", True),
        ("transformations/**", "other/b.sql", False),
        ("a.sql", "a.sql", True),
        ("a.sql", "x/a.sql", False),
        ("x/*.sql", "x/a.sql", True),
        ("x/*.sql", "x/y/a.sql", False),
    ],
)
def test_files_are_those_of_the_libraries(include: str, path: str, is_read: bool) -> None:
    text = f"{{name: a, storage: x, libraries: [{{glob: {{include: '{include}'}}}}]}}"

    assert parse_spec("spark-pipeline.yml", text).reads(path) is is_read


@pytest.mark.parametrize(
    ("text", "why", "line"),
    [
        ("CREATE STREAMING TABLE st AS SELECT * FROM STREAM raw.items", "`shop.st` is a streaming table.", 1),
        ("\nCREATE FLOW f AS INSERT INTO st BY NAME SELECT 1", "`shop.f` is a flow.", 2),
        ("CREATE MATERIALIZED VIEW m AS SELECT * FROM STREAM(raw.items)", "`shop.m` reads a stream", 1),
        ("CREATE MATERIALIZED VIEW m (a INT) AS SELECT 1 AS a", "`shop.m` states its columns", 1),
        ("CREATE MATERIALIZED VIEW m CLUSTER BY (a) AS SELECT 1 AS a", "`shop.m` is clustered", 1),
        ("CREATE MATERIALIZED VIEW m USING csv AS SELECT 1 AS a", "`shop.m` has the format `csv`", 1),
        ("CREATE MATERIALIZED VIEW m", "`shop.m` has no query", 1),
        ("CREATE MATERIALIZED VIEW m AS SELECT FROM WHERE", "mergeplan cannot parse the query of `shop.m`", 1),
        ("CREATE MATERIALIZED VIEW m AS SELECT `@start_ds` AS a", "would take for a macro", 1),
        ("SET spark.sql.ansi.enabled = false;\nCREATE VIEW v AS SELECT 1 AS a", "`SET", 1),
        ("USE other;\nCREATE VIEW v AS SELECT 1 AS a", "`USE OTHER` is no statement", 1),
    ],
)
def test_what_is_not_followed_is_refused_at_its_line(pipeline: Path, text: str, why: str, line: int) -> None:
    project = add(pipeline, text)

    error = project.refused.errors[0]
    assert why in error.message
    assert str(error.place) == f"transformations/more.sql:{line}"
    assert {"shop.orders", "shop.total"} <= project.models.keys()
    assert not {"shop.m", "shop.v", "shop.st"} & project.models.keys()


def test_what_reads_a_streaming_table_is_left_out(pipeline: Path) -> None:
    project = add(pipeline, "CREATE STREAMING TABLE st;\nCREATE MATERIALIZED VIEW m AS SELECT * FROM st;")

    assert project.refused.names == {"shop.st", "shop.m"}
    assert project.refused.clear


def test_a_file_of_python_hides_what_it_defines(pipeline: Path) -> None:
    project = add(pipeline, "from pyspark import pipelines as dp", "more.py")

    assert "This file of Python defines tables of the pipeline" in project.refused.errors[0].message
    assert not project.refused.clear


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("{name: a, storage: x, libraries: [{file: a.sql}]}", "spark-pipeline.yml:1: `libraries"),
        ("{storage: x}", "spark-pipeline.yml:1: `name` of the pipeline"),
        ("{name: a, storage: x, more: 1}", "spark-pipeline.yml:1: `more` of the pipeline"),
    ],
)
def test_a_wrong_specification_is_one_sentence(pipeline: Path, spec: str, why: str) -> None:
    (pipeline / "spark-pipeline.yml").write_text(spec)

    with pytest.raises((ProjectError, ProjectErrors)) as error:
        load(pipeline)
    assert str(error.value).startswith(why)


def test_a_pipeline_is_planned_and_computed(pipeline: Path, engine: SparkEngine) -> None:
    def open_engine(_connection: Connection, _home: Path, _profile: str) -> Engine:
        return Lent(engine)  # type: ignore[return-value]

    engine.fetch("CREATE DATABASE raw")
    engine.fetch("CREATE TABLE raw.items (id INT, code STRING, price INT) USING parquet")
    engine.fetch("INSERT INTO raw.items VALUES (1, 'EUR', 2), (2, 'USD', 0), (3, 'USD', 5)")

    arguments = ["plan", "-p", str(pipeline), "--auto-apply"]
    assert run(VERBS, arguments, open_engine) == 0
    assert rows(engine, "SELECT code, cents, items FROM shop.total ORDER BY code") == [("EUR", 200, 1), ("USD", 500, 1)]
    assert run(VERBS, ["format", "-p", str(pipeline)]) == 1
