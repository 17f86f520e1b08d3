"""The effect of a dbt merge on rows of an existing key, and the further conditions by which it finds them."""

import re

from sqlglot import exp

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.naming import ColumnName, quote_column
from mergeplan.planner.parsing.files.dbt.nodes import DbtNode
from mergeplan.planner.parsing.sql.misreading import tokens_differ
from mergeplan.planner.parsing.sql.tokens import SourceText, tokenize
from mergeplan.planner.semantics.expressions import has_other_precedence
from mergeplan.planner.semantics.spark.spark_sql import FAILURES, spark_text_of, tree_of

_PATH_OR_CALL = re.compile(r"\w+(\.\w+)+|\w+\(.*\)", re.DOTALL)
_SIDES = {"target_alias": ("dbt_internal_dest", "target"), "source_alias": ("dbt_internal_source", "source")}
PREDICATES = ("predicates", "incremental_predicates")  # the first one that is set counts


def merge_settings(node: DbtNode) -> tuple[str, ...]:
    """Return the settings of INCREMENTAL_BY_UNIQUE_KEY as MODEL writes them; raise ProjectError for others."""
    keys = key_texts(node, "unique_key")
    updated = _update_clause(node, keys)
    condition = str(node.settings.get("matched_condition") or "").strip()
    when = f" AND ({_read_condition(node, 'matched_condition', condition)})" if condition else ""
    matched = f"when_matched (WHEN MATCHED{when} THEN UPDATE SET {updated})" if updated != "*" or when else ""
    null_safe = "null_safe_key true" if node.settings.get("null_safe_key") else ""
    parts = [f"unique_key ({', '.join(keys)})", matched, null_safe]
    # an OR is refused because dbt joins them by AND without brackets
    setting = next((name for name in PREDICATES if node.settings.get(name)), "")
    value = node.settings.get(setting)
    if value and not isinstance(value, list | tuple):
        raise node.refusal(f"sets `{setting}` to a text, where dbt merges by a list of texts")
    if predicates := [_read_condition(node, setting, text, stands_alone=True) for text in node.words(setting)]:
        parts.append(f"merge_filter ({' AND '.join(f'({predicate})' for predicate in predicates)})")
    return tuple(filter(None, parts))


def _update_clause(node: DbtNode, keys: tuple[str, ...]) -> str:
    if str(node.settings.get("skip_matched_step") or "").lower() == "true":
        key = _read_columns(node, "unique_key")[0].key
        return f"target.{key} = target.{key}"
    # dbt compares these texts with the names of the table's columns
    texts = node.words("merge_exclude_columns")
    if quoted := next((text for text in texts if "`" in text), ""):
        hint = f"Write it without back-ticks: `{quoted.strip('` ')}`."
        raise node.refusal(f"names `{quoted}` in `merge_exclude_columns`, which dbt finds in no table", hint)
    updated, excluded = _read_columns(node, "merge_update_columns"), [ColumnName(text.strip()) for text in texts]
    if updated and excluded:
        raise node.refusal("sets both `merge_update_columns` and `merge_exclude_columns`, which dbt refuses")
    if excluded and {*excluded}.issuperset(ColumnName.parse(key) for key in keys):
        raise node.refusal(
            "names its `unique_key` in `merge_exclude_columns`", "Leave the key out: it is equal anyway."
        )
    if excluded:
        return f"* EXCEPT ({', '.join(name.key for name in excluded)})"
    return ", ".join(f"target.{name.key} = source.{name.key}" for name in updated) or "*"


def key_texts(node: DbtNode, setting: str) -> tuple[str, ...]:
    """Return the columns of a setting as MODEL writes them; raise ProjectError for a text that is no name and no call.

    dbt writes such a text unchanged after the name of a table: `a-b` becomes `DBT_INTERNAL_SOURCE.a - b`, an error.
    """
    value = node.settings.get(setting)
    if isinstance(value, dict):
        hint = f"Write the column's name: `{setting}: {value.get('field', 'day')}`."
        raise node.refusal(f"has a dict in `{setting}`, as dbt-bigquery takes it", hint)
    texts = tuple(text.strip() for text in node.words(setting))
    for text in texts:
        if not _PATH_OR_CALL.fullmatch(text):
            read_column(node, setting, text)
    return texts


def read_column(node: DbtNode, setting: str, text: str) -> ColumnName:
    """Return the name of a column, in back-ticks or not; raise ProjectError for any other text."""
    name = ColumnName.parse(text.strip())
    if name is None:
        hint = f"Write a name that is no word in back-ticks: `{quote_column(text.strip('` '))}`."
        raise node.refusal(f"names `{text}` in `{setting}`, which is no name of a column", hint)
    return name


def _read_columns(node: DbtNode, setting: str) -> list[ColumnName]:
    return [read_column(node, setting, text) for text in node.words(setting)]


def _read_condition(node: DbtNode, setting: str, text: str, *, stands_alone: bool = False) -> str:
    """Return a condition over `target` and `source`; raise ProjectError if mergeplan could read it differently."""
    wrong = node.refusal(f"has the condition `{text}` in `{setting}`, which mergeplan does not follow")
    try:
        (condition,) = tree_of(f"SELECT {text}").expressions
        is_alike = not tokens_differ(
            *(tokenize(SourceText("", sql, "spark")) for sql in (text, spark_text_of(condition)))
        )
    except (*FAILURES, ProjectError):
        raise wrong from None
    if not is_alike or isinstance(condition, exp.Alias) or (stands_alone and isinstance(condition, exp.Or)):
        raise wrong
    for part in condition.walk():
        if isinstance(part, exp.Query | exp.Star | exp.AggFunc | exp.Window) or has_other_precedence(part):
            raise wrong
    aliases = [(str(node.settings.get(key) or usual).lower(), side) for key, (usual, side) in _SIDES.items()]
    for column in condition.find_all(exp.Column):
        side = next((side for alias, side in aliases if alias == column.table.lower()), None)
        if side is None or column.args.get("db"):
            hint = f"Write DBT_INTERNAL_DEST or DBT_INTERNAL_SOURCE before `{column.name}`."
            raise node.refusal(f"names `{column.sql('spark')}` in `{setting}`, which may be of either side", hint)
        column.set("table", exp.to_identifier(side))
    return spark_text_of(condition)
