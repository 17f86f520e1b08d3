"""A file of a project, rewritten before it is compiled: its expressions are recorded, and nothing else changes.

Texts with environment variables in them are recognised, calls are made by `calling`, and each mapping, list and call of
a class has its lines.
"""

import ast
from typing import Any

SEE, LINES, CALL, SAME = "__mergeplan_see__", "__mergeplan_lines__", "__mergeplan_call__", "__mergeplan_same__"
WITHIN = "__mergeplan_within__"
OF_ITS_FRAME = ("super", "exec", "eval", "vars", "dir")  # what looks at the frame that calls it
_SEEN = (ast.JoinedStr, ast.BinOp, ast.Call, ast.Attribute, ast.Subscript)


def rewrite_file(text: str, path: str) -> tuple[ast.Module, frozenset[int]]:
    """Return the syntax tree to compile, and the lines in a `try` that catches something; raise SyntaxError."""
    tree = ast.parse(text, path)
    tries = [node for node in ast.walk(tree) if isinstance(node, ast.Try) and node.handlers]
    caught = {line for node in tries for line in range(node.body[0].lineno, (node.body[-1].end_lineno or 0) + 1)}
    return ast.fix_missing_locations(_Rewriter().visit(tree)), frozenset(caught)


class _Rewriter(ast.NodeTransformer):
    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.pattern):
            return node  # a pattern is no expression
        lines = _key_lines(node)
        new = super().visit(node)
        if isinstance(node, ast.Dict | ast.List) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return _wrap_expression(node, LINES, new, lines)
        if isinstance(node, _SEEN) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return _wrap_expression(node, SEE, new, lines)
        return new

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (node.args or node.keywords) or (isinstance(node.func, ast.Name) and node.func.id in OF_ITS_FRAME):
            return node
        call = ast.Call(ast.Name(CALL, ast.Load()), [node.func, *node.args], node.keywords)
        return ast.copy_location(call, node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) > 1 or not isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn):
            return node
        name = SAME if isinstance(node.ops[0], ast.Is | ast.IsNot) else WITHIN
        test = ast.Call(ast.Name(name, ast.Load()), [node.left, node.comparators[0]], [])
        negated = isinstance(node.ops[0], ast.IsNot | ast.NotIn)
        return ast.copy_location(ast.UnaryOp(ast.Not(), test) if negated else test, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self.visit(node.value)  # the format after the colon remains a part of the text
        return node


def _wrap_expression(node: Any, name: str, argument: ast.expr, lines: dict[str | int, int]) -> ast.Call:
    keys = ast.Dict([ast.Constant(key) for key in lines], [ast.Constant(line) for line in lines.values()])
    call = ast.Call(ast.Name(name, ast.Load()), [argument, ast.Constant(node.lineno), keys], [])
    return ast.copy_location(call, node)


def _key_lines(node: ast.AST) -> dict[str | int, int]:
    match node:
        case ast.Dict(keys):
            texts = (key for key in keys if isinstance(key, ast.Constant))
            return {key.value: key.lineno for key in texts if isinstance(key.value, str)}
        case ast.List(items) if not any(isinstance(item, ast.Starred) for item in items):
            return {index: item.lineno for index, item in enumerate(items)}
        case ast.Call(keywords=keywords):
            return {keyword.arg: keyword.lineno for keyword in keywords if keyword.arg}
    return {}
