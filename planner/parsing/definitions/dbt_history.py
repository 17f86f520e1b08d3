"""`dbt_snapshot (...)` of the kinds SCD_TYPE_2: versions as `dbt snapshot` makes them."""

from dataclasses import replace

from sqlglot import exp

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import DbtVersions, History
from mergeplan.planner.parsing.definitions.properties import (
    Property,
    bracket_tokens,
    read_names,
    read_properties,
    read_settings,
)
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.parsing.sql.tokens import SourceText, parse_tokens, tokenize

NAMES = {"since": "since", "scd_id_name": "scd_id", "updated_at_name": "updated", "is_deleted_name": "is_deleted"}
TIMES = {exp.DType.DATE: "date", exp.DType.TIMESTAMP: "timestamp", exp.DType.TIMESTAMPNTZ: "timestamp_ntz"}
TIMES |= {exp.DType.TIMESTAMPTZ: "timestamp", exp.DType.TIMESTAMPLTZ: "timestamp"}
CALLS: dict[type[exp.Expr], str] = {exp.TsOrDsToDate: "date", exp.Date: "date", exp.StrToTime: "timestamp"}


def dbt_history(prop: Property, history: History) -> History:
    """Return the history with the columns that dbt adds; raise ProjectError for two columns of one name."""
    options = read_settings(
        read_properties(prop.source, bracket_tokens(prop)), (*NAMES, "valid_to_current"), (), "dbt_snapshot"
    )
    current = options.get("valid_to_current")
    dbt = DbtVersions(history.updated_at, valid_to_current=_constant_time(current, history.type) if current else "")
    dbt = replace(dbt, **read_names(options, NAMES))
    made = replace(history, dbt=dbt)
    added = [column.name for column in made.added_columns]
    if len({*added}) < len(added):
        raise prop.error("Two of the columns that a snapshot adds have the same name.")
    return made


def _constant_time(prop: Property, type_: str) -> str:
    """Return a constant time as Spark SQL; raise ProjectError for one that would give dbt's column another type."""
    source = SourceText(prop.source.path, prop.text, "spark")
    tree = parse_tokens(source, list(tokenize(source)), "`valid_to_current`")
    kind = _time_type(tree)
    if kind is None or tree.find(exp.Column, exp.Query):
        raise _not_followed(prop, "is no date or time that is the same in each run")
    if kind != type_ and (kind, type_) not in (("date", "timestamp"), ("date", "timestamp_ntz")):
        raise _not_followed(prop, f"is a {kind}, and versions begin at a {type_}")
    return spark_text(tree)


def _time_type(tree: exp.Expr) -> str | None:
    if isinstance(tree, exp.Cast) and isinstance(tree.this, exp.Literal):
        return TIMES.get(tree.to.this)
    if isinstance(tree, exp.Anonymous):  # with a format
        parts, kind = tree.expressions, "date" if tree.name.lower() == "to_date" else None
    else:
        parts, kind = [*tree.iter_expressions()], CALLS.get(type(tree))
    return kind if parts and all(isinstance(part, exp.Literal) for part in parts) else None


def _not_followed(prop: Property, why: str) -> ProjectError:
    hint = "Write a constant: `to_timestamp('9999-12-31')`, or `to_date('9999-12-31')`."
    return prop.error(f"`dbt_valid_to_current` {why}.", hint)
