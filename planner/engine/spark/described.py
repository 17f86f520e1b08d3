"""The catalog's description of a table or view."""

from dataclasses import dataclass

from mergeplan.planner.engine.spark.errors import condition, is_spark
from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.model.table_format import FILE_FORMATS

# The heading of everything but a view of another catalog, and that of such a view.
DETAILED = ("# Detailed Table Information", "# Detailed View Information")
REFRESHED = ("MATERIALIZED_VIEW", "STREAMING_TABLE")
NO_OBJECT = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")


@dataclass(frozen=True)
class Described:
    details: dict[str, str]
    comments: dict[str, str]  # of the columns
    partitions: tuple[str, ...] = ()  # the columns that it is partitioned by
    is_view: bool = False
    has_policy: bool = False  # functions of the catalog show its readers other rows or values than it holds

    @property
    def properties(self) -> str:
        return self.details.get("Table Properties", "") + self.details.get("View Properties", "")

    @property
    def format(self) -> str:
        """The format of a table, in lower case."""
        return self.details.get("Provider", "").lower()

    @property
    def files(self) -> str:
        """The format of a table's files, in lower case: also of a table that Hive made.

        Databricks itself fills a materialized view and a streaming table: their files are no table's to share.
        """
        if (kind := self.details.get("Type", "")) in REFRESHED:
            return kind.lower()
        reader = self.details.get("Serde Library", "").lower() if self.format == "hive" else ""
        return next((file_format for file_format in FILE_FORMATS if file_format in reader), self.format)


def describe_table(sessions: Sessions, name: str) -> Described | None:
    """Return the catalog's description of an object; None if there is none of that name."""
    try:
        lines = sessions.run(f"DESCRIBE TABLE EXTENDED {quote_name(name)}").collect()
    except Exception as error:
        if condition(error) in NO_OBJECT:
            is_listed_schema(sessions, name.rpartition(".")[0])
            return None
        raise
    titles = [line[0] for line in lines]
    start = next(index for index, title in enumerate(titles) if title in DETAILED)
    end = next(index for index, title in enumerate(titles) if not title or title.startswith("#"))
    comments = {line[0].lower(): line[2] or "" for line in lines[:end]}
    details = {line[0]: line[1] for line in lines[start + 1 :] if line[0]}
    is_view = titles[start] == DETAILED[1] or details.get("Type") == "VIEW"
    return Described(details, comments, _partition_columns(titles[:start]), is_view, any(map(_names_policy, titles)))


def _names_policy(title: str) -> bool:
    """Return True for the heading of row filters or column masks, however a catalog spells it."""
    words = title.lower().removeprefix("#").split()
    return words[:1] in (["row"], ["column"]) and words[1:2] in (["filter"], ["filters"], ["mask"], ["masks"])


def _partition_columns(titles: list[str]) -> tuple[str, ...]:
    if "# Partition Information" not in titles:
        return ()
    below = titles[titles.index("# Partition Information") + 1 :]
    named = below[1:] if below and below[0] == "# col_name" else below
    end = next((index for index, line in enumerate(named) if not line or line[0] == "#"), len(named))
    return tuple(line.lower() for line in named[:end])


def create_in_schema(sessions: Sessions, name: str, sql: str, *, is_listed: bool = True) -> None:
    """Create an object, and its schema if missing; `is_listed` is False if its partitions are read from folders."""
    run, schema = (sessions.run if is_listed else sessions.current.run_unlisted), name.rpartition(".")[0]
    with sessions.new_schemas.turn(schema) as is_first:  # or every thread would make the schema
        if is_first and not has_schema(sessions, schema):
            try:
                _create_schema(sessions, schema)
            except Exception as error:
                if not is_spark(error):  # Spark may refuse it although it exists for users who cannot see it
                    raise
        try:
            run(sql)
        except Exception as error:
            if condition(error) != "SCHEMA_NOT_FOUND":
                raise
            _create_schema(sessions, schema)
            run(sql)


def _create_schema(sessions: Sessions, schema: str) -> None:
    sessions.run(f"CREATE SCHEMA IF NOT EXISTS {quote_name(schema)}")


def is_listed_schema(sessions: Sessions, schema: str) -> bool:
    """Return whether a schema exists; raise Spark's error if its catalog cannot list any.

    A metastore whose disk was full finds none, and tables in it would count as dropped: there, to list schemas fails.
    """
    if has_schema(sessions, schema):
        return True
    catalog, _, name = schema.rpartition(".")
    sessions.run(f"SHOW SCHEMAS{f' IN {quote_name(catalog)}' if catalog else ''} LIKE {literal(name)}").collect()
    return False


def has_schema(sessions: Sessions, schema: str) -> bool:
    """Return False if Spark does not know the schema, in 1 ms; a failed statement takes 60 ms, for Java's trace."""
    try:
        return bool(sessions.current.spark.catalog.databaseExists(quote_name(schema)))
    except Exception as error:
        if not is_spark(error):
            raise
        return True  # the statement reports the error
