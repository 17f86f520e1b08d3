"""The schemas and views of one Spark: made, moved and commented without a moment in which a reader finds none."""

from __future__ import annotations

from collections.abc import Sequence

from planner.engine.protocol import Standing, Stands, ViewText
from planner.engine.spark.described import NO_OBJECT, Described, create_in_schema, describe
from planner.engine.spark.errors import condition, is_spark
from planner.engine.spark.quoting import literal, quoted
from planner.engine.spark.sessions import Sessions
from planner.engine.spark.views import OURS, creation, listing_ours, properties_clause
from planner.errors import QueryError
from planner.model.model import Column


class SparkCatalog:
    """The verbs of `Catalog` on one Spark."""

    def __init__(self, sessions: Sessions, *, comments: bool) -> None:
        self._sessions, self._comments = sessions, comments

    def objects(self, schema: str) -> frozenset[str]:
        """Names of the tables and views in a schema; empty when there is no such schema."""
        with self._sessions.statement():
            return self._objects(schema)

    def standing(self, name: str) -> Standing | None:
        """What stands under a name; None when nothing does."""
        with self._sessions.statement():
            known = describe(self._sessions, name)
            if known is None:
                return None
            fields = self._sessions.run(f"SELECT * FROM {quoted(name)}").schema.fields
            columns = tuple(Column(field.name.lower(), field.dataType.simpleString()) for field in fields)
            if known.is_view:
                return Standing(name, columns, is_view=True, sql=known.details.get("View Text", ""))
            follows = known.details.get("Type") == "MANAGED"
            return Standing(name, columns, False, known.files, known.partitions, follows)

    def rename_table(self, old: str, new: str) -> None:
        """Give a table another name in its schema."""
        with self._sessions.statement():
            self._run(f"ALTER TABLE {quoted(old)} RENAME TO {quoted(new)}")

    def swap_view(self, view: ViewText) -> bool:
        """Point the view at its query, creating it and its schema if need be; False when it already was so."""
        with self._sessions.statement(view.sql):
            return self._swapped_at_once(view) or self._swap_described(view)

    def _swapped_at_once(self, view: ViewText) -> bool:
        """Swap a view of which is known what stands in its place; False when that is not known, or is not so."""
        try:
            if view.stands is Stands.NOTHING:
                self._create_view(view)
            elif view.stands is Stands.ALL_BUT_QUERY:
                self._run(f"ALTER VIEW {quoted(view.name)} AS\n{view.sql.strip()}")
        except Exception as error:
            if not is_spark(error):
                raise
            return False
        return view.stands is not Stands.UNKNOWN

    def _create_view(self, view: ViewText) -> None:
        sql = creation(view.name, view.sql.strip(), self._comment(view), self._columns(view), dict(view.properties))
        create_in_schema(self._sessions, view.name, sql)

    def _comment(self, view: ViewText) -> str:
        return view.comment if self._comments else ""

    def _columns(self, view: ViewText) -> dict[str, str]:
        """The comments of a view's columns, by name."""
        return {column.name: column.comment for column in view.columns} if self._comments else {}

    def _swap_described(self, view: ViewText) -> bool:
        name, text, comment, wanted = view.name, view.sql.strip(), self._comment(view), self._columns(view)
        known = describe(self._sessions, name)
        if known is None:
            self._create_view(view)
            return True
        if not known.is_view:
            raise QueryError(
                f"{name} is a table, and a view of that name is wanted.",
                hint="Rename or drop that table.",
                condition="EXPECT_VIEW_NOT_TABLE",
            )
        moved = known.details.get("View Text") != text or (bool(wanted) and known.comments != wanted)
        if moved:
            # Not CREATE OR REPLACE: that drops the view first, under its readers.
            self._run(f"ALTER VIEW {quoted(name)} AS\n{text}")
        if reworded := known.details.get("Comment", "") != comment:
            self._run(f"ALTER VIEW {quoted(name)} SET TBLPROPERTIES ('comment' = {literal(comment)})")
        return self._set_properties(name, known, dict(view.properties)) or moved or reworded

    def comment_columns(self, table: str, columns: Sequence[Column]) -> None:
        """Make the comments of a table's columns be these."""
        with self._sessions.statement():
            fields = self._sessions.run(f"SELECT * FROM {quoted(table)}").schema.fields if self._comments else ()
            present = {field.name.lower(): (field.metadata or {}).get("comment", "") for field in fields}
            for column in columns:
                if column.name in present and present[column.name] != column.comment:
                    name = quoted(column.name)
                    changed = f"{name} {name} {column.type} COMMENT {literal(column.comment)}"
                    self._run(f"ALTER TABLE {quoted(table)} CHANGE COLUMN {changed}")

    def drop_view(self, name: str) -> None:
        """Drop the view if it exists."""
        with self._sessions.statement():
            self._run(f"DROP VIEW IF EXISTS {quoted(name)}")

    def drop_schema_if_empty(self, name: str) -> None:
        """Drop a schema that holds nothing any more."""
        with self._sessions.statement():
            if self._objects(name):
                return
            try:
                self._run(f"DROP SCHEMA IF EXISTS {quoted(name)} RESTRICT")
            except Exception as error:  # something was put into it in the meantime
                if condition(error) != "SCHEMA_NOT_EMPTY":
                    raise

    def _objects(self, schema: str) -> frozenset[str]:
        try:
            found = self._sessions.run(f"SHOW TABLES IN {quoted(schema)}").collect()
        except Exception as error:
            if condition(error) in NO_OBJECT:
                return frozenset()
            raise
        return frozenset(row["tableName"] for row in found if not row["isTemporary"])

    def _set_properties(self, name: str, known: Described, wanted: dict[str, str]) -> bool:
        """Set a view's properties, and take away those that were set here before; False when they were so already."""
        if not wanted and OURS not in known.details.get("Table Properties", ""):
            return False
        listed = self._sessions.run(f"SHOW TBLPROPERTIES {quoted(name)}").collect()
        present = {row[0]: row[1] for row in listed}
        ours = [key for key in present.get(OURS, "").split(",") if key]
        now = {**wanted, **listing_ours(wanted)}
        if gone := [key for key in (*ours, OURS) if key in present and key not in now]:
            keys = ", ".join(literal(key) for key in gone)
            self._run(f"ALTER VIEW {quoted(name)} UNSET TBLPROPERTIES IF EXISTS ({keys})")
        if new := {key: value for key, value in now.items() if present.get(key) != value}:
            self._run(f"ALTER VIEW {quoted(name)} SET{properties_clause(new)}")
        return bool(gone or new)

    def _run(self, sql: str) -> None:
        self._sessions.run(sql)
