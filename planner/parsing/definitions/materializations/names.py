"""The meanings of names in a file of materializations/, and the code in it that has no effect; none of it is run."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_SAFE_CALLS = frozenset("isinstance type len str repr bool int float list tuple dict set sorted hasattr".split())
_SAFE_METHODS = frozenset("get items keys values sql split strip lower upper join format startswith endswith".split())
_MAKERS = ("getLogger", "get_logger", "TypeVar")


@dataclass(frozen=True)
class Names:
    """The meanings of names in a class's file: imports, constants, loggers, what it binds, the kind's properties."""

    imports: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, ast.expr] = field(default_factory=dict)
    loggers: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()
    hoisted: Mapping[str, ast.expr] = field(default_factory=dict)


def import_path(node: ast.expr, names: Names) -> str:
    match node:
        case ast.Name(id=name):
            return names.imports.get(name, "")
        case ast.Attribute(value=of, attr=name):
            above = import_path(of, names)
            return f"{above}.{name}" if above else ""
    return ""


def is_sqlmesh_name(node: ast.expr, name: str, names: Names) -> bool:
    path = import_path(node, names)
    return path.startswith("sqlmesh.") and path.endswith(f".{name}")


def is_text(statement: ast.stmt) -> bool:
    """Return True for a docstring, `pass` or `...`."""
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def only_defines(statement: ast.stmt, names: Names) -> bool:
    """Return True for a statement at the top of a file that changes nothing that other statements define."""
    match statement:
        case ast.Import() | ast.ClassDef():
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return not statement.decorator_list
        case ast.ImportFrom(names=aliases):
            return all(alias.name != "*" for alias in aliases)
        case ast.Assign(targets=targets, value=value):
            return all(isinstance(target, ast.Name) for target in targets) and _is_made(value, names)
        case ast.AnnAssign(target=target, value=value):
            return isinstance(target, ast.Name) and (value is None or _is_made(value, names))
        case ast.If(body=body, orelse=orelse):
            return all(isinstance(child, ast.Import | ast.ImportFrom | ast.Pass) for child in (*body, *orelse))
    return is_text(statement)


def is_harmless(node: ast.AST, names: Names) -> bool:
    """Return True for an expression without effects: it calls only functions that are known to change nothing."""
    return all(_only_looks(descendant, names) for descendant in ast.walk(node))


def _only_looks(node: ast.AST, names: Names) -> bool:
    match node:
        case ast.NamedExpr() | ast.Await() | ast.Yield() | ast.YieldFrom() | ast.Lambda():
            return False
        case ast.Call(func=ast.Name(id=name)):
            return name in _SAFE_CALLS and name not in names.bound
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _SAFE_METHODS
        case ast.Call():
            return False
    return True


def names_of(tree: ast.Module) -> Names:
    """Return the meanings of a file's names that are bound once."""
    imports: dict[str, str] = {}
    constants: dict[str, ast.expr] = {}
    bound: list[str] = []
    for node in _top_statements(tree.body):
        match node:
            case ast.Import(names=aliases):
                pairs = [(alias.asname or alias.name.partition(".")[0], alias) for alias in aliases]
                imports |= {name: alias.name if alias.asname else name for name, alias in pairs}
                bound += {name for name, _ in pairs}
            case ast.ImportFrom(module=module, names=aliases, level=level):
                imports |= {alias.asname or alias.name: f"{'.' * level}{module}.{alias.name}" for alias in aliases}
                bound += [alias.asname or alias.name for alias in aliases]
            case ast.Assign(targets=targets, value=value):
                named = [target.id for target in targets if isinstance(target, ast.Name)]
                constants |= dict.fromkeys(named, value)
                bound += named
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                constants[name] = value
                bound.append(name)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                bound.append(name)
    global_names = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    once = {name for name in bound if bound.count(name) == 1} - global_names
    return Names(
        {name: path for name, path in imports.items() if name in once},
        {name: constant for name, constant in constants.items() if name in once},
        frozenset(
            name for name in once if _call_name(constants.get(name)) in _MAKERS[:2] or imports.get(name) == "logging"
        ),
        frozenset(bound),
    )


def _top_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.If):
            yield from (*statement.body, *statement.orelse)
        else:
            yield statement


def _is_made(value: ast.expr, names: Names) -> bool:
    return is_harmless(value, names) or _call_name(value) in _MAKERS


def _call_name(value: ast.expr | None) -> str:
    match value:
        case ast.Call(func=ast.Attribute(attr=name)) | ast.Call(func=ast.Name(id=name)):
            return name
    return ""
