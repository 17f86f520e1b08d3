"""Settings of Spark that shape rows are a part of a version; those that do not are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.model.statement import Statement
from mergeplan.planner.plan.change import Category, Change
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.semantics.columns import model_shape
from mergeplan.planner.semantics.spark.spark_settings import (
    DEFAULTS,
    Settings,
    is_harmless,
    parse_properties,
    result_settings,
    unreadable_settings,
)
from mergeplan.planner.snapshot.meaning import meaning_of
from mergeplan.planner.snapshot.snapshot import version_of
from tests.planner.building import change_of, external, model, promote
from tests.planner.building import project as models_of
from tests.planner.project.test_loader import CONFIG, NOW, project_of

ANSI_OFF: Settings = (("spark.sql.ansi.enabled", "false"),)
TOKYO: Settings = (("spark.sql.session.timeZone", "Asia/Tokyo"),)
UNLIKE = ("SELECT x FROM s.raw WHERE x IN (1, 2)", "SELECT x FROM s.raw WHERE x = 1 OR x = 2")


@pytest.mark.parametrize(
    ("conf", "counted"),
    [
        ({"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "Etc/UTC"}, {}),
        ({"spark.sql.ansi.enabled": "FALSE"}, {"spark.sql.ansi.enabled": "false"}),
        ({"spark.sql.session.timeZone": "Asia/Tokyo"}, {"spark.sql.session.timeZone": "Asia/Tokyo"}),
        ({"spark.sql.legacy.sizeOfNull": "true", "spark.sql.storeAssignmentPolicy": "ansi"}, {}),
        ({"spark.sql.legacy.nobodyKnows": "1"}, {"spark.sql.legacy.nobodyKnows": "1"}),
        ({"spark.vendor.magic": "on"}, {"spark.vendor.magic": "on"}),
        ({"spark.hadoop.fs.s3a.endpoint": "x", "spark.sql.optimizer.maxIterations": "9"}, {}),
        (
            {"spark.hadoop.orc.force.positional.evolution": "true"},
            {"spark.hadoop.orc.force.positional.evolution": "true"},
        ),
        ({"spark.executor.memory": "4g", "spark.sql.shuffle.partitions": "9", "spark.ui.enabled": "true"}, {}),
        ({"spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension, x.Y"}, {"spark.sql.extensions": "x.Y"}),
        ({"spark.jars.packages": "io.delta:delta-spark_2.13:4.0.0,x:y:1"}, {"spark.jars.packages": "x:y:1"}),
        ({"spark.jars.packages": "org.xerial:sqlite-jdbc:3.46.0.0,org.postgresql:postgresql:42.7.4"}, {}),
        ({"spark.driver.extraClassPath": "/jars/org.postgresql_postgresql-42.7.7.jar"}, {}),
        ({"spark.jars": "/jars/evil_postgresql-1.jar"}, {"spark.jars": "/jars/evil_postgresql-1.jar"}),
        ({"spark.jars": "/opt/udfs.jar"}, {"spark.jars": "/opt/udfs.jar"}),
        ({"spark.driver.extraJavaOptions": "-Xss4m -XX:+UseG1GC"}, {}),
        (
            {"spark.driver.extraJavaOptions": "-Xss4m -Dspark.sql.ansi.enabled=false"},
            {"spark.driver.extraJavaOptions": "-Dspark.sql.ansi.enabled=false"},
        ),
    ],
)
def test_what_is_not_known_to_leave_the_rows_alone_counts(conf: dict[str, str], counted: dict[str, str]) -> None:
    assert dict(result_settings(conf)) == counted


@pytest.mark.parametrize(
    ("key", "value", "query"),
    [
        (
            "spark.sql.optimizer.decorrelateExistsSubqueryLegacyIncorrectCountHandling.enabled",
            "true",
            "SELECT id FROM range(2) AS a WHERE EXISTS (SELECT COUNT(*) FROM range(1) AS b WHERE b.id = a.id)",
        ),
        (
            "spark.sql.optimizer.decorrelateInnerQuery.enabled",
            "false",
            "SELECT id FROM range(2) AS a WHERE 0 IN (SELECT COUNT(*) FROM range(1) AS b WHERE b.id = a.id)",
        ),
        (
            "spark.sql.files.supportSecondOffsetFormat",
            "false",
            "SELECT to_json(struct(timestamp'1800-01-01 00:00:00'))",
        ),
    ],
)
def test_a_setting_of_the_optimizer_that_changes_rows_counts(
    key: str, value: str, query: str, shared_engine: SparkEngine
) -> None:
    results = set()
    for settings in ((), (f"SET {key} = {value}",)):
        with shared_engine.separate_session(("SET TIME ZONE 'America/Los_Angeles'", *settings), ()):
            results.add(shared_engine.fetch(query).rows)

    assert len(results) == 2
    assert result_settings({key: value}) == ((key, value),)


def test_each_setting_of_sparks_sql_is_known_with_its_default(shared_engine: SparkEngine) -> None:
    told = {str(key): str(value) for key, value, *_ in shared_engine.fetch("SET -v").rows}
    ours = {"spark.sql.session.timeZone", "spark.sql.adaptive.enabled"}
    unset = {key for key, value in told.items() if value.startswith("<") or not value}

    strange = {key for key in told if not is_harmless(key) and key not in DEFAULTS} - ours - unset

    assert len(told) > 150
    assert not strange, (
        "say in planner/semantics/spark/spark_settings.py that they change no row, or in spark_defaults.conf what "
        "they are"
    )
    assert not {
        key: value
        for key, value in told.items()
        if key not in unset and value.lower() != DEFAULTS.get(key, value).lower()
    }


def test_spark_defaults_are_read_as_java_reads_them() -> None:
    text = "# a: 1\n! b 2\nspark.c: false\n spark.d=x = y\nspark.e\t\\\n  one\n\nspark.f\nspark.c true\n"

    properties = parse_properties(text)

    assert properties == {"spark.c": ("true", 9), "spark.d": ("x = y", 4), "spark.e": ("one", 5), "spark.f": ("", 8)}


def test_what_another_parser_would_read_is_named() -> None:
    conf = {"spark.sql.caseSensitive": "True", "spark.sql.variable.substitute": "false", "spark.sql.ansi.enabled": "0"}

    assert unreadable_settings(conf) == ("spark.sql.caseSensitive",)


def versions(settings: Settings, kind: Kind = Kind.FULL) -> str:
    one = model("s.a", "SELECT 1 AS id", kind, settings=settings)
    return promote(models_of(one))[0].snapshots["s.a"].version


@pytest.mark.parametrize("kind", [Kind.FULL, Kind.VIEW])
def test_a_version_is_another_one_under_other_settings(kind: Kind) -> None:
    hashes = {versions(settings, kind) for settings in ((), ANSI_OFF, TOKYO, ANSI_OFF + TOKYO)}

    assert len(hashes) == 4


def test_a_version_is_what_it_was_under_sparks_defaults() -> None:
    one = model("s.a", "SELECT 1 AS id")
    meaning = meaning_of(one, model_shape(one, {}), {}, "")

    assert version_of(one, meaning, {}) == versions(()) == "0dddfd5e76b7"


def under(settings: Settings, sql: str) -> dict[str, Model]:
    raw = model("s.raw", kind=Kind.EXTERNAL)
    typed = Model(**{**vars(raw), "columns": (Column("x", "string"),)})
    return models_of(typed, model("s.a", sql, settings=settings), model("s.b", "SELECT x FROM s.a", settings=settings))


def changes_under(before: Settings, after: Settings, *sql: str) -> dict[str, Change]:
    return change_of(under(before, sql[0]), under(after, sql[-1]))


def test_a_changed_setting_is_told_by_name_and_computes_every_model_anew() -> None:
    changes = changes_under((), ANSI_OFF, "SELECT x FROM s.raw")

    assert {(name, change.category, change.rule) for name, change in changes.items()} == {
        (name, Category.BREAKING, "settings-changed") for name in ("s.a", "s.b")
    }
    assert changes["s.a"].reason == (
        "The setting `spark.sql.ansi.enabled` changed from true to false, and with it the rows."
    )
    assert changes_under(TOKYO, (), "SELECT x FROM s.raw")["s.b"].reason == (
        "The setting `spark.sql.session.timeZone` changed from Asia/Tokyo to UTC, and with it the rows. "
        "The rows of `s.a` change."
    )


def test_rules_that_hold_only_under_ansi_are_not_applied_without_it(shared_engine: SparkEngine) -> None:
    assert changes_under((), (), *UNLIKE)["s.a"].category is Category.EQUIVALENT
    assert changes_under(ANSI_OFF, ANSI_OFF, *UNLIKE)["s.a"].category is Category.BREAKING

    asked = "SELECT count_if(x IN (1, 2)), count_if(x = 1 OR x = 2) FROM VALUES (' 1'), ('2') AS t(x)"
    with shared_engine.separate_session(("SET spark.sql.ansi.enabled = false",), ()):
        assert shared_engine.fetch(asked).rows == ((1, 2),)
    assert len(set(shared_engine.fetch(asked).rows[0])) == 1


def test_rules_are_not_applied_behind_a_statement_that_sets_something() -> None:
    before = under((), UNLIKE[0])
    said = (Statement("SET spark.sql.ansi.enabled = false"),)
    one, two = (replace_settings(before["s.a"], {"sql": sql, "pre_statements": said}) for sql in UNLIKE)

    assert change_of(before | {"s.a": one}, before | {"s.a": two})["s.a"].category is Category.BREAKING


def test_a_text_that_parses_alike_is_no_change_whatever_is_set() -> None:
    changes = changes_under(ANSI_OFF, ANSI_OFF, "SELECT x FROM s.raw", "select  x /* it */ from s.raw")

    assert changes["s.a"].category is Category.EQUIVALENT


def test_a_query_is_still_seen_through_in_another_time_zone() -> None:
    changes = changes_under(TOKYO, TOKYO, "SELECT x FROM s.raw WHERE NOT x > 'a'", "SELECT x FROM s.raw WHERE x <= 'a'")

    assert {change.category for change in changes.values()} == {Category.EQUIVALENT}


def settings_of(tmp_path: Path, config: str, **files: str) -> dict[str, Settings]:
    texts = {"config.yaml": CONFIG + config, "models/a.sql": "MODEL (name s.a, kind FULL);\nSELECT 1 AS id\n"}
    project = load_project(project_of(tmp_path, texts | files), NOW)
    return {name: loaded.settings for name, loaded in project.models.items()}


def test_settings_come_from_the_gateway_and_over_its_defaults_file(tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(
        "spark.sql.ansi.enabled: false\nspark.sql.session.timeZone Asia/Tokyo\n"
    )
    config = f"      config_dir: {folder}\n"

    assert settings_of(tmp_path, config)["s.a"] == (*ANSI_OFF, *TOKYO)
    again = settings_of(tmp_path, config + "      config:\n        spark.sql.ansi.enabled: true\n")
    assert again["s.a"] == TOKYO


def test_a_model_is_under_the_settings_of_the_gateway_that_it_names(tmp_path: Path) -> None:
    config = (
        "      remote: sc://one\n      shared_catalog: c\n  other:\n    connection:\n      type: spark\n"
        "      remote: sc://two\n      shared_catalog: c\n      config:\n        spark.sql.ansi.enabled: false\n"
    )
    other = {"models/b.sql": "MODEL (name s.b, kind FULL, gateway other);\nSELECT 1 AS id\n"}

    assert settings_of(tmp_path, config, **other) == {"s.a": (), "s.b": ANSI_OFF}


def test_an_external_table_is_what_it_is_under_any_settings() -> None:
    before, after = (models_of(external("s.raw", "x"), model("s.a", "SELECT 1 AS a", settings=s)) for s in ((), TOKYO))

    assert set(change_of(before, after)) == {"s.a"}
