"""Which unit tests count as unchanged: whatever may change the outcome changes the digest, and doubt means none."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.checks.remembered_tests import TestDigests
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.project.loader import Project, load_project
from tests.planner.project.test_loader import CONFIG, project_of

NOW = datetime(2024, 5, 6, 7, 8, tzinfo=UTC)
MODEL = "MODEL (name shop.{}, kind {}{});\n{}"
FILES = {
    "models/raw.sql": MODEL.format("raw", "FULL", "", "SELECT 1 AS id, @VAR('much', 2) AS price"),
    "models/kept.sql": MODEL.format("kept", "EMBEDDED", "", "SELECT id, price FROM shop.raw WHERE id > 0"),
    "models/total.sql": MODEL.format("total", "FULL", "", "SELECT id, SUM(price) AS total FROM shop.kept GROUP BY id"),
    "models/apart.sql": MODEL.format("apart", "FULL", "", "SELECT 1 AS a"),
    "tests/rows.csv": "id,price\n1,2\n",
    "tests/t.yaml": """
test_total:
  model: shop.total
  inputs:
    shop.raw: {format: csv, path: rows.csv}
  outputs:
    query: [{id: 1, total: 2}]
""",
}
CLOCK = MODEL.format("total", "FULL", "", "SELECT id, {} AS total FROM shop.kept")


def load(root: Path, name: str = "", old: str = "", new: str = "", now: datetime = NOW) -> Project:
    """The project, with another text in a file."""
    files = dict(FILES)
    if name:
        assert old in files[name]
        files[name] = files[name].replace(old, new)
    return load_project(project_of(root, files), now)


def digest_of(project: Project, **connection: object) -> str | None:
    return TestDigests(project, Connection(**connection)).compute(project.tests[0])  # type: ignore[arg-type]  # any of its fields


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("models/total.sql", "SUM(price)", "MAX(price)"),
        ("models/kept.sql", "id > 0", "id > 1"),  # embedded
        ("models/raw.sql", "1 AS id", "1L AS id"),  # the type of an input's column
        ("models/raw.sql", "'much', 2", "'much', 3"),
        ("tests/rows.csv", "1,2", "1,3"),
        ("tests/t.yaml", "total: 2", "total: 3"),
        ("tests/t.yaml", "  model:", "  vars: {start: 2020-01-01}\n  model:"),
    ],
)
def test_an_edit_of_what_the_outcome_rests_on_is_another_digest(tmp_path: Path, file: str, old: str, new: str) -> None:
    before = digest_of(load(tmp_path / "a"))

    assert before is not None
    assert digest_of(load(tmp_path / "b", file, old, new)) != before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("models/apart.sql", "1 AS a", "2 AS a"),
        ("models/total.sql", "kind FULL", "kind FULL, owner me, description 'all of it'"),
        ("models/raw.sql", "kind FULL", "kind FULL, start '3 days ago'"),
        ("tests/t.yaml", "test_total:", "\n\ntest_total:"),
    ],
)
def test_another_edit_is_not(tmp_path: Path, file: str, old: str, new: str) -> None:
    before = digest_of(load(tmp_path / "a"))

    assert digest_of(load(tmp_path / "b", file, old, new, datetime(2025, 1, 1, tzinfo=UTC))) == before


def test_another_setting_of_spark_is_another_digest_and_a_spark_elsewhere_has_none(tmp_path: Path) -> None:
    project = load(tmp_path)

    assert digest_of(project) != digest_of(project, conf=(("spark.sql.ansi.enabled", "false"),))
    assert digest_of(project, remote="sc://somewhere") is None
    assert digest_of(project, conf=(("spark.jars", "/some.jar"),)) is None


def test_the_settings_in_a_configuration_folder_count(tmp_path: Path) -> None:
    project, folder = load(tmp_path / "a"), tmp_path / "conf"
    folder.mkdir()
    before = digest_of(project, config_dir=str(folder))

    (folder / "spark-defaults.conf").write_text("spark.sql.caseSensitive true\n")
    assert digest_of(project, config_dir=str(folder)) not in (before, None)
    (folder / "spark-defaults.conf").write_text("spark.jars /some.jar\n")
    assert digest_of(project, config_dir=str(folder)) is None


def test_a_model_in_python_has_none(tmp_path: Path) -> None:
    code = (
        "from mergeplan import model\n\n@model('shop.apart', columns={'a': 'int'}, kind='FULL')\n"
        "def execute(context, **kwargs):\n    return context.spark.sql('SELECT 1 AS a')\n"
    )
    files = {name: text for name, text in FILES.items() if name != "models/apart.sql"} | {"models/apart.py": code}
    files["tests/t.yaml"] = "test_apart:\n  model: shop.apart\n  outputs:\n    query: [{a: 1}]\n"

    assert digest_of(load_project(project_of(tmp_path, files), NOW)) is None


@pytest.mark.parametrize(
    ("value", "repeatable"),
    [
        ("SUM(price) OVER (ORDER BY id)", True),
        ("CURRENT_DATE", False),
        ("NOW()", False),
        ("UNIX_TIMESTAMP()", False),
        ("TO_UNIX_TIMESTAMP()", False),
        ("DATE 'today'", False),
        ("RAND()", False),
        ("CURRENT_USER()", False),
        ("my_function(price)", False),
    ],
)
def test_the_clock_chance_and_foreign_functions_make_a_test_run_each_time(
    tmp_path: Path, value: str, repeatable: bool
) -> None:
    config = f"{CONFIG}      functions: [my_function]\n"
    files = {**FILES, "config.yaml": config, "models/total.sql": CLOCK.format(value)}
    project = load_project(project_of(tmp_path, files), NOW)

    assert TestDigests(project, Connection()).is_repeatable(project.tests[0]) == repeatable


def test_at_a_given_time_the_current_date_is_no_clock(tmp_path: Path) -> None:
    at = "  vars: {execution_time: 2024-01-01}\n  model:"
    files = {
        **FILES,
        "models/total.sql": CLOCK.format("CURRENT_DATE"),
        "tests/t.yaml": FILES["tests/t.yaml"].replace("  model:", at),
    }
    project = load_project(project_of(tmp_path, files), NOW)

    assert project.tests[0].execution_time
    assert TestDigests(project, Connection()).is_repeatable(project.tests[0])


def test_a_function_in_a_query_of_the_test_counts(tmp_path: Path) -> None:
    text = FILES["tests/t.yaml"].replace("{format: csv, path: rows.csv}", "{query: 'SELECT 1 AS id, RAND() AS price'}")
    project = load_project(project_of(tmp_path, {**FILES, "tests/t.yaml": text}), NOW)

    assert not TestDigests(project, Connection()).is_repeatable(project.tests[0])


LOADED = {
    "models/merged.sql": (
        "MODEL (name shop.merged, cron '@daily', kind INCREMENTAL_BY_UNIQUE_KEY (unique_key id, when_matched WHEN"
        " MATCHED THEN UPDATE SET target.price = source.price));\nSELECT id, price FROM shop.raw"
    ),
    "tests/t.yaml": """
test_merged:
  model: shop.merged
  this: [{id: 1, price: 2}]
  outputs: {table: [{id: 1, price: 2}]}
""",
}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("tests/t.yaml", "this: [{id: 1, price: 2}]", "this: [{id: 1, price: 3}]"),
        ("tests/t.yaml", "  this: [{id: 1, price: 2}]\n", ""),
        ("tests/t.yaml", "table: [{id: 1, price: 2}]", "table: [{id: 1, price: 3}]"),
        ("tests/t.yaml", "outputs: {table", "outputs: {query"),
        ("models/merged.sql", "unique_key id", "unique_key (id, price)"),
        ("models/merged.sql", "= source.price", "= target.price"),
        ("models/merged.sql", "@daily", "@hourly"),
        ("models/merged.sql", "unique_key id,", "unique_key id, merge_filter target.id > 0,"),
        ("models/merged.sql", "cron '@daily'", "partitioned_by id"),
    ],
)
def test_how_a_table_is_loaded_counts_where_a_test_expects_it(tmp_path: Path, file: str, old: str, new: str) -> None:
    files = {**FILES, **LOADED}
    other = {**files, file: files[file].replace(old, new)}
    if "query" in new:
        other[file] = other[file].replace("  this: [{id: 1, price: 2}]\n", "")
    digests = [
        digest_of(load_project(project_of(tmp_path / str(n), files), NOW)) for n, files in enumerate((files, other))
    ]

    assert other != files
    assert None not in digests
    assert digests[0] != digests[1]


@pytest.mark.parametrize(
    ("value", "repeatable"),
    [("source.price", True), ("CURRENT_TIMESTAMP()", False), ("RAND()", False), ("my_function(source.price)", False)],
)
def test_the_clock_in_a_merge_makes_its_test_run_each_time(tmp_path: Path, value: str, repeatable: bool) -> None:
    merged = LOADED["models/merged.sql"].replace("source.price", value)
    timed = LOADED["tests/t.yaml"].replace("  this:", "  vars: {execution_time: 2024-01-01}\n  this:")
    config = f"{CONFIG}      functions: [my_function]\n"
    files = {**FILES, "config.yaml": config, "models/merged.sql": merged, "tests/t.yaml": timed}
    project = load_project(project_of(tmp_path, files), NOW)

    assert TestDigests(project, Connection()).is_repeatable(project.tests[0]) == repeatable


def test_a_transform_of_partitions_is_no_foreign_function(tmp_path: Path) -> None:
    merged = LOADED["models/merged.sql"].replace("cron '@daily'", "partitioned_by bucket(8, id)")
    project = load_project(project_of(tmp_path, {**FILES, **LOADED, "models/merged.sql": merged}), NOW)

    assert TestDigests(project, Connection()).is_repeatable(project.tests[0])
