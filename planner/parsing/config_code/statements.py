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
from mergeplan.planner.parsing.config_code.expressions import Bound, Budget, Imported, Names, full_name, read, shown
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
            bound.update(_executed_to(names, statement))
    return bound


def _executed_to(names: Names, statement: ast.stmt) -> Bindings:
    """The names that a statement sets, and what they mean then."""
    if isinstance(statement, (*BRANCHES, ast.Delete)):
        return _unclear(_stored(statement), statement) | _imported_within(names, statement)
    aside = {each.target.id for each in _running(statement) if isinstance(each, ast.NamedExpr)}
    return _set(names, statement) | _unclear(frozenset(aside), statement)


def _set(names: Names, statement: ast.stmt) -> Bindings:
    match statement:
        case ast.Import() | ast.ImportFrom():
            return _imported(statement)
        case ast.Assign(targets, value):
            found = _read(names, value)
            return {name: each for target in targets for name, each in _bound(target, found).items()}
        case ast.AnnAssign(target, value=value) if value is not None:
            return _bound(target, _read(names, value))
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            what = "class" if isinstance(statement, ast.ClassDef) else "function"
            why = f"`{name}`, a {what} of this file, decides the configuration, {WITHOUT_RUNNING}"
            return {name: Unreadable(statement.lineno, why)}
        case ast.AnnAssign() | ast.Expr() | ast.Pass():
            return {}
    raise Unreadable(statement.lineno, f"This statement may change the configuration, {WITHOUT_RUNNING}")


def _bound(target: ast.expr, found: Bound) -> Bindings:
    """The names of a target: one takes the value, several are not told apart."""
    if isinstance(target, ast.Name):
        return {target.id: found}
    why = f"An assignment to several names decides the configuration here, {WITHOUT_RUNNING}"
    return {name: Unreadable(target.lineno, why) for name in _stored(target)}


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


def _imported(statement: ast.Import | ast.ImportFrom) -> Bindings:
    """The full names that an import brings."""
    if isinstance(statement, ast.Import):
        return {
            each.asname or each.name.partition(".")[0]: Imported(
                each.name if each.asname else each.name.partition(".")[0]
            )
            for each in statement.names
        }
    module = "." * statement.level + (statement.module or "")
    return {each.asname or each.name: Imported(f"{module}.{each.name}") for each in statement.names}


def _imported_within(names: Names, statement: ast.stmt) -> Bindings:
    """What a branch imports, such as a library that may be missing; a name that may mean something else is unclear."""
    imports = [node for node in _running(statement) if isinstance(node, ast.Import | ast.ImportFrom)]
    otherwise = _stored(statement, imports=False) if imports else frozenset()
    found: Bindings = {}
    for name, imported in ((name, each) for node in imports for name, each in _imported(node).items()):
        before = found.get(
            name, names.bound.get(name, Imported(f"builtins.{name}") if hasattr(builtins, name) else None)
        )
        alike = before in (None, imported) and name not in otherwise
        found |= {name: imported} if alike else _unclear(frozenset({name}), statement)
    return found


def _check(names: Names, statement: ast.stmt) -> None:
    """Unreadable for what runs within a statement and might change a value."""
    within = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else statement
    own = _stored(within) if within and not isinstance(within, ast.Import | ast.ImportFrom) else frozenset()
    if own:
        hidden = _unclear(own, statement) | _imported_within(names, statement)
        names = Names(ChainMap(hidden, names.bound), names.budget)
    for node in _running(statement):
        _check_node(names, node)


def _check_node(names: Names, node: ast.AST) -> None:
    match node:
        case ast.Call(ast.Name(name)) if isinstance(found := names.bound.get(name), Unreadable):
            raise Unreadable(node.lineno, found.message)
        case ast.Call() if not _is_harmless(names, node):
            what = f"A call of `{shown(node.func)}`"
        case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
            what = f"`{shown(node)} = ...`"
        case ast.ImportFrom(names=[ast.alias(name="*")]):
            what = "`import *`"
        case ast.ClassDef() if node.keywords or RUNS_ITSELF & {getattr(each, "name", "") for each in node.body}:
            what = f"The class `{node.name}`"
        case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
            odd = next((each for each in node.decorator_list if not _decorates(names, each)), None)
            if odd is None:
                return
            what = f"The decorator `{shown(odd)}`"
        case ast.stmt() | ast.expr() if type(node) in REFUSED:
            what = REFUSED[type(node)]
        case _:
            return
    raise Unreadable(node.lineno, f"{what} may change the configuration here, {WITHOUT_RUNNING}")


def _is_harmless(names: Names, call: ast.Call) -> bool:
    """True for calls that change no value and no environment variable, whatever they give."""
    if any(each.arg == "key" for each in call.keywords):
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
        each = waiting.pop()
        yield each
        if isinstance(each, FUNCTIONS):
            waiting += [*each.decorator_list, each.args, *([each.returns] if each.returns else [])]
        else:
            waiting += ast.iter_child_nodes(each)


def _stored(node: ast.AST, *, imports: bool = True) -> frozenset[str]:
    """The names that are set, or hidden by others, within a node."""
    found: set[str] = set()
    for each in _running(node):
        match each:
            case ast.Name(name, ast.Store() | ast.Del()) | ast.arg(name):
                found.add(name)
            case ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.FunctionDef(name) | ast.ClassDef(name) | ast.AsyncFunctionDef(name):
                found.add(name)
            case ast.Import() | ast.ImportFrom() if imports:
                found |= _imported(each).keys()
    return frozenset(found)


def _is_main(statement: ast.stmt) -> bool:
    """True for `if __name__ == "__main__":`, which nobody runs who reads the configuration."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    return ast.dump(statement.test) == ast.dump(ast.parse("__name__ == '__main__'", mode="eval").body)
