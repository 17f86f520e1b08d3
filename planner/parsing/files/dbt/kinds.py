"""The kind of a dbt node, with its settings and query; any difference from dbt is refused: no table is approximate."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from mergeplan.planner.naming import quote_column
from mergeplan.planner.parsing.files.dbt.hooks import refuse_header, refuse_hooks, with_inserted_rows
from mergeplan.planner.parsing.files.dbt.merges import PREDICATES, key_texts, merge_settings, read_column
from mergeplan.planner.parsing.files.dbt.nodes import DbtNode
from mergeplan.planner.parsing.files.dbt.two_forms import first_or_later, is_alike, later_reads_itself

START, END = "\ue000start\ue001", "\ue000end\ue001"  # of a batch, as the child writes them into a text
_BEFORE_END = re.compile(rf"<\s*'{END}'")
BATCHES = {"hour": "@hourly", "day": "@daily", "month": "@monthly", "year": "@yearly"}
_PLAIN = re.compile(r"\w+")
# Settings that decide rows or their location, and that no kind of mergeplan has.
REFUSED = {
    # of dbt-databricks
    **dict.fromkeys(
        (
            "not_matched_condition",
            "not_matched_by_source_action",
            "not_matched_by_source_condition",
            "skip_not_matched_step",
        ),
        "A model of mergeplan inserts each row of a new key: leave out the others in the query.",
    ),
    "row_filter": "",
}
ELSEWHERE = "or let another project of dbt build it, and read its table as a source"
INSTEAD = {  # for strategies whose predicates decide the deleted rows
    "replace_where": "Use `insert_overwrite` with `partition_by`, or `delete+insert` with one column as `unique_key`.",
    "delete+insert": "Choose the rows in the query, by `is_incremental()`.",
}
KEPT = {  # kind -> its settings with `full_refresh: false`; INCREMENTAL_UNMANAGED has them by default
    "INCREMENTAL_BY_UNIQUE_KEY": ("forward_only true", "disable_restatement true"),
    "INCREMENTAL_BY_PARTITION": ("disable_restatement true",),  # whose changes are all forward-only
    "INCREMENTAL_BY_TIME_RANGE": ("forward_only true",),
}
SNAPSHOT_NAMES = {
    name: name for name in ("dbt_valid_from", "dbt_valid_to", "dbt_scd_id", "dbt_updated_at", "dbt_is_deleted")
}
Read = Callable[[DbtNode], "DbtKind"]


@dataclass(frozen=True)
class DbtKind:
    """A kind as MODEL writes it, further properties, and the query."""

    kind: str
    query: str
    properties: tuple[str, ...] = ()


def dbt_kind(node: DbtNode) -> DbtKind:
    """Return the kind of a node; raise ProjectError for anything that mergeplan does not do as dbt does."""
    if node.language != "sql":
        raise node.refusal("is a Python model, which dbt runs on Databricks only", f"Write it in SQL, {ELSEWHERE}.")
    for setting, instead in REFUSED.items():
        if node.settings.get(setting):
            raise node.refusal(f"sets `{setting}`, which mergeplan does not follow", instead)
    refuse_hooks(node)
    refuse_header(node)
    kind = "seed" if node.type == "seed" else "snapshot" if node.type == "snapshot" else node.materialized
    read = KINDS.get(kind)
    if read is None:
        why = f"is materialized as `{kind}`, which mergeplan does not know"
        raise node.refusal(why, f"Use `table` or `incremental`, {ELSEWHERE}.")
    return read(node)


def _materialized_view_kind(node: DbtNode) -> DbtKind:
    """Return the kind of a table that has the query's rows after each run, in which dbt refreshes the view."""
    change = str(node.settings.get("on_configuration_change") or "apply")
    if change != "apply":
        why = f"sets `on_configuration_change` to `{change}`: dbt leaves the rows of its old query"
        raise node.refusal(why, "Use `apply`, or `materialized: table`.")
    return DbtKind("FULL", node.text)


def _seed_kind(node: DbtNode) -> DbtKind:
    delimiter = str(node.settings.get("delimiter") or ",")
    file = node.path.rpartition("/")[2]
    csv = f"csv_settings (delimiter {quote_text(delimiter)}), " if delimiter != "," else ""
    types = ", ".join(f"{quote_name(name)} {kind}" for name, kind in node.types)
    return DbtKind(f"SEED ({csv}path {quote_text('./' + file)}, dbt_seed true)", "", (f"columns ({types})",))


def _snapshot_kind(node: DbtNode) -> DbtKind:
    strategy = str(node.settings.get("strategy") or "")
    read = SNAPSHOTS.get(strategy)
    if read is None:
        raise node.refusal(f"has the snapshot strategy `{strategy}`, which mergeplan does not know")
    kind, kind_settings = read(node)
    keys, since = node.words("unique_key"), _updated_column(node)
    names = {**SNAPSHOT_NAMES, **dict(node.settings.get("snapshot_meta_column_names") or {})}
    names = {role: str(name or SNAPSHOT_NAMES[role]) for role, name in names.items() if role in SNAPSHOT_NAMES}
    added = [f"scd_id_name {quote_text(names['dbt_scd_id'])}", f"updated_at_name {quote_text(names['dbt_updated_at'])}"]
    if kind == "SCD_TYPE_2_BY_COLUMN" and since:
        added.append(f"since {quote_text(since)}")
    deletes = _hard_deletes(node)
    if deletes == "new_record":
        added.append(f"is_deleted_name {quote_text(names['dbt_is_deleted'])}")
    if current := str(node.settings.get("dbt_valid_to_current") or "").strip():
        added.append(f"valid_to_current {quote_text(current)}")
    types = {column.name.lower(): column.type.lower() for column in node.columns}
    settings = [
        f"unique_key ({', '.join(map(str.strip, keys))})",
        *kind_settings,
        f"valid_from_name {quote_text(names['dbt_valid_from'])}",
        f"valid_to_name {quote_text(names['dbt_valid_to'])}",
        f"time_data_type {types.get(since) or 'timestamp'}",
        f"invalidate_hard_deletes {str(deletes != 'ignore').lower()}",
        f"dbt_snapshot ({', '.join(added)})",
    ]
    return DbtKind(f"{kind} ({', '.join(settings)})", node.text)


def _timestamp_kind(node: DbtNode) -> tuple[str, tuple[str, ...]]:
    """Return the kind that begins a version if a row has a later time than the current version."""
    if not (column := _updated_column(node)):
        raise node.refusal("is a snapshot by `timestamp` and has no `updated_at`")
    return "SCD_TYPE_2_BY_TIME", (f"updated_at_name {quote_text(column)}",)


def _check_kind(node: DbtNode) -> tuple[str, tuple[str, ...]]:
    """Return the kind that begins a version if a row has other values than the current version."""
    columns = node.words("check_cols")
    if not columns:
        raise node.refusal("is a snapshot by `check` and has no `check_cols`")
    if columns == ("all",):
        return "SCD_TYPE_2_BY_COLUMN", ("columns *",)
    names = [read_column(node, "check_cols", text) for text in columns]
    return "SCD_TYPE_2_BY_COLUMN", (f"columns [{', '.join(name.key for name in names)}]",)


def _updated_column(node: DbtNode) -> str:
    text = str(node.settings.get("updated_at") or "").strip()
    return read_column(node, "updated_at", text) if text else ""


def _hard_deletes(node: DbtNode) -> str:
    old = "invalidate" if node.settings.get("invalidate_hard_deletes") else "ignore"
    deletes = str(node.settings.get("hard_deletes") or old)
    if deletes not in ("ignore", "invalidate", "new_record"):
        raise node.refusal(f"has `hard_deletes: {deletes}`, which mergeplan does not know")
    return deletes


def _incremental_kind(node: DbtNode) -> DbtKind:
    if node.settings.get("full_refresh") is True:
        return DbtKind("FULL", node.text)  # dbt replaces the table in each run
    strategy = str(node.settings.get("incremental_strategy") or "append").lower()
    read = STRATEGIES.get(strategy)
    if strategy not in ("append", "merge") and (setting := next(filter(node.settings.get, PREDICATES), "")):
        raise node.refusal(f"sets `{setting}`, which mergeplan follows in a `merge` only", INSTEAD.get(strategy, ""))
    if read is None:
        instead = f"Use one of {', '.join(STRATEGIES)}, or a model of mergeplan of kind INCREMENTAL_BY_TIME_RANGE."
        raise node.refusal(f"has the incremental strategy `{strategy}`, which mergeplan does not know", instead)
    return _keep_kind(read(node)) if node.settings.get("full_refresh") is False else read(node)


def _keep_kind(kind: DbtKind) -> DbtKind:
    """Return the kind of a table that is never computed again as a whole, though its batches may be restated."""
    name, _, settings = kind.kind.removesuffix(")").partition(" (")
    added = KEPT.get(name, ())
    return replace(kind, kind=f"{name} ({', '.join(filter(None, (settings, *added)))})") if added else kind


def _append_kind(node: DbtNode) -> DbtKind:
    return DbtKind("INCREMENTAL_UNMANAGED", first_or_later(node))


def _merge_kind(node: DbtNode) -> DbtKind:
    """Return the kind that updates rows by their key, in all columns or in some; without a key, dbt appends."""
    if not node.words("unique_key"):
        return _append_kind(node)
    return DbtKind(f"INCREMENTAL_BY_UNIQUE_KEY ({', '.join(merge_settings(node))})", first_or_later(node))


def _delete_insert(node: DbtNode) -> DbtKind:
    """Return the kind that replaces the rows of each key that the query returns.

    Before version 17.1 of Databricks, dbt runs two statements, and the second reads the query again. Several columns
    and the model's own table therefore have another result than in later versions.
    """
    keys = key_texts(node, "unique_key")
    if not keys:
        raise node.refusal("deletes and inserts, and has no `unique_key`")
    if len(keys) > 1:
        problem = "deletes and inserts by several columns: one by one or together, as the version of Databricks decides"
        raise node.refusal(problem, "Use one column as `unique_key`, or `merge`.")
    if not is_alike(node.text, node.later) and later_reads_itself(node):
        problem = (
            "deletes and inserts, and reads its own table before or after it, as the version of Databricks decides"
        )
        raise node.refusal(problem, "Choose the rows of later runs by `current_date()`, or use `merge`.")
    return DbtKind(f"INCREMENTAL_BY_UNIQUE_KEY (unique_key ({keys[0]}), delete_insert true)", first_or_later(node))


def _insert_overwrite(node: DbtNode) -> DbtKind:
    """Return the kind that replaces partitions or the whole table; later runs depend on what it contains."""
    columns = node.words("partition_by")
    if node.words("liquid_clustered_by"):
        message = "replaces rows by `liquid_clustered_by`, or the whole table, as the version of Databricks decides"
        raise node.refusal(message, "Use `partition_by`, or `merge` with a `unique_key`.")
    if is_alike(node.text, node.later):
        return DbtKind("INCREMENTAL_BY_PARTITION" if columns else "FULL", node.text)
    kind = "INCREMENTAL_BY_PARTITION" if columns else "INCREMENTAL_UNMANAGED (insert_overwrite true)"
    return DbtKind(kind, first_or_later(node))


def _microbatch_kind(node: DbtNode) -> DbtKind:
    column, begin = node.settings.get("event_time"), node.settings.get("begin")
    cron = BATCHES.get(str(node.settings.get("batch_size") or "").lower())
    if not (column and begin and cron):
        raise node.refusal(f"needs `event_time`, `begin` and a `batch_size` of {', '.join(BATCHES)}")
    if not is_alike(node.text, node.later):
        raise node.refusal("is filled by `microbatch`, and its query is another one in later runs (`is_incremental()`)")
    lookback = node.settings.get("lookback")
    units = 1 if lookback is None else int(str(lookback))
    time = read_column(node, "event_time", str(column)).key
    kind = f"INCREMENTAL_BY_TIME_RANGE (time_column {time}, batch_size 1, lookback {units})"
    return DbtKind(kind, node.text, (f"cron {quote_text(cron)}", f"start {quote_text(str(begin))}"))


def fill_edges(node: DbtNode, query: str) -> str:
    """Return a query with `@start_ts` and `@end_ts` for the edges of a batch; raise ProjectError for other uses.

    A batch of dbt ends before the next one begins; `@end_ts` is its last moment.
    """
    filled = _BEFORE_END.sub("<= @end_ts", query.replace(f"'{START}'", "@start_ts"))
    if any(mark in filled for mark in (*START, *END) if not mark.isalpha()):
        raise node.refusal("uses its batch otherwise than in `>= start` and `< end`")
    return filled


def quote_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quote_name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quote_column(name)


STRATEGIES: dict[str, Read] = {
    "append": _append_kind,
    "merge": _merge_kind,
    "insert_overwrite": _insert_overwrite,
    "delete+insert": _delete_insert,
    "microbatch": _microbatch_kind,
    "replace_where": _append_kind,  # its predicates decide the replaced rows: a model with predicates is refused above
}
SNAPSHOTS: dict[str, Callable[[DbtNode], tuple[str, tuple[str, ...]]]] = {
    "timestamp": _timestamp_kind,
    "check": _check_kind,
}
KINDS: dict[str, Read] = {
    "view": lambda node: DbtKind("VIEW", node.text),
    "table": lambda node: DbtKind("FULL", with_inserted_rows(node)),
    "materialized_view": _materialized_view_kind,
    "ephemeral": lambda node: DbtKind("EMBEDDED", node.text),
    "incremental": _incremental_kind,
    "seed": _seed_kind,
    "snapshot": _snapshot_kind,
}
