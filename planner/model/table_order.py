"""The order of the columns of a model's table, which its readers' `*` follows.

Files in folders have the columns that name the folders last; views, and formats with a log, keep the query's order.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import quote

from mergeplan.planner.intervals import UNITS
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.table_format import FORMATS, TABLE_FORMATS
from mergeplan.planner.naming import partition_column

FOLDER_MAX = 200  # bytes of a column's name in a folder's, which has 255 with the value
HIVE_MAX = 128  # characters of the name of a partition's column
# Types that name a folder as they are: a column of another type stays in its place, beside a hidden one.
FOLDER_TYPES = ("string", "date", "boolean", "tinyint", "smallint", "int", "bigint")


def order_columns(model: Model, columns: Iterable[str], types: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of a model in its table's order; one without a type in `types` may name a folder."""
    names = tuple(columns)
    if is_in_query_order(model):
        return names
    parts = tuple(
        name
        for name in dict.fromkeys(map(partition_column, model.storage.partitioned_by))
        if name in names
        and name != model.by_time.time_column
        and types.get(name, FOLDER_TYPES[0]) in FOLDER_TYPES
        and not is_too_long(name, model.storage.table_format)
    )
    # Spark wants a column beside those that a table is partitioned by: without one, hidden columns take their place.
    parts = parts if len(parts) + bool(model.by_time.time_column) < len(names) else ()
    last = (*((model.by_time.time_column,) if _names_days(model, names, types) else ()), *parts)
    return (*(name for name in names if name not in last), *last)


def is_in_query_order(model: Model) -> bool:
    """Return True if no column names a folder, or if the format has them in the query's order even so."""
    has_folders = model.storage.partitioned_by or model.by_time.time_column
    return not (has_folders and model.kind.is_stored) or model.storage.table_format in TABLE_FORMATS


def is_too_long(name: str, table_format: str) -> bool:
    """Return True for a name that the folder of a partition, or the metastore's list of partitions, has no room for."""
    form = FORMATS.get(table_format)
    folder = quote(name) if form and form.encodes_folders else name
    return len(folder.encode()) > FOLDER_MAX or (len(name) > HIVE_MAX and not (form and form.has_log))


def _names_days(model: Model, names: tuple[str, ...], types: Mapping[str, str]) -> bool:
    time_column = model.by_time.time_column
    is_by_day = model.by_time.partition_by_time_column and UNITS[model.cron.unit] >= UNITS["day"]
    is_date = time_column in names and types.get(time_column, "date") == "date"
    is_short = not is_too_long(time_column, model.storage.table_format)
    return model.kind.is_by_time and is_by_day and is_date and is_short and len(names) > 1
