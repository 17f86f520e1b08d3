"""Unit tests of dbt as data."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError
from mergeplan.planner.python.dbt_code.node_data import plain_value


def unit_test_data(test: Any, manifest: Any, relation: Callable[[Any], str]) -> dict[str, Any]:
    model = next((manifest.nodes[name] for name in test.depends_on.nodes if name in manifest.nodes), None)
    overrides = test.overrides
    macros = dict(overrides.macros) if overrides else {}
    is_incremental = bool(macros.pop("is_incremental", False))
    meta = getattr(test.config, "meta", None) or {}
    data = {
        "id": test.unique_id, "name": test.name, "path": test.original_file_path,
        "model": model.unique_id if model else "", "description": test.description or "",
        "inputs": [], "expect": _fixture_data(test.expect), "is_incremental": is_incremental, "error": "",
        "load": _plain_data(meta.get("mergeplan") or {}),
    }  # fmt: skip
    if macros or (overrides and (overrides.vars or overrides.env_vars)):
        data["error"] = "it overrides other macros than `is_incremental`, or variables"
    try:
        data["inputs"] = [
            {**_fixture_data(item), "relation": _input_table(item.input, model, manifest, relation)}
            for item in test.given
        ]
    except CompileError as error:
        data["error"] = str(error)
    return data


def _input_table(text: str, model: Any, manifest: Any, relation: Callable[[Any], str]) -> str:
    from dbt_extractor import py_extract_from_source

    if text.strip() == "this":
        return relation(model)
    parsed = py_extract_from_source(f"{{{{ {text} }}}}")
    source = next(iter(parsed["sources"]), None)
    ref: dict[str, Any] = next(iter(parsed["refs"]), {})
    parents = [(manifest.nodes.get(name) or manifest.sources.get(name)) for name in model.depends_on.nodes]
    for parent in filter(None, parents):
        if source is not None:
            if [getattr(parent, "source_name", None), parent.name] == list(source):
                return relation(parent)
        elif parent.name == ref.get("name") and ref.get("package") in (None, parent.package_name):
            version = getattr(parent, "version", None)
            if ref.get("version") is None or str(ref["version"]) == str(version):
                return relation(parent)
    raise CompileError(f"its model does not read `{text}`")


def _fixture_data(fixture: Any) -> dict[str, Any]:
    if isinstance(fixture.rows, str):
        return {"query": fixture.rows}
    rows = [{name: plain_value(value) for name, value in row.items()} for row in fixture.rows or []]
    return {"rows": rows}


def _plain_data(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain_data(inner) for key, inner in value.items()}
    return [_plain_data(inner) for inner in value] if isinstance(value, list) else plain_value(value)


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
