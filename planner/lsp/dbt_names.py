"""`ref()` and `source()` of a dbt project, by the names and texts of its files, without running dbt."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.lsp.completion import Item, ItemKind
from mergeplan.planner.lsp.project_files import list_files, read_text
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.texts import FileSpan, Lines, Span
from mergeplan.planner.parsing.sql.yaml_documents import read_document

_CALL = re.compile(
    r"""\b(?P<call>ref|source)\s*\(\s*(?P<q>['"])(?P<first>[^'"]*)(?P=q)(?:\s*,\s*(?P<r>['"])(?P<second>[^'"]*)(?P=r))?"""
)
_OPEN_CALL = re.compile(r"""\b(ref|source)\s*\(\s*(?:['"]([^'"]*)['"]\s*,\s*)?['"]([^'"]*)\Z""")


@dataclass(frozen=True)
class DbtName:
    """The object that a call names: a model by its name, or a table of a source."""

    name: str
    source: str = ""


def name_at(text: str, offset: int) -> tuple[DbtName, Span] | None:
    for name, span in _find_calls(text):
        if span.holds(offset):
            return name, span
    return None


def definition_of(root: Path, name: DbtName) -> tuple[FileSpan, ...]:
    if name.source:
        return tuple(place for source, place, _ in _source_tables(root) if source == name)
    paths = (path for path in list_files(root, ".sql", ".csv", ".py") if PurePosixPath(path).stem == name.name)
    files = [path for path in paths if path.partition("/")[0] not in ("macros", "tests", "analyses")]
    return tuple(FileSpan(path, Span(0, 0)) for path in files)


def references_of(root: Path, name: DbtName, texts: Mapping[str, str]) -> Iterator[FileSpan]:
    """Yield every call that names it, its definition first."""
    yield from definition_of(root, name)
    for path in list_files(root, ".sql"):
        text = texts[path] if path in texts else read_text(root / path) or ""
        if name.name in text:
            yield from (FileSpan(path, span) for called_name, span in _find_calls(text) if called_name == name)


def table_of(view: ProjectView, root: Path, name: DbtName) -> str | None:
    """Return our model that a call means, as the compiled project has it; None if it is not known."""
    if name.source:
        source_table = next((table for source, _, table in _source_tables(root) if source == name), "")
        return next(
            (model for model in view.project.models if model == source_table or model.endswith(f".{source_table}")),
            None,
        )
    for model in view.project.models.values():
        if PurePosixPath(model.path.partition("#")[0]).stem == name.name and not model.kind.is_external:
            return model.name
    return None


def complete_names(root: Path, text: str, offset: int) -> tuple[Item, ...] | None:
    """Return the models or sources that fit into a call that is open at an offset; None outside of one."""
    match = _OPEN_CALL.search(text[max(offset - 400, 0) : offset])
    if match is None:
        return None
    call, first, word = match.groups()
    span = Span(offset - len(word), offset)
    if call == "ref":
        paths = (PurePosixPath(path) for path in list_files(root, ".sql", ".csv", ".py"))
        names = sorted({path.stem for path in paths if path.parts[0] not in ("macros", "tests", "analyses")})
        return tuple(Item(name, ItemKind.MODEL, span, "model", 1) for name in names)
    sources = [source for source, _, _ in _source_tables(root)]
    labels = (s.name for s in sources if s.source == first) if first is not None else (s.source for s in sources)
    return tuple(Item(label, ItemKind.MODEL, span, "source", 1) for label in dict.fromkeys(labels))


def _find_calls(text: str) -> Iterator[tuple[DbtName, Span]]:
    for match in _CALL.finditer(text):
        if match["call"] == "source" and match["second"] is not None:
            yield DbtName(match["second"], match["first"]), Span(match.start("first"), match.end("second"))
        elif match["call"] == "ref":
            part = "second" if match["second"] is not None else "first"
            yield DbtName(match[part]), Span(match.start("first"), match.end(part))


def _source_tables(root: Path) -> Iterator[tuple[DbtName, FileSpan, str]]:
    for path in list_files(root, ".yml", ".yaml"):
        text = read_text(root / path) or ""
        if "sources:" not in text:
            continue
        try:
            document = read_document(path, text)
        except ProjectError:
            continue
        lines = Lines(text)
        for index, source in enumerate(_mapping_items(document.value, "sources")):
            source_name = str(source.get("name"))
            for number, table in enumerate(_mapping_items(source, "tables")):
                place = document.place(("sources", index, "tables", number, "name"))
                called = table.get("identifier") or table.get("name")
                full = f"{source.get('schema') or source_name}.{called}".lower()
                yield DbtName(str(table.get("name")), source_name), FileSpan(path, lines.word_at(place.line, 0)), full


def _mapping_items(mapping: object, key: str) -> list[dict[str, Any]]:
    items = mapping.get(key) if isinstance(mapping, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
