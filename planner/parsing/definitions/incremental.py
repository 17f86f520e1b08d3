"""The settings of incremental kinds: by unique key, by partition, with history."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.errors import Located, ProjectError
from mergeplan.planner.model.kind import Fill, Kind
from mergeplan.planner.model.model import DbtVersions, History, Model
from mergeplan.planner.parsing.definitions.properties import (
    Property,
    bracket_tokens,
    read_boolean,
    read_expressions,
    read_integer,
    read_names,
    read_properties,
    read_settings,
    spark_type,
    word,
    words,
)
from mergeplan.planner.parsing.definitions.schedules import cron
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens, closing, did_you_mean, parse_tokens, tokenize

CHANGES = ("error", "warn", "allow", "ignore")
BOTH = ("forward_only", "disable_restatement")
POLICY_KEYS = (*BOTH, "on_destructive_change", "on_additive_change", "auto_restatement_cron")  # of all of them
ORDER_KEYS = ("batch_size", "batch_concurrency")
_HISTORY_NAMES = {"valid_from_name": "valid_from", "valid_to_name": "valid_to", "updated_at_name": "updated_at"}
_HISTORY_KEYS = ("valid_from_name", "valid_to_name", "invalidate_hard_deletes", "time_data_type", "dbt_snapshot")
KEYS: dict[Kind, tuple[str, ...]] = {
    Kind.INCREMENTAL_BY_TIME_RANGE: ("time_column", "auto_restatement_intervals", *ORDER_KEYS),
    Kind.INCREMENTAL_BY_UNIQUE_KEY: ("unique_key", "when_matched", "merge_filter", *ORDER_KEYS),
    Kind.SCD_TYPE_2_BY_TIME: (
        "unique_key", "batch_size", "updated_at_name", "updated_at_as_valid_from", *_HISTORY_KEYS,
    ),
    Kind.SCD_TYPE_2_BY_COLUMN: ("unique_key", "batch_size", "columns", "execution_time_as_valid_from", *_HISTORY_KEYS),
    Kind.SEED: ("path", "csv_settings", "batch_size", "dbt_seed"),
    Kind.VIEW: ("materialized",),
}  # fmt: skip
_MATCHED_HINT = "Write `when_matched (WHEN MATCHED THEN UPDATE SET target.x = source.x)`."
_SIDES = {
    "source": "source", "__merge_source__": "source", "dbt_internal_source": "source",
    "target": "target", "__merge_target__": "target", "dbt_internal_dest": "target", "@this_model": "target",
}  # fmt: skip
DBT_NAMES = {"since": "since", "scd_id_name": "scd_id", "updated_at_name": "updated", "is_deleted_name": "is_deleted"}
CONSTANT_TIMES = {exp.DType.DATE: "date", exp.DType.TIMESTAMP: "timestamp", exp.DType.TIMESTAMPNTZ: "timestamp_ntz"}
CONSTANT_TIMES |= {exp.DType.TIMESTAMPTZ: "timestamp", exp.DType.TIMESTAMPLTZ: "timestamp"}
CONSTANT_CALLS: dict[type[exp.Expr], str] = {exp.TsOrDsToDate: "date", exp.Date: "date", exp.StrToTime: "timestamp"}


def reading_itself(model: Model, place: Located) -> Model:
    """Return the model as one whose query reads its own table; raise ProjectError if its kind does not allow that.

    A batch is one unit of time by default, and batches run one by one. A kind does not allow it if a repeated batch
    would read its own rows.
    """
    if not model.kind.traits.may_read_itself:
        message = f"`{model.name}` reads itself: that is not supported for kind {model.kind}."
        *kinds, last = (candidate for candidate in Kind if candidate.traits.may_read_itself)
        hint = f"Kinds that can: {', '.join(kinds)} and {last}."
        raise ProjectError(message, place=place, hint=hint)
    batches = replace(model.batches, batch_size=model.batches.batch_size or 1, batch_concurrency=1)
    return replace(model, reads_itself=True, batches=batches)


def apply_settings(model: Model, kind_prop: Property, options: dict[str, Property]) -> Model:
    if model.kind.traits.always_forward_only and not model.policy.forward_only:
        raise options["forward_only"].error(f"{model.kind} is always forward-only.", "Remove `forward_only`.")
    if model.kind.fill not in (Fill.KEY, Fill.HISTORY):
        return model
    if "unique_key" not in options:
        raise kind_prop.error(f"{model.kind} needs a `unique_key`.", f"Write `kind {model.kind} (unique_key id)`.")
    if model.batches.batch_concurrency not in (None, 1):
        message = f"`batch_concurrency` of {model.kind} can only be 1: each batch builds on the one before."
        raise options["batch_concurrency"].error(message)
    if model.kind.fill is Fill.HISTORY:
        return replace(model, history=_read_history(model.kind, kind_prop, options))
    if model.by_key.delete_insert:
        conflicting_keys = ("when_matched", "merge_filter", "null_safe_key")
        if conflict := next((options[key] for key in conflicting_keys if key in options), None):
            raise conflict.error(f"`{conflict.key}` does not go with `delete_insert`: no row of the table is updated.")
    return model


def remove_when_commas(tokens: Tokens) -> Tokens:
    """Return the tokens of a kind's settings without the commas that SQLMesh allows between two WHENs."""
    return [
        token
        for index, token in enumerate(tokens)
        if not (
            token.token_type is TokenType.COMMA
            and index + 2 < len(tokens)
            and tokens[index + 1].token_type is TokenType.WHEN
            and tokens[index + 2].text.upper() in ("MATCHED", "NOT")
        )
    ]


def _get_policy(prop: Property) -> str:
    text = word(prop).lower()
    if text not in CHANGES:
        raise prop.error(f"`{prop.key} {prop.text}` is unknown.", did_you_mean(text, CHANGES))
    return text


def _read_history(kind: Kind, kind_prop: Property, options: dict[str, Property]) -> History:
    by_time = kind is Kind.SCD_TYPE_2_BY_TIME
    if not by_time and "columns" not in options:
        raise kind_prop.error(
            f"{kind} needs `columns`.", "Write `columns [price, name]`, or `columns *` for all of them."
        )
    began = options.get("updated_at_as_valid_from" if by_time else "execution_time_as_valid_from")
    history = History(
        updated_at="updated_at" if by_time else "",
        columns=() if by_time or options["columns"].text == "*" else tuple(map(str.lower, words(options["columns"]))),
        type=_time_type(options["time_data_type"]) if "time_data_type" in options else "timestamp",
        invalidates_deleted="invalidate_hard_deletes" in options and read_boolean(options["invalidate_hard_deletes"]),
        begins_when_seen=began is not None and read_boolean(began),
    )
    history = replace(history, **read_names(options, _HISTORY_NAMES))
    if history.valid_from == history.valid_to:
        raise options["valid_to_name"].error("`valid_from_name` and `valid_to_name` must differ.")
    return dbt_history(options["dbt_snapshot"], history) if "dbt_snapshot" in options else history


def _time_type(prop: Property) -> str:
    text = spark_type(prop.text, prop.source.dialect, prop.place)
    if text not in ("timestamp", "timestamp_ntz", "date"):
        raise prop.error(f"`time_data_type {prop.text}` is not supported.", "Use TIMESTAMP, TIMESTAMP_NTZ or DATE.")
    return text


def _merge_filter(prop: Property) -> str:
    tree = parse_tokens(prop.source, prop.value, "`merge_filter`")
    return _qualify_columns(tree, prop).sql("spark", comments=False)


def _when_matched(prop: Property) -> str:
    tokens = prop.value
    if tokens[0].token_type is TokenType.L_PAREN and closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    if not tokens or tokens[0].token_type is not TokenType.WHEN:
        raise prop.error("`when_matched` must begin with WHEN MATCHED.", _MATCHED_HINT)
    opening = tokenize(SourceText("", "MERGE INTO t AS target USING s AS source ON TRUE", prop.source.dialect))
    merge = parse_tokens(prop.source, [*opening, *tokens], "`when_matched`")
    whens = merge.args.get("whens")
    if not isinstance(merge, exp.Merge) or not isinstance(whens, exp.Whens):
        raise prop.error("`when_matched` is not a list of WHEN MATCHED clauses.", _MATCHED_HINT)
    for when in whens.expressions:
        if not when.args.get("matched"):
            message = "`when_matched` with WHEN NOT MATCHED is not supported: a row of a new key is always inserted."
            raise prop.error(message, "Exclude such rows with a WHERE in the query.")
        action = when.args["then"]
        if isinstance(action, exp.Update):
            for assignment in action.expressions:
                if not isinstance(assignment, exp.Star) and not (
                    isinstance(assignment, exp.EQ) and isinstance(assignment.this, exp.Column)
                ):
                    raise prop.error(f"`{assignment.sql('spark')}` does not assign a value to a column.", _MATCHED_HINT)
                if isinstance(assignment, exp.EQ) and _SIDES.get(assignment.this.table.lower(), "target") != "target":
                    raise prop.error(f"`{assignment.this.sql('spark')}` cannot be set: only columns of `target` can.")
        elif action.name.upper() != "DELETE":
            raise prop.error(f"`THEN {action.sql('spark')}` is not supported. Use UPDATE SET or DELETE.")
    return _qualify_columns(whens, prop).sql("spark", comments=False)


def _qualify_columns(tree: exp.Expr, prop: Property) -> exp.Expr:
    for column in tree.find_all(exp.Column):
        if column.name.startswith("@"):
            continue
        side = _SIDES.get(column.table.lower())
        is_excepted = isinstance(column.parent, exp.Star)  # of `UPDATE SET * EXCEPT (a, b)`
        parent = column.parent
        is_set = isinstance(parent, exp.EQ) and column.arg_key == "this" and isinstance(parent.parent, exp.Update)
        if side is None and not (column.table == "" and (is_excepted or is_set)):
            hint = "Write `source.` or `target.` before each column."
            raise prop.error(f"`{column.sql('spark')}` belongs neither to `source` nor to `target`.", hint)
        if not is_excepted:
            column.set("table", exp.to_identifier(side or "target"))
        column.set("this", exp.to_identifier(column.name.lower(), quoted=column.this.quoted))
    if tree.find(exp.Subquery, exp.Select):
        raise prop.error(f"A subquery in `{prop.key}` is not supported.")
    return tree


_COUNT = partial(read_integer, least=1)
# The settings that are fields of a model as they are read.
READERS: Mapping[str, Callable[[Property], Any]] = {
    "forward_only": read_boolean, "disable_restatement": read_boolean, "on_destructive_change": _get_policy,
    "on_additive_change": _get_policy, "auto_restatement_cron": cron, "batch_size": _COUNT, "batch_concurrency": _COUNT,
    "auto_restatement_intervals": _COUNT, "unique_key": read_expressions, "when_matched": _when_matched,
    "merge_filter": _merge_filter,
}  # fmt: skip


def dbt_history(prop: Property, history: History) -> History:
    """Return the history with the columns that dbt adds; raise ProjectError for two columns of one name."""
    options = read_settings(
        read_properties(prop.source, bracket_tokens(prop)), (*DBT_NAMES, "valid_to_current"), (), "dbt_snapshot"
    )
    current = options.get("valid_to_current")
    dbt = DbtVersions(history.updated_at, valid_to_current=_constant_time(current, history.type) if current else "")
    dbt = replace(dbt, **read_names(options, DBT_NAMES))
    made = replace(history, dbt=dbt)
    added = [column.name for column in made.added_columns]
    if len({*added}) < len(added):
        raise prop.error("Two of the columns that a snapshot adds have the same name.")
    return made


def _constant_time(prop: Property, type_: str) -> str:
    """Return a constant time as Spark SQL; raise ProjectError for one that would give dbt's column another type."""
    source = SourceText(prop.source.path, prop.text, "spark")
    tree = parse_tokens(source, list(tokenize(source)), "`valid_to_current`")
    kind = _constant_type(tree)
    if kind is None or tree.find(exp.Column, exp.Query):
        raise _not_followed(prop, "is no date or time that is the same in each run")
    if kind != type_ and (kind, type_) not in (("date", "timestamp"), ("date", "timestamp_ntz")):
        raise _not_followed(prop, f"is a {kind}, and versions begin at a {type_}")
    return spark_text(tree)


def _constant_type(tree: exp.Expr) -> str | None:
    if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Literal):
        return CONSTANT_TIMES.get(tree.to.this)
    if isinstance(tree, exp.Anonymous):  # with a format
        parts, kind = tree.expressions, "date" if tree.name.lower() == "to_date" else None
    else:
        parts, kind = [*tree.iter_expressions()], CONSTANT_CALLS.get(type(tree))
    return kind if parts and all(isinstance(part, exp.Literal) for part in parts) else None


def _not_followed(prop: Property, why: str) -> ProjectError:
    hint = "Write a constant: `to_timestamp('9999-12-31')`, or `to_date('9999-12-31')`."
    return prop.error(f"`dbt_valid_to_current` {why}.", hint)
