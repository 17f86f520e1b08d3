"""The check for a plain config.py: one that can do nothing but make values, whichever process runs it.

It decides only where a machine cannot isolate. Attributes lead from one object to all others, so the list of allowed
ones is short.
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
NODES = (  # beside those that are looked at one by one
    ast.Module, ast.alias, ast.Assign, ast.AnnAssign, ast.Expr, ast.Pass, ast.Load, ast.Store, ast.Subscript,
    ast.Constant, ast.Call, ast.keyword, ast.Starred, ast.Dict, ast.List, ast.Tuple, ast.Set, ast.JoinedStr, ast.BinOp,
    ast.Add, ast.Div, ast.BitOr, ast.UnaryOp, ast.USub, ast.UAdd,
)  # fmt: skip


def beyond_plain(text: str) -> int:
    """Return the line of the first statement that is more than plain; 0 if there is none."""
    try:
        tree = ast.parse(text)
        bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        bound |= {
            name.asname or name.name.partition(".")[0]
            for node in ast.walk(tree)
            for name in (node.names if isinstance(node, ast.Import | ast.ImportFrom) else [])
        }
        odd = (part for part in tree.body if not all(_is_plain(node, bound) for node in ast.walk(part)))
        return next((part.lineno for part in odd), 0)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1


def _is_plain(node: ast.AST, bound_names: set[str]) -> bool:
    match node:
        case ast.Import(names=names):
            return all(name.name in MODULES or _of_sqlmesh(name.name) for name in names)
        case ast.ImportFrom(module=str(module), names=names, level=0):
            if _of_sqlmesh(module):
                return all(name.name[0].isalpha() for name in names)
            return module == "__future__" or MODULES.get(module, set()).issuperset(name.name for name in names)
        case ast.Name(name):
            return name in bound_names or name in BUILTINS
        case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
            return False
        case ast.Attribute(attr=name):
            return name in ATTRIBUTES or (name[:1].isupper() and name.isidentifier())
        case ast.FormattedValue(conversion=conversion, format_spec=form):
            return form is None and conversion == -1
    return isinstance(node, NODES)


def _of_sqlmesh(module: str) -> bool:
    return module.partition(".")[0] == "sqlmesh"
