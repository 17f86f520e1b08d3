"""Each property of each kind, edited, is seen: as other rows, another layout, or words about the same rows.

A property that is read and has no row here fails these tests, and so does a field of a model that nobody looks at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.kind import Fill, Kind
from mergeplan.planner.model.metadata import Freshness
from mergeplan.planner.model.model import Column, History, Model, PythonCode, Seed
from mergeplan.planner.model.property import replace_settings, setting_parts
from mergeplan.planner.model.schedule import SignalCall
from mergeplan.planner.model.statement import Statement
from mergeplan.planner.parsing.definitions import kinds
from mergeplan.planner.parsing.files import model_file as parse
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model
from mergeplan.planner.plan.category.categorize import is_edited
from mergeplan.planner.plan.change import Category, Change

from .building import NOW, any_columns, change_of, day, external, model, project

ROWS, LAYOUT, SAID, NOTHING = "rows", "layout", "said", "nothing"
KIND = {
    Kind.FULL: "FULL",
    Kind.VIEW: "VIEW",
    Kind.EMBEDDED: "EMBEDDED",
    Kind.SEED: "SEED (path 's.csv')",
    Kind.INCREMENTAL_BY_TIME_RANGE: "INCREMENTAL_BY_TIME_RANGE (time_column d)",
    Kind.INCREMENTAL_BY_UNIQUE_KEY: "INCREMENTAL_BY_UNIQUE_KEY (unique_key id)",
    Kind.INCREMENTAL_BY_PARTITION: "INCREMENTAL_BY_PARTITION",
    Kind.INCREMENTAL_UNMANAGED: "INCREMENTAL_UNMANAGED (forward_only false)",
    Kind.SCD_TYPE_2_BY_TIME: "SCD_TYPE_2_BY_TIME (unique_key id, forward_only false)",
    Kind.SCD_TYPE_2_BY_COLUMN: "SCD_TYPE_2_BY_COLUMN (unique_key id, columns [n], forward_only false)",
}
TABLES: list[Kind] = [kind for kind in KIND if kind not in (Kind.VIEW, Kind.EMBEDDED, Kind.SEED)]
FILLED: list[Kind] = [kind for kind in KIND if kind.is_incremental]
QUERIES: list[Kind] = [kind for kind in KIND if kind is not Kind.SEED]

FORMATS = [("", "orc"), ("", "delta"), ("", "iceberg"), ("delta", "iceberg"), ("iceberg", "hive")]

# A property of MODEL: as it was ('' is without it), as it is, and what the edit is, by kind.
PROPERTIES: dict[str, list[tuple[str, str, dict[Kind, str]]]] = {
    "columns": [("", "(id BIGINT, n INT, d DATE)", dict.fromkeys(TABLES, ROWS))],
    "cron": [
        ("@daily", "@hourly", dict.fromkeys(FILLED, ROWS) | {Kind.FULL: SAID, Kind.VIEW: SAID}),
        ("@daily", "'0 6 * * *'", dict.fromkeys(TABLES, SAID)),
    ],
    "cron_tz": [("", "'Asia/Tokyo'", dict.fromkeys(TABLES, SAID))],
    "start": [("'2026-01-01'", "'2026-01-02'", dict.fromkeys(FILLED, ROWS) | {Kind.FULL: SAID})],
    "end": [("", "'2026-01-05'", dict.fromkeys(TABLES, ROWS)), ("'2026-01-05'", "'2026-01-06'", {Kind.FULL: ROWS})],
    "interval_unit": [("", "'hour'", dict.fromkeys(FILLED, ROWS) | {Kind.FULL: SAID})],
    "contract": [("", "true", dict.fromkeys(QUERIES, SAID))],
    "stamp": [("", "'2'", dict.fromkeys(QUERIES, ROWS)), ("'1'", "'2'", {Kind.SEED: ROWS})],
    "depends_on": [("", "(s.other)", dict.fromkeys(QUERIES, NOTHING))],
    "storage_format": [("", "orc", dict.fromkeys(TABLES, LAYOUT))],
    "physical_properties": [("", "(a = 'b')", dict.fromkeys(TABLES, LAYOUT))],
    "table_format": [(before, after, dict.fromkeys(TABLES, LAYOUT)) for before, after in FORMATS],
    "session_properties": [
        ("", "('spark.sql.ansi.enabled' = false)", dict.fromkeys(TABLES, ROWS)),
        ("('spark.sql.ansi.enabled' = false)", "('spark.sql.ansi.enabled' = true)", {Kind.FULL: ROWS}),
    ],
    "partitioned_by": [
        ("(n)", "(id)", dict.fromkeys(TABLES, LAYOUT) | {Kind.INCREMENTAL_BY_PARTITION: ROWS}),
    ],
    "clustered_by": [("", "(n)", dict.fromkeys(TABLES, LAYOUT))],
    "grain": [("", "id", dict.fromkeys(KIND, SAID))],
    "grains": [("", "(id, n)", dict.fromkeys(KIND, SAID))],
    "audits": [("", "(not_null(columns := (id)))", dict.fromkeys(KIND, SAID))],
    "tags": [("", "(a)", dict.fromkeys(KIND, SAID))],
    "owner": [("", "ann", dict.fromkeys(KIND, SAID))],
    "description": [("", "'x'", dict.fromkeys(KIND, SAID))],
    "column_descriptions": [("", "(id = 'x')", dict.fromkeys(TABLES, SAID))],
    "signals": [("", "(ready())", dict.fromkeys(TABLES, SAID))],
    "freshness": [("", "(warn_after '1 day')", dict.fromkeys(TABLES, SAID))],
    "allow_partials": [("", "true", dict.fromkeys(TABLES, SAID))],
    "virtual_properties": [("", "(a = 'b')", dict.fromkeys(TABLES, SAID))],
    "gateway": [("", "other", dict.fromkeys(TABLES, SAID))],
}
# Which say nothing of a table: how the file is read, laid out and checked, and whether the model is there at all.
BESIDE = {"name", "kind", "dialect", "enabled", "references", "formatting", "optimize_query", "validate_query"} | {
    "ignored_rules"
}
# What stands within the brackets of a kind: before, after, and what the edit is.
SETTINGS: dict[Kind, dict[str, list[tuple[str, str, str]]]] = {
    Kind.INCREMENTAL_BY_TIME_RANGE: {
        "time_column": [
            ("time_column d", "time_column e", ROWS),
            ("time_column (d, '%Y-%m-%d')", "time_column (d, '%Y%m%d')", ROWS),
        ],
        "partition_by_time_column": [("time_column d", "time_column d, partition_by_time_column false", LAYOUT)],
        "auto_restatement_intervals": [
            ("time_column d, auto_restatement_cron '@weekly'", "auto_restatement_intervals 3", SAID)
        ],
    },
    Kind.SEED: {
        "path": [("path 's.csv'", "path 't.csv'", NOTHING)],  # what the file holds counts, and not where it lies
        "csv_settings": [("path 's.csv'", "csv_settings (delimiter = ';')", NOTHING)],
        "batch_size": [("path 's.csv'", "batch_size 3", NOTHING)],
        "dbt_seed": [("path 's.csv'", "dbt_seed true", NOTHING)],
    },
    Kind.VIEW: {"materialized": [("materialized false", "materialized false", NOTHING)]},
    Kind.INCREMENTAL_BY_UNIQUE_KEY: {
        "unique_key": [("unique_key id", "unique_key (id, n)", ROWS)],
        "when_matched": [
            ("unique_key id", "when_matched (WHEN MATCHED THEN UPDATE SET target.n = source.n)", ROWS),
            (
                "unique_key id, when_matched (WHEN MATCHED THEN UPDATE SET target.n = source.n)",
                "unique_key id, when_matched (WHEN MATCHED THEN UPDATE SET target.n = source.n + 1)",
                ROWS,
            ),
        ],
        "merge_filter": [
            ("unique_key id", "merge_filter source.n > 1", ROWS),
            ("unique_key id, merge_filter source.n > 1", "unique_key id, merge_filter source.n > 2", ROWS),
        ],
        "delete_insert": [("unique_key id", "delete_insert true", ROWS)],
        "null_safe_key": [("unique_key id", "null_safe_key true", ROWS)],
    },
    Kind.INCREMENTAL_UNMANAGED: {"insert_overwrite": [("forward_only false", "insert_overwrite true", ROWS)]},
    Kind.SCD_TYPE_2_BY_TIME: {
        "updated_at_name": [("unique_key id, forward_only false", "updated_at_name d", ROWS)],
        "updated_at_as_valid_from": [("unique_key id, forward_only false", "updated_at_as_valid_from true", ROWS)],
    },
    Kind.SCD_TYPE_2_BY_COLUMN: {
        "columns": [
            ("unique_key id, forward_only false, columns [n]", "unique_key id, forward_only false, columns [d]", ROWS)
        ],
        "execution_time_as_valid_from": [
            ("unique_key id, forward_only false, columns [n]", "execution_time_as_valid_from true", ROWS)
        ],
    },
    Kind.INCREMENTAL_BY_PARTITION: {},
    Kind.FULL: {},
    Kind.EMBEDDED: {},
    Kind.EXTERNAL: {},
}
OF_HISTORY = {
    "unique_key": [("unique_key id, forward_only false", "unique_key n, forward_only false", ROWS)],
    "valid_from_name": [("unique_key id, forward_only false", "valid_from_name since", ROWS)],
    "valid_to_name": [("unique_key id, forward_only false", "valid_to_name until", ROWS)],
    "time_data_type": [("unique_key id, forward_only false", "time_data_type DATE", ROWS)],
    "invalidate_hard_deletes": [("unique_key id, forward_only false", "invalidate_hard_deletes true", ROWS)],
    "dbt_snapshot": [("unique_key id, forward_only false", "dbt_snapshot (scd_id_name a)", ROWS)],
}
POLICIES = {
    "batch_size": "batch_size 3",
    "batch_concurrency": "batch_concurrency 1",
    "lookback": "lookback 2",
    "disable_restatement": "disable_restatement {}",
    "on_destructive_change": "on_destructive_change warn",
    "on_additive_change": "on_additive_change error",
    "auto_restatement_cron": "auto_restatement_cron '@weekly'",
    "forward_only": "forward_only true",
}


def kind_settings() -> Iterator[tuple[Kind, str, str, str, str]]:
    """(kind, key, settings before, settings after, what the edit is) of every key that a kind reads."""
    for kind, (keys, _) in kinds.SETTINGS.items():
        own = SETTINGS[kind] | (OF_HISTORY if kind.fill is Fill.HISTORY else {})
        usual = KIND.get(kind, "").partition("(")[2].rstrip(")")
        columns = ", columns [n]" if kind is Kind.SCD_TYPE_2_BY_COLUMN else ""
        for key in keys:
            for before, after, effect in own.get(key, ()):
                before += columns if columns and "columns" not in before else ""
                whole = key in before or after.startswith(before.split(",")[0])
                after += columns if whole and columns and "columns" not in after else ""
                yield kind, key, before, after if whole else f"{before}, {after}", effect
            if key not in own and key in POLICIES:
                rest = usual.replace("forward_only false", "") if key == "forward_only" else usual
                turned = POLICIES[key].format("false" if kind.keeps_history else "true")
                parts = [rest.strip(" ,").replace(", ,", ","), turned]
                same = key == "forward_only" and (kind.keeps_history or kind is Kind.INCREMENTAL_BY_PARTITION)
                effect = NOTHING if same and not usual else SAID
                if key == "batch_size" and kind is Kind.INCREMENTAL_BY_UNIQUE_KEY:
                    effect = ROWS  # its query reads all rows in each batch, which inserts those of NULL keys again
                yield kind, key, usual, ", ".join(filter(None, parts)), effect


DEFAULTS = Defaults(NOW, gateways={"other": {}})


def read(kind: str, **properties: str) -> Model:
    """The model of a MODEL block with these properties."""
    given = "".join(f", {key} {value}" for key, value in properties.items() if value)
    query = "" if kind.startswith("SEED") else "SELECT id, n, d, e FROM s.raw"
    found, _ = parse_model(f"MODEL (name s.t, kind {kind}{given});\n{query}", "models/t.sql", DEFAULTS)
    assert found is not None
    return replace(found, seed=replace(found.seed, digest="1", header=("id", "n"))) if found.seed else found


def edit(before: Model, after: Model) -> Change | None:
    raw, other = external("s.raw", "id n d e"), external("s.other", "id")
    reader = model("s.reader", "SELECT id FROM s.t")
    with any_columns():
        changes = change_of(project(raw, other, before, reader), project(raw, other, after, reader))
    return changes.get("s.t")


def effect_of(change: Change | None) -> str:
    if change is None or change.category in (Category.EQUIVALENT, Category.INDIRECT_NON_BREAKING):
        return NOTHING
    if change.rule == "layout-changed":
        return LAYOUT
    if change.category is Category.METADATA:
        return SAID
    assert change.old is not None
    assert change.new is not None
    assert change.new.version != change.old.version
    return ROWS


@pytest.mark.parametrize(
    ("kind", "key", "before", "after", "effect"),
    [
        (kind, key, before, after, effect)
        for key, rows in PROPERTIES.items()
        for before, after, effects in rows
        for kind, effect in effects.items()
    ],
)
def test_an_edited_property_is_what_it_is_called(kind: Kind, key: str, before: str, after: str, effect: str) -> None:
    needed = {"partitioned_by": "(n)"} if kind is Kind.INCREMENTAL_BY_PARTITION else {}
    needed |= {"start": "'2026-01-01'"} if key == "end" else {}
    one, two = (read(KIND[kind], **(needed | {key: text})) for text in (before, after))

    assert one != two or effect is NOTHING
    assert effect_of(edit(one, two)) == effect


@pytest.mark.parametrize(("kind", "key", "before", "after", "effect"), list(kind_settings()))
def test_an_edited_setting_of_a_kind_is_what_it_is_called(
    kind: Kind, key: str, before: str, after: str, effect: str
) -> None:
    needed = {"partitioned_by": "(n)"} if kind is Kind.INCREMENTAL_BY_PARTITION else {}
    one, two = (read(f"{kind} ({text})" if text else f"{kind}", **needed) for text in (before, after))

    assert effect_of(edit(one, two)) == effect


def test_no_property_is_left_out() -> None:
    assert parse._READERS.keys() == PROPERTIES.keys() | BESIDE
    assert {(kind, key) for kind, (keys, _) in kinds.SETTINGS.items() for key in keys} == {
        (kind, key) for kind, key, *_ in kind_settings()
    }


ANY = model("s.t", "SELECT 1 AS id", Kind.INCREMENTAL_BY_UNIQUE_KEY, unique_key=("id",))
FIELDS: dict[str, object] = {
    "kind": Kind.FULL,
    "sql": "SELECT 2 AS id",
    "misread": "json path $.a",
    "columns": (Column("id", "int"),),
    "cron": Cron("@hourly"),
    "allow_partials": True,
    "start": day("2026-01-01"),
    "start_text": "2 days ago",
    "end": day("2026-01-05"),
    "time_column": "id",
    "time_format": "yyyy",
    "lookback": 3,
    "batch_size": 3,
    "batch_concurrency": 3,
    "seed": Seed("s.csv", "1", ("id",)),
    "audits": (AuditCall("a"),),
    "description": "x",
    "column_descriptions": (("id", "x"),),
    "owner": "ann",
    "tags": ("a",),
    "grain": ("id",),
    "stamp": "1",
    "contract": True,
    "gateway": "other",
    "storage_format": "orc",
    "physical_properties": (("a", "b"),),
    "table_format": "iceberg",
    "partitioned_by": ("id",),
    "clustered_by": ("id",),
    "partition_by_time_column": False,
    "unique_key": ("n",),
    "when_matched": "WHEN MATCHED THEN DELETE",
    "merge_filter": "source.id > 1",
    "delete_insert": True,
    "null_safe_key": True,
    "history": History(),
    "insert_overwrite": True,
    "forward_only": True,
    "disable_restatement": True,
    "on_destructive_change": "warn",
    "on_additive_change": "warn",
    "auto_restatement_cron": Cron("@weekly"),
    "auto_restatement_intervals": 3,
    "virtual_properties": (("a", "b"),),
    "pre_statements": (Statement("SET VAR x = 1"),),
    "post_statements": (Statement("ANALYZE TABLE x", harmless=True),),
    "on_virtual_update": (Statement("GRANT x", harmless=True),),
    "python": PythonCode("a.py", "execute", "1"),
    "signals": (SignalCall("a"),),
    "freshness": Freshness(warn_after=60),
    "settings": (("spark.sql.ansi.enabled", "false"),),
}
# Where it stands and what its text was; what a query reads, and whether that is itself, is in its text; `start_moves`
# says that there is a `start_text`; the linter's own; of a custom materialization, the kind says all. The text that
# runs is judged by `sql`, and by `misread` where that does not say all of it. Whether an external table is declared in
# whole decides how its readers are judged: over the columns of Spark's catalog, where they need them.
NOT_ITSELF = set(
    """name path line source text text_line dbt_text dialect depends_on reads_itself start_moves ignored_rules
    materialization open_columns""".split()
)


@pytest.mark.parametrize("name", FIELDS)
def test_another_value_of_a_field_is_an_edit(name: str) -> None:
    after = replace_settings(ANY, {name: FIELDS[name]} | ({"start_moves": True} if name == "start_text" else {}))

    assert is_edited(ANY, after)
    assert is_edited(after, ANY)


def test_no_field_is_left_out() -> None:
    assert setting_parts(Model).keys() == FIELDS.keys() | NOT_ITSELF
