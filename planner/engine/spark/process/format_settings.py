"""The table formats that a Spark of ours is started with, and those that a running one must have.

The embedded catalog remembers each format that it was opened with: as long as it may hold a table of it, every verb
must be able to read and drop that table, whatever the project's files say by then.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from mergeplan.planner.engine.formats.tested_pairs import EXTENSIONS, settings_for, sign_of
from mergeplan.planner.engine.protocol import Connection
from mergeplan.planner.engine.spark.catalog import driver_conf, is_embedded, spark_folder
from mergeplan.planner.errors import RequestError
from mergeplan.planner.model.table_format import CATALOG, FORMATS, TABLE_FORMATS
from mergeplan.planner.versions import pyspark_version

REMEMBERED = "table_formats"
SIGNS = (EXTENSIONS, CATALOG)  # they show which formats a Spark knows


def starting_conf(connection: Connection, home: Path) -> dict[str, str]:
    """Return the settings that our own Spark starts with, including those of its table formats."""
    conf, formats = driver_conf(connection, home), startup_formats(connection, home)
    if not formats and not connection.apart:
        return conf
    if is_embedded(connection):
        conf |= {key: value for name in formats for key, value in FORMATS[name].embedded_settings}
    try:
        return conf | settings_for(formats, conf, pyspark_version(), connection.jars_dir, connection.apart)
    except RequestError as error:
        if set(formats) - set(connection.formats):
            path = spark_folder(home) / REMEMBERED
            error.hint += f" {path} lists the formats that this catalog was opened with: remove those without tables."
        raise


def needs_open_metastore(conf: Mapping[str, str]) -> bool:
    """Return True if the format of Spark's own catalog finds the embedded metastore only when that is open."""
    releases = (release for form in FORMATS.values() if form.needs_open_metastore for release in form.releases)
    return any(release.catalog.rpartition(".")[2] in conf.get(CATALOG, "") for release in releases)


def remember_formats(connection: Connection, home: Path) -> None:
    path = spark_folder(home) / REMEMBERED
    if is_embedded(connection) and not (remembered_formats := _read_formats(path)).issuperset(connection.formats):
        path.write_text(
            "".join(f"{name}\n" for name in sorted(remembered_formats.union(connection.formats))), encoding="utf-8"
        )


def startup_formats(connection: Connection, home: Path) -> tuple[str, ...]:
    remembered_formats = _read_formats(spark_folder(home) / REMEMBERED) if is_embedded(connection) else frozenset()
    return tuple(sorted(remembered_formats.union(connection.formats)))


def check_formats(formats: Iterable[str], conf: Mapping[str, str], where: str) -> None:
    """Raise RequestError if a running Spark was started without a format that is needed."""
    for name in sorted(set(formats)):
        key, value = sign_of(name)
        if value not in conf.get(key, ""):
            title = FORMATS[name].title
            hint = f"Start that Spark with {title}'s jars and `{key}={value}`."
            raise RequestError(f"{where} was started without {title}, which this project's tables need.", hint=hint)


def _read_formats(path: Path) -> frozenset[str]:
    return frozenset(path.read_text("utf-8").split()).intersection(TABLE_FORMATS) if path.exists() else frozenset()
