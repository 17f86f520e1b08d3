"""The fingerprints and versions of models with every property of every kind, as they were when they were first written.

`fingerprints.txt` is never regenerated: a changed hash makes every user compute the table anew. `python -m
tests.planner.fingerprints` appends the lines of new properties, and leaves those that are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.fingerprint import digest, encode_text
from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.checks import AuditCall
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.model import Column, DbtVersions, History, Model, PythonCode, Seed
from mergeplan.planner.model.property import replace_settings
from mergeplan.planner.model.schedule import SignalCall
from mergeplan.planner.model.statement import Statement
from mergeplan.planner.naming import Convention, Naming, Suffix
from mergeplan.planner.plan.build import Request, compute_plan_id
from mergeplan.planner.plan.category.categorize import fingerprint_of
from mergeplan.planner.plan.forward_only import ForwardOnly
from mergeplan.planner.plan.schedule import Window
from mergeplan.planner.snapshot.snapshot import Meaning, version_of

from . import test_every_property as properties
from .building import NOW, any_columns, day, external, model, project, promote

PINS = Path(__file__).with_name("fingerprints.txt")
QUERY = "SELECT id, n, d, e FROM s.raw"
# Values of fields that take more than one: each of their own fields, set.
VALUES: dict[str, list[Any]] = {
    "columns": [(Column("id", "int", "x"),), (Column("a'b", 'struct<`c"d`:int>'), Column("é", "string", "\n\\"))],
    "audits": [
        (AuditCall("a", (("columns", "ARRAY(id)"),)),),
        (AuditCall("a", blocking=True), AuditCall("b", blocking=False)),
        (AuditCall("a", query="SELECT * FROM @this_model WHERE name = 'it''s'"),),
    ],
    "history": [
        History("since", "until", "date"),
        History(updated_at="at"),
        History(columns=("a", "b")),
        History(invalidates_deleted=True),
        History(begins_when_seen=True),
        History(dbt=DbtVersions()),
        History(dbt=DbtVersions("at", "id", "up", "gone", "DATE '9999-12-31'")),
    ],
    "pre_statements": [
        (Statement("CREATE TEMPORARY VIEW v AS", "SELECT 1 AS a", "v"),),
        (Statement("SET x = 1", harmless=True),),
        (Statement("SET VAR x = 1", stages=("creating",)), Statement("SET VAR y = 'a'", stages=())),
        (Statement("CREATE TEMPORARY VIEW v AS", "SELECT 1", text="SELECT  1", misread="json path"),),
    ],
    "post_statements": [(Statement("ANALYZE TABLE a", "q", "v", True, ("evaluating",), "t", "m"),)],
    "signals": [(SignalCall("a", (("n", "1"), ("s", '"x"'))), SignalCall("b"))],
    "seed": [Seed("t.csv", "2", ("id", "n"), ";", "'", "latin1", ("", "NULL"), 3, (("id", "5"), ("n", "6")), True)],
    "python": [PythonCode("a.py", "execute", "2", (("v", "1"),), "3", "open")],
    "cron": [Cron("@daily", "Asia/Tokyo"), Cron("@daily", given_unit="hour"), Cron("0 6 * * *", "Asia/Tokyo", "hour")],
    "auto_restatement_cron": [Cron("@monthly", "Asia/Tokyo", "day")],
    "partitioned_by": [("`a-b`", "a - b", "days(ts)"), ("a-b",), ("`a - b`",)],
    "unique_key": [("`a-b`", "coalesce(n, 0)"), ("it's",)],
    "tags": [("a", 'b"c', "d'e")],
    "grain": [("a", "b")],
    "lookback": [1],
    "settings": [(("spark.sql.ansi.enabled", "false"), ("spark.sql.session.timeZone", "Asia/Tokyo"))],
    "stamp": ["it's"],
    "table_format": ["hive", "delta"],
    "end": [day("2026-01-05").replace(hour=6, microsecond=5)],
}

AT_ONCE = """
    sql misread columns cron allow_partials start start_text end time_column time_format lookback batch_size
    batch_concurrency seed audits description column_descriptions owner tags grain stamp contract gateway
    storage_format physical_properties table_format partitioned_by clustered_by partition_by_time_column
    unique_key when_matched merge_filter delete_insert null_safe_key history insert_overwrite forward_only
    disable_restatement on_destructive_change on_additive_change auto_restatement_cron
    auto_restatement_intervals virtual_properties pre_statements post_statements on_virtual_update signals
    settings
"""  # fields that are set together in some lines, which a later field does not join


def written_blocks() -> Iterator[str]:
    """Yield what stands after the name in MODEL blocks, for each kind with each property."""
    for kind, kind_text in properties.KIND.items():
        for key, rows in properties.PROPERTIES.items():
            for text in dict.fromkeys(value for before, after, _ in rows for value in (before, after)):
                has_parts = kind is Kind.INCREMENTAL_BY_PARTITION and key != "partitioned_by"
                parts = {"partitioned_by": "(n)"} if has_parts else {}
                parts |= {"start": "'2026-01-01'"} if key == "end" else {}
                parts |= {key: text} if text else {}
                yield ", ".join([kind_text, *(f"{name} {value}" for name, value in parts.items())])
    for kind, _, *texts, _ in properties.kind_settings():
        for text in texts:
            partitioned = ", partitioned_by (n)" if kind is Kind.INCREMENTAL_BY_PARTITION else ""
            yield f"{kind} ({text}){partitioned}" if text else f"{kind}{partitioned}"


def block_hashes(block: str) -> str:
    """Return the hashes of a model that a text describes, and of a view that reads it."""
    try:
        return model_hashes(properties.read(block))
    except ProjectError:
        return "refused"


def model_hashes(made: Model) -> str:
    """Return the hashes of a model, and of a view that reads it."""
    raw, other = external("s.raw", "id n d e"), external("s.other", "id")
    reader = model("s.reader", "SELECT id FROM s.t", Kind.VIEW)
    with any_columns():
        snapshots = promote(project(raw, other, made, reader))[0].snapshots
    there, read = snapshots["s.t"], snapshots["s.reader"]
    prints = there.fingerprint
    return " ".join((prints.data[:12], prints.metadata[:12], there.version, read.fingerprint.text, read.version))


def judged_models() -> Iterator[tuple[str, Model]]:
    """Yield models whose query is not judged by its meaning alone: what else is written decides."""
    fields: list[dict[str, Any]] = [
        *({"pre_statements": statements} for statements in VALUES["pre_statements"]),
        {"settings": VALUES["settings"][0]},
        {"settings": (("spark.sql.caseSensitive", "true"),)},
        {"misread": "json path $.a"},
        {"sql": "SELECT id, n FROM s.raw ORDER BY n"},
        {"sql": "SELECT RAND() AS id"},
        {"sql": "SELECT id FROM (SELECT TRANSFORM (id) USING 'cat' AS (id) FROM s.raw)"},
        {"sql": "SELECT id FROM s.raw WHERE d < @end_ds"},
        {"python": VALUES["python"][0], "sql": "", "columns": VALUES["columns"][0]},
    ]
    for block in ("FULL", "VIEW", "EMBEDDED", properties.KIND[Kind.INCREMENTAL_BY_TIME_RANGE]):
        for number, values in enumerate(fields):
            yield f"judged {number} {block}", replace_settings(properties.read(block), values)


def field_models() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield names and values of fields: each alone, then several at once."""
    yield "none", {}
    for name, first in properties.FIELDS.items():
        for number, value in enumerate([first, *VALUES.get(name, ())]):
            yield f"{name} {number}", {name: value} | ({"start_moves": True} if name == "start_text" else {})
    fields = {name: properties.FIELDS[name] for name in AT_ONCE.split()}
    yield "all", fields
    yield "last values", fields | {name: VALUES[name][-1] for name in fields.keys() & VALUES.keys()}
    yield "reads itself", {"reads_itself": True, "batch_size": 3}


def field_hashes(fields: dict[str, Any]) -> str:
    """Return a hash of the fingerprint and the version of a model with these fields, for each kind."""
    hashes = []
    for kind in Kind:
        fields_of_kind = {"unique_key": ("id",), "kind": kind, **fields}
        made = replace_settings(Model("s.t", kind, "models/t.sql", 1, "", QUERY), fields_of_kind)
        prints = fingerprint_of(made, "text", "order", {}, "2026-01-01")
        meaning = Meaning("rows", (("id", "a"),), order="by id")
        hashes.append(digest(prints.data, prints.metadata, version_of(made, meaning, {"s.raw": "b"}))[:10])
    return " ".join(hashes)


def plan_ids() -> list[str]:
    """Return the ids of plans with each option that is part of one, and with all of them."""
    options: list[dict[str, Any]] = [
        {"skip_backfill": True},
        {"naming": Naming(Suffix.TABLE, (("dev", "lake"),), (("s", "t"),), Convention.HASH_MD5, "main")},
        {"forward": ForwardOnly(True, day("2026-01-05"), False, ("s.a",), ("s.b", "s.c"))},
        {"backfill": frozenset()},
        {"backfill": frozenset(("s.b", "s.a"))},
        {"empty_backfill": True},
        {"include_unmodified": True},
    ]
    every = {name: value for option in options for name, value in option.items()}
    window = Window(NOW, day("2026-01-02"))
    return [compute_plan_id("swaps", "dev", "prod", (), Request(window, **option)) for option in ({}, *options, every)]


@cache
def make_pins() -> dict[str, str]:
    """Return a line's name -> its hashes, as this code computes them."""
    blocks = {block: block_hashes(block) for block in dict.fromkeys(written_blocks())}
    calls = [call for calls in (properties.FIELDS["audits"], *VALUES["audits"]) for call in calls]
    audits = {f"audit {number}": digest(encode_text(call)) for number, call in enumerate(calls)}
    plans = {f"plan {number}": text for number, text in enumerate(plan_ids())}
    judged = {name: model_hashes(made) for name, made in judged_models()}
    return blocks | {f"field {name}": field_hashes(fields) for name, fields in field_models()} | audits | plans | judged


def read_pins() -> dict[str, str]:
    """Return a line's name -> its hashes, as they were written."""
    return dict(line.rsplit(" | ", 1) for line in PINS.read_text().splitlines())


if __name__ == "__main__":
    pins = read_pins() | make_pins() | read_pins()  # those that are there stay as they are, and where
    PINS.write_text("".join(f"{name} | {hashes}\n" for name, hashes in pins.items()))
