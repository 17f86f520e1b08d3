"""Questions of templates to the warehouse during compilation: the planner answers, this process reaches no warehouse.

A node with a new question is not compiled further. The planner gets its question and has it compiled again.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError
from mergeplan.planner.python.dbt_code.hooks import UnknownRows, is_query
from mergeplan.planner.python.dbt_code.moments import MARKED

OWN = "its own table while it is compiled, which is another one after each run. `is_incremental()` may be asked"
CLOSED = "It asks the warehouse while it is compiled by `adapter`, for more than columns, tables and queries"
TABLE = "table:"  # before the name of one that the project does not list: `project/dbt/answers.py` knows it
OLDEST = (10, 4)  # version of Databricks that is supported
READERS: Mapping[str, Callable[[str], Any]] = {
    "decimal": Decimal,
    "date": date.fromisoformat,
    "time": datetime.fromisoformat,
}


class Questions:
    def __init__(self, adapter: Any, tables: Mapping[str, str]) -> None:
        """Take `tables`, the nodes and sources by the name of their table."""
        self._adapter = adapter
        self._tables = tables
        self.answers: Mapping[str, Any] = {}
        self._node = ""  # the id of the one that is compiled
        self._is_later: bool | None = False  # its table exists; None if no run is a later one
        self.asked: list[dict[str, str]] = []
        self._sent: list[str] | None = None  # statements of a hook
        self._own_columns: list[tuple[str, str]] = []

    @contextmanager
    def answering(self, node: Any, *, is_later: bool | None) -> Iterator[None]:
        """Answer, within the context, the templates' questions to the warehouse as far as answers are known."""
        self._node, self._is_later = node.unique_id, is_later
        answers = {
            "execute": self.execute, "get_relation": self.get_relation,
            "get_columns_in_relation": self.get_columns_in_relation,
        }  # fmt: skip
        connections = self._adapter.connections
        answers |= {name: answer for name, answer in RUNTIME.items() if hasattr(self._adapter, name)}
        replaced = [(self._adapter, name, answer) for name, answer in answers.items()]
        replaced += [
            (connections, name, _refuse_connection) for name in ("get_thread_connection", "set_connection_name")
        ]
        try:
            for owner, name, answer in replaced:
                setattr(owner, name, answer)
            yield
        finally:
            for owner, name, _ in replaced:
                vars(owner).pop(name, None)

    @contextmanager
    def recording(self, node: Any, columns: list[tuple[str, str]]) -> Iterator[list[str]]:
        """Render, within the context, a hook that runs after its table was made, and record its statements.

        `columns` are those of its table, if they are known.
        """
        self._sent, self._own_columns = [], columns
        try:
            with self.answering(node, is_later=True):
                yield self._sent
        finally:
            self._sent, self._own_columns = None, []

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[Any, Any]:
        """Return the rows of a query, as dbt's `statement` gets them."""
        if self._sent is not None and not is_query(sql):
            self._sent.append(sql.strip())
            return _adapter_response(0), UnknownRows()
        if MARKED.search(sql):
            raise CompileError("Its text is another one each time: it asks the warehouse by the time of the run")
        answer = self._ask_question("query", sql.strip())
        rows = [[_decode_cell(cell) for cell in row] for row in answer["rows"]][:limit]
        table = agate_helper().table_from_data_flat(
            [dict(zip(answer["names"], row)) for row in rows], answer["names"]  # noqa: B905  # Python 3.9 has no strict
        )  # fmt: skip
        return _adapter_response(len(rows)), table

    def get_columns_in_relation(self, relation: Any) -> list[Any]:
        name = _table_name(relation)
        if name not in self._tables:
            message = f"It asks for `{name}` while it is compiled, which is no model, seed, snapshot or source"
            raise CompileError(f"{message} of the project")
        subject, column = self._tables[name], self._adapter.Column
        if subject == self._node and self._own_columns:
            return [column(name, kind) for name, kind in self._own_columns]
        if subject == self._node:
            raise CompileError(f"It asks for the columns of {OWN}")
        untyped = type("Untyped", (column,), {"dtype": property(_refuse_type, lambda *_: None)})
        return [
            column(name, kind) if kind else untyped(name, "")
            for name, kind in self._ask_question("columns", subject)["columns"]
        ]

    def get_relation(self, database: str | None, schema: str, identifier: str) -> Any:
        """Return the relation of that name if there is one; what the project builds exists before its readers."""
        relation = self._adapter.Relation
        database = database if relation.get_default_include_policy().database else None
        named = relation.create(database=database, schema=schema, identifier=identifier, type="table")
        subject = self._tables.get(_table_name(named), f"{TABLE}{_table_name(named)}")
        if subject == self._node and self._is_later is None:
            raise CompileError(f"It asks for {OWN}")
        if subject == self._node and not self._is_later:
            return None
        is_built = not subject.startswith(("source.", TABLE))
        return named if is_built or self._ask_question("exists", subject)["exists"] else None

    def has_new_answer(self, asked: list[dict[str, str]], before: Mapping[str, Any]) -> bool:
        keys = map(_question_key, asked)
        return any(key in self.answers and key not in before for key in keys)

    def _ask_question(self, kind: str, subject: str) -> Mapping[str, Any]:
        question = {"kind": kind, "subject": subject, "by": self._node if kind == "query" else ""}
        if question not in self.asked:
            self.asked.append(question)
        answer = self.answers.get(_question_key(question))
        if answer is None:
            raise CompileError("It asks the warehouse while it is compiled")
        if "error" in answer:
            raise CompileError(answer["error"])
        return dict(answer)


def _table_name(relation: Any) -> str:
    return str(relation).replace("`", "").lower()


def _question_key(question: Mapping[str, str]) -> str:
    return json.dumps([*question.values()])


def agate_helper() -> Any:
    """Return dbt's helper that makes tables of rows: its module moved in 1.8."""
    try:
        from dbt_common.clients import agate_helper as helper
    except ImportError:
        from dbt.clients import agate_helper as helper
    return helper


def _adapter_response(rows: int) -> Any:
    try:
        from dbt.adapters.contracts.connection import AdapterResponse
    except ImportError:
        from dbt.contracts.connection import AdapterResponse
    return AdapterResponse(_message="OK", rows_affected=rows)


def _decode_cell(cell: Any) -> Any:
    """Return a value of a row; a kind that JSON lacks is encoded as an object of its kind and its text."""
    if not isinstance(cell, dict):
        return cell
    ((kind, text),) = cell.items()
    return READERS[kind](text)


def _has_capability(name: str) -> bool:
    """Return True for a capability of every supported version of Databricks; raise CompileError for others."""
    if name.lower() != "timestampdiff":
        raise CompileError(f"It asks whether Databricks has `{name}`, which mergeplan does not know")
    return True


def _compare_version(major: int, minor: int) -> int:
    """Return 1, for newer, if every supported Databricks is; raise CompileError for a newer version."""
    if (major, minor) > OLDEST:
        raise CompileError(f"It asks whether Databricks is newer than {major}.{minor}, which mergeplan does not know")
    return 1


RUNTIME = {"has_dbr_capability": _has_capability, "compare_dbr_version": _compare_version}


def _refuse_connection(*args: Any, **named: Any) -> Any:
    raise CompileError(CLOSED)


def _refuse_type(column: Any) -> Any:
    raise CompileError(f"It asks for the type of the column `{column.column}`, which is not known before it is built")
