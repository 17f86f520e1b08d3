"""The settings of incremental kinds: by unique key, by partition, with history."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.errors import Located, ProjectError
from mergeplan.planner.model.kind import Fill, Kind
from mergeplan.planner.model.model import History, Model
from mergeplan.planner.parsing.definitions.dbt_history import dbt_history
from mergeplan.planner.parsing.definitions.properties import (
    Property,
    boolean,
    expressions,
    integer,
    spark_type,
    word,
    words,
)
from mergeplan.planner.parsing.sql.tokens import SourceText, Tokens, closing, did_you_mean, parse_tokens, tokenize

CHANGES = ("error", "warn", "allow", "ignore")
POLICY_KEYS = ("on_destructive_change", "on_additive_change", "auto_restatement_cron")
ORDER_KEYS = ("batch_size", "batch_concurrency", "lookback")
BOTH = ("forward_only", "disable_restatement")
_SCD_KEYS = (
    "unique_key", "valid_from_name", "valid_to_name", "invalidate_hard_deletes", "time_data_type", "batch_size",
    "dbt_snapshot", *BOTH, *POLICY_KEYS,
)  # fmt: skip
KEYS: dict[Kind, tuple[str, ...]] = {
    Kind.INCREMENTAL_BY_UNIQUE_KEY: (
        "unique_key", "when_matched", "merge_filter", "null_safe_key", "delete_insert", *ORDER_KEYS, *BOTH,
        *POLICY_KEYS,
    ),
    Kind.INCREMENTAL_BY_PARTITION: (*BOTH, *POLICY_KEYS),
    Kind.INCREMENTAL_UNMANAGED: ("insert_overwrite", *BOTH, *POLICY_KEYS),
    Kind.SCD_TYPE_2_BY_TIME: ("updated_at_name", "updated_at_as_valid_from", *_SCD_KEYS),
    Kind.SCD_TYPE_2_BY_COLUMN: ("columns", "execution_time_as_valid_from", *_SCD_KEYS),
}  # fmt: skip
_MATCHED_HINT = "Write `when_matched (WHEN MATCHED THEN UPDATE SET target.x = source.x)`."
_SIDES = {
    "source": "source", "__merge_source__": "source", "dbt_internal_source": "source",
    "target": "target", "__merge_target__": "target", "dbt_internal_dest": "target", "@this_model": "target",
}  # fmt: skip


def reading_itself(model: Model, place: Located) -> Model:
    """Return the model as one whose query reads its own table; raise ProjectError if its kind does not allow that.

    A batch is one unit of time by default, and batches run one by one. A kind does not allow it if a repeated batch
    would read its own rows.
    """
    if not model.kind.traits.may_read_itself:
        message = f"`{model.name}` reads itself: that is not supported for kind {model.kind}."
        *most, last = (candidate for candidate in Kind if candidate.traits.may_read_itself)
        hint = f"Kinds that can: {', '.join(most)} and {last}."
        raise ProjectError(message, place=place, hint=hint)
    return replace(model, reads_itself=True, batch_size=model.batch_size or 1, batch_concurrency=1)


def apply_policies(model: Model, options: dict[str, Property]) -> Model:
    """Return the model with the settings of all incremental kinds: for changes, restatements and batches."""
    model = replace(
        model,
        forward_only=boolean(options["forward_only"]) if "forward_only" in options else _forward_only(model.kind),
        disable_restatement=boolean(options["disable_restatement"])
        if "disable_restatement" in options
        else model.kind.keeps_history,
        lookback=integer(options["lookback"], 0) if "lookback" in options else 0,
        batch_size=integer(options["batch_size"], 1) if "batch_size" in options else None,
        batch_concurrency=integer(options["batch_concurrency"], 1) if "batch_concurrency" in options else None,
    )
    if "on_destructive_change" in options:
        model = replace(model, on_destructive_change=_choice(options["on_destructive_change"], CHANGES))
    if "on_additive_change" in options:
        model = replace(model, on_additive_change=_choice(options["on_additive_change"], CHANGES))
    if "auto_restatement_intervals" in options:
        model = replace(model, auto_restatement_intervals=integer(options["auto_restatement_intervals"], 1))
    return model


def apply_settings(model: Model, kind_prop: Property, options: dict[str, Property]) -> Model:
    """Return the model with the settings of its kind; raise ProjectError for wrong, missing or contradictory ones."""
    model = apply_policies(model, options)
    if model.kind.traits.always_forward_only and not model.forward_only:
        raise options["forward_only"].error(f"{model.kind} is always forward-only.", "Remove `forward_only`.")
    if "insert_overwrite" in options:
        return replace(model, insert_overwrite=boolean(options["insert_overwrite"]))
    if model.kind.fill in (Fill.PARTITION, Fill.APPEND):
        return model
    if "unique_key" not in options:
        raise kind_prop.error(f"{model.kind} needs a `unique_key`.", f"Write `kind {model.kind} (unique_key id)`.")
    if model.batch_concurrency not in (None, 1):
        message = f"`batch_concurrency` of {model.kind} can only be 1: each batch builds on the one before."
        raise options["batch_concurrency"].error(message)
    model = replace(model, unique_key=expressions(options["unique_key"]))
    if model.kind.fill is Fill.HISTORY:
        return replace(model, history=_history(model.kind, kind_prop, options))
    if "delete_insert" in options and boolean(options["delete_insert"]):
        others = ("when_matched", "merge_filter", "null_safe_key")
        if other := next((options[key] for key in others if key in options), None):
            raise other.error(f"`{other.key}` does not go with `delete_insert`: no row of the table is updated.")
        return replace(model, delete_insert=True)
    return replace(
        model,
        when_matched=_when_matched(options["when_matched"]) if "when_matched" in options else "",
        merge_filter=_merge_filter(options["merge_filter"]) if "merge_filter" in options else "",
        null_safe_key="null_safe_key" in options and boolean(options["null_safe_key"]),
    )


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


def _forward_only(kind: Kind) -> bool:
    return kind.keeps_history or kind.traits.always_forward_only


def _choice(prop: Property, choices: tuple[str, ...]) -> str:
    text = word(prop).lower()
    if text not in choices:
        raise prop.error(f"`{prop.key} {prop.text}` is unknown.", did_you_mean(text, choices))
    return text


def _history(kind: Kind, kind_prop: Property, options: dict[str, Property]) -> History:
    by_time = kind is Kind.SCD_TYPE_2_BY_TIME
    if not by_time and "columns" not in options:
        raise kind_prop.error(
            f"{kind} needs `columns`.", "Write `columns [price, name]`, or `columns *` for all of them."
        )
    began = options.get("updated_at_as_valid_from" if by_time else "execution_time_as_valid_from")
    history = History(
        valid_from=_column(options, "valid_from_name", "valid_from"),
        valid_to=_column(options, "valid_to_name", "valid_to"),
        type=_time_type(options["time_data_type"]) if "time_data_type" in options else "timestamp",
        updated_at=_column(options, "updated_at_name", "updated_at") if by_time else "",
        columns=()
        if by_time or options["columns"].text == "*"
        else tuple(w.lower() for w in words(options["columns"])),
        invalidates_deleted="invalidate_hard_deletes" in options and boolean(options["invalidate_hard_deletes"]),
        begins_when_seen=began is not None and boolean(began),
    )
    if history.valid_from == history.valid_to:
        raise options["valid_to_name"].error("`valid_from_name` and `valid_to_name` must differ.")
    return dbt_history(options["dbt_snapshot"], history) if "dbt_snapshot" in options else history


def _column(options: dict[str, Property], key: str, default: str) -> str:
    return word(options[key]).lower() if key in options else default


def _time_type(prop: Property) -> str:
    text = spark_type(prop.text, prop.source.dialect, prop.place)
    if text not in ("timestamp", "timestamp_ntz", "date"):
        raise prop.error(f"`time_data_type {prop.text}` is not supported.", "Use TIMESTAMP, TIMESTAMP_NTZ or DATE.")
    return text


def _merge_filter(prop: Property) -> str:
    tree = parse_tokens(prop.source, prop.value, "`merge_filter`")
    return _qualify_columns(tree, prop).sql("spark", comments=False)


def _when_matched(prop: Property) -> str:
    """Return `WHEN MATCHED [AND ...] THEN UPDATE SET ... | DELETE`, any number of them, in brackets or not."""
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
        _check_when(when, prop)
    return _qualify_columns(whens, prop).sql("spark", comments=False)


def _check_when(when: exp.Expr, prop: Property) -> None:
    if not when.args.get("matched"):
        message = "`when_matched` with WHEN NOT MATCHED is not supported: a row of a new key is always inserted."
        raise prop.error(message, "Exclude such rows with a WHERE in the query.")
    then = when.args["then"]
    if isinstance(then, exp.Update):
        for assignment in then.expressions:
            if not isinstance(assignment, exp.Star) and not (
                isinstance(assignment, exp.EQ) and isinstance(assignment.this, exp.Column)
            ):
                raise prop.error(f"`{assignment.sql('spark')}` does not assign a value to a column.", _MATCHED_HINT)
            if isinstance(assignment, exp.EQ) and _SIDES.get(assignment.this.table.lower(), "target") != "target":
                raise prop.error(f"`{assignment.this.sql('spark')}` cannot be set: only columns of `target` can.")
    elif then.name.upper() != "DELETE":
        raise prop.error(f"`THEN {then.sql('spark')}` is not supported. Use UPDATE SET or DELETE.")


def _qualify_columns(tree: exp.Expr, prop: Property) -> exp.Expr:
    """Return the tree with each column qualified by `source` or `target`; raise ProjectError for another."""
    for column in tree.find_all(exp.Column):
        if column.name.startswith("@"):
            continue
        side = _SIDES.get(column.table.lower())
        is_excepted = isinstance(column.parent, exp.Star)  # of `UPDATE SET * EXCEPT (a, b)`
        if side is None and not (column.table == "" and (is_excepted or _is_set(column))):
            hint = "Write `source.` or `target.` before each column."
            raise prop.error(f"`{column.sql('spark')}` belongs neither to `source` nor to `target`.", hint)
        if not is_excepted:
            column.set("table", exp.to_identifier(side or "target"))
        column.set("this", exp.to_identifier(column.name.lower(), quoted=column.this.quoted))
    if tree.find(exp.Subquery, exp.Select):
        raise prop.error(f"A subquery in `{prop.key}` is not supported.")
    return tree


def _is_set(column: exp.Column) -> bool:
    """Return True for the column on the left of `SET x = ...`."""
    parent = column.parent
    return isinstance(parent, exp.EQ) and column.arg_key == "this" and isinstance(parent.parent, exp.Update)
