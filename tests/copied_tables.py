"""The tables of a new state database, copied from the first that migrations made in this process: a tenth of the time.

`tests/planner/state/test_database.py` runs the migrations each time, and what is not empty is always migrated.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

Migrate = Callable[[sa.Connection, str], None]


class CopiedTables:
    """Stands for `migrate` where a file of SQLite is empty; all other databases are migrated."""

    def __init__(self, migrate: Migrate) -> None:
        self.migrate = migrate
        self._statements: dict[str, tuple[str, ...]] = {}  # by package

    def __call__(self, connection: sa.Connection, package: str) -> None:
        is_new = connection.dialect.name == "sqlite" and not sa.inspect(connection).get_table_names()
        for statement in self._statements.get(package, ()) if is_new else ():
            connection.exec_driver_sql(statement)
        if not is_new or package not in self._statements:
            self.migrate(connection, package)
        if is_new and package not in self._statements:
            self._statements[package] = _dump(connection)


def _dump(connection: sa.Connection) -> tuple[str, ...]:
    driver = connection.connection.dbapi_connection
    assert driver is not None
    return tuple(line for line in driver.iterdump() if line not in ("BEGIN TRANSACTION;", "COMMIT;"))
