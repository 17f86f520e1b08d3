"""Rules of the linter that are queries over the project's catalog: each row that one returns is a violation."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_type_hints

from pydantic import BaseModel

from mergeplan.planner.catalog.tables import ROWS, CatalogTables
from mergeplan.planner.checks.linter import Violation, block_place
from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.files.lint_config import OwnRule, applicable_rules
from mergeplan.planner.project.loader import Project
from mergeplan.planner.python.host import Child, ChildFailed
from mergeplan.planner.session.queries.child import SECONDS

PROGRAM = "mergeplan.planner.session.queries.child"
FILLING = 60.0  # seconds that the rows of a table may take
GRACE = 5.0  # seconds after which a query that does not stop is killed
MESSAGE_MAX = 500
COLUMNS = ("model", "column", "message")
DEFAULT_MESSAGE = "the query of the rule returns it."
SQL_TYPES = {str: "TEXT", int: "INTEGER", bool: "INTEGER"}


class Result(BaseModel):
    columns: list[str]
    rows: list[tuple[str | int | float | None, ...]]


def find_violations(tables: CatalogTables, only: Collection[str] | None = None) -> tuple[Violation, ...]:
    """Return what the project's queries find in all models or in these; raise ProjectError at a query that fails."""
    rules = [rule for rule in tables.project.rules.own if rule.is_query]
    if not rules:
        return ()
    child = Child(tables.project.root, {}, tables.project.code.isolation, PROGRAM)
    try:
        child.ask({"op": "create", "tables": {row.table: _column_types(row) for row in ROWS}}, FILLING)
        read = {table for rule in rules for table in _ask(child, rule, "tables")}
        for row in ROWS:
            if row.table in read:
                rows = [list(vars(table_row).values()) for table_row in tables.rows(row.table)]
                request = {"op": "fill", "table": row.table, "columns": len(_column_types(row)), "rows": rows}
                child.ask(request, FILLING)
        violations = {
            violation: None
            for rule in rules
            for violation in _read_result(tables.project, rule, _ask(child, rule, "rows"))
            if only is None or violation.model in only
        }
    finally:
        child.stop()
    return tuple(violations)


def _column_types(row: type) -> dict[str, str]:
    hints = get_type_hints(row)
    return {name: SQL_TYPES[kind] for name, kind in hints.items() if kind in SQL_TYPES}


def _ask(child: Child, rule: OwnRule, operation: str) -> Any:
    try:
        return child.ask({"op": operation, "query": rule.query}, SECONDS + GRACE)
    except ChildFailed as failed:
        place = Place(rule.place.path, failed.wrong.line) if failed.wrong.line else rule.place
        raise ProjectError(f"The rule `{rule.name}` fails: {failed.wrong.message}", place=place) from None


def _read_result(project: Project, rule: OwnRule, answer: Any) -> Iterator[Violation]:
    result = Result.model_validate(answer)
    names = [name.lower() for name in result.columns]
    if "model" not in names:
        raise _result_error(rule, "no column `model`")
    if unknown := [name for name in names if name not in COLUMNS]:
        raise _result_error(rule, f"a column `{unknown[0]}`")
    for row in result.rows:
        yield from _read_row(project, rule, dict(zip(names, row, strict=True)))


def _read_row(project: Project, rule: OwnRule, row: Mapping[str, str | float | None]) -> Sequence[Violation]:
    """Return the violation of a row, none if its model ignores the rule or cannot be opened."""
    name = str(row["model"] or "").lower()
    model = project.models.get(name)
    if model is None:
        if name and project.refused and (name in project.refused.names or not project.refused.clear):
            return ()
        raise _result_error(rule, f"`{row['model']}`, which is no model of the project")
    if rule.name not in applicable_rules(project.rules, model).every:
        return ()
    message = " ".join(str(row.get("message") or rule.description or DEFAULT_MESSAGE).split())[:MESSAGE_MAX]
    column = str(row.get("column") or "")
    place = model.locate(column).place if column and not model.kind.is_external else block_place(model).place
    return (Violation(rule.name, name, message, place, rule.name in project.rules.errors),)


def _result_error(rule: OwnRule, thing: str) -> ProjectError:
    hint = "A rule returns `model`, and may return `column` and `message`."
    return ProjectError(f"The rule `{rule.name}` returns {thing}.", place=rule.place, hint=hint)
