"""Audits of a table that was left as it is: one that passed passes again while nothing that it reads was written.

What a pass rests on is its query as it runs, with dates and physical names in it, what the tables hold that it reads,
and the Spark. In doubt the audit runs: where it reads a view, a table of others that has no version, where chance, the
clock, the order of rows or a function that is not Spark's own has a part in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp

from mergeplan.planner.checks.audits import AuditContext, AuditResult, audit_query, is_blocking, is_enabled, run_audit
from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.errors import QueryError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.intervals import Interval
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.sql.names import table_key
from mergeplan.planner.semantics.spark.spark_functions import is_orderless, is_volatile
from mergeplan.planner.snapshot.snapshot import Snapshot
from mergeplan.planner.state.store import StateStore

NO_ROWS = Rows((), ())


@dataclass(frozen=True)
class AuditReuse:
    """What passes rest on in one apply: the marks of our tables, the versions of others', and the Spark."""

    store: StateStore
    engine: Engine
    ours: Collection[str]  # physical tables
    spark: str  # a digest of its settings; '' where they may change without our knowing

    def basis(self, snapshot: Snapshot, sql: str) -> str:
        """A digest of what a pass of this query rests on; '' where more than that may decide."""
        if not self.spark or snapshot.model.gateway:
            return ""
        tree = spark_tree(sql)
        if is_open_query(tree):
            return ""
        read = read_tables(tree)
        mine = read & set(self.ours)
        if snapshot.table not in mine or (marks := self.store.contents.mark_tables(mine)) is None:
            return ""
        versions = {name: self._version(name) if "." in name else "" for name in sorted(read - mine)}
        if not all(versions.values()):
            return ""
        parts = [part for pair in (*sorted(marks.items()), *versions.items()) for part in pair]
        return digest("audit", self.spark, sql, *parts)[:32]

    def _version(self, name: str) -> str:
        try:
            return self.engine.tables.version(name)
        except QueryError:
            return ""


def run_kept_audits(
    snapshot: Snapshot, interval: Interval | None, options: AuditContext, reuse: AuditReuse
) -> Iterator[AuditResult]:
    """The audits of a table that was not written, one by one: those that passed and still hold are not run."""
    model, store = snapshot.model, reuse.store
    for call in model.audits:
        if not is_enabled(call, options.audits):
            continue
        sql = audit_query(model, call, snapshot.table, interval, options)
        basis, asked = reuse.basis(snapshot, sql), digest(sql)
        if basis and store.contents.load_pass(snapshot.table, asked) == basis:
            blocking = is_blocking(call, options.audits)
            yield AuditResult(
                call.name, model.name, blocking, 0, NO_ROWS, sql, model.place,
                table=snapshot.table, arguments=call.arguments, unchanged=True,
            )  # fmt: skip
            continue
        result = run_audit(reuse.engine, model, call, snapshot.table, interval, options)
        # what was written meanwhile may have been seen or not
        if result.ok and basis and reuse.basis(snapshot, sql) == basis:
            store.contents.record_pass(snapshot.table, asked, basis)
        yield result


def is_open_query(tree: exp.Expr) -> bool:
    """True for a query that may return other rows the next time, over the same rows; and for one that is not known."""
    return any(map(_is_open, tree.walk()))


def _is_open(node: exp.Expr) -> bool:
    if isinstance(node, (exp.Limit, exp.Offset, exp.Fetch, exp.TableSample)) or is_volatile(node):
        return True
    return isinstance(node, exp.AggFunc) and not is_orderless(node)  # sums of floats depend on the order, by rounding


def read_tables(tree: exp.Expr) -> frozenset[str]:
    """The tables that a query names, without its own CTEs; of a name without a schema, which is no table, the name."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    names = ((table_key(table) or table.name).lower() for table in tree.find_all(exp.Table))
    return frozenset(name for name in names if name not in own)
