"""The writes of a custom materialization's `insert`, read statement by statement; none of it is run.

It is read twice, with `is_first_insert` true and false. Each time it must come to exactly one write that a kind of
mergeplan does too. Anything else that may have an effect is not understood.
"""

import ast
import builtins
import operator
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from mergeplan.planner.model.kind import Kind
from mergeplan.planner.parsing.definitions.materializations.calls import WRITES, Write, write_of
from mergeplan.planner.parsing.definitions.materializations.names import Names, import_path, is_harmless
from mergeplan.planner.parsing.definitions.materializations.values import (
    NotUnderstood,
    RunValue,
    Scope,
    Value,
    code_excerpt,
    is_truthy,
    value_of,
)

BUILTINS = frozenset(dir(builtins))
OVERRIDES = ("typing.override", "typing_extensions.override")
LOGS = ("debug", "info", "warning", "warn", "error", "exception", "critical", "log")
# What SQLMesh passes to `insert`, by name.
PASSED = frozenset(
    """table_name query_or_df model is_first_insert render_kwargs snapshot snapshots deployability_index batch_index
    start end execution_time physical_properties is_snapshot_deployable""".split()
)


def infer_write(insert: ast.FunctionDef, scope: Scope) -> Write:
    """Return the batches' write (the first may replace its empty table); raise NotUnderstood if no kind does so."""
    _check_signature(insert, scope.names)
    try:
        first, later = (_Reading(scope, insert, is_first).write() for is_first in (True, False))
    except RecursionError:
        raise NotUnderstood(insert, "`insert` is too deeply nested") from None
    replaces = first == Write(Kind.FULL) and later.kind is not Kind.INCREMENTAL_BY_TIME_RANGE
    if first != later and not replaces:
        raise NotUnderstood(insert, f"the first batch is written as {first.kind}, and the others as {later.kind}")
    return later


def _check_signature(insert: ast.FunctionDef, names: Names) -> None:
    named = _parameter_names(insert)
    decorators = [decorator for decorator in insert.decorator_list if import_path(decorator, names) not in OVERRIDES]
    if decorators or named[:1] != ["self"]:
        raise NotUnderstood(insert, "`insert` is no plain method")
    for name in named[1:]:
        if name not in PASSED:
            raise NotUnderstood(insert, f"SQLMesh passes no `{name}` to `insert`")


def _parameter_names(insert: ast.FunctionDef) -> list[str]:
    return [parameter.arg for parameter in (*insert.args.posonlyargs, *insert.args.args, *insert.args.kwonlyargs)]


@dataclass
class _Reading:
    """One reading of a function's body: the local names, and the writes so far."""

    scope: Scope
    insert: ast.FunctionDef
    is_first: bool
    local: dict[str, Value] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()  # names of parameters
    writes: list[Write] = field(default_factory=list)

    def write(self) -> Write:
        self.local = {name: RunValue(name) for name in _parameter_names(self.insert)} | {
            "is_first_insert": self.is_first
        }
        if self.insert.args.kwarg:
            self.local[self.insert.args.kwarg.arg] = RunValue("kwargs")
        self.taken = frozenset(self.local)
        self._read_body(self.insert.body)
        if not self.writes:
            batch_text = "first batch" if self.is_first else "batches after the first one"
            raise NotUnderstood(self.insert, f"`insert` writes nothing of the {batch_text}")
        return self.writes[0]

    def _read_body(self, body: Sequence[ast.stmt]) -> bool:
        """Read these statements; return True if they return."""
        for statement in body:
            match statement:
                case ast.Return(value=None | ast.Constant(value=None)):
                    return True
                case ast.Return(value=ast.Call() as call):
                    self._read_call(call)
                    return True
                case ast.If():
                    if self._read_body(self._select_branch(statement)):
                        return True
                case ast.Expr(value=ast.Call() as call):
                    self._read_call(call)
                case _:
                    self._read_statement(statement)
        return False

    def _read_statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return
            case ast.Assert(test=test):
                if self._select_branch(ast.If(test, [], [ast.Raise()])):
                    raise NotUnderstood(test, f"the assertion {code_excerpt(test)} fails")
            case ast.Assign(targets=[target], value=value):
                self._bind_names(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind_names(target, value)
            case _:
                raise NotUnderstood(statement, f"{code_excerpt(statement)} is no statement that mergeplan reads")

    def _current_scope(self) -> Scope:
        return self.scope.having(self.local)

    def _bind_names(self, target: ast.expr, value: ast.expr) -> None:
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        names = [element.id for element in targets if isinstance(element, ast.Name)]
        if len(names) < len(targets) or not BUILTINS.union(self.taken, self.scope.names.bound).isdisjoint(names):
            raise NotUnderstood(target, f"{code_excerpt(target)} is assigned, which mergeplan does not follow")
        try:
            result = value_of(value, self._current_scope())
        except NotUnderstood:
            if not is_harmless(value, self.scope.names):
                raise
            self.local |= dict.fromkeys(names, RunValue(code_excerpt(value)))
            return
        if not isinstance(target, ast.Tuple):
            self.local[names[0]] = result
        elif isinstance(result, tuple) and len(result) == len(names):
            self.local |= zip(names, result, strict=True)
        else:
            raise NotUnderstood(value, f"{code_excerpt(value)} is no value that mergeplan reads")

    def _select_branch(self, statement: ast.If) -> Sequence[ast.stmt]:
        try:
            holds = is_truthy(statement.test, value_of(statement.test, self._current_scope()))
        except NotUnderstood:
            branches = statement.body, statement.orelse
            quiet = [all(map(self._is_quiet, branch)) for branch in branches]
            guards = [len(branch) == 1 and isinstance(branch[0], ast.Raise) for branch in branches]
            if is_harmless(statement.test, self.scope.names) and any(quiet) and all(map(operator.or_, quiet, guards)):
                return ()
            raise
        return statement.body if holds else statement.orelse

    def _is_quiet(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return True
            case ast.Expr(value=ast.Call() as call):
                return self._only_says(call)
        return False

    def _only_says(self, call: ast.Call) -> bool:
        names = self.scope.names
        match call.func:
            case ast.Name(id="print"):
                says = "print" not in names.bound
            case ast.Attribute(value=ast.Name(id=name), attr=level):
                says = level in LOGS and name in names.loggers and name not in self.local
            case _:
                return False
        arguments: Iterable[ast.expr] = (*call.args, *(keyword.value for keyword in call.keywords))
        return says and all(is_harmless(argument, names) for argument in arguments)

    def _read_call(self, call: ast.Call) -> None:
        if self._only_says(call):
            return
        path = ""
        with suppress(NotUnderstood):
            called = value_of(call.func, self._current_scope())
            path = called.path if isinstance(called, RunValue) else ""
        if path not in WRITES:
            raise NotUnderstood(call, f"{code_excerpt(call)} is none of the writes that mergeplan knows")
        if self.writes:
            raise NotUnderstood(call, f"{code_excerpt(call.func)} is a second write")
        self.writes.append(write_of(path, call, self._current_scope()))
