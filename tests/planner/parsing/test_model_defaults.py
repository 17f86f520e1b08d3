"""What config.yaml says for every model."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.formatting import Style, format_file
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

    parsed = model(tmp_path, kind)

    assert (parsed.kind, parsed.by_time.time_column, parsed.by_time.time_format, parsed.batches.lookback) == (
        Kind.INCREMENTAL_BY_TIME_RANGE,
        "ds",
        "yyyy-MM-dd",
        2,
    )
    assert model(tmp_path, kind, ", kind FULL").kind is Kind.FULL


def test_properties_of_files_are_merged_and_the_models_own_win(tmp_path: Path) -> None:
    defaults = "storage_format: orc\nphysical_properties: {compression: zstd, a: 1}\nkind: FULL"

    parsed = model(tmp_path, defaults, ", physical_properties (a = 'own')")

    assert parsed.storage.storage_format == "orc"
    assert parsed.storage.physical_properties == (("a", "own"), ("compression", "zstd"))


def test_policies_of_changes_come_from_the_defaults(tmp_path: Path) -> None:
    assert model(tmp_path, "on_destructive_change: warn", ", kind FULL").policy.on_destructive_change == "warn"
    said = ", kind INCREMENTAL_BY_TIME_RANGE (time_column ds, on_destructive_change allow)"
    assert model(tmp_path, "on_destructive_change: warn", said).policy.on_destructive_change == "allow"


def test_statements_of_the_defaults_stand_around_the_models_own(tmp_path: Path) -> None:
    analyze = "ANALYZE TABLE @this_model COMPUTE STATISTICS"
    defaults = f"pre_statements: ['SET spark.sql.ansi.enabled = true;']\npost_statements: {analyze}"

    parsed = model(tmp_path, defaults, ", kind FULL, pre_statements ['SET TIME ZONE UTC']")

    assert [statement.head for statement in parsed.statements.pre_statements] == [
        "SET spark.sql.ansi.enabled = true",
        "SET TIME ZONE UTC",
    ]
    assert [statement.head for statement in parsed.statements.post_statements] == [analyze]


def test_models_may_be_off_by_default(tmp_path: Path) -> None:
    assert model(tmp_path, "enabled: false", ", enabled true").name == "s.m"


def test_a_time_zone_of_crons_comes_from_the_defaults(tmp_path: Path) -> None:
    zones = [model(tmp_path, "cron_tz: Asia/Tokyo", header).cron.tz for header in ("", ", cron_tz 'Europe/Rome'")]

    assert zones == ["Asia/Tokyo", "Europe/Rome"]


def test_batches_at_once_come_from_the_defaults_where_batches_may_be_at_once(tmp_path: Path) -> None:
    by_range = ", kind INCREMENTAL_BY_TIME_RANGE (time_column ds{})"
    headers = (by_range.format(""), by_range.format(", batch_concurrency 2"), ", kind FULL")
    headers = (*headers, ", kind INCREMENTAL_BY_UNIQUE_KEY (unique_key ds)")

    models = [model(tmp_path, "batch_concurrency: 3", header) for header in headers]
    assert [one.batches.batch_concurrency for one in models] == [3, 2, None, None]


def test_a_gateway_comes_from_the_defaults(tmp_path: Path) -> None:
    assert model(tmp_path, "gateway: spark").gateway == "spark"
    with pytest.raises(ProjectError, match="not one of the gateways"):
        model(tmp_path, "gateway: other")


def test_files_are_laid_out_unless_the_defaults_or_the_model_say_otherwise() -> None:
    text, chosen = (f"MODEL (name s.m{setting});\nselect 1 as x" for setting in ("", ", formatting true"))
    style = Style(models=False)

    assert format_file("m.sql", text, "spark", style).text == text
    assert format_file("m.sql", chosen, "spark", style).text != chosen
    assert format_file("a.sql", "AUDIT (name a);\nselect 1 as x", "spark", style).left == ""


def test_a_gateway_has_defaults_of_its_own(tmp_path: Path) -> None:
    config = CONFIG.replace("    connection:", "    model_defaults: {owner: ann, cron: '@hourly'}\n    connection:", 1)
    files = {
        "config.yaml": f"{config}model_defaults: {{owner: bob, kind: FULL}}\n",
        "models/m.sql": "MODEL (name s.m);\nSELECT 1 AS x",
    }

    loaded = load_project(project_of(tmp_path, files), NOW).models["s.m"]

    assert (loaded.metadata.owner, loaded.cron.text, loaded.kind) == ("ann", "@hourly", Kind.FULL)
