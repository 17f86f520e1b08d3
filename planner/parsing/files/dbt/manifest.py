"""A compiled project from the manifests that `dbt compile` wrote elsewhere, as in CI; no dbt is asked here.

What of a manifest can be compared with the files of the project is: a node of another text is an error of that node.
YAML files leave no trace in a manifest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.files.dbt.adapter_defaults import MERGE, add_adapter_defaults
from mergeplan.planner.parsing.files.dbt.columns_as_words import quote_words
from mergeplan.planner.parsing.files.dbt.databricks_words import spark_words
from mergeplan.planner.parsing.files.dbt.nodes import DbtProject
from mergeplan.planner.parsing.files.dbt.parsed_files import AGAIN, NAME, ParsedFile, check_parsed_files, parsed_files

READ = (".sql", ".csv", ".py")  # of what dbt makes nodes
KINDS = ("model", "seed", "snapshot", "test")
INCREMENTAL = "macro.dbt.is_incremental"
_ARGUMENT = re.compile(r"""(?:(\w+)\s*=\s*)?['"]?([^'",()\s]+)['"]?""")
Read = Callable[[str], str | None]  # the text of a file of the project, None where there is none


@dataclass(frozen=True)
class Manifest:
    """One manifest.json, with the run_results.json and the partial_parse.msgpack beside it."""

    path: str
    content: Mapping[str, Any]
    results: Mapping[str, Any]
    parsed: tuple[ParsedFile, ...] = ()  # what dbt read to make it

    @property
    def project(self) -> str:
        """The name of the project, which its own nodes have as that of their package."""
        return str((self.content.get("metadata") or {}).get("project_name") or "")

    @property
    def adapter(self) -> str:
        """The adapter that it was made with."""
        return str((self.content.get("metadata") or {}).get("adapter_type") or "")

    @property
    def is_full_refresh(self) -> bool:
        """True where it says how tables are filled at first: `dbt compile --full-refresh` wrote both files."""
        ids = [(file.get("metadata") or {}).get("invocation_id") for file in (self.content, self.results)]
        return ids[0] == ids[1] and bool((self.results.get("args") or {}).get("full_refresh"))

    @cached_property
    def groups(self) -> dict[str, str]:
        """The owner of each group, by its name."""
        owners = {group["name"]: group.get("owner") or {} for group in self.content.get("groups", {}).values()}
        return {name: str(owner.get("name") or owner.get("email") or name) for name, owner in owners.items()}

    def calls(self, node: Mapping[str, Any], macro: str) -> bool:
        """True when a node's template calls a macro, also through others."""
        seen: set[str] = set()
        waiting = list((node.get("depends_on") or {}).get("macros") or ())
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += (self.content.get("macros", {}).get(name, {}).get("depends_on") or {}).get("macros") or ()
        return macro in seen


def load_manifest(path: str, text: str, results: str | None, parsed: bytes | None, project: str) -> Manifest:
    """A manifest of this project; ProjectError for what is none, is of another project or is not compiled for Spark."""
    content, run = _object(path, text), _object("run_results.json", results or "{}")
    if not isinstance(content.get("nodes"), dict):
        hint = "Make it by `dbt compile --full-refresh`."
        raise ProjectError("This is not dbt's manifest.json: it has no `nodes`.", place=Place(path, 1), hint=hint)
    manifest = Manifest(path, content, run)
    if manifest.adapter not in ("spark", "databricks"):
        message = f"The manifest was made for `{manifest.adapter}`: mergeplan runs on Spark."
        raise ProjectError(message, place=Place(path, 1))
    if manifest.project != project:
        message = f"The manifest is that of the project `{manifest.project}`, and this is `{project}`."
        raise ProjectError(message, place=Place(path, 1), hint=AGAIN)
    if parsed is None:
        hint = f"dbt writes it to the same folder: keep {NAME} there."
        raise ProjectError(f"There is no {NAME} beside the manifest, by which its files are compared.",
                           place=Place(path, 1), hint=hint)  # fmt: skip
    return replace(manifest, parsed=tuple(parsed_files(path, parsed, project)))


def manifest_project(
    first: Manifest, later: Manifest | None, types: Mapping[str, Any], files: Iterable[str], read: Read
) -> DbtProject:
    """The project of a manifest by `dbt compile --full-refresh`, and of one by `dbt compile` where the tables are.

    `types` are those of catalog.json, by node and column; `files` are the paths of the project's files, `read` gives
    their texts. ProjectError for a manifest of another form, and for a macro or a file that it does not know.
    """
    if not first.is_full_refresh:
        message = "This manifest is not of `dbt compile --full-refresh`, or its run_results.json is not beside it."
        hint = "Without that, nobody knows which form of its incremental models it has."
        raise ProjectError(message, place=Place(first.path, 1), hint=hint)
    content, names = first.content, list(files)
    for manifest in filter(None, (first, later)):
        check_parsed_files(manifest.path, manifest.parsed, first.project, names, read)
    _check_files(first, names)
    nodes = [node for node in content["nodes"].values() if node.get("resource_type") in KINDS and _is_enabled(node)]
    data = {
        "dbt": str((content.get("metadata") or {}).get("dbt_version") or ""),
        "nodes": [_node(first, later, node, types.get(node["unique_id"], {}), read) for node in nodes],
        "sources": [_source(source) for source in content.get("sources", {}).values()],
        "unit_tests": [_unit_test(first, test) for test in content.get("unit_tests", {}).values()],
        "exposures": [_exposure(exposure) for exposure in content.get("exposures", {}).values()],
        "hooks": [node["raw_code"] for node in content["nodes"].values() if node["resource_type"] == "operation"],
        "files": [],
    }
    folders = {name.split("/")[-2]: name.rpartition("/")[0] for name in names if name.endswith("/dbt_project.yml")}
    for part in ("nodes", "sources", "unit_tests"):
        data[part] = [_from_root(item, first.project, folders, {*names}) for item in data[part]]
    try:
        project = DbtProject.model_validate(data)
        is_databricks = first.adapter == "databricks"
        return project.change_texts(lambda text: spark_words(quote_words(text)) if is_databricks else quote_words(text))
    except ValidationError as error:
        wrong = error.errors()[0]
        message = f"The manifest has an unknown form: {wrong['msg']} at {'.'.join(map(str, wrong['loc']))}."
        raise ProjectError(message, place=Place(first.path, 1)) from None


def _from_root(item: dict[str, Any], project: str, folders: Mapping[str, str], names: set[str]) -> dict[str, Any]:
    """A part whose path is that from the project's root: dbt has that of a package's from the package's."""
    package = item["id"].split(".")[1]
    path = f"{folders.get(package, '')}/{item['path']}"
    return {**item, "path": path} if package != project and path in names else item


def _is_enabled(node: Mapping[str, Any]) -> bool:
    """False for a test of a model that is disabled, which dbt leaves out."""
    return (node.get("config") or {}).get("enabled") is not False


def _node(
    first: Manifest, later: Manifest | None, node: Mapping[str, Any], types: Mapping[str, str], read: Read
) -> dict[str, Any]:
    config, id = node.get("config") or {}, node["unique_id"]
    hooks, post_hooks = ([hook["sql"] for hook in config.get(name) or ()] for name in ("pre-hook", "post-hook"))
    other = later.content["nodes"].get(id) if later else None
    merge = str(first.content.get("macros", {}).get(MERGE, {}).get("macro_sql", ""))
    settings = add_adapter_defaults(first.adapter, config, merge)
    constraints = [[c["type"], name, c.get("expression") or ""] for name, c in _constraints(node)]
    column_types = {name.lower(): type_ for name, type_ in (config.get("column_types") or {}).items()}
    return {
        "id": id, "type": node["resource_type"], "name": node["name"], "path": node["original_file_path"],
        "package": node["package_name"], "relation": node.get("relation_name") or _relation(node),
        "language": node.get("language") or "sql",
        "settings": settings | ({"constraints": constraints} if constraints else {}),
        "columns": [_column(column) for column in (node.get("columns") or {}).values()],
        "description": node.get("description") or "", "tags": sorted(node.get("tags") or ()),
        "owner": first.groups.get(str(node.get("group") or config.get("group")), ""),
        "depends_on": sorted((node.get("depends_on") or {}).get("nodes") or ()),
        "attached": node.get("attached_node") or "", "hooks": hooks, "post_hooks": post_hooks,
        "text": node.get("compiled_code") or "", "later": (other or {}).get("compiled_code") or "",
        "error": _error(first, node, other, read) or _type_error(node, types, column_types),
        "types": [[name, column_types.get(name, type_)] for name, type_ in types.items()],
    }  # fmt: skip


def _error(first: Manifest, node: Mapping[str, Any], later: Mapping[str, Any] | None, read: Read) -> str:
    """Why a manifest does not say what a node's rows are; '' where it does."""
    if not _is_current(first, node, read):
        return "Its file is another one than when the manifest was made"
    config = node.get("config") or {}
    if node["resource_type"] == "seed" or node.get("language") == "python":
        return ""
    if not node.get("compiled_code"):
        return "The manifest has no compiled code of it: make it by `dbt compile --full-refresh`"
    if node["resource_type"] != "model" or config.get("materialized") != "incremental" or config.get("full_refresh"):
        return ""
    if config.get("incremental_strategy") == "microbatch":
        return "A manifest does not say how it reads a batch: let mergeplan ask dbt"
    if later is None or later.get("checksum") != node.get("checksum") or not later.get("compiled_code"):
        return "It is incremental, and `manifest_later` does not have it: make that one by `dbt compile`"
    if first.calls(node, INCREMENTAL) and node["compiled_code"] == later["compiled_code"]:
        return "Both manifests have the same form of it: make `manifest_later` where its table is"
    return ""


def _type_error(node: Mapping[str, Any], types: Mapping[str, str], column_types: Mapping[str, str]) -> str:
    is_unknown = node["resource_type"] == "seed" and not types
    return (
        "The types of its columns are in no catalog.json beside the manifest: `dbt docs generate`" if is_unknown else ""
    )


def _is_current(first: Manifest, node: Mapping[str, Any], read: Read) -> bool:
    """False for a node whose file has another text than the manifest's; a generic test has none of its own, and files
    of packages are not compared."""
    checksum = node.get("checksum") or {}
    if checksum.get("name") != "sha256" or node.get("test_metadata") or node["package_name"] != first.project:
        return True
    text = read(node["original_file_path"])
    return text is not None and checksum.get("checksum") in {
        hashlib.sha256(known.encode()).hexdigest() for known in (text.strip(), text)
    }


def _check_files(manifest: Manifest, files: Iterable[str]) -> None:
    """ProjectError for a file of models, seeds, snapshots or tests that the manifest does not know."""
    content = manifest.content
    disabled = (node for nodes in (content.get("disabled") or {}).values() for node in nodes)
    nodes = [*content["nodes"].values(), *content.get("macros", {}).values(), *disabled]
    own = {node["original_file_path"] for node in nodes if node["package_name"] == manifest.project}
    folders = {path.partition("/")[0] for path in own}
    for path in files:
        is_fixture = "/fixtures/" in path  # of unit tests: their rows stand in the manifest
        if path.partition("/")[0] in folders and path.endswith(READ) and path not in own and not is_fixture:
            message = f"{manifest.path} does not know this file."
            raise ProjectError(message, place=Place(path, 1), hint="Make the manifest again.")


def _unit_test(manifest: Manifest, test: Mapping[str, Any]) -> dict[str, Any]:
    nodes = manifest.content["nodes"]
    model: Mapping[str, Any] = next(
        (nodes[id] for id in (test.get("depends_on") or {}).get("nodes") or () if id in nodes), {}
    )
    overrides = test.get("overrides") or {}
    macros = dict(overrides.get("macros") or {})
    is_incremental = bool(macros.pop("is_incremental", False))
    inputs = [(_input(manifest, model, str(item["input"])), item) for item in test.get("given") or ()]
    unknown = next((item["input"] for relation, item in inputs if not relation), None)
    more = macros or overrides.get("vars") or overrides.get("env_vars")
    error = f"its model does not read `{unknown}`" if unknown else ""
    return {
        "id": test["unique_id"], "name": test["name"], "path": test["original_file_path"],
        "model": model.get("unique_id") or "", "description": test.get("description") or "",
        "inputs": [{**_fixture(item), "relation": relation} for relation, item in inputs],
        "expect": _fixture(test.get("expect") or {}), "is_incremental": is_incremental,
        "error": "it overrides other macros than `is_incremental`, or variables" if more else error,
    }  # fmt: skip


def _input(manifest: Manifest, model: Mapping[str, Any], text: str) -> str:
    """The table that an input is: `ref(...)`, `source(...)` or `this`; '' where the model reads none of this name."""
    if text.strip() == "this":
        return str(model.get("relation_name") or "")
    call, _, rest = text.strip().partition("(")
    arguments = _ARGUMENT.findall(rest)
    names = [value for key, value in arguments if not key]
    version = next((value for key, value in arguments if key in ("v", "version")), None)
    for id in (model.get("depends_on") or {}).get("nodes") or ():
        node = manifest.content["nodes"].get(id) or manifest.content.get("sources", {}).get(id) or {}
        owner = node.get("source_name") if call == "source" else node.get("package_name")
        is_version = version is None or str(node.get("version")) == version
        if node.get("name") == names[-1] and is_version and (len(names) == 1 or owner == names[0]):
            return str(node.get("relation_name") or _relation(node))
    return ""


def _fixture(item: Mapping[str, Any]) -> dict[str, Any]:
    rows = item.get("rows")
    return {"query": rows} if isinstance(rows, str) else {"rows": rows or []}


def _source(source: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": source["unique_id"], "relation": source["relation_name"], "path": source["original_file_path"],
        "description": source.get("description") or "", "tags": sorted(source.get("tags") or ()),
        "columns": [_column(column) for column in (source.get("columns") or {}).values()],
    }  # fmt: skip


def _exposure(exposure: Mapping[str, Any]) -> dict[str, Any]:
    owner = exposure.get("owner") or {}
    return {
        "name": exposure.get("label") or exposure["name"], "type": exposure.get("type") or "",
        "url": exposure.get("url") or "", "owner": str(owner.get("name") or owner.get("email") or ""),
        "depends_on": sorted((exposure.get("depends_on") or {}).get("nodes") or ()),
    }  # fmt: skip


def _constraints(node: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for column in (node.get("columns") or {}).values():
        yield from ((column["name"], constraint) for constraint in column.get("constraints") or ())
    yield from (("", constraint) for constraint in node.get("constraints") or ())


def _column(column: Mapping[str, Any]) -> dict[str, str]:
    return {
        "name": column["name"],
        "type": column.get("data_type") or "",
        "description": column.get("description") or "",
    }


def _relation(node: Mapping[str, Any]) -> str:
    """The name of a node that dbt keeps in no table."""
    return f"{node.get('schema')}.{node.get('alias') or node.get('name')}"


def _object(path: str, text: str) -> Mapping[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise ProjectError("This is not JSON.", place=Place(path, 1)) from None
    if not isinstance(content, dict):
        raise ProjectError("This is not a JSON object.", place=Place(path, 1))
    return content
