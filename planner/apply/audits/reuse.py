"""Audits of a table that was not written: one that passed passes again unless a table that it reads was written.

A pass depends on the query as it runs, with dates and physical names in it, on the contents of the tables that it
reads, and on Spark's settings. The audit runs in case of doubt: if it reads a view or another owner's table without a
version, or if chance, the clock, the order of rows or a function that is not Spark's own plays a part.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp

from mergeplan.planner.checks.audits import AuditContext, AuditResult, audit_query, is_enabled, run_audit
from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.errors import QueryError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval
from mergeplan.planner.parsing.definitions.audits.audit_calls import is_blocking
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.sql.names import table_key
from mergeplan.planner.semantics.spark.spark_functions import is_orderless, is_volatile
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.store import StateStore

NO_ROWS = Rows((), ())


@dataclass(frozen=True)
class AuditReuse:
    """The facts on which passes depend in one apply: marks of our tables, versions of others' tables, and Spark."""

    store: StateStore
    engine: Engine
    ours: Collection[str]  # physical tables
    spark: str  # a digest of its settings; '' if they may change unnoticed

    def basis(self, snapshot: Snapshot, sql: str) -> str:
        """Return a digest of all that a pass of this query depends on; '' if more than that may decide."""
        if not self.spark or snapshot.model.gateway:
            return ""
        tree = spark_tree(sql)
        if is_open_query(tree):
            return ""
        read = read_tables(tree)
        own_tables = read & set(self.ours)
        if snapshot.table not in own_tables or (marks := self.store.contents.mark_tables(own_tables)) is None:
            return ""
        versions = {name: self._table_version(name) if "." in name else "" for name in sorted(read - own_tables)}
        if not all(versions.values()):
            return ""
        parts = [part for pair in (*sorted(marks.items()), *versions.items()) for part in pair]
        return digest("audit", self.spark, sql, *parts)[:32]

    def _table_version(self, name: str) -> str:
        try:
            return self.engine.tables.version(name)
        except QueryError:
            return ""


def run_kept_audits(
    snapshot: Snapshot, interval: Interval | None, options: AuditContext, reuse: AuditReuse
) -> Iterator[AuditResult]:
    """Yield the audit results of a table that was not written; audits that passed and still hold are not run."""
    model, store = snapshot.model, reuse.store
    for call in model.checks.audits:
        if not is_enabled(call, options.audits):
            continue
        sql = audit_query(model, call, snapshot.table, interval, options)
        basis, query_digest = reuse.basis(snapshot, sql), digest(sql)
        if basis and store.contents.load_pass(snapshot.table, query_digest) == basis:
            blocking = is_blocking(call, options.audits)
            yield AuditResult(
                call.name, model.name, blocking, 0, NO_ROWS, sql, model.place,
                table=snapshot.table, arguments=call.arguments, unchanged=True,
            )  # fmt: skip
            continue
        result = run_audit(reuse.engine, model, call, snapshot.table, interval, options)
        # the audit may have missed what was written meanwhile
        if result.ok and basis and reuse.basis(snapshot, sql) == basis:
            store.contents.record_pass(snapshot.table, query_digest, basis)
        yield result


def is_open_query(tree: exp.Expr) -> bool:
    """Return True for a query that may return other rows the next time over the same rows, or that is not known."""
    return any(map(_is_open, tree.walk()))


def _is_open(node: exp.Expr) -> bool:
    if isinstance(node, (exp.Limit, exp.Offset, exp.Fetch, exp.TableSample)) or is_volatile(node):
        return True
    return isinstance(node, exp.AggFunc) and not is_orderless(node)  # sums of floats depend on the order, by rounding


def read_tables(tree: exp.Expr) -> frozenset[str]:
    """Return the tables that a query names, without its own CTEs; a name without a schema is returned as it is."""
    cte_names = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    names = ((table_key(table) or table.name).lower() for table in tree.find_all(exp.Table))
    return frozenset(name for name in names if name not in cte_names)
