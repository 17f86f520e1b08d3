"""Macros and variables of a project, their descriptions and calls, by the texts of `macros/`: no code runs."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mergeplan.planner.lsp.project_files import Layout, layout_of, list_files, read_text
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.sql_file import LARGEST
from mergeplan.planner.lsp.texts import FileSpan, Lines, Span
from mergeplan.planner.lsp.yaml_files.places import find_place
from mergeplan.planner.parsing.macros.expand import BUILT_IN
from mergeplan.planner.parsing.sql.macro_scope import DATES

_PYTHON_CALL = re.compile(r"@(\w+)")
_JINJA_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)\s*(\((?:[^%]|%(?!\}))*?\))\s*-?%\}")
_JINJA = re.compile(r"\{\{.*?(?:\}\}|\Z)|\{%.*?(?:%\}|\Z)", re.DOTALL)  # one that is being written is open to the end
_JINJA_CALL = re.compile(r"(?<![.\w])(\w+)\s*\(")
_COMMENT = re.compile(r"\{#(.*?)#\}\s*\Z", re.DOTALL)
FOLDER, CODE = "macros", (".py", ".sql")


@dataclass(frozen=True)
class Macro:
    """A macro: `signature` as it is called, `text` is its own description."""

    name: str
    place: FileSpan
    signature: str
    text: str = ""
    is_jinja: bool = False


def macros_of(root: Path, texts: Mapping[str, str]) -> dict[str, Macro]:
    """Return the macros of a folder by name; `texts` replace files."""
    found_macros: dict[str, Macro] = {}
    folder = root / FOLDER
    on_disk = {file.relative_to(root).as_posix() for file in folder.rglob("*") if file.suffix in CODE}
    for path in sorted(on_disk | {path for path in texts if path.startswith(f"{FOLDER}/") and path.endswith(CODE)}):
        text = _read_text(root, path, texts)
        reader = _python_macros if path.endswith(".py") else _jinja_macros
        for macro in reader(path, text):
            found_macros.setdefault(macro.name, macro)
    return found_macros


def macro_at(path: str, text: str, offset: int, macros: Mapping[str, Macro]) -> tuple[str, Span] | None:
    """Return the macro or variable that is called or defined at an offset, in lower case, and its span."""
    for macro in macros.values():
        if macro.place.path == path and macro.place.span.holds(offset):
            return macro.name, macro.place.span
    if path.endswith(".sql"):
        for name, span in _find_calls(text, macros):
            if span.holds(offset):
                return name, span
    return None


def describe_macro(view: ProjectView | None, name: str, macros: Mapping[str, Macro]) -> str | None:
    """Return the description of a macro or a variable, as Markdown; None for any other name."""
    if macro := macros.get(name):
        kind = "Jinja macro" if macro.is_jinja else "macro"
        return "\n\n".join(part for part in (f"**{macro.signature}** · {kind}, {macro.place.path}", macro.text) if part)
    if view is not None and name in view.project.defaults.variables:
        return f"**@{name}** · variable of config.yaml: `{view.project.defaults.variables[name]!r}`"
    if name in DATES:
        return f"**@{name}** · date of the interval that is computed"
    if name in BUILT_IN:
        about = (BUILT_IN[name].__doc__ or "").split("\n\n")[0]
        return f"**@{name.upper()}** · built-in macro" + (f"\n\n{about}" if about else "")
    return None


def macro_definition(
    view: ProjectView | None, root: Path, name: str, macros: Mapping[str, Macro]
) -> tuple[FileSpan, ...]:
    if macro := macros.get(name):
        return (macro.place,)
    if view is None or name not in view.project.defaults.variables:
        return ()
    path = view.project.config_path
    text = _read_text(root, path, view.texts)
    span = find_place(text, ("variables", name)) if path.endswith((".yaml", ".yml")) else None
    return (FileSpan(path, span),) if span else ()


def macro_references(view: ProjectView, name: str, macros: Mapping[str, Macro]) -> Iterator[FileSpan]:
    """Yield every call of a macro or a variable in the project's SQL, its definition first."""
    root = view.project.root
    yield from macro_definition(view, root, name, macros)
    pattern = re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE)
    for path in _sql_files(view):
        text = _read_text(root, path, view.texts)
        if pattern.search(text):
            yield from (FileSpan(path, span) for called, span in _find_calls(text, macros) if called == name)


def _sql_files(view: ProjectView) -> tuple[str, ...]:
    if layout_of(view.project.root) is not Layout.OWN:
        return tuple(list_files(view.project.root, ".sql"))
    paths = {path for path in view.path_models if path.endswith(".sql")}
    paths |= {audit.path for audit in view.project.audits.values() if audit.path}
    return tuple(sorted(paths | {path for path, _ in view.project.defaults.jinja}))


def _find_calls(text: str, macros: Mapping[str, Macro]) -> Iterator[tuple[str, Span]]:
    """Yield the names behind `@`, and those of Jinja's macros that are called in braces."""
    for match in _PYTHON_CALL.finditer(text):
        yield match[1].lower(), Span(match.start(), match.end())
    for block in _JINJA.finditer(text):
        for match in _JINJA_CALL.finditer(text, block.start(), block.end()):
            if (macro := macros.get(match[1])) is not None and macro.is_jinja:
                yield match[1], Span(match.start(1), match.end(1))


def _read_text(root: Path, path: str, texts: Mapping[str, str]) -> str:
    return texts[path] if path in texts else read_text(root / path) or ""


@lru_cache(maxsize=512)
def _python_macros(path: str, text: str) -> tuple[Macro, ...]:
    try:
        tree = ast.parse(text) if len(text) <= LARGEST else ast.parse("")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    lines, found_macros = Lines(text), []
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if not (isinstance(called, ast.Name | ast.Attribute) and ast.unparse(called).split(".")[-1] == "macro"):
                continue
            given_name = decorator.args[0] if isinstance(decorator, ast.Call) and decorator.args else None
            name = str(given_name.value) if isinstance(given_name, ast.Constant) else node.name
            start = text.find(node.name, lines.starts[node.lineno - 1] + node.col_offset)
            parameters = ", ".join(argument.arg for argument in node.args.args[1:])
            place = FileSpan(path, Span(start, start + len(node.name)))
            about = ast.get_docstring(node) or ""
            found_macros.append(Macro(name.lower(), place, f"@{name}({parameters})", about))
    return tuple(found_macros)


@lru_cache(maxsize=512)
def _jinja_macros(path: str, text: str) -> tuple[Macro, ...]:
    found_macros = []
    for match in _JINJA_MACRO.finditer(text) if len(text) <= LARGEST else ():
        comment = _COMMENT.search(text[: match.start()])
        about = " ".join(comment[1].split()) if comment else ""
        place = FileSpan(path, Span(match.start(1), match.end(1)))
        signature = f"{match[1]}{' '.join(match[2].split())}"
        found_macros.append(Macro(match[1], place, signature, about, is_jinja=True))
    return tuple(found_macros)
