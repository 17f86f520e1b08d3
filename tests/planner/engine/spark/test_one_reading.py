"""Two spellings with one fingerprint return the same value under every setting of Spark that a project may have."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from mergeplan.planner.engine.spark.engine import SparkEngine
from mergeplan.planner.project.loader import load_project
from mergeplan.planner.semantics.spark.spark_settings import UNREADABLE, is_harmless
from tests.planner.building import promote
from tests.planner.project.test_loader import NOW, project_of

SPELLINGS = (
    (r"'it''s'", r"'it\'s'"),
    (r"'it''s'", '''"it's"'''),
    ("TIMESTAMP(DATE '2026-01-01')", "CAST(DATE '2026-01-01' AS TIMESTAMP)"),
    ("TO_TIMESTAMP('2026-01-01')", "CAST('2026-01-01' AS TIMESTAMP)"),
    ("NVL(NULL, 1)", "COALESCE(NULL, 1)"),
    ("MOD(-7, 2)", "-7 % 2"),
    ("1 != 2", "1 <> 2"),
    ("INTERVAL 1 DAY", "INTERVAL '1' DAY"),
    ("STRING(1.50)", "1.50::STRING"),
)


@pytest.mark.parametrize(("written", "other"), SPELLINGS)
def test_the_spellings_have_one_version(tmp_path: Path, written: str, other: str) -> None:
    models = [
        load_project(project_of(tmp_path, {"models/a.sql": f"MODEL (name s.a, kind FULL);\nSELECT {text} AS x"}), NOW)
        for text in (written, other)
    ]

    versions = {promote(project.models)[0].snapshots["s.a"].version for project in models}
    assert len(versions) == 1


@pytest.mark.prove
def test_spellings_of_one_fingerprint_are_one_value_under_each_setting(engine: SparkEngine) -> None:
    assert [line for key in list_switches() for line in find_differences(engine, key)] == []


def list_switches() -> list[str]:
    """Return Spark's settings that are on or off, may change rows, and are accepted."""
    jvm = SparkSession.active()._jvm
    assert jvm is not None
    entries = getattr(getattr(jvm, "org.apache.spark.sql.internal.SQLConf$"), "MODULE$").getConfigEntries().iterator()
    keys = []
    while entries.hasNext():
        entry = entries.next()
        key, default = str(entry.key()), str(entry.defaultValueString())
        if default in ("true", "false") and key not in UNREADABLE and not is_harmless(key):
            keys.append(f"{key}={'false' if default == 'true' else 'true'}")
    return sorted(keys)


def find_differences(engine: SparkEngine, setting: str) -> list[str]:
    key, _, value = setting.partition("=")
    conf = SparkSession.active().conf
    try:
        conf.set(key, value)
    except AnalysisException:  # it is fixed when Spark starts
        return []
    try:
        columns = ", ".join(f"{_value(one)} = {_value(two)}" for one, two in SPELLINGS)
        (row,) = engine.fetch(f"SELECT {columns}").rows
        return [f"{setting}: {pair}" for pair, same in zip(SPELLINGS, row, strict=True) if not same]
    finally:
        conf.unset(key)


def _value(text: str) -> str:
    return f"CONCAT(TYPEOF({text}), ' ', STRING({text}))"
