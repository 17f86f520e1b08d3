"""An editor's questions about a place in a file: completion, hover, definition and references, by kind of file.

SQL is answered by its names, YAML by its schema, macros and dbt's `ref` and `source` by the texts of the folder. The
last two are answered also when the project is not open, since that runs none of its code.
"""

from mergeplan.planner.lsp import dbt_names
from mergeplan.planner.lsp.completion import Item, complete_sql
from mergeplan.planner.lsp.editor import Editor
from mergeplan.planner.lsp.hover import hover_text
from mergeplan.planner.lsp.macro_names import describe_macro, macro_at, macro_definition, macro_references, macros_of
from mergeplan.planner.lsp.names import NameKind
from mergeplan.planner.lsp.navigation import Target, find_definitions, find_references, target_at
from mergeplan.planner.lsp.project_files import Layout
from mergeplan.planner.lsp.texts import FileSpan, Span
from mergeplan.planner.lsp.yaml_files.answers import complete_yaml, describe_yaml, yaml_target

YAML = (".yaml", ".yml")


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
