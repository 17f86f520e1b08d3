"""Versions of rows as `dbt snapshot` makes them: the statements of dbt's own macros, as one SELECT.

dbt writes the new versions and the ends of others into a staging view, and merges it by `dbt_scd_id`. Its oddities are
reproduced: a key that comes back unchanged after its deletion begins no version, because its id is in the table.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from mergeplan.planner.engine.spark.quoting import literal
from mergeplan.planner.model.model import Column, DbtVersions, History
from mergeplan.planner.naming import key_sql, quote_column
from mergeplan.planner.parsing.sql.spark_text import spark_text
from mergeplan.planner.tables.merge.relations import KEY, PRESENT, QUERY, MergeBatch, source, target

SINCE, SCD_ID, END = "mergeplan_since", "mergeplan_scd_id", "mergeplan_end"


def in_force(history: History, side: str = "") -> str:
    ends = f"{side}{quote_column(history.valid_to)}"
    current = history.dbt.valid_to_current if history.dbt else ""
    return f"({ends} IS NULL OR {ends} = {current})" if current else f"{ends} IS NULL"


def dbt_versions(batch: MergeBatch, history: History, dbt: DbtVersions, execution: datetime) -> str:
    """Return the SELECT of a snapshot's table after a run at `execution`; it fails for two rows of one key."""
    terms = _Terms(batch, history, dbt, execution)
    query = batch.query.rstrip().rstrip(";")
    ctes = [f"{QUERY} AS (\n{query}\n)", f"new_rows AS ({terms.new_rows})"]
    if not batch.base:
        rows = f"SELECT {terms.new_version} FROM new_rows AS source"
    else:
        table_rows = spark_text(target(batch, history.added_columns))
        rows_in_force = f"SELECT * FROM held AS target WHERE {in_force(history, 'target.')}"
        ctes += [
            f"held AS ({table_rows})",
            f"in_force AS ({rows_in_force})",
            f"begins AS ({terms.begins})",
            f"ends AS ({terms.ends})",
        ]
        rows = f"{terms.old_versions}\nUNION ALL\n{terms.added_versions}"
    return "WITH " + ",\n".join(ctes) + f"\n{rows}"


@dataclass(frozen=True)
class _Terms:
    batch: MergeBatch
    history: History
    dbt: DbtVersions
    execution: datetime

    @property
    def run(self) -> str:
        """The moment of the run: dbt's `snapshot_get_time()`."""
        return f"CAST('{self.execution.astimezone(UTC).replace(tzinfo=None)}+00:00' AS TIMESTAMP)"

    @property
    def new_rows(self) -> str:
        """The query's rows, each with its id and the time from which its version would be in force."""
        since = quote_column(self.dbt.since) if self.dbt.since else self.run
        keys = [f"{KEY}{number}" for number in range(len(self.batch.keys))]
        columns = f"{_hash_arguments([*keys, since])} AS {SCD_ID}, {self.typed(since)} AS {SINCE}"
        return f"SELECT *, {columns} FROM ({spark_text(source(self.batch))}) AS keyed WHERE {PRESENT}"

    @property
    def new_version(self) -> str:
        """A row of the query as a version."""
        end = self.typed(self.dbt.valid_to_current or "NULL")
        source_columns = [f"source.{quote_column(name)}" for name in self.batch.names]
        marks = ["'False'"] if self.dbt.is_deleted else []
        return self.columns([*source_columns, f"source.{SCD_ID}", f"source.{SINCE}", f"source.{SINCE}", end, *marks])

    @property
    def begins(self) -> str:
        """The versions that begin, also those of deleted keys; a version with an id in the table is left out later."""
        rows = f"SELECT {self.new_version} FROM new_rows AS source LEFT JOIN in_force AS target ON {self.same_key}"
        rows += f" WHERE target.{PRESENT} IS NULL OR {self.is_changed}"
        if not self.dbt.is_deleted:
            return rows
        null_columns = ["NULL"] * len(self.batch.names)  # dbt-spark finds no column of the table by its name
        scd_id = _hash_arguments([f"target.{quote_column(self.dbt.scd_id)}", self.run])
        run, end = self.typed(self.run), f"target.{quote_column(self.history.valid_to)}"
        deleted = self.columns([*null_columns, scd_id, run, run, end, "'True'"])
        return f"{rows}\nUNION ALL\nSELECT {deleted} {self.gone}"

    @property
    def ends(self) -> str:
        """The ids of versions that end, and when."""
        scd_id = f"target.{quote_column(self.dbt.scd_id)} AS {SCD_ID}"
        rows = f"SELECT {scd_id}, source.{SINCE} AS {END}, TRUE AS does_end FROM new_rows AS source"
        rows += f" JOIN in_force AS target ON {self.same_key} WHERE {self.is_changed}"
        if self.history.invalidates_deleted or self.dbt.is_deleted:
            rows += f"\nUNION ALL\nSELECT {scd_id}, {self.typed(self.run)} AS {END}, TRUE AS does_end {self.gone}"
        begin = f"SELECT {quote_column(self.dbt.scd_id)}, NULL, FALSE FROM begins"
        end = f"CASE WHEN count(*) > 1 THEN raise_error({self.contradiction}) ELSE max({END}) END"
        grouped = f"SELECT {SCD_ID}, {end} AS {END} FROM (\n{rows}\nUNION ALL\n{begin}\n) AS changed"
        return f"{grouped} GROUP BY {SCD_ID} HAVING max(does_end)"

    @property
    def contradiction(self) -> str:
        """The error for a version that ends when one of the same id begins: dbt's MERGE fails there too."""
        since = f"its `{self.dbt.since}` is not another one" if self.dbt.since else "its key is not unique"
        message = f"A row of the snapshot {self.batch.model} changed or went, and {since}, or its key is NULL"
        return literal(f"{message}. dbt's MERGE fails there too: change the key or the time, or leave such rows out.")

    @property
    def gone(self) -> str:
        """The versions in force whose key the query no longer returns, without those of keys marked as deleted."""
        rows = f"FROM in_force AS target LEFT ANTI JOIN new_rows AS source ON {self.same_key}"
        if not self.dbt.is_deleted:
            return rows
        end, current = f"target.{quote_column(self.history.valid_to)}", self.dbt.valid_to_current
        is_open = f"{end} = {current}" if current else f"{end} IS NULL"
        return f"{rows} WHERE NOT (target.{quote_column(self.dbt.is_deleted)} = 'True' AND {is_open})"

    @property
    def old_versions(self) -> str:
        """The versions that the table held: as they were, or with their end."""
        history, columns = self.history, []
        for column in (*self.batch.columns, *history.added_columns):
            value = f"target.{quote_column(column.name)}"
            if column.name == history.valid_to:
                value = f"CASE WHEN ends.{SCD_ID} IS NOT NULL AND {in_force(history, 'target.')}"
                value += f" THEN ends.{END} ELSE target.{quote_column(column.name)} END"
            columns.append(value)
        on = f"target.{quote_column(self.dbt.scd_id)} = ends.{SCD_ID}"
        return f"SELECT {self.columns(columns)} FROM held AS target LEFT JOIN ends ON {on}"

    @property
    def added_versions(self) -> str:
        """The versions that begin and whose id is not in the table."""
        scd_id = quote_column(self.dbt.scd_id)
        return f"SELECT * FROM begins AS source LEFT ANTI JOIN held AS target ON source.{scd_id} = target.{scd_id}"

    @property
    def same_key(self) -> str:
        """The condition that the rows of both sides have one key; NULL equals no key."""
        keys = range(len(self.batch.keys))
        return " AND ".join(f"target.{KEY}{number} = source.{KEY}{number}" for number in keys)

    @property
    def is_changed(self) -> str:
        """The condition that a row differs from the version in force, or comes back after it was deleted."""
        history = self.history
        if history.updated_at:
            changed = f"target.{quote_column(history.valid_from)} < source.{quote_column(history.updated_at)}"
        else:
            pairs = map(quote_column, history.columns or self.batch.names)
            changed = " OR ".join(f"NOT (target.{name} <=> source.{name})" for name in pairs)
        back = f" OR target.{quote_column(self.dbt.is_deleted)} = 'True'" if self.dbt.is_deleted else ""
        return f"({changed}{back})"

    def typed(self, value: str) -> str:
        return f"CAST({value} AS {self.history.type})"

    def columns(self, values: list[str]) -> str:
        names = (*self.batch.names, *(column.name for column in self.history.added_columns))
        return ", ".join(f"{value} AS {quote_column(name)}" for value, name in zip(values, names, strict=True))


def fill_versions(rows: str, columns: tuple[Column, ...], keys: tuple[str, ...], history: History) -> str:
    """Return rows of a snapshot with what dbt would have written beside them, where they leave it out."""
    if history.dbt is None:
        return rows
    since = quote_column(history.valid_from)
    usual = {
        history.dbt.scd_id: _hash_arguments([*map(key_sql, keys), since]),
        history.dbt.updated: since,
        history.dbt.is_deleted: "'False'",
    }
    names = [(column.name, quote_column(column.name)) for column in columns]
    values = (f"coalesce({sql}, {usual[name]}) AS {sql}" if name in usual else sql for name, sql in names)
    return f"SELECT {', '.join(values)} FROM (\n{rows}\n)"


def _hash_arguments(values: list[str]) -> str:
    return "md5(" + " || '|' || ".join(f"coalesce(CAST({value} AS STRING), '')" for value in values) + ")"
