"""Our data as the protocol's types."""

from collections.abc import Iterable
from pathlib import Path

from lsprotocol import types as lsp

from mergeplan.planner.lsp.completion import Item, ItemKind
from mergeplan.planner.lsp.diagnostics import Diagnostic
from mergeplan.planner.lsp.names import NameKind
from mergeplan.planner.lsp.outline import Symbol
from mergeplan.planner.lsp.texts import Edit, Lines, Span

KINDS = {
    ItemKind.PROPERTY: lsp.CompletionItemKind.Property,
    ItemKind.VALUE: lsp.CompletionItemKind.Value,
    ItemKind.MODEL: lsp.CompletionItemKind.Class,
    ItemKind.COLUMN: lsp.CompletionItemKind.Field,
    ItemKind.ALIAS: lsp.CompletionItemKind.Variable,
    ItemKind.MACRO: lsp.CompletionItemKind.Snippet,
    ItemKind.FUNCTION: lsp.CompletionItemKind.Function,
    ItemKind.KEYWORD: lsp.CompletionItemKind.Keyword,
}
SYMBOLS = {
    NameKind.TABLE: lsp.SymbolKind.Class,
    NameKind.CTE: lsp.SymbolKind.Variable,
    NameKind.COLUMN: lsp.SymbolKind.Field,
}
TOKENS = ("class", "variable", "property", "macro")


def make_range(lines: Lines, span: Span) -> lsp.Range:
    return lsp.Range(lsp.Position(*lines.position(span.start)), lsp.Position(*lines.position(span.end)))


def make_diagnostic(lines: Lines, diagnostic: Diagnostic) -> lsp.Diagnostic:
    severity = lsp.DiagnosticSeverity.Error if diagnostic.severity == "error" else lsp.DiagnosticSeverity.Warning
    return lsp.Diagnostic(
        make_range(lines, diagnostic.span),
        diagnostic.message,
        severity=severity,
        code=diagnostic.rule or None,
        source="mergeplan",
    )


def make_item(lines: Lines, item: Item) -> lsp.CompletionItem:
    return lsp.CompletionItem(
        item.label,
        kind=KINDS[item.kind],
        detail=item.detail or None,
        sort_text=f"{item.rank}{item.label}",
        filter_text=item.label,
        text_edit=lsp.TextEdit(make_range(lines, item.span), item.label),
    )


def make_symbol(lines: Lines, symbol: Symbol) -> lsp.DocumentSymbol:
    place = make_range(lines, symbol.span)
    return lsp.DocumentSymbol(symbol.name, SYMBOLS[symbol.kind], place, place, detail=symbol.detail or None)


def make_workspace_edit(root: Path, edits: Iterable[Edit], texts: dict[str, str]) -> lsp.WorkspaceEdit:
    """Return edits by file, of which a missing one is created; `texts` are those that the edits were made of."""
    by_path: dict[str, list[Edit]] = {}
    for edit in edits:
        by_path.setdefault(edit.path, []).append(edit)
    changes: list[lsp.TextDocumentEdit | lsp.CreateFile | lsp.RenameFile | lsp.DeleteFile] = []
    for path, file_edits in by_path.items():
        uri, lines = (root / path).as_uri(), Lines(texts[path])
        if not (root / path).exists():
            changes.append(lsp.CreateFile(uri, options=lsp.CreateFileOptions(ignore_if_exists=True)))
        text_edits: list[lsp.TextEdit | lsp.AnnotatedTextEdit | lsp.SnippetTextEdit] = [
            lsp.TextEdit(make_range(lines, edit.span), edit.text) for edit in file_edits
        ]
        document = lsp.OptionalVersionedTextDocumentIdentifier(uri)
        changes.append(lsp.TextDocumentEdit(document, text_edits))
    return lsp.WorkspaceEdit(document_changes=changes)


def make_semantic_tokens(lines: Lines, tokens: Iterable[tuple[Span, str]]) -> lsp.SemanticTokens:
    """Return tokens as differences of lines and columns; one that spans lines is left out."""
    data: list[int] = []
    line_before = column_before = 0
    for span, kind in tokens:
        (line, column), (end_line, end) = lines.position(span.start), lines.position(span.end)
        if line != end_line:
            continue
        data += [
            line - line_before,
            column - column_before if line == line_before else column,
            end - column,
            TOKENS.index(kind),
            0,
        ]
        line_before, column_before = line, column
    return lsp.SemanticTokens(data)
