"""Renaming a model, a CTE or a column in all places that name it; refused if these cannot be proved to be all.

The new texts are read and planned against the old ones as if these were prod: only the name may change.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import sqlglot
import yaml
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.errors import MergeplanError, RequestError
from mergeplan.planner.lsp.names import Name, NameKind, Owner
from mergeplan.planner.lsp.navigation import Target, find_references, is_meant
from mergeplan.planner.lsp.project_view import FileView, ProjectView
from mergeplan.planner.lsp.texts import Edit, Span, apply_edits
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.plan.build import Request, build_plan
from mergeplan.planner.plan.change import Category, Change, ChangeKind
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.project.loader import Project
from mergeplan.planner.project.reread import NeedsLoad, reread_file
from mergeplan.planner.snapshot.environment import Environment

_PLAIN = re.compile(r"[A-Za-z_]\w*")
# Properties in which a word can be a column of the model
_OF_COLUMNS = """columns column_descriptions grain grains audits kind partitioned_by clustered_by unique_key
    time_column references""".split()
SAME = (Category.EQUIVALENT, Category.METADATA)


def rename_edits(view: ProjectView, target: Target, new: str, now: datetime) -> tuple[Edit, ...]:
    """Return the edits that rename a target; raise RequestError, with the reason, if they would do more."""
    new = new.strip()
    if view.project.refused:
        refusal = view.project.refused.refusals[0]
        raise RequestError(f"{refusal.path} cannot be opened, and may name `{target.name}`: fix it first.")
    _check_name(view, target, new)
    if target.kind is NameKind.TABLE:
        edits = tuple(_model_edits(view, target, new))
    elif target.kind is NameKind.CTE:
        edits = tuple(Edit(place.path, place.span, new) for place in find_references(view, target))
    else:
        edits = tuple(_column_edits(view, target, new))
    _check_result(view, target, new, edits, now)
    return edits


def _check_name(view: ProjectView, target: Target, new: str) -> None:
    parts = new.split(".") if target.kind is NameKind.TABLE else [new]
    if not all(_PLAIN.fullmatch(part) for part in parts):
        raise RequestError(f"`{new}` is not a plain name: write letters, digits and underscores.")
    if target.kind is NameKind.TABLE:
        if len(parts) not in (2, 3):
            raise RequestError(f"`{new}` is not the name of a model: write `schema.model`.")
        if without_default(new.lower(), view.project.catalogs.default) in view.project.models:
            raise RequestError(f"There is already a model `{new}`.")
        if target.name not in view.project.models:
            raise RequestError(f"`{target.name}` is not a model of this project.")
    elif new.lower() == target.name:
        raise RequestError(f"It is already called `{new}`.")


def _model_edits(view: ProjectView, target: Target, new: str) -> Iterator[Edit]:
    model = view.project.models[target.name]
    if not model.path.endswith(".sql") or view.file(model.path).file.property("name") is None:
        raise RequestError(f"The name of `{target.name}` is not in a SQL file: rename it in {model.place}.")
    for reader in _sql_readers(view, target.name):
        _check_followed(reader, view, target.name, target.name.rpartition(".")[2])
    _check_audits(view, target.name, target.name.rpartition(".")[2])
    yield from (Edit(place.path, place.span, new) for place in find_references(view, target))
    for file in view.files_reading(target.name):
        prop = file.file.property("depends_on")
        for start, end in _names_in(prop.value if prop else (), file, target.name, view):
            yield Edit(file.path, Span(start, end), new)
    yield from unit_test_edits(view, target.name, model_name=new)


def _column_edits(view: ProjectView, target: Target, new: str) -> Iterator[Edit]:
    if target.is_local:
        yield from _edits_in(view.file(target.path), target, new)
        return
    table = target.owner.table
    model = view.project.models.get(table)
    if model is None or not model.path.endswith(".sql") or not model.sql:
        raise RequestError(f"`{table}` is not a SQL model of this project: rename its column where it is made.")
    if (columns := view.columns(table)) is None or target.name not in columns:
        raise RequestError(f"The columns of `{table}` are not known.")
    if new.lower() in columns:
        raise RequestError(f"`{table}` has a column `{new}` already.")
    own_file = view.file(model.path)
    _check_followed(model, view, table, target.name)
    if not any(name.defines == target.owner and name.name == target.name for name in own_file.names.names):
        raise RequestError(f"`{target.name}` is not written in the query of `{table}`: a `*` or a macro returns it.")
    _check_audits(view, table, target.name)
    yield from _edits_in(own_file, target, new)
    for prop in own_file.file.properties:
        if prop.key in _OF_COLUMNS:
            for preceding_token, token in zip((prop.at, *prop.value), prop.value, strict=False):
                if _is_word(token, target.name) and not (prop.key == "kind" and preceding_token is prop.at):
                    yield Edit(own_file.path, Span(token.start, token.end + 1), new)
    for reader in _sql_readers(view, table):
        _check_followed(reader, view, table, target.name)
    for file in view.files_reading(table):
        if file.path != own_file.path:
            for span, meant in file.names.stars:
                if any(owner.table == table for _, owner, _ in meant):
                    line = file.file.text.count("\n", 0, span.start) + 1
                    raise RequestError(f"{file.path}:{line} reads `*` of `{table}`: expand it first.")
            yield from _edits_in(file, target, new)
    yield from unit_test_edits(view, table, column=(target.name, new))


def _edits_in(file: FileView, target: Target, new: str) -> Iterator[Edit]:
    """Yield the edits of a query: an output that is named after the column keeps its name."""
    for name in file.names.names:
        if not is_meant(name, target):
            continue
        if len(name.owners) > 1:
            line = file.file.text.count("\n", 0, name.span.start) + 1
            message = f"`{name.name}` in {file.path}:{line} may be a column of several tables: qualify it first."
            raise RequestError(message)
        yield Edit(file.path, name.span, _new_text(name, target.owner, new))


def _new_text(name: Name, owner: Owner, new: str) -> str:
    if not name.implicit:
        return new
    if name.defines == owner:  # the output is renamed, and what it is read from keeps its name
        return f"{name.name} AS {new}"
    return f"{new} AS {name.name}"


def _is_word(token: Token, column: str) -> bool:
    return token.text.lower() == column and token.token_type not in (TokenType.STRING, TokenType.NUMBER)


def _sql_readers(view: ProjectView, table: str) -> Iterator[Model]:
    for name in view.readers.get(table, ()):
        model = view.project.models[name]
        if not model.path.endswith(".sql"):
            raise RequestError(f"`{name}` reads `{table}` and is not SQL: what it names is not known ({model.place}).")
        yield model


def _check_followed(model: Model, view: ProjectView, table: str, word: str) -> None:
    """Raise RequestError for a file whose names are not all known."""
    file = view.file(model.path)
    if file.file.query is None:
        raise RequestError(f"The query of `{model.name}`, which names `{table}`, cannot be followed ({model.place}).")
    if file.file.has_blanked_word(word):
        raise RequestError(f"A macro in {model.path} is given `{word}`: rename it there first.")
    if len(file.models) > 1:
        raise RequestError(f"{model.path} is a template of several models, which are not renamed.")


def _check_audits(view: ProjectView, table: str, word: str) -> None:
    """Raise RequestError for an audit that may name the renamed object."""
    called = {call.name for call in view.project.models[table].checks.audits}
    for audit in view.project.audits.values():
        about = table in audit.depends_on or audit.name in called
        if about and re.search(rf"\b{re.escape(word)}\b", audit.sql, re.IGNORECASE):
            raise RequestError(f"The audit `{audit.name}` names `{word}` ({audit.place}): rename it there first.")


def _names_in(tokens: tuple[Token, ...], file: FileView, table: str, view: ProjectView) -> Iterator[tuple[int, int]]:
    if not tokens:
        return
    start, end = tokens[0].start, tokens[-1].end + 1
    for match in re.finditer(r"(?<![\w`])[\w`]+(?:\.[\w`]+)+", file.file.text[start:end]):
        if without_default(match[0].replace("`", "").lower(), view.project.catalogs.default) == table:
            yield start + match.start(), start + match.end()


def _check_result(view: ProjectView, target: Target, new: str, edits: tuple[Edit, ...], now: datetime) -> None:
    """Raise RequestError unless the plan of the edits, against the project as it is, is just the rename."""
    try:
        renamed = _reread_files(view, edits)
        nothing, request, loaded = Environment("prod"), Request(Window(now)), Loaded({})
        old = build_plan(view.project.models, nothing, nothing, loaded, request).new
        old = replace(old, revision=1)
        changes = {change.name: change for change in build_plan(renamed.models, old, old, loaded, request).changes}
    except MergeplanError as error:
        raise RequestError(f"Renaming it to `{new}` would break the project: {error.message}") from None
    for change in changes.values():
        if (reason := _why_more(view.project, renamed, target, new.lower(), change)) is not None:
            raise RequestError(f"Renaming it to `{new}` would change more than the name: {reason}")


def _reread_files(view: ProjectView, edits: tuple[Edit, ...]) -> Project:
    """Return the project after the edits, with files reread in an order in which each is known when it is needed."""
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        if edit.path.endswith(".sql"):
            by_path.setdefault(edit.path, []).append(edit)
    project = replace(view.project, tests=())
    order = {view.project.models[name].path: index for index, name in enumerate(view.graph.order)}
    for path in sorted(by_path, key=lambda path: order.get(path, 0)):
        text = apply_edits(view.text(path) or "", by_path[path])
        try:
            project = reread_file(project, path, text)
        except NeedsLoad:
            message = f"{path} is read together with other files, which a rename in the editor does not do."
            raise RequestError(message) from None
    return project


def _why_more(before: Project, after: Project, target: Target, new: str, change: Change) -> str | None:
    table = target.owner.table
    if target.kind is NameKind.COLUMN and not target.is_local and change.name == table:
        columns = change.columns
        exact = columns.added == {new} and columns.removed == {target.name} and not columns.altered
        return None if exact and not columns.every else f"`{table}` would return other rows. {change.reason}"
    if target.kind is NameKind.TABLE:
        return _why_not_renamed(before, after, target.name, new, change)
    if change.category in SAME or change.category is Category.INDIRECT_NON_BREAKING:
        return None
    return f"`{change.name}`: {change.reason}"


def _why_not_renamed(before: Project, after: Project, old: str, new: str, change: Change) -> str | None:
    """Return why a model is more than the old one with another name in it, by its tree, since a plan counts names."""
    new = without_default(new, after.catalogs.default)
    name = old if change.name == new else change.name
    if change.change is ChangeKind.REMOVED:
        return None if change.name == old else f"`{change.name}` would go."
    old_model, new_model = before.models[name], after.models[new if name == old else name]
    if _query_tree(old_model.sql, {}) == _query_tree(new_model.sql, {new: old}):
        return None
    return f"`{name}` would be another query."


def _query_tree(sql: str, names: Mapping[str, str]) -> exp.Expr | None:
    if not sql:
        return None
    tree = sqlglot.parse_one(sql, dialect="spark")
    for table in tree.find_all(exp.Table):
        called = ".".join(part.name for part in table.parts).lower()
        if called in names:
            alias = table.args.get("alias")
            table.replace(
                exp.to_table(names[called], alias=alias) if alias is None else _table_with_alias(names[called], alias)
            )
    return tree


def _table_with_alias(name: str, alias: exp.Expr | None) -> exp.Expr:
    table = exp.to_table(name)
    table.set("alias", alias)
    return table


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
        yield from _column_name_edits(path, fields["columns"], column)
    if isinstance(rows, yaml.SequenceNode):
        for row in rows.value:
            yield from _column_name_edits(path, row, column)
    elif isinstance(rows, yaml.MappingNode) and "rows" not in fields and "columns" not in fields:
        yield from _column_name_edits(path, rows, column)


def _column_name_edits(path: str, node: yaml.Node, column: tuple[str, str]) -> Iterator[Edit]:
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
