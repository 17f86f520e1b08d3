"""The statements of a config.py, from the first to the last: what each name means in the end.

Whatever might change a value in a way that is not understood is refused, wherever it stands: a call of something
unknown, an assignment into a mapping.
"""

from __future__ import annotations

import ast
import builtins
from collections import ChainMap
from collections.abc import Iterator

from mergeplan.planner.parsing.config_code.calls import CALLS, WITHOUT_RUNNING
from mergeplan.planner.parsing.config_code.expressions import (
    Bound,
    Budget,
    Imported,
    Names,
    display_name,
    full_name,
    read,
)
from mergeplan.planner.parsing.config_code.values import Entries, Items, Unreadable

Bindings = dict[str, Bound]
# calls that change no value, whatever they give
HARMLESS = frozenset(
    {f"builtins.{name}" for name in "any all enumerate isinstance len max min print range repr sorted zip".split()}
    | {f"builtins.{name}" for name in "classmethod property staticmethod".split()}
    | {"dotenv.load_dotenv", "dotenv.find_dotenv", "dataclasses.dataclass", "functools.lru_cache", "re.compile"}
)
HARMLESS_MODULES = tuple("abc. datetime. logging. os.path. pathlib. sqlmesh. sys.path. typing. warnings.".split())
PURE_METHODS = frozenset("copy get items keys values model_copy update_with".split())
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.TryStar, ast.With)
RUNS_ITSELF = {"__init_subclass__", "__class_getitem__"}  # methods that nobody has to call
# what ends the file, changes a value in place, or binds names in ways of its own
REFUSED = {
    ast.AugAssign: "A change in place",
    ast.Raise: "An end by `raise`",
    ast.Assert: "An end by `assert`",
    ast.Match: "`match`",
    ast.Global: "`global`",
    ast.Nonlocal: "`nonlocal`",
    ast.AsyncFor: "`async`",
    ast.AsyncWith: "`async`",
    ast.Await: "`await`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield`",
}


def names_of(tree: ast.Module) -> Bindings:
    """What the names of a module mean after its last statement; Unreadable where a statement is not understood."""
    bound: Bindings = {}
    names = Names(bound, Budget())
    for statement in tree.body:
        if not _is_main(statement):
            _check(names, statement)
            bound.update(_statement_bindings(names, statement))
    return bound


def _statement_bindings(names: Names, statement: ast.stmt) -> Bindings:
    """The names that a statement sets, and what they mean then."""
    if isinstance(statement, (*BRANCHES, ast.Delete)):
        return _unclear(_assignment_names(statement), statement) | _branch_imports(names, statement)
    aside = {descendant.target.id for descendant in _running(statement) if isinstance(descendant, ast.NamedExpr)}
    return _set(names, statement) | _unclear(frozenset(aside), statement)


def _set(names: Names, statement: ast.stmt) -> Bindings:
    match statement:
        case ast.Import() | ast.ImportFrom():
            return _import_bindings(statement)
        case ast.Assign(targets, value):
            binding = _read(names, value)
            return {
                name: target_binding
                for target in targets
                for name, target_binding in _target_bindings(target, binding).items()
            }
        case ast.AnnAssign(target, value=value) if value is not None:
            return _target_bindings(target, _read(names, value))
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            what = "class" if isinstance(statement, ast.ClassDef) else "function"
            why = f"`{name}`, a {what} of this file, decides the configuration, {WITHOUT_RUNNING}"
            return {name: Unreadable(statement.lineno, why)}
        case ast.AnnAssign() | ast.Expr() | ast.Pass():
            return {}
    raise Unreadable(statement.lineno, f"This statement may change the configuration, {WITHOUT_RUNNING}")


def _target_bindings(target: ast.expr, found: Bound) -> Bindings:
    """The names of a target: one takes the value, several are not told apart."""
    if isinstance(target, ast.Name):
        return {target.id: found}
    why = f"An assignment to several names decides the configuration here, {WITHOUT_RUNNING}"
    return {name: Unreadable(target.lineno, why) for name in _assignment_names(target)}


def _unclear(stored: frozenset[str], statement: ast.stmt) -> Bindings:
    kind = type(statement).__name__.lower()
    where = f"within `{kind}`" if isinstance(statement, BRANCHES) else "within another statement"
    return {name: Unreadable(statement.lineno, f"`{name}` is set {where}, {WITHOUT_RUNNING}") for name in stored}


def _read(names: Names, value: ast.expr) -> Bound:
    """What an expression is; the reason why it cannot be read is told only where it counts."""
    try:
        return read(names, value)
    except Unreadable as error:
        if full := full_name(names, value):
            return Imported(full)
        if isinstance(value, ast.Call) and (full := full_name(names, value.func)) and full.startswith("logging."):
            return Imported(f"{full}()")
        return error


def _import_bindings(statement: ast.Import | ast.ImportFrom) -> Bindings:
    """The full names that an import brings."""
    if isinstance(statement, ast.Import):
        return {
            alias.asname or alias.name.partition(".")[0]: Imported(
                alias.name if alias.asname else alias.name.partition(".")[0]
            )
            for alias in statement.names
        }
    module = "." * statement.level + (statement.module or "")
    return {alias.asname or alias.name: Imported(f"{module}.{alias.name}") for alias in statement.names}


def _branch_imports(names: Names, statement: ast.stmt) -> Bindings:
    """What a branch imports, such as a library that may be missing; a name that may mean something else is unclear."""
    imports = [node for node in _running(statement) if isinstance(node, ast.Import | ast.ImportFrom)]
    otherwise = _assignment_names(statement, imports=False) if imports else frozenset()
    bindings: Bindings = {}
    for name, imported in ((name, binding) for node in imports for name, binding in _import_bindings(node).items()):
        before = bindings.get(
            name, names.bound.get(name, Imported(f"builtins.{name}") if hasattr(builtins, name) else None)
        )
        alike = before in (None, imported) and name not in otherwise
        bindings |= {name: imported} if alike else _unclear(frozenset({name}), statement)
    return bindings


def _check(names: Names, statement: ast.stmt) -> None:
    """Unreadable for what runs within a statement and might change a value."""
    within = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else statement
    own = _assignment_names(within) if within and not isinstance(within, ast.Import | ast.ImportFrom) else frozenset()
    if own:
        hidden = _unclear(own, statement) | _branch_imports(names, statement)
        names = Names(ChainMap(hidden, names.bound), names.budget)
    for node in _running(statement):
        _check_node(names, node)


def _check_node(names: Names, node: ast.AST) -> None:
    match node:
        case ast.Call(ast.Name(name)) if isinstance(binding := names.bound.get(name), Unreadable):
            raise Unreadable(node.lineno, binding.message)
        case ast.Call() if not _is_harmless(names, node):
            what = f"A call of `{display_name(node.func)}`"
        case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
            what = f"`{display_name(node)} = ...`"
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            what = "`import *`"
        case ast.ClassDef() if node.keywords or RUNS_ITSELF & {
            getattr(statement, "name", "") for statement in node.body
        }:
            what = f"The class `{node.name}`"
        case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
            odd = next((decorator for decorator in node.decorator_list if not _decorates(names, decorator)), None)
            if odd is None:
                return
            what = f"The decorator `{display_name(odd)}`"
        case ast.stmt() | ast.expr() if type(node) in REFUSED:
            what = REFUSED[type(node)]
        case _:
            return
    raise Unreadable(node.lineno, f"{what} may change the configuration here, {WITHOUT_RUNNING}")


def _is_harmless(names: Names, call: ast.Call) -> bool:
    """True for calls that change no value and no environment variable, whatever they give."""
    if any(keyword.arg == "key" for keyword in call.keywords):
        return False  # a function that is called back
    if full := full_name(names, call.func):
        return full in HARMLESS or full in CALLS or full.startswith(HARMLESS_MODULES)
    if not isinstance(call.func, ast.Attribute):
        return False
    try:
        owner = read(names, call.func.value).content
    except Unreadable:
        return False
    return not isinstance(owner, Entries | Items) or call.func.attr in PURE_METHODS


def _decorates(names: Names, decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "getter", "deleter"):
        return True
    if isinstance(decorator, ast.Call):
        return _is_harmless(names, decorator)
    return _is_harmless(names, ast.Call(decorator, [], []))


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what runs with it: all within it but the bodies of functions."""
    waiting = [node]
    while waiting:
        descendant = waiting.pop()
        yield descendant
        if isinstance(descendant, FUNCTIONS):
            waiting += [
                *descendant.decorator_list,
                descendant.args,
                *([descendant.returns] if descendant.returns else []),
            ]
        else:
            waiting += ast.iter_child_nodes(descendant)


def _assignment_names(node: ast.AST, *, imports: bool = True) -> frozenset[str]:
    """The names that are set, or hidden by others, within a node."""
    names: set[str] = set()
    for descendant in _running(node):
        match descendant:
            case ast.Name(name, ast.Store() | ast.Del()) | ast.arg(name):
                names.add(name)
            case ast.ExceptHandler(name=str(name)):
                names.add(name)
            case ast.FunctionDef(name) | ast.ClassDef(name) | ast.AsyncFunctionDef(name):
                names.add(name)
            case ast.Import() | ast.ImportFrom() if imports:
                names |= _import_bindings(descendant).keys()
    return frozenset(names)


def _is_main(statement: ast.stmt) -> bool:
    """True for `if __name__ == "__main__":`, which nobody runs who reads the configuration."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    return ast.dump(statement.test) == ast.dump(ast.parse("__name__ == '__main__'", mode="eval").body)
