"""The formats of tables, as a table of traits: other code asks a format what it can do.

A new format is a row here, its verbs in a file of `engine/formats/`, their line in `engine/spark/spark_tables.py`, and
a column in `docs/reference/formats.md`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CATALOG = "spark.sql.catalog.spark_catalog"  # the setting that names the class of the catalog that Spark has anyway
PROVIDED = ",".join(
    f"{group}:*"
    for group in (
        "org.apache.hadoop", "org.apache.parquet", "com.fasterxml.jackson.core", "org.apache.logging.log4j",
        "org.slf4j", "com.github.luben", "org.xerial.snappy",
    )
)  # fmt: skip
Settings = tuple[tuple[str, str], ...]
DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
DELTA_SETTINGS: Settings = (
    (CATALOG, "org.apache.spark.sql.delta.catalog.DeltaCatalog"),
    # What Spark brings itself in any case: 70 MB.
    ("spark.jars.excludes", PROVIDED),
    # Delta reads its own log with 50 tasks for each statement, which is for logs of millions of files.
    ("spark.databricks.delta.snapshotPartitions", "4"),
    # VACUUM lists a table with as many tasks as this says, 10,000 by default, however few its files are.
    ("spark.sql.sources.parallelPartitionDiscovery.parallelism", "64"),
    # What a merge began from is read again when it is repeated or taken back, however long that is after: the janitor
    # leaves its files.
    ("spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "false"),
)


@dataclass(frozen=True)
class Release:
    """A release of a table format with the line of Spark that it was tested on, and its session settings."""

    spark: str  # the line: 4.1
    package: str  # group:artifact:version
    extension: str
    settings: Settings  # of Spark's own catalog
    apart: str = ""  # the extension for tables and views in catalogs of their own, if it is another one

    @property
    def artifact(self) -> str:
        """The name of its jar without the version: `delta-spark_4.1_2.13`."""
        return self.package.split(":")[1]

    @property
    def stem(self) -> str:
        """The common prefix of the names of all its releases: `delta-spark`."""
        return self.artifact.partition(self.spark)[0].rstrip("-_")

    @property
    def group(self) -> str:
        """The group of its package: `io.delta`."""
        return self.package.partition(":")[0]

    @property
    def version(self) -> str:
        return self.package.split(":")[2]

    @property
    def catalog(self) -> str:
        """The class that becomes Spark's own catalog."""
        return dict(self.settings)[CATALOG]


@dataclass(frozen=True)
class BrokenRelease:
    """A release that fails at run time, from this Spark on, with the symptom."""

    artifact: str
    version: str
    spark: str
    shows: str


@dataclass(frozen=True)
class ServerLimit:
    """A setting with an upper limit on a Spark Connect server; with Spark's default the format takes minutes."""

    setting: str
    most: int
    value: str  # what to set
    slow: str  # what takes minutes otherwise


@dataclass(frozen=True)
class TableFormat:
    """The abilities of a format, and its needs in Spark. A format without a log is plain files."""

    title: str  # as people write it
    files: tuple[str, ...]  # the formats that its files may have
    has_log: bool = True  # every write is a commit, and keeps the version before it until that expires
    shares_files: bool = False  # a table can be made over the files of another one
    releases: tuple[Release, ...] = ()  # tested, the newest last
    broken: tuple[BrokenRelease, ...] = ()
    harmless_settings: tuple[str, ...] = ()  # settings of the format's own that change no results
    embedded_settings: Settings = ()  # of a Spark with the embedded metastore
    needs_open_metastore: bool = False  # it finds the embedded metastore only when Spark has opened it
    catalogs: tuple[str, ...] = ()  # the classes of catalogs of their own with tables of this format
    without_views: tuple[str, ...] = ()  # the types and classes of such catalogs that hold no views, a type first
    functions: frozenset[str] = frozenset()  # what its catalogs add: `catalog.system.bucket(8, id)`
    scan_filters: re.Pattern[str] | None = None  # the filters of a scan in Spark's physical plan, separated by `, `
    forbidden: str = ""  # characters that no name of a column or a field may have
    permitting: str = ""  # the setting of Spark that permits these in names
    unmerged: str = ""  # characters of names for which its MERGE INTO fails
    encodes_folders: bool = False  # a name is encoded in the name of a folder as in a URL
    conflict_condition: str = ""  # how the conditions of a refused commit begin
    conflict_message: str = ""  # what its message says, where there is no condition
    server_limits: tuple[ServerLimit, ...] = ()

    def can_have(self, name: str, settings: Settings) -> bool:
        is_permitted = dict(settings).get(self.permitting, "none") != "none"
        return is_permitted or not set(name) & set(self.forbidden)

    def can_merge(self, names: Iterable[str]) -> bool:
        """Return True if MERGE INTO can write a table with columns of these names."""
        return self.has_log and not set().union(*names) & set(self.unmerged)

    def is_conflict(self, condition: str, message: str) -> bool:
        """Return True for the error of a commit that is refused because another one came between."""
        begins = bool(self.conflict_condition) and condition.startswith(self.conflict_condition)
        return begins or (bool(self.conflict_message) and self.conflict_message in message)


# By the name that `table_format`, or `storage_format` for plain files, and `CREATE TABLE ... USING` have for it.
FORMATS: Mapping[str, TableFormat] = {
    "parquet": TableFormat("Parquet", ("parquet",), has_log=False, shares_files=True),
    "orc": TableFormat("ORC", ("orc",), has_log=False, shares_files=True),
    "delta": TableFormat(
        "Delta",
        ("parquet",),
        shares_files=True,
        releases=(
            Release("4.1", "io.delta:delta-spark_4.1_2.13:4.4.0", DELTA_EXTENSION, DELTA_SETTINGS),
            Release("4.2", "io.delta:delta-spark_4.2_2.13:4.4.0", DELTA_EXTENSION, DELTA_SETTINGS),
        ),
        broken=(
            BrokenRelease(
                "delta-spark_4.1_2.13", "4.1.0", "4.1.4", "columns cannot be added and clones cannot be read"
            ),
        ),
        harmless_settings=(
            "spark.databricks.delta.snapshotPartitions",
            "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration",
        ),
        catalogs=("io.unitycatalog.spark.UCSingleCatalog",),
        forbidden=" ,;{}()\n\t=",
        unmerged="`.",  # Delta 4.4 reads a name in a MERGE as an expression where it writes columns and partitions
        permitting="spark.databricks.delta.properties.defaults.columnMapping.mode",
        conflict_condition="DELTA_CONCURRENT_",
        server_limits=(
            ServerLimit(
                "spark.databricks.delta.snapshotPartitions", 16, "4", "every statement on a Delta table runs 50 tasks"
            ),
            ServerLimit(
                "spark.sql.sources.parallelPartitionDiscovery.parallelism", 1000, "64", "VACUUM runs 10,000 tasks"
            ),
        ),
    ),
    "iceberg": TableFormat(
        "Iceberg",
        ("parquet", "orc"),
        releases=(
            Release(
                "4.1",
                "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
                # Without its extension views stay those of Spark's own catalog, which can be altered; calls and
                # row-level statements are part of Spark 4.
                "",
                (
                    (CATALOG, "org.apache.iceberg.spark.SparkSessionCatalog"),
                    (f"{CATALOG}.type", "hive"),
                    (f"{CATALOG}.cache-enabled", "false"),  # another process may have written the table
                ),
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            ),
        ),
        # The embedded metastore has no tables for locks; its commits compare and swap.
        embedded_settings=(("spark.hadoop.iceberg.engine.hive.lock-enabled", "false"),),
        needs_open_metastore=True,
        catalogs=("org.apache.iceberg.spark.SparkCatalog",),
        without_views=("hadoop", "org.apache.iceberg.hadoop.HadoopCatalog"),
        functions=frozenset("bucket truncate years months days hours iceberg_version".split()),
        scan_filters=re.compile(r"^IcebergScan\(.*?, filters=(.*), runtimeFilters=", re.M),
        encodes_folders=True,
        conflict_message="Found conflicting files",  # it has no conditions
    ),
}
TABLE_FORMATS = tuple(name for name, form in FORMATS.items() if form.has_log)
FILE_FORMATS = tuple(name for name, form in FORMATS.items() if not form.has_log)
