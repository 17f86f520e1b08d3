"""What the `insert` of a custom materialization writes, read statement by statement; nothing of it is run.

It is read twice, with `is_first_insert` true and false. Each time it must come to exactly one write that a kind of
mergeplan does too; whatever else may change something is not understood.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from planner.model.kind import Kind
from planner.parsing.definitions.materializations.names import harmless
from planner.parsing.definitions.materializations.values import (
    SOURCE,
    TARGET,
    Column,
    Given,
    NotUnderstood,
    Scope,
    Unclear,
    Value,
    fields,
    shown,
    truth,
    value_of,
)

LOGS = ("debug", "info", "warning", "warn", "error", "exception", "critical", "log")
# What SQLMesh passes to `insert`, by name.
PASSED = frozenset(
    """table_name query_or_df model is_first_insert render_kwargs snapshot snapshots deployability_index batch_index
    start end execution_time physical_properties is_snapshot_deployable""".split()
)
_COLUMNS = ("columns_to_types", "source_columns")
_METHODS: dict[str, tuple[Kind, tuple[str, ...]]] = {  # with the names of arguments by position
    "self.adapter.replace_query": (Kind.FULL, ("table_name", "query_or_df", "columns_to_types")),
    "self._replace_query_for_model": (Kind.FULL, ("model", "table_name", "query_or_df", "render_kwargs")),
    "self.adapter.insert_append": (Kind.INCREMENTAL_UNMANAGED, ("table_name", "query_or_df", "columns_to_types")),
    "self.adapter.insert_overwrite_by_partition": (
        Kind.INCREMENTAL_BY_PARTITION, ("table_name", "query_or_df", "partitioned_by", "columns_to_types"),
    ),
    "self.adapter.insert_overwrite_by_time_partition": (
        Kind.INCREMENTAL_BY_TIME_RANGE,
        ("table_name", "query_or_df", "start", "end", "time_formatter", "time_column", "columns_to_types"),
    ),
    "self.adapter.merge": (
        Kind.INCREMENTAL_BY_UNIQUE_KEY,
        ("table_name", "query_or_df", "columns_to_types", "unique_key", "when_matched", "merge_filter"),
    ),
}  # fmt: skip
_SAME = {
    "target_columns_to_types": "columns_to_types", "target_table": "table_name", "source_table": "query_or_df",
    "name": "table_name",
}  # fmt: skip
_MODELS = """table_format storage_format partitioned_by partition_interval_unit clustered_by column_descriptions
    columns_to_types""".split()
# The values with which an argument says nothing more than the model does.
_USUAL: dict[str, tuple[Value, ...]] = {
    **{name: (Given(name),) for name in ("table_name", "query_or_df", "model", "render_kwargs", "start", "end")},
    **{name: (Given(f"model.{name}"), None) for name in _MODELS},
    "columns_to_types": (
        Given(TARGET),
        Given("model.columns_to_types"),
        Given("model.columns_to_types_or_raise"),
        None,
    ),
    "source_columns": (Given(SOURCE), None),
    "time_formatter": (Given("model.convert_to_time_column"),),
    "table_description": (Given("model.description"), None),
    "table_properties": (Given("model.physical_properties"), Given("physical_properties"), None),
    "physical_properties": (Given("model.physical_properties"), Given("physical_properties"), None),
    "when_matched": (Given("model.when_matched"), None),  # which only a kind of SQLMesh's own has
    "merge_filter": (Given("model.merge_filter"), None),
    "track_rows_processed": (True, False),
    "skip_grants": (True, False),
}
_OPTIONAL: dict[Kind, tuple[str, ...]] = {
    Kind.FULL: (*_MODELS, "source_columns", "table_description", "table_properties", "physical_properties",
                "skip_grants"),
    Kind.INCREMENTAL_UNMANAGED: (*_COLUMNS, "track_rows_processed"),
    Kind.INCREMENTAL_BY_PARTITION: _COLUMNS,
    Kind.INCREMENTAL_BY_TIME_RANGE: _COLUMNS,
    Kind.INCREMENTAL_BY_UNIQUE_KEY: (*_COLUMNS, "when_matched", "merge_filter", "physical_properties"),
}  # fmt: skip
_REST = ("self._replace_query_for_model", "self.adapter.insert_overwrite_by_time_partition")  # may take **kwargs


@dataclass(frozen=True)
class Write:
    """One write, as the kind that does the same, with the columns that it needs: a unique key, a time column."""

    kind: Kind
    columns: tuple[str, ...] = ()


def written(insert: ast.FunctionDef, scope: Scope) -> Write:
    """What every batch writes; NotUnderstood when no kind does the same.

    The first batch finds an empty table, and so it may replace it instead.
    """
    _check_signature(insert)
    try:
        first, later = (_Reading(scope, insert, is_first).write() for is_first in (True, False))
    except RecursionError:
        raise NotUnderstood(insert, "`insert` is too deeply nested") from None
    replaces = first == Write(Kind.FULL) and later.kind is not Kind.INCREMENTAL_BY_TIME_RANGE
    if first != later and not replaces:
        raise NotUnderstood(insert, f"the first batch is written as {first.kind}, and the others as {later.kind}")
    return later


def _check_signature(insert: ast.FunctionDef) -> None:
    """NotUnderstood for a function that SQLMesh cannot call, or that is not itself what is called."""
    named = _parameters(insert)
    if insert.decorator_list or named[:1] != ["self"]:
        raise NotUnderstood(insert, "`insert` is no plain method")
    for name in named[1:]:
        if name not in PASSED:
            raise NotUnderstood(insert, f"SQLMesh passes no `{name}` to `insert`")


def _parameters(insert: ast.FunctionDef) -> list[str]:
    return [each.arg for each in (*insert.args.posonlyargs, *insert.args.args, *insert.args.kwonlyargs)]


@dataclass
class _Reading:
    """One reading of a function's body: the local names, and the writes so far with their places."""

    scope: Scope
    insert: ast.FunctionDef
    is_first: bool
    local: dict[str, Value] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()  # names of parameters
    writes: list[Write] = field(default_factory=list)

    def write(self) -> Write:
        """The one write of the body."""
        self.local = {name: Given(name) for name in _parameters(self.insert)} | {"is_first_insert": self.is_first}
        if self.insert.args.kwarg:
            self.local[self.insert.args.kwarg.arg] = Given("kwargs")
        self.taken = frozenset(self.local)
        self._run(self.insert.body)
        if not self.writes:
            which = "first batch" if self.is_first else "batches after the first one"
            raise NotUnderstood(self.insert, f"`insert` writes nothing of the {which}")
        return self.writes[0]

    def _run(self, body: Sequence[ast.stmt]) -> bool:
        """Read these statements; True when they return."""
        for each in body:
            match each:
                case ast.Return(value=None | ast.Constant(value=None)):
                    return True
                case ast.Return(value=ast.Call() as call):
                    self._call(call)
                    return True
                case ast.If():
                    if self._run(self._branch(each)):
                        return True
                case ast.Expr(value=ast.Call() as call):
                    self._call(call)
                case _:
                    self._state(each)
        return False

    def _state(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return
            case ast.Assert(test=test):
                self._hold(test)
            case ast.Assign(targets=[target], value=value):
                self._bind(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind(target, value)
            case _:
                raise NotUnderstood(statement, f"{shown(statement)} is no statement that mergeplan reads")

    def _here(self) -> Scope:
        return self.scope.having(self.local)

    def _hold(self, test: ast.expr) -> None:
        """An assertion: one that is known to fail writes nothing."""
        try:
            holds = truth(test, value_of(test, self._here()))
        except NotUnderstood:
            if not harmless(test, self.scope.names):
                raise
            return
        if not holds:
            raise NotUnderstood(test, f"the assertion {shown(test)} fails")

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [each.id for each in targets if isinstance(each, ast.Name)]
        if len(names) < len(targets) or not self.taken.isdisjoint(names):
            raise NotUnderstood(target, f"{shown(target)} is assigned, which mergeplan does not follow")
        try:
            found = value_of(value, self._here())
        except NotUnderstood as why:
            if not harmless(value, self.scope.names):
                raise
            self.local |= dict.fromkeys(names, Unclear(why.why))
            return
        if not isinstance(target, ast.Tuple):
            self.local[names[0]] = found
        elif isinstance(found, tuple) and len(found) == len(names):
            self.local |= zip(names, found, strict=True)
        else:
            raise NotUnderstood(value, f"{shown(value)} is no value that mergeplan reads")

    def _branch(self, statement: ast.If) -> Sequence[ast.stmt]:
        """The statements that run of an `if`."""
        try:
            holds = truth(statement.test, value_of(statement.test, self._here()))
        except NotUnderstood:
            quiet = all(map(self._is_quiet, (*statement.body, *statement.orelse)))
            guards = not statement.orelse and len(statement.body) == 1 and isinstance(statement.body[0], ast.Raise)
            if harmless(statement.test, self.scope.names) and (quiet or guards):
                return ()
            raise
        return statement.body if holds else statement.orelse

    def _is_quiet(self, statement: ast.stmt) -> bool:
        """True for what only says something."""
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return True
            case ast.Expr(value=ast.Call() as call):
                return self._only_says(call)
        return False

    def _only_says(self, call: ast.Call) -> bool:
        """True for `print(...)`, and for a call of a logger of the file."""
        names = self.scope.names
        match call.func:
            case ast.Name(id="print"):
                says = "print" not in names.bound
            case ast.Attribute(value=ast.Name(id=name), attr=level):
                says = level in LOGS and name in names.loggers and name not in self.local
            case _:
                return False
        given: Iterable[ast.expr] = (*call.args, *(each.value for each in call.keywords))
        return says and all(harmless(each, names) for each in given)

    def _call(self, call: ast.Call) -> None:
        if self._only_says(call):
            return
        path = ""
        with suppress(NotUnderstood):
            called = value_of(call.func, self._here())
            path = called.path if isinstance(called, Given) else ""
        if path not in _METHODS:
            raise NotUnderstood(call, f"{shown(call)} is none of the writes that mergeplan knows")
        if self.writes:
            raise NotUnderstood(call, f"{shown(call.func)} is a second write")
        self.writes.append(_write(path, call, self._here()))


def _write(path: str, call: ast.Call, scope: Scope) -> Write:
    """The write of a call; NotUnderstood for an argument that says something else than the model does."""
    kind, positions = _METHODS[path]
    rest = [each.value for each in call.keywords if each.arg is None]
    if rest and (path not in _REST or value_of(rest[0], scope) != Given("kwargs") or len(rest) > 1):
        raise _not_read(call, "**", rest[0])
    given = _arguments(path, call)
    found = {name: value_of(each, scope) for name, each in given.items()}
    columns: tuple[str, ...] = ()
    if kind is Kind.INCREMENTAL_BY_UNIQUE_KEY and "unique_key" in found:
        if found.pop("unique_key") == Given("model.unique_key"):
            raise NotUnderstood(call, "`model.unique_key` is empty for a model of kind CUSTOM")
        columns = fields(given["unique_key"], value_of(given["unique_key"], scope))
    if kind is Kind.INCREMENTAL_BY_TIME_RANGE and "time_column" in found:
        columns = _time_column(given["time_column"], found.pop("time_column"))
    needed = {*positions} - {*_OPTIONAL[kind], "unique_key", "time_column", "render_kwargs"}
    missing = sorted(needed - found.keys() - ({"start", "end"} if rest else set()))
    if kind in (Kind.INCREMENTAL_BY_UNIQUE_KEY, Kind.INCREMENTAL_BY_TIME_RANGE) and not columns:
        missing.append("unique_key" if kind is Kind.INCREMENTAL_BY_UNIQUE_KEY else "time_column")
    if missing:
        raise NotUnderstood(call, f"{shown(call.func)} is called without `{missing[0]}`")
    for name, value in found.items():
        if not any(type(value) is type(usual) and value == usual for usual in _USUAL[name]):
            raise _not_read(call, name, given[name])
    return Write(kind, columns)


def _arguments(path: str, call: ast.Call) -> Mapping[str, ast.expr]:
    """The arguments by name, one name for all versions of SQLMesh."""
    kind, positions = _METHODS[path]
    found: dict[str, ast.expr] = {}
    pairs = [
        *((positions[index] if index < len(positions) else "", each) for index, each in enumerate(call.args)),
        *((_SAME.get(each.arg, each.arg), each.value) for each in call.keywords if each.arg),
    ]
    for name, value in pairs:
        known = name in positions or name in _OPTIONAL[kind]
        if not known or name in found or isinstance(value, ast.Starred):
            raise _not_read(call, name, value)
        found[name] = value
    return found


def _not_read(call: ast.Call, name: str, value: ast.expr) -> NotUnderstood:
    text = f"`{name}={shown(value)[1:]}" if name else shown(value)
    return NotUnderstood(value, f"{text} of {shown(call.func)} is no argument that mergeplan reads")


def _time_column(node: ast.expr, value: Value) -> tuple[str, ...]:
    if value == Given("model.time_column"):
        raise NotUnderstood(node, "`model.time_column` is empty for a model of kind CUSTOM")
    if not isinstance(value, str | Column):
        raise NotUnderstood(node, f"{shown(node)} is not a column")
    return fields(node, Column(value) if isinstance(value, str) else value)
