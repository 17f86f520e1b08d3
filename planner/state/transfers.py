"""The state as one JSON document: written for a backup or a move, read back in one transaction."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mergeplan.planner.errors import LeaseHeld, Refused, RequestError
from mergeplan.planner.model.graph import reach_names
from mergeplan.planner.naming import DEFAULT
from mergeplan.planner.serial import Json
from mergeplan.planner.state import tables as t
from mergeplan.planner.state.database import list_revisions
from mergeplan.planner.state.maps import ids_in
from mergeplan.planner.state.transaction import ProjectStore, Transaction

FORMAT = 1
# No history; and what is true of rows, since whoever reads a document later cannot know what was written meanwhile.
OF_THE_MOMENT = frozenset({t.leases.name, t.operations.name, t.contents.name, t.passed_audits.name})
CARRIED = tuple(table for table in t.metadata.sorted_tables if table.name not in OF_THE_MOMENT)


class StateDocument(BaseModel):
    """The document: rows by table, without the project's name; `schema` is the database's revision."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    mergeplan_state: Literal[1]
    revision: str = Field(alias="schema")
    project: str
    exported_at: str
    environments: tuple[str, ...]
    tables: dict[str, list[dict[str, Any]]]


class Transfers(ProjectStore):
    """One project's state, out of one database and into another."""

    def export(self, environments: Collection[str] = ()) -> Json:
        """All that is remembered, or what belongs to some environments; RequestError when one does not exist."""
        with self._database.reading() as tx:
            if tx.connection.dialect.name == "postgresql":  # all of it as of one moment, as SQLite reads anyway
                tx.execute(sa.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            rows = {table.name: _read_rows(tx, table) for table in CARRIED}
            environment_names = sorted(row["name"] for row in rows["environments"])
            if missing := sorted(set(environments) - set(environment_names)):
                raise RequestError(f"There is no environment `{missing[0]}`.", hint="See `mergeplan environments`.")
            names = tuple(sorted(environments)) or tuple(environment_names)
            return {
                "mergeplan_state": FORMAT,
                "schema": list_revisions("mergeplan.planner.state")[-1],
                "project": tx.project,
                "exported_at": tx.now().isoformat(),
                "environments": list(names),
                "tables": _select_environment_rows(rows, frozenset(names)) if environments else rows,
            }

    def load(self, data: Json, *, replace: bool = False) -> tuple[str, ...]:
        """Take in a document, in one transaction; the environments that came with it.

        RequestError for a document that is none, that a newer mergeplan wrote, or that has an environment which exists
        here too; with `replace` all that this project had goes first. LeaseHeld while somebody changes anything. Of a
        table that is known here already, what is known here stays.
        """
        document = _validate_document(data)
        tables_by_name = {table.name: table for table in CARRIED}
        read = {
            name: [_parse_row(tables_by_name[name], row, n) for n, row in enumerate(rows, 1)]
            for name, rows in document.items()
            if name in tables_by_name
        }
        with self._database.writing() as tx:
            statement = tx.select(t.leases).where(t.leases.c.holder != "", t.leases.c.expires_at > tx.now())
            row = tx.execute(statement.order_by(t.leases.c.name)).first()
            if row is not None:
                message = f"`{row.name}` is being changed by {row.holder} since {row.since:%Y-%m-%d %H:%M:%S} UTC."
                raise LeaseHeld(message, hint="Wait for it to end, or cancel it.")
            if replace:
                for table in t.metadata.sorted_tables:
                    if table is not t.leases and (read.get(table.name) or table is not t.identity):
                        tx.execute(tx.delete(table))
            _check_new(tx, read.get("environments", []))
            present_tables = {row["name"] for row in _read_rows(tx, t.physical_tables)}
            for table in CARRIED:
                rows = [row for row in read.get(table.name, []) if row.get("table_name") not in present_tables]
                for start in range(0, len(rows), 200):
                    tx.put(table, rows[start : start + 200], update=False)
        return tuple(sorted(str(row["name"]) for row in read.get("environments", [])))


def _read_rows(tx: Transaction, table: sa.Table) -> list[dict[str, Any]]:
    rows = (row._mapping for row in tx.execute(tx.select(table).order_by(*table.primary_key.columns)))
    return [{key: _plain_value(value) for key, value in row.items() if key != "project"} for row in rows]


def _check_new(tx: Transaction, rows: Iterable[Mapping[str, Any]]) -> None:
    history = sa.select(t.environment_history.c.environment).where(tx.own(t.environment_history))
    present_names = {row.environment for row in tx.execute(history.distinct())}
    if common_names := sorted(present_names & {row["name"] for row in rows}):
        hint = "`--replace` replaces the state by the document."
        raise Refused(f"The state knows `{common_names[0]}` already.", hint=hint)


def _plain_value(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _select_environment_rows(
    rows: Mapping[str, list[dict[str, Any]]], names: frozenset[str]
) -> dict[str, list[dict[str, Any]]]:
    selected_rows = {**rows, t.identity.name: []}
    for name, table_rows in rows.items():
        if table_rows and "environment" in table_rows[0]:
            selected_rows[name] = [row for row in table_rows if row["environment"] in names]
    selected_rows["environments"] = [row for row in rows["environments"] if row["name"] in names]
    ids = {id for row in selected_rows["environment_history"] for id in ids_in(row["snapshots"])}
    selected_rows["snapshots"] = [row for row in rows["snapshots"] if row["id"] in ids]
    promotions = {row["id"] for row in selected_rows["promotions"]}
    selected_rows["promotion_steps"] = [row for row in rows["promotion_steps"] if row["promotion_id"] in promotions]
    tables = {row["stored"] or DEFAULT.table(row["name"], row["version"]) for row in selected_rows["snapshots"]}
    return {**selected_rows, **_select_table_rows(rows, tables)}


def _select_table_rows(
    rows: Mapping[str, list[dict[str, Any]]], table_names: Collection[str]
) -> dict[str, list[dict[str, Any]]]:
    reads = {row["name"]: row["reads"] for row in rows["physical_tables"]}
    tables = reach_names((name for name in reads if name in table_names), reads)
    selected_rows = {"physical_tables": [row for row in rows["physical_tables"] if row["name"] in tables]}
    for name, table_rows in rows.items():
        if table_rows and "table_name" in table_rows[0]:
            selected_rows[name] = [row for row in table_rows if row["table_name"] in tables]
    return selected_rows


def _validate_document(data: Json) -> dict[str, list[dict[str, Any]]]:
    """Return the document's rows by table; RequestError when it cannot be read here."""
    version = data.get("mergeplan_state") if isinstance(data, dict) else None
    if isinstance(version, int) and version > FORMAT:
        raise RequestError(f"The document is of a newer form ({version}).", hint="Install the newer mergeplan.")
    try:
        document = StateDocument.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "it"
        hint = "`mergeplan state export` writes such a document."
        raise RequestError(f"This is no state that was exported: `{where}`: {first['msg']}.", hint=hint) from None
    if document.revision not in list_revisions("mergeplan.planner.state"):
        message = f"The document is of a newer version ({document.revision}) than this mergeplan."
        raise RequestError(message, hint="Install the newer mergeplan.")
    names = {table.name for table in (*CARRIED, t.contents, t.passed_audits)}  # earlier versions wrote the last two
    if unknown := sorted(document.tables.keys() - names):
        raise RequestError(f"This is no state that was exported: nothing is called `{unknown[0]}`.")
    return document.tables


def _parse_row(table: sa.Table, row: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return a row as the database takes it; RequestError for an unknown, missing or wrongly typed column."""
    where = f"`{table.name}`, row {number}"
    if unknown := sorted(row.keys() - set(table.columns.keys())):
        raise RequestError(f"{where}: there is no column `{unknown[0]}`.")
    read: dict[str, Any] = {}
    for column in table.columns:
        if column.name == "project":
            continue
        value = row.get(column.name)
        if value is None and not column.nullable:
            raise RequestError(f"{where}: `{column.name}` is missing.")
        try:
            read[column.name] = None if value is None else _parse_value(column, value)
        except (TypeError, ValueError):
            raise RequestError(f"{where}: `{column.name}` cannot be {str(value)[:40]!r}.") from None
    return read


def _parse_value(column: sa.Column[Any], value: Any) -> Any:
    if isinstance(column.type, t.Utc):
        at = datetime.fromisoformat(value)
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    if isinstance(column.type, sa.JSON):
        return value
    python_type = column.type.python_type
    if type(value) is not python_type and not (python_type is float and type(value) is int):
        raise TypeError(column.name)
    return value
