"""The language server: the protocol's types and threads around `planner/lsp`. The one door to pygls and lsprotocol."""
