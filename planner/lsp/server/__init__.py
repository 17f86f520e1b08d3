"""The language server: the protocol's types and threads around `planner/lsp`. Only it imports pygls and lsprotocol."""
