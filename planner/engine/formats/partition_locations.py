"""Partitions that the catalog lists: rows written aside, a folder per partition, and the partitions pointed there."""

import json
import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote

from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.spark.session import Frame
from mergeplan.planner.engine.table import PartitionColumn, Table
from mergeplan.planner.naming import quote_column

Run = Callable[[str], Frame]
Spec = tuple[str | None, ...]  # the values of a partition, in the order of `Table.partition_columns`

NULL = "__HIVE_DEFAULT_PARTITION__"
ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{}\[\]^]""")  # as Spark writes them into the name of a folder


def specs_seen(columns: tuple[PartitionColumn, ...]) -> str:
    """Return an aggregate (Spark SQL) that collects the partitions of the rows that pass."""
    values = ", ".join(f"cast({quote_column(part.column)} as string)" for part in columns)
    return f"collect_set(to_json(array({values})))"


def specs_of(texts: Iterable[str]) -> frozenset[Spec]:
    return frozenset(tuple(json.loads(text)) for text in texts)


def catalog_partitions(run: Run, table: Table) -> frozenset[Spec]:
    lines = (row[0].split("/") for row in run(f"SHOW PARTITIONS {quote_name(table.name)}").collect())
    return frozenset(tuple(_parse_value(piece.partition("=")[2]) for piece in line) for line in lines)


def point_partitions(
    run: Run, table: Table, batch: str, batch_specs: frozenset[Spec], existing: frozenset[Spec]
) -> None:
    """Point the partitions of a batch to it: new ones in one statement, then the existing ones one by one."""
    name = quote_name(table.name)
    if new := _sort_specs(batch_specs - existing):
        parts = " ".join(f"{_partition_clause(table, spec)} {_location_clause(table, batch, spec)}" for spec in new)
        run(f"ALTER TABLE {name} ADD {parts}")
    for spec in _sort_specs(batch_specs & existing):
        run(f"ALTER TABLE {name} {_partition_clause(table, spec)} SET {_location_clause(table, batch, spec)}")


def partition_places(run: Run, table: Table, specs: Iterable[Spec]) -> list[tuple[str, str]]:
    """Return where existing partitions point, each as the text of its values and the location."""
    pairs = []
    for spec in _sort_specs(specs):
        lines = run(f"DESCRIBE TABLE EXTENDED {quote_name(table.name)} {_partition_clause(table, spec)}").collect()
        pairs.append((json.dumps(spec), next(line[1] for line in lines if line[0] == "Location")))
    return pairs


def point_back(run: Run, table: Table, pairs: Iterable[tuple[str, str]]) -> None:
    """Point partitions, each the text of its values, to these locations; skip those that were never added."""
    existing = catalog_partitions(run, table)
    for text, location in pairs:
        if (spec := tuple(json.loads(text))) in existing:
            partition = f"{quote_name(table.name)} {_partition_clause(table, spec)}"
            run(f"ALTER TABLE {partition} SET LOCATION {literal(location)}")


def empty_partitions(run: Run, table: Table, folder: str, specs: Iterable[Spec]) -> None:
    """Point partitions to an empty folder: a drop would fail a reader that has planned its query."""
    for spec in _sort_specs(specs):
        run(f"ALTER TABLE {quote_name(table.name)} {_partition_clause(table, spec)} SET LOCATION {literal(folder)}")


def _sort_specs(specs: Iterable[Spec]) -> list[Spec]:
    return sorted(specs, key=lambda spec: tuple(value or "" for value in spec))


def _partition_clause(table: Table, spec: Spec) -> str:
    pairs = zip(table.partition_columns, spec, strict=True)
    values = (f"{quote_column(part.column)} = {'NULL' if value is None else literal(value)}" for part, value in pairs)
    return f"PARTITION ({', '.join(values)})"


def _location_clause(table: Table, batch: str, spec: Spec) -> str:
    pairs = zip(table.partition_columns, spec, strict=True)
    folders = (
        f"{_escape_value(part.column)}={NULL if value is None else _escape_value(value)}" for part, value in pairs
    )
    return f"LOCATION {literal('/'.join([batch, *folders]))}"


def _escape_value(value: str) -> str:
    return ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)


def _parse_value(text: str) -> str | None:
    return None if text == NULL else unquote(text)
