"""Unit tests that name a model or its columns: the edits of a rename in their YAML."""

from collections.abc import Iterator

import yaml

from mergeplan.planner.errors import RequestError
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.texts import Edit, Span
from mergeplan.planner.parsing.sql.names import without_default


def unit_test_edits(
    view: ProjectView, table: str, *, model_name: str = "", column: tuple[str, str] | None = None
) -> Iterator[Edit]:
    """Yield the edits of every test of a model or with the model as input.

    Raise RequestError for rows not in YAML. `model_name` is the model's new name, `column` an old and a new name.
    """
    catalog = view.project.catalogs.default
    paths = {test.path for test in view.project.tests if table in (test.model, *test.inputs)}
    for path in sorted(paths):
        text = _read_text(view, path)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        for name, body in _node_pairs(root):
            fields = {key.value: (key, value) for key, value in _node_pairs(body)}
            if "macro" in fields:
                inputs = _node_pairs(fields["inputs"][1]) if "inputs" in fields else []
                if any(without_default(str(key.value).lower(), catalog) == table for key, _ in inputs):
                    message = f"The test `{name.value}` ({path}) reads `{table}` in the call of a macro"
                    raise RequestError(f"{message}: rename it there first.")
            if "model" not in fields:
                continue
            of_model = without_default(str(fields["model"][1].value).lower(), catalog) == table
            if of_model and model_name:
                yield _node_edit(path, fields["model"][1], model_name)
            if of_model and column and "outputs" in fields:
                outputs = {key.value: value for key, value in _node_pairs(fields["outputs"][1])}
                for output in ("query", "table"):
                    yield from _row_edits(path, name.value, outputs.get(output), column)
            if of_model and column and "this" in fields:
                yield from _row_edits(path, name.value, fields["this"][1], column)
            for key, value in _node_pairs(fields["inputs"][1]) if "inputs" in fields else ():
                if without_default(str(key.value).lower(), catalog) == table:
                    if model_name:
                        yield _node_edit(path, key, model_name)
                    if column:
                        yield from _row_edits(path, name.value, value, column)


def _row_edits(path: str, test: str, node: yaml.Node | None, column: tuple[str, str]) -> Iterator[Edit]:
    if node is None:
        return
    fields = {key.value: value for key, value in _node_pairs(node)}
    if {"query", "path", "format"} & fields.keys():
        raise RequestError(f"The test `{test}` ({path}) has rows that are no YAML: rename `{column[0]}` there first.")
    rows = fields.get("rows", node)
    if "columns" in fields:
        yield from _column_edits(path, fields["columns"], column)
    if isinstance(rows, yaml.SequenceNode):
        for row in rows.value:
            yield from _column_edits(path, row, column)
    elif isinstance(rows, yaml.MappingNode) and "rows" not in fields and "columns" not in fields:
        yield from _column_edits(path, rows, column)


def _column_edits(path: str, node: yaml.Node, column: tuple[str, str]) -> Iterator[Edit]:
    for key, _ in _node_pairs(node):
        if str(key.value).lower() == column[0]:
            yield _node_edit(path, key, column[1])


def _node_pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    return list(node.value) if isinstance(node, yaml.MappingNode) else []


def _node_edit(path: str, node: yaml.Node, text: str) -> Edit:
    return Edit(path, Span(node.start_mark.index, node.end_mark.index), text)


def _read_text(view: ProjectView, path: str) -> str:
    if path in view.texts:
        return view.texts[path]
    try:
        return (view.project.root / path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise RequestError(f"{path} cannot be read.") from None
