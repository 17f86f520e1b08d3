"""The table formats that a Spark of ours is started with, and those that a running one must have.

The embedded catalog remembers each format that it was opened with: as long as it may hold a table of it, every verb
must be able to read and drop that table, whatever the project's files say by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from planner.engine.formats.tested_pairs import CATALOG, EXTENSIONS, FORMATS, settings_for, sign_of, title_of
from planner.engine.protocol import Connection
from planner.engine.spark.catalog import driver_conf, is_embedded, spark_folder
from planner.engine.spark.installed import spark_version
from planner.errors import RequestError

REMEMBERED = "table_formats"
SIGNS = (EXTENSIONS, CATALOG)  # by which a Spark tells which formats it knows


def starting_conf(connection: Connection, home: Path) -> dict[str, str]:
    """The settings a Spark of our own starts with, those of its table formats among them."""
    conf = driver_conf(connection, home)
    formats = set(connection.formats)
    if is_embedded(connection):
        formats |= _remembered(spark_folder(home), formats)
        # The embedded metastore has no tables for locks; its commits compare and swap.
        conf |= {"spark.hadoop.iceberg.engine.hive.lock-enabled": "false"} if "iceberg" in formats else {}
    return conf | settings_for(formats, conf, spark_version(), connection.jars_dir) if formats else conf


def check_formats(formats: Iterable[str], conf: Mapping[str, str], where: str, *, warm: bool) -> None:
    """RequestError when a Spark that runs already was started without a format that is needed."""
    for name in sorted(set(formats)):
        key, value = sign_of(name)
        if value not in conf.get(key, ""):
            title, hint = title_of(name), "End it and start `mergeplan warm` again."
            if not warm:
                hint = f"Start that Spark with {title}'s jars and `{key}={value}`."
            raise RequestError(f"{where} was started without {title}, which this project's tables need.", hint=hint)


def _remembered(folder: Path, formats: set[str]) -> set[str]:
    path = folder / REMEMBERED
    known = set(path.read_text("utf-8").split()) & set(FORMATS) if path.exists() else set()
    if formats - known:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{each}\n" for each in sorted(known | formats)), encoding="utf-8")
    return known
