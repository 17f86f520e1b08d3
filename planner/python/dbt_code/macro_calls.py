"""Calls of macros in unit tests of mergeplan: each is rendered as dbt renders the query of an analysis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def call_node(text: str, config: Any, manifest: Any) -> Iterator[Any]:
    """Yield a node of dbt with this text, which the manifest has within the context only."""
    from dbt.parser.manifest import process_node
    from dbt.parser.sql import SqlBlockParser

    before = set(manifest.nodes)
    try:
        parser = SqlBlockParser(project=config, manifest=manifest, root_project=config)
        node = parser.parse_remote(text, "mergeplan_unit_test")
        process_node(config, manifest, node)
        yield node
    finally:
        for name in set(manifest.nodes) - before:
            del manifest.nodes[name]
