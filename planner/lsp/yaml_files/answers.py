"""Completion, hover and definitions in the project's YAML: by the file's schema, and by the models that it names."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from mergeplan.planner.contract.config_schema import config_schema
from mergeplan.planner.lsp.completion import Item, ItemKind
from mergeplan.planner.lsp.names import NameKind, Owner
from mergeplan.planner.lsp.navigation import Target
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.texts import Span
from mergeplan.planner.lsp.yaml_files.file_schemas import FILE_SCHEMAS
from mergeplan.planner.lsp.yaml_files.places import ITEM, Step, YamlPlace, find_place, place_at
from mergeplan.planner.parsing.definitions.audits.builtin_audits import BUILT_IN as AUDITS
from mergeplan.planner.parsing.sql.names import without_default

Schema = dict[str, Any]


def complete_yaml(view: ProjectView, path: str, text: str, offset: int) -> tuple[Item, ...]:
    schema, place = schema_of(path), place_at(text, offset)
    if place is None:
        return ()
    span = Span(place.word.start, offset)
    nodes = schemas_at(schema, place.path) if schema is not None else ()
    items = [*_named_items(view, path, text, place, span)]
    if place.key is None:
        items += _key_items(nodes, place, span)
    items += _value_items(nodes, span)
    return tuple({item.label: item for item in reversed(items)}.values())[::-1]


def describe_yaml(path: str, text: str, offset: int) -> tuple[str, Span] | None:
    """Return the schema's description of the key at an offset, as Markdown."""
    schema, place = schema_of(path), place_at(text, offset)
    if schema is None or place is None or place.word.start == place.word.end:
        return None
    word = text[place.word.start : place.word.end]
    steps = place.path if place.key is not None else (*place.path, word)
    nodes = schemas_at(schema, steps)
    lines = [f"**{steps[-1]}**" + _describe_nodes(nodes)]
    lines += dict.fromkeys(str(node["description"]) for node in nodes if node.get("description"))
    return ("\n\n".join(lines), place.word) if nodes and len(lines) > 1 else None


def yaml_target(view: ProjectView, path: str, text: str, offset: int) -> tuple[Target, Span] | None:
    """Return the model that is named at an offset, or its column in a row of a unit test."""
    place = place_at(text, offset)
    if place is None or place.word.start == place.word.end:
        return None
    word = text[place.word.start : place.word.end].strip("'\"").lower()
    name = without_default(word, view.project.catalogs.default)
    if name in view.project.models and "." in name:
        return Target(NameKind.TABLE, name), place.word
    table = _row_table(view, path, text, place)
    if table and place.key is None and word in (view.columns(table) or ()):
        return Target(NameKind.COLUMN, word, Owner(table)), place.word
    return None


def _describe_nodes(nodes: Iterable[Schema]) -> str:
    nodes = list(nodes)
    types = dict.fromkeys(name for node in nodes for name in _node_types(node) if name != "null")
    values = dict.fromkeys(f"`{value}`" for node in nodes for value in _node_choices(node))
    defaults = [node["default"] for node in nodes if node.get("default") not in (None, [], {}, "")]
    parts = [", ".join(types)] if types and not values else []
    parts += [", ".join(list(values)[:12])] if values else []
    parts += [f"default `{defaults[0]}`"] if defaults else []
    return "".join(f" · {part}" for part in parts)


def _node_types(node: Schema) -> tuple[str, ...]:
    kind = node.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _node_choices(node: Schema) -> Iterator[Any]:
    yield from node.get("enum", ())
    if "const" in node:
        yield node["const"]


def _key_items(nodes: Iterable[Schema], place: YamlPlace, span: Span) -> Iterator[Item]:
    for node in nodes:
        required = node.get("required", ())
        for key, about in node.get("properties", {}).items():
            if key not in place.siblings:
                detail = str(about.get("description", "")) or "key"
                yield Item(key, ItemKind.PROPERTY, span, detail, 2 if key in required else 3)


def _value_items(nodes: Iterable[Schema], span: Span) -> Iterator[Item]:
    for node in nodes:
        for value in _node_choices(node):
            yield Item(str(value), ItemKind.VALUE, span, "value", 1)
        if "boolean" in _node_types(node):
            yield Item("true", ItemKind.VALUE, span, "boolean", 1)
            yield Item("false", ItemKind.VALUE, span, "boolean", 1)


def _named_items(view: ProjectView, path: str, text: str, place: YamlPlace, span: Span) -> Iterator[Item]:
    folder, steps = path.partition("/")[0], place.path
    if folder == "tests":
        if len(steps) == 2 and steps[1] == "model" and place.key:
            yield from _model_items(view, (name for name, model in view.project.models.items() if model.sql), span)
        elif len(steps) == 2 and steps[1] == "inputs":
            model = view.project.models.get(_model_of_test(view, text, str(steps[0])))
            yield from _model_items(view, model.depends_on if model else view.project.models, span)
        elif (table := _row_table(view, path, text, place)) and place.key is None:
            types = view.types(table)
            for column in view.columns(table) or ():
                if column not in place.siblings:
                    yield Item(column, ItemKind.COLUMN, span, types.get(column, ""), 1)
    elif path.startswith("exposures") and steps[-2:] == ("models", ITEM):
        yield from _model_items(view, view.project.models, span)
    elif path.startswith("external_models") and steps[-2:] == ("audits", ITEM):
        for name in sorted({*AUDITS, *view.project.audits}):
            yield Item(name, ItemKind.VALUE, span, "audit", 1)


def _model_items(view: ProjectView, names: Iterable[str], span: Span) -> Iterator[Item]:
    models: Mapping[str, Any] = view.project.models
    for name in names:
        yield Item(name, ItemKind.MODEL, span, str(models[name].kind) if name in models else "table", 1)


def _row_table(view: ProjectView, path: str, text: str, place: YamlPlace) -> str:
    """Return the table whose row is written at a place of a unit test; '' at any other place."""
    if path.partition("/")[0] != "tests" or len(place.path) < 3:
        return ""
    test, part, name, *row_path = place.path
    if part == "this" and place.path[2:] in ((ITEM,), ("rows", ITEM)):
        return _model_of_test(view, text, str(test))
    is_row = row_path in ([ITEM], ["rows", ITEM])
    if part == "inputs" and is_row:
        return without_default(str(name).lower(), view.project.catalogs.default)
    if part == "outputs" and name in ("query", "table") and is_row:
        return _model_of_test(view, text, str(test))
    return ""


def _model_of_test(view: ProjectView, text: str, test: str) -> str:
    key: tuple[Step, ...] = (test, "model")
    span = find_place(text, key)
    if span is None:
        return ""
    line = text[span.end : text.find("\n", span.end) if "\n" in text[span.end :] else len(text)]
    value = line.partition(":")[2].partition(" #")[0].strip().strip("'\"")
    return without_default(value.lower(), view.project.catalogs.default)


def schema_of(path: str) -> Schema | None:
    """Return the schema of a file of the project, by its path from there; None for one without."""
    folder, _, name = path.rpartition("/")
    stem, _, suffix = name.rpartition(".")
    if suffix not in ("yaml", "yml"):
        return None
    if not folder:
        return _make_schema(stem)
    top = folder.partition("/")[0]
    top = "tests" if top == "mergeplan_tests" else top  # of a dbt project
    return _make_schema(top) if top in ("tests", "external_models", "exposures") else None


@cache
def _make_schema(name: str) -> Schema | None:
    makers = {"config": config_schema, **FILE_SCHEMAS}
    return makers[name]() if name in makers else None


def schemas_at(schema: Schema, path: tuple[Step, ...]) -> tuple[Schema, ...]:
    """Return the schemas of a place: several for alternatives, none for an unknown place."""
    nodes = list(_expand_alternatives(schema, schema))
    for step in path:
        nodes = [
            inner
            for node in nodes
            for child in _child_schemas(node, step)
            for inner in _expand_alternatives(schema, child)
        ]
    return tuple(nodes)


def _child_schemas(node: Schema, step: Step) -> Iterator[Schema]:
    if step == ITEM:
        if isinstance(node.get("items"), dict):
            yield node["items"]
        return
    if step in node.get("properties", {}):
        yield node["properties"][step]
    elif isinstance(node.get("additionalProperties"), dict):
        yield node["additionalProperties"]


def _expand_alternatives(schema: Schema, node: Schema) -> Iterator[Schema]:
    yield node
    if reference := node.get("$ref"):
        yield from _expand_alternatives(schema, schema["$defs"][str(reference).rpartition("/")[2]])
    for key in ("anyOf", "oneOf", "allOf"):
        for option in node.get(key, ()):
            yield from _expand_alternatives(schema, option)
