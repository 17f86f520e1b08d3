"""Whether a config.py has a plain form: one that can do nothing but make values, whoever runs it.

It decides only where a machine cannot isolate. Attributes are what leads from one object to all others: the list of
those that may be named is short.
"""

from __future__ import annotations

import ast

MODULES = {
    "os": {"environ", "getenv", "path"},
    "os.path": {"join", "dirname", "abspath", "realpath"},
    "pathlib": {"Path", "PurePath"},
    "dotenv": {"load_dotenv", "find_dotenv"},
}
ATTRIBUTES = {"environ", "getenv", "get", "path", "join", "dirname", "abspath", "realpath", "Path", "PurePath"}
ATTRIBUTES |= {"parent", "parents", "resolve", "absolute", "as_posix", "copy", "value", "load_dotenv"}
ATTRIBUTES |= {"core", "config", "all_full", "all_semi", "all_off"}
BUILTINS = {"str", "int", "float", "bool", "list", "tuple", "set", "frozenset", "dict", "print"}
BUILTINS |= {"__file__", "__name__"}
NODES = (
    ast.Module, ast.Import, ast.ImportFrom, ast.alias, ast.Assign, ast.AnnAssign, ast.Expr, ast.Pass, ast.Name,
    ast.Load, ast.Store, ast.Attribute, ast.Subscript, ast.Constant, ast.Call, ast.keyword, ast.Starred, ast.Dict,
    ast.List, ast.Tuple, ast.Set, ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.Add, ast.Div, ast.BitOr,
    ast.UnaryOp, ast.USub, ast.UAdd,
)  # fmt: skip


def beyond_plain(text: str) -> int:
    """The line of what is more than plain, 0 where there is nothing. ProjectError is for those who run it."""
    try:
        tree = ast.parse(text)
        bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        bound |= {name.asname or name.name.partition(".")[0] for node in ast.walk(tree) for name in _imported(node)}
        return next((getattr(node, "lineno", 1) for node in ast.walk(tree) if not _is_plain(node, bound)), 0)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1


def _imported(node: ast.AST) -> list[ast.alias]:
    return node.names if isinstance(node, ast.Import | ast.ImportFrom) else []


def _is_plain(node: ast.AST, bound: set[str]) -> bool:
    match node:
        case ast.Import(names=names):
            return all(name.name in MODULES or _of_sqlmesh(name.name) for name in names)
        case ast.ImportFrom(module=str(module), names=names, level=0):
            return (
                all(
                    name.name[0].isalpha() if _of_sqlmesh(module) else name.name in MODULES.get(module, {})
                    for name in names
                )
                or module == "__future__"
            )
        case ast.Name(name):
            return name in bound or name in BUILTINS
        case ast.Attribute(attr=name):
            return name in ATTRIBUTES or (name[:1].isupper() and name.isidentifier())
        case ast.FormattedValue(conversion=conversion, format_spec=form):
            return form is None and conversion == -1
    return isinstance(node, NODES)


def _of_sqlmesh(module: str) -> bool:
    return module.partition(".")[0] == "sqlmesh"
