"""`partitioned_by` as partitions: columns that Spark can partition a table by, and hidden ones for everything else."""

import re

from mergeplan.planner.engine.spark.quoting import literal
from mergeplan.planner.engine.table import PartitionColumn
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.intervals import UNITS
from mergeplan.planner.model.model import Column, Model
from mergeplan.planner.model.table_order import FOLDER_TYPES, is_too_long
from mergeplan.planner.naming import ColumnName, key_sql, partition_column, quote_column
from mergeplan.planner.parsing.named_columns import find_unknown_column

TIMES = ("timestamp", "timestamp_ntz", "date")  # the types of the time since which a version is in force
HIDDEN = "mergeplan_part_{}"
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
BATCH = PartitionColumn("mergeplan_batch", "string", "'copied'", hidden=True)  # of a table that batches are appended to
_CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
_WIDTH = re.compile(r"[0-9]{1,9}")
_TIMES = {
    "year": "yyyy", "years": "yyyy", "month": "yyyy-MM", "months": "yyyy-MM", "day": "yyyy-MM-dd",
    "days": "yyyy-MM-dd", "date": "yyyy-MM-dd", "hour": "yyyy-MM-dd HH", "hours": "yyyy-MM-dd HH",
}  # fmt: skip
TRANSFORMS = (*_TIMES, "bucket", "truncate")  # the functions that only `partitioned_by` has


def parts_of(model: Model, columns: tuple[Column, ...]) -> tuple[PartitionColumn, ...]:
    """Return the partition columns of a model's table besides time; raise ProjectError if there is no such column.

    A time-ranged table is partitioned by its time column already: that column, and years, months and days of it, are
    left out. Raise ProjectError also for what cannot be a partition.
    """
    expressions = [expression for expression in model.storage.partitioned_by if not _is_covered(model, expression)]
    parts = [_build_part(model, expression, columns, number) for number, expression in enumerate(expressions)]
    visible_count = sum(not part.hidden for part in parts) + bool(model.by_time.time_column)
    if parts and visible_count >= len(columns):  # Spark wants a column beside those that a table is partitioned by
        parts = [_build_hidden_column(part.expression, number) for number, part in enumerate(parts)]
    return tuple(dict.fromkeys(parts))


def check_columns(model: Model, columns: tuple[Column, ...]) -> None:
    """Raise ProjectError if a property names a column that is not among these columns of the model's query."""
    if error := find_unknown_column(model, [column.name for column in columns]):
        raise error
    history = model.history
    since = history.dbt.since if history and history.dbt else ""
    types = {column.name: column.type for column in columns}
    if history is not None and since and types.get(since) != history.type:
        message = f"`updated_at` of the snapshot {model.name} is `{since}`, of type {types.get(since)}."
        hint = f"Cast it to one of {', '.join(TIMES)}."
        if types.get(since) in TIMES:
            hint = f"State it in the snapshot's YAML: `columns: [{{name: {since}, data_type: {types.get(since)}}}]`."
        raise ProjectError(message, place=model.place, hint=hint)
    parts_of(model, (*columns, *model.history_columns))


def _is_covered(model: Model, text: str) -> bool:
    """Return True for the time column, and for a value that is constant within each of the table's partitions."""
    time, partition = model.by_time.time_column, min(UNITS[model.cron.unit], UNITS["day"])
    called, name = _CALL.fullmatch(text), partition_column(text)
    if not time or name is not None or called is None:
        return name == time != ""
    unit = UNITS.get("day" if called[1] == "date" else called[1].removesuffix("s"), 0)
    return unit >= partition and ColumnName.parse(called[2].strip()) == time


def _build_part(model: Model, text: str, columns: tuple[Column, ...], number: int) -> PartitionColumn:
    types = {column.name: column.type for column in columns}
    name = partition_column(text)
    if name in types:
        if types[name] in FOLDER_TYPES and not is_too_long(name, model.storage.table_format):
            return PartitionColumn(name, types[name], _reject_null_folder(name, types[name]), hidden=False)
        return _build_hidden_column(quote_column(name), number)
    called = _CALL.fullmatch(text)
    return _build_hidden_column(_transform_sql(model, called[1], called[2], types) if called else text, number)


def _transform_sql(model: Model, name: str, inside: str, types: dict[str, str]) -> str:
    """Return Spark SQL for the text of a partition: `days(ts)`, `bucket(8, id)`, `truncate(3, name)`, or unchanged."""
    if name in _TIMES:
        return f"date_format(cast({key_sql(inside)} as timestamp), '{_TIMES[name]}')"
    if name not in ("bucket", "truncate"):
        return f"{name}({inside})"
    width, column_text = _read_width(inside)
    column = ColumnName.parse(column_text) if column_text else None
    if width < 1 or column is None or column not in types:
        raise _partition_error(
            model, f"`{name}` takes a number and a column of {model.name}.", f"Write `{name}(8, id)`."
        )
    quoted = quote_column(column)
    if name == "bucket":
        return f"pmod(hash({quoted}), {width})"
    type_ = types[column]
    if type_ == "string":
        return f"substring({quoted}, 1, {width})"
    if type_ in FOLDER_TYPES[3:] or type_.startswith("decimal"):
        return f"{quoted} - pmod({quoted}, {width})"
    raise _partition_error(
        model, f"`truncate` cuts texts and numbers, and `{column}` of {model.name} is a {type_}.", ""
    )


def _read_width(inside: str) -> tuple[int, str]:
    """Return the number and the column of `8, id` or `id, 8`; (0, '') for anything else."""
    for number, _, column in (inside.partition(","), inside.rpartition(",")[::-1]):
        if _WIDTH.fullmatch(number.strip()) and column.strip():
            return int(number), column.strip()
    return 0, ""


def _build_hidden_column(expression: str, number: int) -> PartitionColumn:
    """Return a hidden column for the value as text; an empty text, which no folder can be named, is replaced."""
    text = f"cast({expression} as string)"
    return PartitionColumn(HIDDEN.format(number), "string", f"if({text} = '', '(empty)', {text})", hidden=True)


def _reject_null_folder(name: str, type_: str) -> str:
    """Return the column with an error for a text that would come back as NULL: both have the same folder."""
    column = quote_column(name)
    if type_ != "string":
        return column
    message = f"`{name}` is empty in a row, or `{NULL_FOLDER}`, and Spark would read it back as NULL, for the table is "
    error = literal(f"{message}partitioned by it. Return NULL or another text.")
    return f"if({column} IN ('', '{NULL_FOLDER}'), raise_error({error}), {column})"


def _partition_error(model: Model, message: str, hint: str) -> ProjectError:
    return ProjectError(message, place=model.locate("partitioned_by", in_block=True), hint=hint)
