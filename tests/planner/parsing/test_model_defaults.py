"""What config.yaml says for every model."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.project.loader import load_project
from tests.planner.project.test_loader import CONFIG, project_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def model(root: Path, defaults: str, header: str = "") -> Model:
    """The model s.m of a project with these defaults."""
    indented = "".join(f"  {line}\n" for line in defaults.strip().splitlines())
    files = {
        "config.yaml": f"{CONFIG}model_defaults:\n{indented}",
        "models/m.sql": f"MODEL (name s.m{header});\nSELECT x AS ds FROM raw.x",
    }
    return load_project(project_of(root, files), NOW).models["s.m"]


def test_a_default_kind_may_have_settings(tmp_path: Path) -> None:
    kind = "kind:\n  name: incremental_by_time_range\n  time_column: {column: ds, format: '%Y-%m-%d'}\n  lookback: 2"

    found = model(tmp_path, kind)

    assert (found.kind, found.time_column, found.time_format, found.lookback) == (
        Kind.INCREMENTAL_BY_TIME_RANGE,
        "ds",
        "yyyy-MM-dd",
        2,
    )
    assert model(tmp_path, kind, ", kind FULL").kind is Kind.FULL


def test_properties_of_files_are_merged_and_the_models_own_win(tmp_path: Path) -> None:
    defaults = "storage_format: orc\nphysical_properties: {compression: zstd, a: 1}\nkind: FULL"

    found = model(tmp_path, defaults, ", physical_properties (a = 'own')")

    assert found.storage_format == "orc"
    assert found.physical_properties == (("a", "own"), ("compression", "zstd"))


def test_policies_of_changes_come_from_the_defaults(tmp_path: Path) -> None:
    assert model(tmp_path, "on_destructive_change: warn", ", kind FULL").on_destructive_change == "warn"
    said = ", kind INCREMENTAL_BY_TIME_RANGE (time_column ds, on_destructive_change allow)"
    assert model(tmp_path, "on_destructive_change: warn", said).on_destructive_change == "allow"


def test_statements_of_the_defaults_stand_around_the_models_own(tmp_path: Path) -> None:
    analyze = "ANALYZE TABLE @this_model COMPUTE STATISTICS"
    defaults = f"pre_statements: ['SET spark.sql.ansi.enabled = true;']\npost_statements: {analyze}"

    found = model(tmp_path, defaults, ", kind FULL, pre_statements ['SET TIME ZONE UTC']")

    assert [statement.head for statement in found.pre_statements] == [
        "SET spark.sql.ansi.enabled = true",
        "SET TIME ZONE UTC",
    ]
    assert [statement.head for statement in found.post_statements] == [analyze]


def test_models_may_be_off_by_default(tmp_path: Path) -> None:
    assert model(tmp_path, "enabled: false", ", enabled true").name == "s.m"
