"""The outline of a file: its model, CTEs and outputs, its folding ranges, and the types of its outputs."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.lsp.names import NameKind, Owner
from mergeplan.planner.lsp.project_view import FileView, ProjectView
from mergeplan.planner.lsp.texts import Span


@dataclass(frozen=True)
class Symbol:
    """A model, CTE or column of a file."""

    name: str
    kind: NameKind
    span: Span
    detail: str = ""


@dataclass(frozen=True)
class Hint:
    """A type behind an output."""

    offset: int
    text: str


def list_symbols(view: ProjectView, path: str, text: str) -> tuple[Symbol, ...]:
    file = view.file(path, text)
    found_symbols: list[Symbol] = []
    for model in file.models:
        prop = file.file.property("name")
        span = Span(prop.value[0].start, prop.value[-1].end + 1) if prop and prop.value else Span(0, 0)
        found_symbols.append(Symbol(model.name, NameKind.TABLE, span, str(model.kind)))
    file_owner = Owner(file.models[0].name) if file.models else Owner()
    for name in file.names.names:
        if name.kind is NameKind.CTE and name.is_definition:
            found_symbols.append(Symbol(name.name, NameKind.CTE, name.span, "CTE"))
        elif name.defines == file_owner and file.models:
            found_symbols.append(Symbol(name.name, NameKind.COLUMN, name.span))
    return tuple(found_symbols)


def workspace_symbols(view: ProjectView, query: str) -> Iterator[tuple[str, str, int]]:
    """Yield the models whose names contain the query: name, path, line."""
    lower_query = query.lower()
    matches = (model for name, model in view.project.models.items() if lower_query in name)
    for model in islice(matches, 200):
        yield model.name, model.path, model.line


def list_folds(file: FileView) -> Iterator[Span]:
    if file.file.block is not None:
        yield file.file.block
    if file.file.query is not None:
        for cte in file.file.query.find_all(exp.CTE):
            places = [node.meta for node in cte.find_all(exp.Identifier) if "start" in node.meta]
            if places:
                yield Span(min(place["start"] for place in places), max(place["end"] for place in places) + 1)
    for statement in file.file.statements[1:]:
        yield Span(statement[0].start, statement[-1].end + 1)


def type_hints(view: ProjectView, path: str, text: str) -> Iterator[Hint]:
    file = view.file(path, text)
    if len(file.models) != 1:
        return
    model_name = file.models[0].name
    types = view.lineage[model_name].table.certain_types
    for name in file.names.names:
        if name.defines == Owner(model_name) and (kind := types.get(name.name)):
            yield Hint(name.span.end, kind)


def semantic_tokens(file: FileView) -> Iterator[tuple[Span, str]]:
    """Yield the names with their kinds: class (table), function (macro), variable (CTE), property (column)."""
    kinds = {NameKind.TABLE: "class", NameKind.CTE: "variable", NameKind.COLUMN: "property"}
    tokens = {name.span: kinds[name.kind] for name in file.names.names}
    for index, token in enumerate(file.file.tokens[:-1]):
        if token.token_type is TokenType.PARAMETER and file.file.tokens[index + 1].start == token.end + 1:
            tokens[Span(token.start, file.file.tokens[index + 1].end + 1)] = "macro"
    yield from sorted(tokens.items(), key=lambda pair: pair[0].start)
