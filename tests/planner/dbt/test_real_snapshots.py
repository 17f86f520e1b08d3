"""What `dbt snapshot` itself makes on Delta, day by day: the tables of ours hold the same versions.

Ours are parquet; MERGEPLAN_TABLE_FORMAT=delta, as `make prove-lakehouse` sets it, makes them Delta too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.engine.protocol import Connection, Engine
from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.table_format import FORMATS
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.project.dbt.compile import compile_dbt
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.python.isolation import NO_ISOLATION
from tests.conftest import FORMAT
from tests.planner.cli.conftest import Lent
from tests.planner.shop import rows

from .recorded import SHOP
from .test_real_dbt import DBT, text_of_row
from .test_real_dbt import pytestmark as marks

pytestmark = [*marks, pytest.mark.skipif(FORMAT not in ("", "delta"), reason="dbt-spark was compared on Delta alone")]
HISTORY = SHOP.with_name("history")
OpenEngine = Callable[[Connection, Path, str], Engine]
TABLES = (
    "by_time", "by_time_closed", "by_time_marked", "by_time_renamed", "by_day", "checked", "checked_closed",
    "checked_marked", "checked_since",
)  # fmt: skip
CREATE = "CREATE TABLE raw.people (id INT, name STRING, at TIMESTAMP, day DATE) USING parquet"
CLOCK = """{% macro snapshot_get_time() %}to_timestamp('{{ var("now") }}'){% endmacro %}"""
DAYS = {  # all that the source holds on a day
    "2026-01-02": ["1 a 01", "2 b 01", "3 c 01", "5 e NULL"],
    "2026-01-03": ["1 x 02", "2 late 01", "4 d 01", "5 e NULL"],  # 2 without a newer time; 3 is deleted
    "2026-01-04": ["1 older 01", "2 late 01", "3 c 01", "4 NULL NULL", "5 e 03"],  # 3 is back as it was
    "2026-01-05": ["1 x 02", "3 back 04", "4 d 05", "5 e NULL"],  # 2 is deleted; 4 is of tomorrow
    "2026-01-06": ["1 y 05", "2 new 05", "5 f 03"],
}
EDIT = "2026-01-04"
BY_TIME, CHECK = "strategy='timestamp', updated_at='at'", "strategy='check'"
EDITED = {  # configuration and columns of the query, until the edit and from it on
    "wider": ((BY_TIME, "id, name, at"), (BY_TIME, "id, name, at, day")),
    "wider_checked": ((f"{CHECK}, check_cols=['name']", "id, name, at"),
                      (f"{CHECK}, check_cols=['name']", "id, name, at, day")),
    "checked_more": ((f"{CHECK}, check_cols=['name']", "id, name, at, day"),
                     (f"{CHECK}, check_cols=['name', 'day']", "id, name, at, day")),
    "closed_later": ((BY_TIME, "id, name, at"), (f"{BY_TIME}, hard_deletes='invalidate'", "id, name, at")),
    "timed_later": ((f"{CHECK}, check_cols=['name']", "id, name, at"), (BY_TIME, "id, name, at")),
    "checked_later": ((BY_TIME, "id, name, at"), (f"{CHECK}, check_cols=['name']", "id, name, at")),
}  # fmt: skip
PROGRAM = """
import json, sys
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession
roots, days, tables, create, package, excluded = sys.argv[1:]
roots, days, tables = json.loads(roots), json.loads(days), json.loads(tables)
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    .config("spark.jars.packages", package).config("spark.jars.excludes", excluded)
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.shuffle.partitions", "1").config("spark.databricks.delta.snapshotPartitions", "1")
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .enableHiveSupport().getOrCreate())
spark.sql("CREATE DATABASE raw")
spark.sql(create)
for day, values in days.items():
    spark.sql(f"INSERT OVERWRITE raw.people VALUES {values}")
    now, root = json.dumps({"now": day}), roots[day]
    built = dbtRunner().invoke(["snapshot", "--project-dir", root, "--profiles-dir", root, "--vars", now])
    assert built.success, [result.message for result in built.result.results]
found = {t: [json.loads(line) for line in spark.table(f"history.{t}").toJSON().collect()] for t in tables}
print("ROWS " + json.dumps(found))
"""


def values(people: list[str]) -> str:
    """The rows of a day as SQL."""

    forms = ("{}", "'{}'", "TIMESTAMP'2026-01-{} 10:00:00.5'", "DATE'2026-01-{}'")
    cells = ((key, name, day, day) for key, name, day in (person.split() for person in people))
    listed = [
        ", ".join(word if word == "NULL" else form.format(word) for form, word in zip(forms, row, strict=True))
        for row in cells
    ]
    return ", ".join(f"({row})" for row in listed)


def snapshots_of_dbt(
    roots: dict[str, Path], days: dict[str, str], tables: tuple[str, ...]
) -> dict[str, list[dict[str, Any]]]:
    """The rows of dbt's own tables after a `dbt snapshot` on each day, at its midnight, of the project in a folder."""
    for root in {*roots.values()}:
        (root / "macros").mkdir()
        (root / "macros/clock.sql").write_text(CLOCK)
    release = FORMATS["delta"].releases[0]  # of the pinned Spark
    excluded = dict(release.settings)["spark.jars.excludes"]
    folders = json.dumps({day: str(root) for day, root in roots.items()})
    arguments = (folders, json.dumps(days), json.dumps(tables), CREATE, release.package, excluded)
    environment = {**os.environ, "PYSPARK_PYTHON": str(DBT), "SPARK_LOCAL_IP": "127.0.0.1", "DBT_FILE_FORMAT": "delta"}
    done = subprocess.run([str(DBT), "-c", PROGRAM, *arguments], cwd=roots[min(roots)].parent, env=environment,
                          capture_output=True, text=True, timeout=1800, check=False)  # fmt: skip
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("ROWS ")] or [done.stdout + done.stderr]
    contents: dict[str, list[dict[str, Any]]] = json.loads(line.removeprefix("ROWS "))
    return contents


@pytest.fixture
def open_engine(engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> OpenEngine:
    """How a command opens the shared Spark, with dbt at hand and an empty schema of sources."""
    monkeypatch.setenv(PYTHON, str(DBT))
    monkeypatch.setenv("DBT_FILE_FORMAT", FORMAT or "parquet")
    engine.fetch("CREATE DATABASE raw")
    engine.fetch(CREATE)

    def lend(_connection: Connection, _home: Path, _profile: str) -> Engine:
        return Lent(engine)  # type: ignore[return-value]

    return lend


def test_snapshots_hold_the_versions_of_dbts_own(tmp_path: Path, engine: SparkEngine, open_engine: OpenEngine) -> None:
    days = {day: values(people) for day, people in DAYS.items()}
    root = Path(shutil.copytree(HISTORY, tmp_path / "history"))
    own = Path(shutil.copytree(HISTORY, tmp_path / "dbt/history"))
    expected = snapshots_of_dbt(dict.fromkeys(days, own), days, TABLES)
    for number, (day, people) in enumerate(days.items()):
        engine.fetch(f"INSERT OVERWRITE raw.people VALUES {people}")
        verb = ["run"] if number else ["plan", "--auto-apply"]
        assert run(VERBS, [*verb, "-p", str(root), "--execution-time", day], open_engine) == 0

    for table in TABLES:
        ours = [json.loads(row[0]) for row in rows(engine, f"SELECT to_json(struct(*)) FROM history.{table}")]
        assert sorted(map(repr, ours)) == sorted(map(repr, expected[table])), table


def write_edited(root: Path, *, is_edited: bool) -> Path:
    """A project of snapshots before or after an edit of each."""
    shutil.copytree(HISTORY, root, dirs_exist_ok=True)
    (root / "snapshots/snapshots.yml").unlink()
    (root / "snapshots/checked_since.sql").unlink()
    for name, versions in EDITED.items():
        config, columns = versions[is_edited]
        query = f"select {columns} from {{{{ source('raw', 'people') }}}}"
        text = f"{{% snapshot {name} %}}{{{{ config(unique_key='id', {config}) }}}} {query}{{% endsnapshot %}}"
        (root / f"snapshots/{name}.sql").write_text(text)
    return root


def test_snapshots_that_are_edited_hold_the_versions_of_dbts_own(
    tmp_path: Path, engine: SparkEngine, open_engine: OpenEngine
) -> None:
    days = {day: values(DAYS[day]) for day in ("2026-01-02", EDIT, "2026-01-05")}
    folders = [write_edited(tmp_path / f"dbt/{name}", is_edited=name == "after") for name in ("before", "after")]
    own = {day: folders[day >= EDIT] for day in days}
    expected = snapshots_of_dbt(own, days, tuple(EDITED))
    root = write_edited(tmp_path / "history", is_edited=False)
    for day, people in days.items():
        engine.fetch(f"INSERT OVERWRITE raw.people VALUES {people}")
        if day == EDIT:
            write_edited(root, is_edited=True)
        if day in (min(days), EDIT):
            arguments = ["plan", "--auto-apply", "-p", str(root), "--execution-time", day]
            assert run(VERBS, arguments, open_engine) == 0
        if day != min(days):
            assert run(VERBS, ["run", "-p", str(root), "--execution-time", day], open_engine) == 0

    for table in EDITED:
        ours = [json.loads(row[0]) for row in rows(engine, f"SELECT to_json(struct(*)) FROM history.{table}")]
        assert sorted(map(text_of_row, ours)) == sorted(map(text_of_row, expected[table])), table


@pytest.mark.parametrize(
    ("macro", "name"),
    [
        ("{% macro spark__create_table_as(a, b, c, d='sql') %}x{% endmacro %}", "create_table_as"),
    ],
)
def test_a_snapshot_that_own_macros_would_make_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, macro: str, name: str
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    root = Path(shutil.copytree(HISTORY, tmp_path / "history"))
    (root / "macros").mkdir()
    (root / "macros/clock.sql").write_text(macro)

    project = compile_dbt(Folder(root, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))

    (error,) = {node.error for node in project.nodes}
    assert error.startswith(f"It is made by the macro `{name}` of the project's own")


DATED = "{% snapshot dated %}{{ config(strategy='check', unique_key='id', check_cols=['name'], updated_at='at') }}"
DATED += "select * from {{ source('raw', 'people') }}{% endsnapshot %}"


@pytest.mark.parametrize("name", ["snapshot_get_time", "current_timestamp", "spark__current_timestamp"])
def test_an_own_macro_for_the_time_of_a_run_refuses_the_snapshots_that_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    root = Path(shutil.copytree(HISTORY, tmp_path / "history"))
    (root / "macros").mkdir()
    (root / "macros/clock.sql").write_text(f"{{% macro {name}() %}}to_timestamp('2026-01-01'){{% endmacro %}}")
    (root / "snapshots/dated.sql").write_text(DATED)

    project = compile_dbt(Folder(root, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))

    error = f"It is made by the macro `{name.removeprefix('spark__')}` of the project's own"
    assert {node.name for node in project.nodes if not node.error} == {"by_time", "dated"}
    assert all(node.error.startswith(error) for node in project.nodes if node.error)


@pytest.mark.parametrize(("namespace", "is_refused"), [("dbt", True), ("dbt_utils", False)])
def test_a_package_makes_a_snapshot_only_where_dbts_own_macros_are_dispatched_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, namespace: str, is_refused: bool
) -> None:
    monkeypatch.setenv(PYTHON, str(DBT))
    root = Path(shutil.copytree(HISTORY, tmp_path / "history"))
    package = root / "dbt_packages/clocks"
    (package / "macros").mkdir(parents=True)
    (package / "dbt_project.yml").write_text("name: clocks\nversion: '1.0'\n")
    (package / "macros/clock.sql").write_text("{% macro spark__current_timestamp() %}now(){% endmacro %}")
    rule = f"\ndispatch: [{{macro_namespace: {namespace}, search_order: [clocks, {namespace}]}}]\n"
    with (root / "dbt_project.yml").open("a") as file:
        file.write(rule)

    project = compile_dbt(Folder(root, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))

    assert {node.name for node in project.nodes if not node.error} == ({"by_time"} if is_refused else {*TABLES})
