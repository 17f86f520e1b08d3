"""Which release of a table format runs on which Spark: the pairs that were tested, and those that are known to break.

A session of a project with such tables needs the format's jars, its SQL extension and its catalog; a project with
parquet or ORC alone needs nothing of this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mergeplan.planner.errors import RequestError

EXTENSIONS, PACKAGES, JARS = "spark.sql.extensions", "spark.jars.packages", "spark.jars"
CATALOG = "spark.sql.catalog.spark_catalog"
PROVIDED = ",".join(
    f"{group}:*"
    for group in (
        "org.apache.hadoop", "org.apache.parquet", "com.fasterxml.jackson.core", "org.apache.logging.log4j",
        "org.slf4j", "com.github.luben", "org.xerial.snappy",
    )
)  # fmt: skip
Conf = Mapping[str, str]


@dataclass(frozen=True)
class TestedPair:
    """A release of a table format with the line of Spark that it was tested on, and what a session needs of it."""

    format: str
    title: str
    spark: str  # the line: 4.1
    package: str  # group:artifact:version
    extension: str
    settings: tuple[tuple[str, str], ...]  # of Spark's own catalog
    apart: str = ""  # the extension for tables and views in catalogs of their own, if it is another one

    @property
    def artifact(self) -> str:
        """The name of its jar without the version: `delta-spark_4.1_2.13`."""
        return self.package.split(":")[1]

    @property
    def stem(self) -> str:
        """What the names of all its releases begin with: `delta-spark`."""
        return self.artifact.partition(self.spark)[0].rstrip("-_")

    def is_among(self, releases: Iterable[tuple[str, str]]) -> bool:
        """True when one of these is a release of the format."""
        return any(artifact.startswith(self.stem) for artifact, _ in releases)

    @property
    def version(self) -> str:
        return self.package.split(":")[2]


@dataclass(frozen=True)
class BrokenPair:
    """A release that fails at run time, from this Spark on, and how that shows."""

    artifact: str
    version: str
    spark: str
    shows: str


TESTED = (
    TestedPair(
        "delta",
        "Delta",
        "4.1",
        "io.delta:delta-spark_4.1_2.13:4.3.0",
        "io.delta.sql.DeltaSparkSessionExtension",
        (
            (CATALOG, "org.apache.spark.sql.delta.catalog.DeltaCatalog"),
            # What Spark brings itself in any case: 70 MB.
            ("spark.jars.excludes", PROVIDED),
            # Delta reads its own log with 50 tasks for each statement, which is for logs of millions of files.
            ("spark.databricks.delta.snapshotPartitions", "4"),
            # VACUUM lists a table with as many tasks as this says, 10,000 by default, however few its files are.
            ("spark.sql.sources.parallelPartitionDiscovery.parallelism", "64"),
            # What a merge began from is read again when it is repeated or taken back, however long that is after: the
            # janitor leaves its files.
            ("spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration", "false"),
        ),
    ),
    TestedPair(
        "iceberg",
        "Iceberg",
        "4.1",
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        # Without its extension views stay those of Spark's own catalog, which can be altered; calls and row-level
        # statements are part of Spark 4.
        "",
        (
            (CATALOG, "org.apache.iceberg.spark.SparkSessionCatalog"),
            (f"{CATALOG}.type", "hive"),
            (f"{CATALOG}.cache-enabled", "false"),  # another process may have written the table
        ),
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    ),
)
BROKEN = (
    BrokenPair(
        "delta-spark_4.1_2.13",
        "4.1.0",
        "4.1.4",
        "columns cannot be added and clones cannot be read",
    ),
)
FORMATS = tuple(dict.fromkeys(pair.format for pair in TESTED))
_JAR = re.compile(r"(.+_\d+\.\d+)-(\d[\w.-]*)\.jar")
_LINE = re.compile(r"[-_](\d+\.\d+)_\d+\.\d+$")  # of an artifact's name: the Spark that it is built for


def settings_for(
    formats: Iterable[str], conf: Conf, spark: str, folder: str | None, apart: Iterable[str] = ()
) -> dict[str, str]:
    """What a session with these formats is started with besides its own `conf`: jars, extensions and catalogs; with
    those `apart`, whose catalogs `conf` configures, only jars and extensions.

    The jars are those of the `folder`, if one is given; else what `conf` brings itself; else the tested release.
    RequestError for a pair that is known to break, and where there is no tested one and nothing is brought.
    """
    wanted, others = sorted(set(formats)), set(apart)
    if not wanted and not others:
        return {}
    jars = _jars_of(folder) if folder else []
    packages = _split_setting(conf, PACKAGES)
    releases = _releases(packages, [*jars, *_split_setting(conf, JARS)])
    settings: dict[str, str] = {}
    extensions = _split_setting(conf, EXTENSIONS)
    for name in sorted(others.union(wanted)):
        pair = _pair(name, spark, releases, folder)
        _refuse_broken(pair, spark, releases)
        if not pair.is_among(releases):
            packages.append(pair.package)
        extensions += [pair.apart] if name in others and pair.apart else []
        extensions += [pair.extension] if pair.extension else []
        for key, value in pair.settings if name in wanted else ():
            if settings.setdefault(key, value) != value:
                raise RequestError(
                    f"one session cannot have tables of {' and '.join(wanted)}: each needs a `{key}` of its own.",
                    hint="Use one `table_format` in a catalog.",
                )
    lists = {EXTENSIONS: extensions, PACKAGES: packages, JARS: [*_split_setting(conf, JARS), *jars]}
    settings = {key: value for key, value in settings.items() if key not in conf}
    return settings | {key: ",".join(dict.fromkeys(parts)) for key, parts in lists.items() if parts}


def sign_of(format: str) -> tuple[str, str]:
    """The setting, and the class in it, by which a session that knows a format is recognised."""
    pair = next(pair for pair in TESTED if pair.format == format)
    return (EXTENSIONS, pair.extension) if pair.extension else (CATALOG, dict(pair.settings)[CATALOG])


def title_of(format: str) -> str:
    """The name of a format as people write it."""
    return next((pair.title for pair in TESTED if pair.format == format), format)


def how_to_bring(packages: str) -> str:
    """What to do where jars cannot be had: a hint."""
    return (
        f"Copy {packages} and what it depends on into a folder and name it as `jars_dir` of the connection; or say how "
        "your registry is reached: `spark.jars.repositories` or `spark.jars.ivySettings` in its `config`, a proxy as "
        "`-Dhttps.proxyHost=...` in `spark.driver.extraJavaOptions`."
    )


def _pair(name: str, spark: str, given: Iterable[tuple[str, str]], folder: str | None) -> TestedPair:
    """The pair for this Spark; where none was tested, the newest stands for the settings of what is brought."""
    pairs = [pair for pair in TESTED if pair.format == name]
    newest = pairs[-1]
    brought = newest.is_among(given)
    if folder and not brought:
        raise RequestError(f"`jars_dir` {folder} holds no jar of {newest.title}.", hint=how_to_bring(newest.package))
    pair = next((candidate for candidate in pairs if spark.startswith(f"{candidate.spark}.")), newest)
    if not brought and not spark.startswith(f"{pair.spark}."):
        raise RequestError(
            f"no release of {pair.title} is known to work with Spark {spark}.",
            hint=f"{pair.title} {pair.version} was tested with Spark {pair.spark}: install that, or bring a release of "
            "your own with `jars_dir` or `spark.jars.packages`.",
        )
    return pair


def _refuse_broken(pair: TestedPair, spark: str, given: Iterable[tuple[str, str]]) -> None:
    for artifact, version in given:
        why = ""
        for release in BROKEN:
            if (release.artifact, release.version) == (artifact, version) and _is_at_least(spark, release.spark):
                why = release.shows
        line = _LINE.search(artifact)
        if line and artifact.startswith(pair.stem) and not spark.startswith(f"{line[1]}."):
            why = f"it is built for Spark {line[1]}"
        if why:
            raise RequestError(
                f"{artifact} {version} does not work with Spark {spark}: {why}.",
                hint=f"Spark {pair.spark} and `{pair.package}` work together; without a release of its own in `config` "
                "mergeplan takes that one.",
            )


def _releases(packages: Iterable[str], jars: Iterable[str]) -> list[tuple[str, str]]:
    """The name and the version of each package (`group:artifact:version`) and of each jar."""
    parts = (package.split(":") for package in packages)
    named = [(fields[1], fields[2]) for fields in parts if len(fields) > 2]
    matches = filter(None, (_JAR.fullmatch(Path(jar).name) for jar in jars))
    return named + [(_artifact(match[1]), match[2]) for match in matches]


def _artifact(name: str) -> str:
    """The name of a jar without the group, which stands before it in the folder where Spark keeps what it fetched."""
    stem = next((pair.stem for pair in TESTED if f"_{pair.stem}" in name), "")
    return name[name.index(stem) :]


def _is_at_least(version: str, least: str) -> bool:
    numbers = ([int(digits) for digits in re.findall(r"\d+", text)[:3]] for text in (version, least))
    first, second = numbers
    return first[:2] == second[:2] and first >= second


def _jars_of(folder: str) -> list[str]:
    if not Path(folder).is_dir():
        raise RequestError(f"there is no folder `{folder}`, which `jars_dir` names.")
    return sorted(str(path.resolve()) for path in Path(folder).glob("*.jar"))


def _split_setting(conf: Conf, key: str) -> list[str]:
    return [entry.strip() for entry in conf.get(key, "").split(",") if entry.strip()]
