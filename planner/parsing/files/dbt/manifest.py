"""A compiled project from manifests that `dbt compile` wrote elsewhere, as in CI; dbt is not called here.

Nodes are compared with the files of the project: a node whose text differs is an error of that node. YAML files leave
no trace in a manifest.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from pprint import pformat
from typing import Any

from pydantic import ValidationError

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.files.dbt import manifest_types as parts
from mergeplan.planner.parsing.files.dbt import parsed_files as read_files
from mergeplan.planner.parsing.files.dbt.adapter_defaults import MERGE, add_adapter_defaults
from mergeplan.planner.parsing.files.dbt.manifest_types import Arguments
from mergeplan.planner.parsing.files.dbt.nodes import DbtProject
from mergeplan.planner.parsing.files.dbt.parsed_files import AGAIN, NAME, OF_STATE, ParsedFile
from mergeplan.planner.parsing.files.dbt.spelling import quote_words, spark_words
from mergeplan.planner.parsing.files.typed_json import describe_place, read_json
from mergeplan.planner.parsing.sql.yaml_documents import read_document

READ = (".sql", ".csv", ".py")  # files that dbt turns into nodes
KINDS = ("model", "seed", "snapshot", "test")
INCREMENTAL = "macro.dbt.is_incremental"
_ARGUMENT = re.compile(r"""(?:(\w+)\s*=\s*)?['"]?([^'",()\s]+)['"]?""")
Read = Callable[[str], str | None]  # the text of a file of the project, None where there is none
VARS, PROJECT = "vars.yml", "dbt_project.yml"
SINCE = (1, 12)  # dbt keeps a hash of the variables: the only trace of `vars.yml`
OF_PACKAGE = re.compile(r"(dbt_packages|dbt_modules)/[^/]+/vars\.yml")
_VERSION = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True)
class Manifest:
    """One manifest.json, with the run_results.json and the partial_parse.msgpack beside it."""

    path: str
    content: parts.ManifestFile
    results: parts.RunResults
    parsed: tuple[ParsedFile, ...] = ()  # the files that dbt read for it

    @property
    def project(self) -> str:
        """The name of the project, which is the package of its own nodes."""
        return self.content.metadata.project_name

    @property
    def adapter(self) -> str:
        """The adapter that it was made with."""
        return self.content.metadata.adapter_type

    @property
    def is_full_refresh(self) -> bool:
        """True if it has the first form of incremental models: `dbt compile --full-refresh` wrote both files."""
        ids = [file.metadata.invocation_id for file in (self.content, self.results)]
        return ids[0] == ids[1] and self.results.args.full_refresh

    @cached_property
    def groups(self) -> dict[str, str]:
        """The owner of each group, by its name."""
        return {group.name: group.owner.words or group.name for group in self.content.groups.values()}

    @property
    def vars_hash(self) -> str:
        """The hash that dbt keeps of its variables."""
        return next((file.hashed for file in self.parsed if file.kind == OF_STATE), "")

    def calls(self, node: parts.NodePart, macro: str) -> bool:
        """Return True if a node's template calls a macro, directly or through others."""
        macro_names: set[str] = set()
        waiting = [*node.depends_on.macros]
        while waiting:
            name = waiting.pop()
            if name not in macro_names:
                macro_names.add(name)
                waiting += self.content.macros[name].depends_on.macros if name in self.content.macros else ()
        return macro in macro_names


def load_manifest(path: str, text: str, results: str | None, parsed: bytes | None, project: str) -> Manifest:
    """Return a manifest of this project, compiled for Spark; raise ProjectError for any other file."""
    content = read_json(parts.ManifestFile, path, text, hint="Make it by `dbt compile --full-refresh`.")
    run = read_json(parts.RunResults, str(PurePosixPath(path).with_name("run_results.json")), results or "{}")
    manifest = Manifest(path, content, run)
    if manifest.adapter not in ("spark", "databricks"):
        message = f"The manifest was made for `{manifest.adapter}`: mergeplan runs on Spark."
        raise ProjectError(message, place=Place(path, 1))
    if manifest.project != project:
        message = f"The manifest is that of the project `{manifest.project}`, and this is `{project}`."
        raise ProjectError(message, place=Place(path, 1), hint=AGAIN)
    if parsed is None:
        hint = f"dbt writes it to the same folder: keep {NAME} there. dbt 2 writes none: use dbt-core 1.12 or older."
        raise ProjectError(f"There is no {NAME} beside the manifest, by which its files are compared.",
                           place=Place(path, 1), hint=hint)  # fmt: skip
    return replace(manifest, parsed=tuple(read_files.parsed_files(path, parsed, project)))


def manifest_project(
    first: Manifest, later: Manifest | None, types: Mapping[str, Any], files: Iterable[str], read: Read, target: str
) -> DbtProject:
    """Return the project of a manifest by `dbt compile --full-refresh` and one by `dbt compile` where the tables are.

    `types` are those of catalog.json, by node and column. `files` are the paths of the project's files, and `read`
    returns their texts. `target` is prod's, if config.yaml names it. Raise ProjectError for a manifest of another form,
    and for a macro or a file that it does not know.
    """
    if not first.is_full_refresh:
        message = "This manifest is not of `dbt compile --full-refresh`, or its run_results.json is not beside it."
        hint = "Without that, the form of its incremental models is unknown."
        raise ProjectError(message, place=Place(first.path, 1), hint=hint)
    content, names = first.content, list(files)
    for manifest in filter(None, (first, later)):
        read_files.check_parsed_files(manifest.path, manifest.parsed, first.project, names, read)
        version = manifest.content.metadata.dbt_version
        if reads_vars(version):
            check_vars(manifest.path, version, manifest.vars_hash, manifest.results.args, target, read)
            refuse_vars_of_packages(manifest.path, names)
    _check_files(first, names)
    enabled = (node for node in content.nodes.values() if node.config.get("enabled") is not False)
    nodes = [node for node in enabled if node.resource_type in KINDS]
    data: dict[str, Any] = {
        "dbt": content.metadata.dbt_version,
        "nodes": [_node_data(first, later, node, types.get(node.unique_id, {}), read) for node in nodes],
        "sources": [_source_data(source) for source in content.sources.values()],
        "unit_tests": [_unit_test(first, test) for test in content.unit_tests.values()],
        "exposures": [_exposure_data(exposure) for exposure in content.exposures.values()],
        "hooks": [node.raw_code for node in content.nodes.values() if node.resource_type == "operation"],
        "files": [],
    }
    folders = {name.split("/")[-2]: name.rpartition("/")[0] for name in names if name.endswith("/dbt_project.yml")}
    paths = {*names}
    for part in ("nodes", "sources", "unit_tests"):
        data[part] = [_place_from_root(item, first.project, folders, paths) for item in data[part]]
    try:
        project = DbtProject.model_validate(data)
        is_databricks = first.adapter == "databricks"
        return project.change_texts(lambda text: spark_words(quote_words(text)) if is_databricks else quote_words(text))
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)[0]
        message = f"{describe_place(_name_by_id(data, wrong['loc']))} is wrong: {wrong['msg']}."
        raise ProjectError(message, place=Place(first.path, 1)) from None


def _name_by_id(data: Mapping[str, Any], loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    match loc:
        case (str(collection), int(number), *keys) if isinstance(item := data[collection][number], dict):
            return (collection, str(item.get("id") or item.get("name")), *keys)
    return loc


def _place_from_root(item: dict[str, Any], project: str, folders: Mapping[str, str], names: set[str]) -> dict[str, Any]:
    """Return a part with its path from the project's root; dbt gives a package's path from the package."""
    package = item["id"].split(".")[1]
    path = f"{folders.get(package, '')}/{item['path']}"
    return {**item, "path": path} if package != project and path in names else item


def _node_data(
    first: Manifest, later: Manifest | None, node: parts.NodePart, types: Mapping[str, str], read: Read
) -> dict[str, Any]:
    config = node.config
    hooks, post_hooks = ([hook.get("sql", "") for hook in written or ()]
                         for written in (config.get("pre-hook"), config.get("post-hook")))  # fmt: skip
    later_node = later.content.nodes.get(node.unique_id) if later else None
    merge = first.content.macros[MERGE].macro_sql if MERGE in first.content.macros else ""
    settings = add_adapter_defaults(first.adapter, config, merge)
    named = [(column.name, constraint) for column in node.columns.values() for constraint in column.constraints]
    named += [("", constraint) for constraint in node.constraints]
    constraints = [[constraint.type, name, constraint.expression] for name, constraint in named]
    error = _node_problem(first, node, later_node, read)
    if not error and node.resource_type == "seed" and not types:
        error = "The types of its columns are in no catalog.json beside the manifest: `dbt docs generate`"
    column_types = {name.lower(): type_ for name, type_ in (config.get("column_types") or {}).items()}
    return {
        "id": node.unique_id, "type": node.resource_type, "name": node.name, "path": node.original_file_path,
        "package": node.package_name, "relation": node.relation, "language": node.language or "sql",
        "settings": settings | ({"constraints": constraints} if constraints else {}),
        "columns": [_column_data(column) for column in node.columns.values()],
        "description": node.description, "tags": sorted(node.tags),
        "owner": first.groups.get(node.group or config.get("group") or "", ""),
        "depends_on": sorted(node.depends_on.nodes), "attached": node.attached_node,
        "hooks": hooks, "post_hooks": post_hooks,
        "text": node.compiled_code, "later": later_node.compiled_code if later_node else "",
        "error": error,
        "types": [[name, column_types.get(name, type_)] for name, type_ in types.items()],
    }  # fmt: skip


def _node_problem(first: Manifest, node: parts.NodePart, later: parts.NodePart | None, read: Read) -> str:
    if not _is_current(first, node, read):
        return "Its file is another one than when the manifest was made"
    config = node.config
    if node.resource_type == "seed" or node.language == "python":
        return ""
    if not node.compiled_code:
        return "The manifest has no compiled code of it: make it by `dbt compile --full-refresh`"
    if node.resource_type != "model" or config.get("materialized") != "incremental" or config.get("full_refresh"):
        return ""
    if config.get("incremental_strategy") == "microbatch":
        return "A manifest does not say how it reads a batch: let mergeplan ask dbt"
    if later is None or later.checksum != node.checksum or not later.compiled_code:
        return "It is incremental, and `manifest_later` does not have it: make that one by `dbt compile`"
    if first.calls(node, INCREMENTAL) and node.compiled_code == later.compiled_code:
        return "Both manifests have the same form of it: make `manifest_later` where its table is"
    return ""


def _is_current(first: Manifest, node: parts.NodePart, read: Read) -> bool:
    """Return False for a node whose file was edited since; generic tests and packages are not compared."""
    if node.checksum.name != "sha256" or node.test_metadata or node.package_name != first.project:
        return True
    text = read(node.original_file_path)
    return text is not None and node.checksum.checksum in {
        hashlib.sha256(candidate.encode()).hexdigest() for candidate in (text.strip(), text)
    }


def _check_files(manifest: Manifest, files: Iterable[str]) -> None:
    content = manifest.content
    disabled = (node for nodes in content.disabled.values() for node in nodes)
    nodes: list[parts.NodePart | parts.FilePart] = [*content.nodes.values(), *content.macros.values(), *disabled]
    own_paths = {node.original_file_path for node in nodes if node.package_name == manifest.project}
    folders = {path.partition("/")[0] for path in own_paths}
    for path in files:
        is_fixture = "/fixtures/" in path  # of unit tests: their rows are in the manifest
        if path.partition("/")[0] in folders and path.endswith(READ) and path not in own_paths and not is_fixture:
            message = f"{manifest.path} does not know this file."
            raise ProjectError(message, place=Place(path, 1), hint="Make the manifest again.")


def _unit_test(manifest: Manifest, test: parts.UnitTestPart) -> dict[str, Any]:
    nodes = manifest.content.nodes
    model = next((nodes[id] for id in test.depends_on.nodes if id in nodes), None)
    overrides = test.overrides
    macros = {name: value for name, value in overrides.macros.items() if name != "is_incremental"}
    inputs = [(_input_relation(manifest, model, item.input), item) for item in test.inputs]
    unknown = next((item.input for relation, item in inputs if not relation), None)
    has_overrides = macros or overrides.vars or overrides.env_vars
    error = "" if unknown is None else f"its model does not read `{unknown}`"
    return {
        "id": test.unique_id, "name": test.name, "path": test.original_file_path,
        "model": model.unique_id if model else "", "description": test.description,
        "inputs": [{**_fixture_data(item), "relation": relation} for relation, item in inputs],
        "expect": _fixture_data(test.expect), "is_incremental": bool(overrides.macros.get("is_incremental")),
        "error": "it overrides other macros than `is_incremental`, or variables" if has_overrides else error,
        "load": test.config.meta.get("mergeplan") or {},
    }  # fmt: skip


def _input_relation(manifest: Manifest, model: parts.NodePart | None, text: str) -> str:
    """Return the table of an input: `ref(...)`, `source(...)` or `this`; '' if the model reads none of this name."""
    if model is None:
        return ""
    if text.strip() == "this":
        return model.relation_name
    call, _, argument_text = text.strip().partition("(")
    arguments = _ARGUMENT.findall(argument_text)
    names = [value for key, value in arguments if not key]
    version = next((value for key, value in arguments if key in ("v", "version")), None)
    for id in model.depends_on.nodes if names else ():
        part = manifest.content.sources.get(id) if call == "source" else manifest.content.nodes.get(id)
        if part is None or part.name != names[-1] or (len(names) > 1 and part.owner != names[0]):
            continue
        if version is None or str(part.version) == version:
            return part.relation
    return ""


def _fixture_data(item: parts.FixturePart) -> dict[str, Any]:
    return {"query": item.rows} if isinstance(item.rows, str) else {"rows": item.rows or []}


def _source_data(source: parts.SourcePart) -> dict[str, Any]:
    return {
        "id": source.unique_id, "relation": source.relation, "path": source.original_file_path,
        "description": source.description, "tags": sorted(source.tags),
        "columns": [_column_data(column) for column in source.columns.values()],
        "freshness": _freshness_data(source),
    }  # fmt: skip


def _freshness_data(source: parts.SourcePart) -> dict[str, str]:
    freshness = source.freshness
    ages = {"warn_after": freshness.warn_after.text, "error_after": freshness.error_after.text}
    return {
        **ages, "filter": freshness.filter, "loaded_at": source.loaded_at_field, "query": source.loaded_at_query,
    }  # fmt: skip


def _exposure_data(exposure: parts.ExposurePart) -> dict[str, Any]:
    return {
        "name": exposure.label or exposure.name, "type": exposure.type, "url": exposure.url,
        "owner": exposure.owner.words, "depends_on": sorted(exposure.depends_on.nodes),
    }  # fmt: skip


def _column_data(column: parts.ColumnPart) -> dict[str, str]:
    return {"name": column.name, "type": column.data_type, "description": column.description}


def reads_vars(version: str) -> bool:
    """Return True if a dbt of this version reads `vars.yml`, or if the version is not known as an older one."""
    numbers = _VERSION.match(version)
    return not version or numbers is None or (int(numbers[1]), int(numbers[2])) >= SINCE


def vars_hash(version: str, arguments: Arguments, profile: str, target: str, variables: Mapping[str, Any]) -> str:
    """Return the hash that dbt keeps of the variables of the command line and of `vars.yml`."""
    parts = [pformat(arguments.vars), arguments.profile or profile, arguments.target or target, version]
    parts += [pformat(variables)] if variables else []
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


def check_vars(manifest: str, version: str, hashed: str, arguments: Arguments, target: str, read: Read) -> None:
    """Raise ProjectError unless the manifest was made with the variables of `vars.yml` as it is."""
    profile = str(_read_yaml(PROJECT, read).get("profile") or "")
    variables = _read_yaml(VARS, read).get("vars")
    if vars_hash(version, arguments, profile, target, variables if isinstance(variables, Mapping) else {}) != hashed:
        message = f"{manifest} was made with other variables than those of `{VARS}`, or does not say for which target."
        hint = "Make it again, and name the target: `dbt compile --full-refresh --target prod`."
        raise ProjectError(message, place=Place(VARS if variables else manifest, 1), hint=hint)


def refuse_vars_of_packages(manifest: str, files: Iterable[str]) -> None:
    """Raise ProjectError for the `vars.yml` of a package, of which dbt keeps nothing."""
    for path in files:
        if OF_PACKAGE.fullmatch(path):
            raise ProjectError(f"{manifest} does not say by which text of this file it was made.",
                               place=Place(path, 1), hint="Let mergeplan ask dbt itself.")  # fmt: skip


def _read_yaml(path: str, read: Read) -> Mapping[str, Any]:
    value = read_document(path, read(path) or "", last_wins=True).value
    return value if isinstance(value, Mapping) else {}
