"""Audits that passed on a table: an audit does not run again on unchanged rows."""

from mergeplan.planner.state import tables as t
from mergeplan.planner.state.transaction import ProjectStore, Transaction


class PassedAudits(ProjectStore):
    """The audits that passed on one project's tables, each by a hash of what it asks."""

    def record(self, table: str, audit: str) -> None:
        with self._database.writing() as tx:
            tx.put(t.passed_audits, [{"table_name": table, "audit": audit}])

    def forget(self, table: str, audit: str) -> None:
        columns = t.passed_audits.c
        with self._database.writing() as tx:
            tx.execute(tx.delete(t.passed_audits).where(columns.table_name == table, columns.audit == audit))

    def names_for(self, table: str) -> frozenset[str]:
        with self._database.reading() as tx:
            rows = tx.execute(tx.select(t.passed_audits).where(t.passed_audits.c.table_name == table))
            return frozenset(row.audit for row in rows)


def drop_passed_audits(tx: Transaction, table: str) -> None:
    tx.execute(tx.delete(t.passed_audits).where(t.passed_audits.c.table_name == table))
