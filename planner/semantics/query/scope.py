"""The names that the expressions of a query may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mergeplan.planner.semantics.query.algebra import Opaque, Value
from mergeplan.planner.semantics.query.row_order import RowProvenance


@dataclass(frozen=True)
class Scope:
    """The names that a query's expressions may use: alias -> its columns; `outer` the enclosing query's."""

    tables: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    outer: Scope | None = None
    provenance: RowProvenance | None = None  # the written query, whose rows the values are computed over

    def column(self, table: str, name: str) -> Value:
        """Return the value of `table.name`, in this query or in those around it; raise Opaque if there is none."""
        if table in self.tables:
            try:
                return self.tables[table][name]
            except KeyError:
                raise Opaque(f"the column `{table}.{name}`, which its table may not have") from None
        if self.outer is None or any(table in columns for columns in self.tables.values()):
            # Spark takes a struct of the inner query before a table of the outer one.
            raise Opaque(f"the name `{table}.{name}`, which may be a column's field or another table's column")
        return self.outer.column(table, name)

    def having(self, alias: str, columns: Mapping[str, Value]) -> Scope:
        """Return the scope with one more table; raise Opaque if its name is taken."""
        if alias in self.tables:
            raise Opaque(f"two tables with the alias `{alias}`")
        return replace(self, tables={**self.tables, alias: columns})
