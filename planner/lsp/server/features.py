"""The features of the language server: the questions of a client's messages to the projects."""

from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.uris import to_fs_path

from mergeplan.planner.lsp import outline
from mergeplan.planner.lsp.actions import actions_at
from mergeplan.planner.lsp.completion import signature_at
from mergeplan.planner.lsp.editor import Editor
from mergeplan.planner.lsp.navigation import target_at
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.questions import completions_at, definitions_at, hover_at, references_at
from mergeplan.planner.lsp.server import conversions as to
from mergeplan.planner.lsp.server.desk import OpenDocument
from mergeplan.planner.lsp.server.server import Server
from mergeplan.planner.lsp.texts import FileSpan, Lines, Span


def add_documents(server: Server) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        options = params.initialization_options
        trusted = options.get("trusted") if isinstance(options, dict) else None
        server.desk.trusted = trusted is True

    @server.feature("mergeplan/trust")
    async def trust(_: Any) -> None:
        server.desk.trusted = True
        for editor in server.desk.editors.values():
            await server.desk.read(editor.trust)
        for document in server.desk.documents.values():
            document.number += 1
            server.start(server.judge(document))

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(params: lsp.DidOpenTextDocumentParams) -> None:
        if document := server.desk.open(params.text_document.uri, params.text_document.text):
            server.start(server.judge(document))

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(params: lsp.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        if document := server.desk.change(uri, server.workspace.get_text_document(uri).source):
            server.start(server.judge(document))

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(params: lsp.DidSaveTextDocumentParams) -> None:
        if document := server.document(params.text_document.uri):
            server.start(server.judge(document, saved=True))

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(params: lsp.DidCloseTextDocumentParams) -> None:
        if document := server.desk.documents.pop(params.text_document.uri, None):
            await server.desk.read(lambda: document.editor.live.close(document.path))
            self_diagnostics = lsp.PublishDiagnosticsParams(document.uri, [])
            server.text_document_publish_diagnostics(self_diagnostics)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def did_change_files(params: lsp.DidChangeWatchedFilesParams) -> None:
        files = [Path(to_fs_path(change.uri) or "").absolute() for change in params.changes]
        for editor in server.desk.editors_of(files):
            await server.desk.read(editor.live.load)
            for document in server.desk.documents.values():
                if document.editor is editor:
                    document.number += 1
                    server.start(server.judge(document))


def add_lenses(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        effects = await server.desk.plan(document)
        lenses = []
        for effect in effects:
            at = lsp.Position(max(effect.line - 1, 0), 0)
            place = lsp.Range(at, at)
            shown = lsp.Command(effect.text, "mergeplan.showEffect", arguments=[document.uri, effect.model])
            rendered = lsp.Command("Render", "mergeplan.render", arguments=[document.uri, effect.model])
            lenses += [lsp.CodeLens(place, shown), lsp.CodeLens(place, rendered)]
        return lenses + await unit_test_lenses(server, document)


async def unit_test_lenses(server: Server, document: OpenDocument) -> list[lsp.CodeLens]:
    view = document.view
    if view is None:
        return []
    lenses = []
    for test in view.project.tests:
        if test.path == document.path:
            at = lsp.Position(max(test.line - 1, 0), 0)
            command = lsp.Command("Run test", "mergeplan.runTest", arguments=[document.uri, test.name])
            lenses.append(lsp.CodeLens(lsp.Range(at, at), command))
    return lenses


def add_writing(server: Server) -> None:

    @server.feature(lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionOptions(trigger_characters=[".", "@", " ", "("]))
    async def completion(params: lsp.CompletionParams) -> lsp.CompletionList | None:
        def question(document: OpenDocument) -> lsp.CompletionList:
            lines = document.lines
            items = completions_at(*at(document, params.position))
            return lsp.CompletionList(False, [to.make_item(lines, item) for item in items])

        return await server.ask_file(params.text_document.uri, question)

    @server.feature(lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpOptions(trigger_characters=["(", ","]))
    async def signature_help(params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        document = server.document(params.text_document.uri)
        if document is None:
            return None
        shown = signature_at(document.text, document.lines.offset(params.position.line, params.position.character))
        if shown is None:
            return None
        label, argument = shown
        names = label.partition("(")[2].removesuffix(")").split(", ")
        parameters = [lsp.ParameterInformation(name) for name in names if name]
        return lsp.SignatureHelp([lsp.SignatureInformation(label, parameters=parameters)], 0, argument)


def add_navigation(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hover(params: lsp.HoverParams) -> lsp.Hover | None:
        def question(document: OpenDocument) -> lsp.Hover | None:
            answer = hover_at(*at(document, params.position))
            if answer is None:
                return None
            content = lsp.MarkupContent(lsp.MarkupKind.Markdown, answer[0])
            return lsp.Hover(content, to.make_range(document.lines, answer[1]))

        return await server.ask_file(params.text_document.uri, question)

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: lsp.DefinitionParams) -> list[lsp.Location] | None:
        def question(document: OpenDocument) -> list[lsp.Location]:
            return make_locations(document.editor, definitions_at(*at(document, params.position)))

        return await server.ask_file(params.text_document.uri, question)

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    async def find_references(params: lsp.ReferenceParams) -> list[lsp.Location] | None:
        def question(document: OpenDocument) -> list[lsp.Location]:
            return make_locations(document.editor, references_at(*at(document, params.position)))

        return await server.ask_file(params.text_document.uri, question)


def add_edits(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    async def rename(params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        def question(document: OpenDocument, view: ProjectView) -> lsp.WorkspaceEdit | None:
            offset = document.lines.offset(params.position.line, params.position.character)
            place = target_at(view, document.path, document.text, offset)
            if place is None:
                return None
            edits = document.editor.rename(place[0], params.new_name)
            texts = texts_of(document.editor, {edit.path for edit in edits})
            return to.make_workspace_edit(view.project.root, edits, texts)

        return await server.ask(params.text_document.uri, question)

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare_rename(params: lsp.PrepareRenameParams) -> lsp.Range | None:
        def question(document: OpenDocument, view: ProjectView) -> lsp.Range | None:
            lines = document.lines
            offset = lines.offset(params.position.line, params.position.character)
            place = target_at(view, document.path, document.text, offset)
            return to.make_range(lines, place[1]) if place else None

        return await server.ask(params.text_document.uri, question)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION)
    async def code_action(params: lsp.CodeActionParams) -> list[lsp.CodeAction] | None:
        def question(document: OpenDocument, view: ProjectView) -> list[lsp.CodeAction]:
            lines = document.lines
            span = Span(
                lines.offset(params.range.start.line, params.range.start.character),
                lines.offset(params.range.end.line, params.range.end.character),
            )
            answers = []
            for action in actions_at(view, document.path, document.text, span, document.diagnostics):
                kind = lsp.CodeActionKind.QuickFix if action.fixes else lsp.CodeActionKind.RefactorRewrite
                texts = texts_of(document.editor, {edit.path for edit in action.edits})
                edit = to.make_workspace_edit(view.project.root, action.edits, texts)
                answers.append(lsp.CodeAction(action.title, kind=kind, edit=edit))
            return answers

        return await server.ask(params.text_document.uri, question)


def add_outline(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def document_symbol(params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol] | None:
        def question(document: OpenDocument, view: ProjectView) -> list[lsp.DocumentSymbol]:
            lines = document.lines
            return [
                to.make_symbol(lines, symbol) for symbol in outline.list_symbols(view, document.path, document.text)
            ]

        return await server.ask(params.text_document.uri, question)

    @server.feature(lsp.WORKSPACE_SYMBOL)
    async def workspace_symbol(params: lsp.WorkspaceSymbolParams) -> list[lsp.WorkspaceSymbol]:
        symbols = []
        for editor in server.desk.editors.values():
            if editor.view is None:
                continue
            for name, path, line in outline.workspace_symbols(editor.view, params.query):
                at = lsp.Position(max(line - 1, 0), 0)
                location = lsp.Location((editor.root / path).as_uri(), lsp.Range(at, at))
                symbols.append(lsp.WorkspaceSymbol(location, name, lsp.SymbolKind.Class))
        return symbols

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folding(params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange] | None:
        def question(document: OpenDocument, view: ProjectView) -> list[lsp.FoldingRange]:
            lines = document.lines
            spans = outline.list_folds(view.file(document.path, document.text))
            rows = {(lines.position(span.start)[0], lines.position(span.end)[0]) for span in spans}
            return [lsp.FoldingRange(start, end) for start, end in sorted(rows) if end > start]

        return await server.ask(params.text_document.uri, question)

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(params: lsp.InlayHintParams) -> list[lsp.InlayHint] | None:
        def question(document: OpenDocument, view: ProjectView) -> list[lsp.InlayHint]:
            lines = document.lines
            hints = outline.type_hints(view, document.path, document.text)
            return [
                lsp.InlayHint(lsp.Position(*lines.position(hint.offset)), f": {hint.text}", lsp.InlayHintKind.Type)
                for hint in hints
            ]

        return await server.ask(params.text_document.uri, question)

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, lsp.SemanticTokensLegend(list(to.TOKENS), []))
    async def semantic_tokens(params: lsp.SemanticTokensParams) -> lsp.SemanticTokens | None:
        def question(document: OpenDocument, view: ProjectView) -> lsp.SemanticTokens:
            tokens = outline.semantic_tokens(view.file(document.path, document.text))
            return to.make_semantic_tokens(document.lines, tokens)

        return await server.ask(params.text_document.uri, question)


def at(document: OpenDocument, position: lsp.Position) -> tuple[Editor, str, str, int]:
    """Return the place of a client's question, as our functions take it."""
    return document.editor, document.path, document.text, document.lines.offset(position.line, position.character)


def make_locations(editor: Editor, places: tuple[FileSpan, ...]) -> list[lsp.Location]:
    texts = texts_of(editor, {place.path for place in places})
    return [
        lsp.Location((editor.root / place.path).as_uri(), to.make_range(Lines(texts[place.path]), place.span))
        for place in dict.fromkeys(places)
    ]


def texts_of(editor: Editor, paths: set[str]) -> dict[str, str]:
    """Return the texts of files: as they are open, were read, or are on the disk; '' for a missing one."""
    texts = {}
    for path in paths:
        text = editor.view.text(path) if editor.view is not None else editor.live.texts.get(path)
        if text is None:
            file = editor.root / path
            text = file.read_text("utf-8-sig", "replace").replace("\r\n", "\n") if file.is_file() else ""
        texts[path] = text
    return texts
