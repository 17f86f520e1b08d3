"""The project in an editor: from its models and an unsaved text to what the editor shows; `mergeplan lsp`."""
