"""The files that a table is made of, and how they are read: where both are the same, two tables hold the same rows.

Nothing is known of the rows themselves. What is not known is equal to nothing.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TableFiles:
    """The files of a table's rows, and all that decides what Spark reads from them.

    A file identifies its rows: no file is written a second time. Where Spark finds columns by their names in a file,
    a column is read alike in two tables that declare it alike, whatever other columns either of them has.
    """

    read_as: tuple[str, ...]  # the format, its options and the columns that the table is partitioned by
    columns: tuple[tuple[str, str], ...]  # name in lower case -> its type, default and the like, as JSON
    files: frozenset[str]


def same_rows(first: TableFiles | None, second: TableFiles | None, columns: Iterable[str]) -> bool:
    """Return True if both tables are known to hold the same rows in these columns (names in lower case)."""
    if first is None or second is None or first.read_as != second.read_as or first.files != second.files:
        return False
    first_columns, second_columns = dict(first.columns), dict(second.columns)
    return all(name in first_columns and first_columns[name] == second_columns.get(name) for name in columns)


def schema_columns(fields: Iterable[Any]) -> tuple[tuple[str, str], ...]:
    """Return the columns of a Spark schema, each with all its attributes except comments."""
    return tuple(
        (field.name.lower(), json.dumps(_remove_comments(field.jsonValue()), sort_keys=True)) for field in fields
    )


def _remove_comments(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _remove_comments(entry) for key, entry in value.items() if key != "comment"}
    return [_remove_comments(element) for element in value] if isinstance(value, list) else value
