"""The schemas and views of one Spark, changed so that a reader finds a view at every moment."""

import re
from collections.abc import Sequence

from mergeplan.planner.engine.protocol import Standing, Stands, ViewText
from mergeplan.planner.engine.spark import described
from mergeplan.planner.engine.spark.errors import condition, is_spark, replaces_views
from mergeplan.planner.engine.spark.quoting import literal, quote_name
from mergeplan.planner.engine.spark.sessions import Sessions
from mergeplan.planner.engine.spark.type_text import type_text
from mergeplan.planner.engine.spark.views import OURS, creation_statement, listing_ours, properties_clause
from mergeplan.planner.engine.table import OWNER
from mergeplan.planner.errors import QueryError
from mergeplan.planner.model.model import Column
from mergeplan.planner.naming import SESSION_CATALOG, parts_of, quote_column


class SparkCatalog:
    def __init__(self, sessions: Sessions, *, comments: bool) -> None:
        self._sessions, self._comments = sessions, comments
        self._replacing: set[str] = set()  # catalogs whose views are replaced, and not altered
        self._default = ""  # the default catalog, once it was queried

    def objects(self, schema: str) -> frozenset[str]:
        with self._sessions.statement():
            return self._list_objects(schema)

    def standing(self, name: str) -> Standing | None:
        with self._sessions.statement():
            description = described.describe_table(self._sessions, name)
            if description is None:
                return None
            if description.is_view:
                return Standing(
                    name, self._readable_columns(name), is_view=True, sql=self._view_text(name, description)
                )
            follows = description.details.get("Type") == "MANAGED"
            return Standing(name, self._read_columns(name), False, description.files, description.partitions, follows)

    def owner(self, name: str) -> str | None:
        with self._sessions.statement():
            try:
                return self._read_properties(name).get(OWNER, "")
            except Exception as error:
                if condition(error) in described.NO_OBJECT:
                    return None
                raise

    def _read_properties(self, name: str) -> dict[str, str]:
        return {row[0]: row[1] for row in self._sessions.run(f"SHOW TBLPROPERTIES {quote_name(name)}").collect()}

    def _read_columns(self, name: str) -> tuple[Column, ...]:
        fields = self._sessions.run(f"SELECT * FROM {quote_name(name)}").schema.fields
        return tuple(Column(field.name.lower(), type_text(field.dataType)) for field in fields)

    def _readable_columns(self, view: str) -> tuple[Column, ...]:
        try:
            return self._read_columns(view)
        except Exception as error:  # what it reads is gone, or is not what it was
            if not condition(error):
                raise
            return ()

    def rename_table(self, old: str, new: str) -> None:
        with self._sessions.statement():
            self._run_statement(f"ALTER TABLE {quote_name(old)} RENAME TO {quote_name(new)}")

    def swap_view(self, view: ViewText) -> bool:
        with self._sessions.statement(view.sql):
            return self._try_swap(view) or self._swap_described(view)

    def _try_swap(self, view: ViewText) -> bool:
        """Replace the view if it still has the expected definition; return False otherwise."""
        try:
            if view.stands is Stands.NOTHING:
                self._create_view(view)
            elif view.stands is Stands.ALL_BUT_QUERY:
                self._change_query(view)
        except Exception as error:
            if not is_spark(error):
                raise
            return False
        return view.stands is not Stands.UNKNOWN

    def _create_view(self, view: ViewText) -> None:
        sql = creation_statement(
            view.name, view.sql.strip(), self._view_comment(view), self._column_comments(view), dict(view.properties)
        )
        described.create_in_schema(self._sessions, view.name, sql)

    def _view_comment(self, view: ViewText) -> str:
        return view.comment if self._comments else ""

    def _column_comments(self, view: ViewText) -> dict[str, str]:
        return {column.name: column.comment for column in view.columns} if self._comments else {}

    def _swap_described(self, view: ViewText) -> bool:
        name, comment, column_comments = view.name, self._view_comment(view), self._column_comments(view)
        description = described.describe_table(self._sessions, name)
        if description is None:
            self._create_view(view)
            return True
        if not description.is_view:
            raise QueryError(
                f"{name} is a table, and a view of that name is wanted.",
                hint="Rename or drop that table.",
                condition="EXPECT_VIEW_NOT_TABLE",
            )
        text = self._view_text(name, description)
        if not re.search(view.reads, text):
            raise QueryError(
                f"{name} is a view that mergeplan did not make.", hint="Rename or drop it.", condition="VIEW_OF_OTHERS"
            )
        moved = text != view.sql.strip() or (bool(column_comments) and description.comments != column_comments)
        if moved:
            self._change_query(view)
        present = description.details.get("Comment", "")
        if reworded := present != comment and (bool(comment) or present in view.ours):
            self._run_statement(f"ALTER VIEW {quote_name(name)} SET TBLPROPERTIES ('comment' = {literal(comment)})")
        return self._set_properties(name, description, dict(view.properties)) or moved or reworded

    def _change_query(self, view: ViewText) -> None:
        """Change the query of an existing view; keep its grants, its comment and its properties.

        Spark's own catalog alters it: there CREATE OR REPLACE loses them, and drops the view under its readers. Where
        views cannot be altered, as in Iceberg's catalogs, they are replaced, which loses nothing there.
        """
        catalog, text = parts_of(view.name)[0], view.sql.strip()
        if catalog not in self._replacing:
            try:
                self._run_statement(f"ALTER VIEW {quote_name(view.name)} AS\n{text}")
                return
            except Exception as error:
                if not replaces_views(error):
                    raise
                self._replacing.add(catalog)
        clauses = self._view_comment(view), self._column_comments(view), dict(view.properties)
        self._run_statement(creation_statement(view.name, text, *clauses, replace=True))

    def _view_text(self, name: str, description: described.Described) -> str:
        if "View Text" in description.details:
            return description.details["View Text"]
        shown: str = self._sessions.run(f"SHOW CREATE TABLE {quote_name(name)}").collect()[0][0]
        return shown.partition("\nAS\n")[2].strip()

    def comment_columns(self, table: str, columns: Sequence[Column]) -> None:
        with self._sessions.statement():
            fields = self._sessions.run(f"SELECT * FROM {quote_name(table)}").schema.fields if self._comments else ()
            present = {field.name.lower(): (field.metadata or {}).get("comment", "") for field in fields}
            for column in columns:
                if column.name in present and present[column.name] != column.comment:
                    name = quote_column(column.name)
                    changed = f"{name} {name} {column.type} COMMENT {literal(column.comment)}"
                    self._run_statement(f"ALTER TABLE {quote_name(table)} CHANGE COLUMN {changed}")

    def drop_view(self, name: str, reads: str = "") -> None:
        with self._sessions.statement():
            if (
                reads
                and (description := described.describe_table(self._sessions, name))
                and not re.search(reads, self._view_text(name, description))
            ):
                return
            self._run_statement(f"DROP VIEW IF EXISTS {quote_name(name)}")

    def drop_schema_if_empty(self, name: str) -> None:
        with self._sessions.statement():
            if self._list_objects(name):
                return
            try:
                self._run_statement(f"DROP SCHEMA IF EXISTS {quote_name(name)} RESTRICT")
            except Exception as error:  # something was put into it in the meantime
                if condition(error) != "SCHEMA_NOT_EMPTY":
                    raise

    def _list_objects(self, schema: str) -> frozenset[str]:
        catalog = schema.rpartition(".")[0] or self._default_catalog()
        if catalog != SESSION_CATALOG:
            return self._objects_apart(catalog, schema)
        if not described.is_listed_schema(self._sessions, schema):
            return frozenset()
        try:
            rows = self._sessions.run(f"SHOW TABLES IN {quote_name(schema)}").collect()
        except Exception as error:
            if condition(error) in described.NO_OBJECT:
                return frozenset()
            raise
        return frozenset(row["tableName"] for row in rows if not row["isTemporary"])

    def _objects_apart(self, catalog: str, schema: str) -> frozenset[str]:
        """Return the names in a schema of another catalog than Spark's own.

        Each of these has its own errors for a missing schema, and lists views separately.
        """
        name = f"{quote_name(catalog)}.{quote_name(schema.rpartition('.')[2])}"
        try:
            self._run_statement(f"DESCRIBE SCHEMA {name}")
        except Exception as error:
            if condition(error) in described.NO_OBJECT:
                return frozenset()
            raise
        tables = self._sessions.run(f"SHOW TABLES IN {name}").collect()
        views = self._sessions.run(f"SHOW VIEWS IN {name}").collect()
        names = (row["tableName"] for row in tables if not row["isTemporary"])
        return frozenset((*names, *(row["viewName"] for row in views if not row["isTemporary"])))

    def _default_catalog(self) -> str:
        self._default = self._default or self._sessions.current.spark.catalog.currentCatalog()
        return self._default

    def _set_properties(self, name: str, description: described.Described, properties: dict[str, str]) -> bool:
        """Set a view's properties, and remove earlier ones of ours; return False if nothing changed."""
        if not properties and OURS not in description.properties:
            return False
        present = self._read_properties(name)
        earlier_keys = [key for key in present.get(OURS, "").split(",") if key]
        new_properties = {**properties, **listing_ours(properties)}
        if gone := [key for key in (*earlier_keys, OURS) if key in present and key not in new_properties]:
            keys = ", ".join(literal(key) for key in gone)
            self._run_statement(f"ALTER VIEW {quote_name(name)} UNSET TBLPROPERTIES IF EXISTS ({keys})")
        if new := {key: value for key, value in new_properties.items() if present.get(key) != value}:
            self._run_statement(f"ALTER VIEW {quote_name(name)} SET{properties_clause(new)}")
        return bool(gone or new)

    def _run_statement(self, sql: str) -> None:
        self._sessions.run(sql)
