"""Spark settings that change results, and not only speed: these are part of a model's version.

A setting counts unless it is known to change no results, or has the default value of Spark 4.1, for which the rules of
equivalence hold. An unknown setting counts.
"""

import re
from collections.abc import Mapping
from importlib.resources import files

from mergeplan.planner.model.table_format import FORMATS

TIME_ZONE = "spark.sql.session.timeZone"
_FILE = files(__package__).joinpath("spark_defaults.conf").read_text(encoding="utf-8")
DEFAULTS = dict(line.split() for line in _FILE.splitlines() if not line.startswith("#"))
Settings = tuple[tuple[str, str], ...]  # (key, value), sorted


def _one_of(*texts: str) -> str:
    return f"({'|'.join(map(re.escape, texts))})"


# Settings that change no results: where and how things run, how they are logged, who may see them.
_BESIDE_SQL = re.compile(
    r"""spark\.(acls|admin|app|authenticate|barrier|block|blockManager|broadcast|buffer|checkpoint|cleaner|closure|
    connect|cores|decommission|default|deploy|diskStore|dynamicAllocation|eventLog|excludeOnFailure|
    files\.(maxPartitionBytes|openCostInBytes|overwrite|useFetchCache|fetchTimeout)|
    hadoop(?!\.(orc|parquet|textinputformat|mapred\.input|mapreduce\.input)\.)|history|hive|io|
    jars\.(ivy|ivySettings|repositories|excludes)|kerberos|kryo|kryoserializer|kubernetes|launcher|listener|local|
    locality|log|logConf|logLineage|master|memory|metrics|modify|network|port|proxyUser|pyspark|python|r|rdd|redaction|
    reducer|repl|resources|rpc|scheduler|security|serializer|service|shuffle|speculation|ssl|stage|standalone|storage|
    streaming|submit|taskMetrics|ui|unsafe|user|worker|yarn|
    (driver|executor|task)\.(?!extraJavaOptions|defaultJavaOptions|extraClassPath|extraLibraryPath|userClassPathFirst)
    [\w.]+)(\..*)?""",
    re.VERBOSE,
)
_OF_SQL = re.compile(
    r"""spark\.sql\.(adaptive|addPartitionInBatch|artifact|autoBroadcastJoinThreshold|broadcastExchange|
    broadcastTimeout|bucketing|cache|cartesianProductExec|catalog|catalogImplementation|cbo|classic|cli|codegen|
    columnVector|connect|constraintPropagation|crossJoin|dataFrameQueryContext|dataframeCache|debug|defaultCatalog|
    defaultCacheStorageLevel|defaultSizeInBytes|defaultUrlStreamHandlerFactory|error|event|exchange|
    execution\.(arrow\.(?!pyspark|enabled|sparkr|useLargeVarTypes|fallback)[\w.]+|broadcastHashJoin|fastFail\w+|
        interruptOnCancel|pandas\.udf\.buffer\.size|pyspark\.(python|udf)|python\.udf|pythonUDF\.arrow\.concurrency|
        rangeExchange|removeRedundant\w+|replaceHashWithSortAgg|reuseSubquery|topKSortFallbackThreshold|
        useObjectHashAggregateExec|usePartitionEvaluator)|
    expressionTreeChangeLog|extendedExplainProviders|
    files\.(maxPartitionBytes|maxPartitionNum|maxRecordsPerFile|minPartitionNum|openCostInBytes)|
    filesourceTableRelationCacheSize|globalTempDatabase|
    hive\.(advancedPartitionPredicatePushdown|dropPartitionByName|filesourcePartitionFileCacheSize|gatherFastStats|thriftServer|
        manageFilesourcePartitions|metastore[\w.]*|tablePropertyLengthThreshold|version)|
    inMemoryColumnarStorage|inMemoryTableScanStatistics|join|leafNodeDefaultParallelism|lightweightPlanChangeValidation|
    limit|maven|maxBroadcastTableSize|maxConcurrentOutputFileWriters|maxMetadataStringLength|maxPlanStringLength|
    maxSinglePartitionBytes|metadataCacheTTLSeconds|nameResolutionLog|objectHashAggregate|
    optimizer(?!\.(decorrelate|metadataOnly|scalarSubquery|wrapExists|enable(Csv|Json)Expression))|
    (orc|parquet|avro)\.(aggregatePushdown|columnar\w+|compression|deflate|filterPushdown|pushdown|xz|zstandard|
        output)|
    (csv|json|python)\.filterPushdown|parser\.(manageParserCaches|parserDfaCache\w+)|pipelines|planChange\w+|
    planner|pyspark\.(jvmStacktrace|plotting|udf|worker)|queryExecutionListeners|redaction|repl|requireAllClusterKeys\w+|
    resultQueryStage|scriptTransformation|session\.localRelation\w+|sessionWindow|shuffle|shuffle\w+|sort|
    sortMergeJoinExec|
    sources\.(bucketing|commitProtocolClass|default|disabledJdbcConnProviderList|fileCompressionFactor|
        ignoreDataLocality|outputCommitterClass|parallelPartitionDiscovery|partitionOverwriteMode|
        schemaStringLengthThreshold|useListFilesFileSystemList|v2)|
    stackTracesInDataFrameContext|statistics|streaming|subexpressionElimination|subquery|thrift[sS]erver|truncateTable|
    ui|unionOutputPartitioning|view|warehouse|windowExec)(\..*)?""",
    re.VERBOSE,
)
_OF_FORMATS = re.compile(rf"{_one_of(*(key for form in FORMATS.values() for key in form.harmless_settings))}(\..*)?")
# Unknown entries of these lists count, because an extension or a function's jar can change what a query returns.
# Extensions and jars of table formats and file stores: they add statements and locations, and change no query's
# results.
_RELEASES = tuple(release for form in FORMATS.values() for release in form.releases)
_EXTENSIONS = re.compile(
    _one_of(
        *(name for release in _RELEASES for name in (release.extension, release.apart) if name),
        "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    )
)
_GROUPS = _one_of(
    *(release.group for release in _RELEASES),
    *"""org.apache.hudi org.apache.paimon org.apache.hadoop org.apache.spark org.postgresql org.xerial com.mysql
    com.amazonaws software.amazon.awssdk com.google.cloud.bigdataoss com.microsoft.azure""".split(),
)
_NAMES = _one_of(
    *(release.artifact.partition("-")[0] for release in _RELEASES),
    *"hudi paimon hadoop aws-java-sdk gcs-connector azure postgresql sqlite mysql".split(),
)
_JARS = re.compile(  # a jar that Spark has fetched is called GROUP_NAME-VERSION.jar
    rf"{_GROUPS}:.*|(.*/)?({_GROUPS}_)?{_NAMES}-[^/]*\.jar"
)
_LISTS = {
    "spark.sql.extensions": _EXTENSIONS,
    "spark.jars": _JARS,
    "spark.jars.packages": _JARS,
    "spark.driver.extraClassPath": _JARS,
    "spark.executor.extraClassPath": _JARS,
}
_JAVA = re.compile(r"spark\.(driver|executor)\.(extra|default)JavaOptions")
_UTC = frozenset(("utc", "etc/utc", "gmt", "etc/gmt", "z", "+00:00", "utc+0", "gmt+0", "gmt0", "zulu", "uct"))

# With other values Spark would parse a text as another query than the one that is analysed.
UNREADABLE = {
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.legacy.parseQueryWithoutEof": "false",
    "spark.sql.preserveCharVarcharTypeInfo": "false",
    "spark.sql.legacy.parser.havingWithoutGroupByAsWhere": "false",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
}


def result_settings(conf: Mapping[str, str]) -> Settings:
    """Return the settings of a session that change results and differ from Spark's defaults, sorted."""
    spelled = ((key, _normalize_value(key, value)) for key, value in conf.items())
    return tuple(sorted((key, value) for key, value in spelled if value and not is_harmless(key)))


def is_harmless(key: str) -> bool:
    """Return True for a setting that changes no results with any value."""
    sql = key.startswith("spark.sql.")
    return key in _FIXED or bool((_OF_SQL if sql else _BESIDE_SQL).fullmatch(key) or _OF_FORMATS.fullmatch(key))


def is_utc(zone: str) -> bool:
    return zone.strip().lower() in _UTC


def default_of(key: str) -> str:
    return "UTC" if key == TIME_ZONE else DEFAULTS.get(key, "not set")


def unreadable_settings(conf: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings under which Spark would parse queries differently, sorted."""
    return tuple(sorted(key for key, value in UNREADABLE.items() if conf.get(key, value).strip().lower() != value))


# mergeplan sets these itself, so they are not part of a version; `unreadable_settings` reports others
_FIXED = frozenset(("spark.sql.runSQLOnFiles", "spark.sql.variable.substitute"))


def _normalize_value(key: str, value: str) -> str:
    """Return the value in one spelling, or '' for the default and for a list without entries that change results."""
    text = value.strip()
    if key == TIME_ZONE:
        return "" if is_utc(text) else text
    if _JAVA.fullmatch(key):
        return " ".join(part for part in text.split() if part.startswith(("-Dspark.", "-Duser.", "-Dfile.")))
    if key in _LISTS:
        items = (entry.strip() for entry in re.split(r":(?!//)" if "Path" in key else ",", text))
        return ",".join(entry for entry in items if entry and not _LISTS[key].fullmatch(entry))
    plain = text.lower() if text.lower() in ("true", "false") else text
    return "" if plain.lower() == DEFAULTS.get(key, "").lower() else plain


def parse_properties(text: str) -> dict[str, tuple[str, int]]:
    """Return the keys of a file like `spark-defaults.conf` with value and line; the last of two equal keys counts."""
    settings: dict[str, tuple[str, int]] = {}
    prefix, began = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        line = prefix + line.strip() if prefix else line.strip()
        began = began if prefix else number
        if not line or (not prefix and line[0] in "#!"):
            continue
        if line.endswith("\\") and not line.endswith("\\\\"):
            prefix = line[:-1]
            continue
        prefix = ""
        key, *value = re.split(r"\s*[=:]\s*|\s+", line, maxsplit=1)
        settings[key] = (value[0] if value else "", began)
    return settings
