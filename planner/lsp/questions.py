"""An editor's questions about a place in a file: completion, hover, definition and references, by kind of file.

SQL is answered by its names, YAML by its schema, macros and dbt's `ref` and `source` by the texts of the folder. The
last two are answered also when the project is not open, since that runs none of its code.
"""

from mergeplan.planner.lsp import dbt_names
from mergeplan.planner.lsp.completion import Item, complete_sql
from mergeplan.planner.lsp.editor import Editor
from mergeplan.planner.lsp.macro_names import describe_macro, macro_at, macro_definition, macro_references, macros_of
from mergeplan.planner.lsp.names import NameKind
from mergeplan.planner.lsp.navigation import Target, find_definitions, find_references, target_at
from mergeplan.planner.lsp.project_files import Layout
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.remembered_state import ProdState
from mergeplan.planner.lsp.texts import FileSpan, Span
from mergeplan.planner.lsp.yaml_files.answers import complete_yaml, describe_yaml, yaml_target
from mergeplan.planner.model.model import Model
from mergeplan.planner.project.lineage import How
from mergeplan.planner.wording import count_noun, first_names

YAML = (".yaml", ".yml")
MOST = 8  # names in one line


def completions_at(editor: Editor, path: str, text: str, offset: int) -> tuple[Item, ...]:
    view = editor.view
    if editor.layout is Layout.DBT and path.endswith(".sql"):
        names = dbt_names.complete_names(editor.root, text, offset)
        if names is not None:
            return names
    if view is None:
        return ()
    if path.endswith(YAML):
        return complete_yaml(view, path, text, offset) if editor.layout is Layout.OWN or "/" not in path else ()
    return complete_sql(view, path, text, offset) if path.endswith(".sql") else ()


def hover_at(editor: Editor, path: str, text: str, offset: int) -> tuple[str, Span] | None:
    """Return the description of the name at an offset, as Markdown, and its span."""
    if (called := _find_macro(editor, path, text, offset)) is not None:
        about = describe_macro(editor.view, called[0], macros_of(editor.root, editor.live.texts))
        return (about, called[1]) if about else None
    target = _find_target(editor, path, text, offset)
    if target is None or editor.view is None:
        return describe_yaml(path, text, offset) if path.endswith(YAML) and editor.layout is Layout.OWN else None
    about = hover_text(editor.view, target[0], editor.state)
    return (about, target[1]) if about else None


def definitions_at(editor: Editor, path: str, text: str, offset: int) -> tuple[FileSpan, ...]:
    if (called := _find_macro(editor, path, text, offset)) is not None:
        macros = macros_of(editor.root, editor.live.texts)
        return macro_definition(editor.view, editor.root, called[0], macros)
    if editor.layout is Layout.DBT and (named := dbt_names.name_at(text, offset)) is not None:
        return dbt_names.definition_of(editor.root, named[0])
    target = _find_target(editor, path, text, offset, follow=True)
    return find_definitions(editor.view, target[0]) if target and editor.view is not None else ()


def references_at(editor: Editor, path: str, text: str, offset: int) -> tuple[FileSpan, ...]:
    if editor.layout is Layout.DBT and (named := dbt_names.name_at(text, offset)) is not None:
        return tuple(dbt_names.references_of(editor.root, named[0], editor.live.texts))
    view = editor.view
    if view is None:
        return ()
    if (called := _find_macro(editor, path, text, offset)) is not None:
        macros = macros_of(editor.root, editor.live.texts)
        return tuple(dict.fromkeys(macro_references(view, called[0], macros)))
    target = _find_target(editor, path, text, offset)
    return tuple(find_references(view, target[0])) if target else ()


def _find_macro(editor: Editor, path: str, text: str, offset: int) -> tuple[str, Span] | None:
    if path.endswith(YAML):
        return None
    return macro_at(path, text, offset, macros_of(editor.root, editor.live.texts))


def _find_target(
    editor: Editor, path: str, text: str, offset: int, *, follow: bool = False
) -> tuple[Target, Span] | None:
    view = editor.view
    if view is None:
        return None
    if editor.layout is Layout.DBT and (named := dbt_names.name_at(text, offset)) is not None:
        table = dbt_names.table_of(view, editor.root, named[0])
        return (Target(NameKind.TABLE, table), named[1]) if table else None
    if path.endswith(YAML):
        return yaml_target(view, path, text, offset)
    return target_at(view, path, text, offset, follow=follow)


def hover_text(view: ProjectView, target: Target, state: ProdState | None) -> str | None:
    if target.kind is NameKind.TABLE:
        return _table_text(view, target.name, state)
    if target.kind is NameKind.CTE:
        return f"**{target.name}** · CTE of this query"
    if target.is_local:
        return f"**{target.name}** · column of a CTE or subquery of this query"
    return _column_text(view, target.owner.table, target.name)


def _table_text(view: ProjectView, name: str, state: ProdState | None) -> str | None:
    model = view.project.models.get(name)
    if model is None:
        return f"**{name}** · neither a model nor in external_models.yaml"
    tags, owner = ", ".join(model.metadata.tags), model.metadata.owner
    lines = [f"**{name}** · {model.kind}" + (f" · {owner}" if owner else "")]
    if model.metadata.description:
        lines.append(model.metadata.description)
    if not model.kind.is_external:
        lines.append(f"cron `{model.cron.text}`" + (f" · tags {tags}" if tags else ""))
        lines.append(_prod_text(name, state))
    readers = view.readers.get(name, ())
    if readers:
        lines.append(f"read by {first_names([f'`{reader}`' for reader in readers], MOST)}")
    return "\n\n".join([line for line in lines if line] + [_columns_table(view, model)])


def _columns_table(view: ProjectView, model: Model) -> str:
    columns = view.columns(model.name)
    if not columns:
        return ""
    types, described = view.types(model.name), dict(model.metadata.column_descriptions)
    rows = [
        f"| `{column}` | {types.get(column, '')} | {_format_cell(described.get(column, ''))} |"
        for column in columns[:40]
    ]
    remainder = [f"| … | | {count_noun(len(columns) - 40, 'column')} more |"] if len(columns) > 40 else []
    return "\n".join(["| column | type | |", "|---|---|---|", *rows, *remainder])


def _prod_text(name: str, state: ProdState | None) -> str:
    if state is None:
        return ""
    snapshot = state.base.snapshots.get(name)
    if snapshot is None:
        return "not in prod"
    timeline = state.loaded.timeline_of(snapshot)
    time_text = f" · holds {first_names([str(interval) for interval in timeline], 2)}" if timeline else ""
    return (
        f"in prod: version `{snapshot.version}`, table `{snapshot.table}`{time_text if snapshot.kind.is_stored else ''}"
    )


def _column_text(view: ProjectView, table: str, column: str) -> str | None:
    model = view.project.models.get(table)
    if model is None:
        return f"**{table}.{column}**"
    kind = view.types(table).get(column, "")
    lines = [f"**{table}.{column}**" + (f" · `{kind}`" if kind else "")]
    if described := dict(model.metadata.column_descriptions).get(column):
        lines.append(described)
    edges = view.lineage[table].edges
    made = [
        f"`{edge.source.model}.{edge.source.column}`"
        for edge in edges
        if edge.how is How.MADE_FROM and edge.target.column == column and edge.source.column
    ]
    if made:
        lines.append(f"made from {first_names(made, MOST)}")
    elif reason := view.lineage[table].why_not:
        lines.append(f"not followed further: {reason}")
    readers = _column_readers(view, table, column)
    lines.append(f"read by {first_names(readers, MOST)}" if readers else "read by no model")
    return "\n\n".join(lines)


def _column_readers(view: ProjectView, table: str, column: str) -> list[str]:
    found_readers: list[str] = []
    for reader in view.readers.get(table, ()):
        for edge in view.lineage[reader].edges:
            if edge.source.model == table and edge.source.column in (column, "*"):
                name = f"`{reader}.{edge.target.column}`" if edge.target.column not in ("", "*") else f"`{reader}`"
                if name not in found_readers:
                    found_readers.append(name)
    return found_readers


def _format_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
