"""Unit tests of dbt as unit test files of mergeplan, each test on the line where dbt's begins."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.definitions.unit_tests import CALL_KEYS
from mergeplan.planner.parsing.files.dbt.nodes import DbtFixture, DbtNode, DbtProject, DbtUnitTest
from mergeplan.planner.parsing.macros.splicing import Splice, apply_splices
from mergeplan.planner.parsing.sql.yaml_documents import read_document

UNRENDERED = "", "", "dbt renders the call, and a manifest stands for dbt here"
_ANCHOR = re.compile(r"&\S+\s+")
LOAD = ("table", "start", "end", "execution_time")  # the keys of `config.meta.mergeplan`


def unit_test_body(test: DbtUnitTest, project: DbtProject) -> dict[str, object]:
    """Return a test as the body of a mergeplan test; raise ProjectError if it would mean something else."""
    model = project.by_id.get(test.model)
    if model is None or model.error:
        raise _not_run(test, "its model is not compiled")
    if test.error:
        raise _not_run(test, test.error)
    load = test.load
    if not isinstance(load, dict):
        raise _not_run(test, f"`config.meta.mergeplan` is no mapping of {', '.join(LOAD)}")
    if unknown := sorted(load.keys() - set(LOAD)):
        raise _not_run(test, f"`{unknown[0]}` is no key of `config.meta.mergeplan`: {', '.join(LOAD)}")
    if load and "table" not in load:
        raise _not_run(test, "`config.meta.mergeplan` has no `table`")
    is_microbatch = model.settings.get("incremental_strategy") == "microbatch" and model.materialized == "incremental"
    if is_microbatch and not ("table" in load and "start" in load):
        raise _not_run(test, "its model is filled by batches")
    expected = _relation_data(test.expect)
    if not test.expect.query:
        names = [*test.expect.rows[0]] if test.expect.rows else []
        if any({*row} != {*names} for row in test.expect.rows):
            raise _not_run(test, "its expected rows do not name the same columns")
        expected["partial"] = bool(names)
    inputs = {fixture.table: _relation_data(fixture) for fixture in _select_inputs(test, model, load)}
    body: dict[str, object] = {"model": model.table, "description": test.description, "inputs": inputs}
    if "table" not in load:
        return {**body, "outputs": {"query": expected}}
    if model.table in inputs:
        body["this"] = inputs.pop(model.table)
    # dbt evaluates the query of a microbatch without its batch.
    body["outputs"] = {**({} if is_microbatch else {"query": expected}), "table": load["table"]}
    return {**body, "vars": {key: load[key] for key in LOAD[1:] if key in load}}


def spell_names(text: str, project: DbtProject) -> str:
    """Return a file of our own tests with tables in place of dbt's names, and texts in place of macro calls."""
    tables = {source.id.split(".", 2)[2]: source.table for source in project.sources}
    tables |= {node.name: node.table for node in project.nodes if node.type in ("model", "seed", "snapshot")}
    root = _compose(text)
    calls = {call.call: (call.text, call.query, call.error) for call in project.calls}
    new_values: list[tuple[yaml.Node, object]] = [
        (node, dict(zip(CALL_KEYS, (node.value, *calls.get(node.value, UNRENDERED)), strict=True)))
        for node in _calls(root)
    ]
    named = (node for node in _name_nodes(root) if node.value in tables and node.value not in tables.values())
    new_values += [(node, tables[node.value]) for node in named]
    splices: dict[int, Splice] = {}  # by their start: an alias is the node of its anchor
    for node, value in new_values:
        start, end = node.start_mark.index, node.end_mark.index
        anchor = _ANCHOR.match(text, start, end)
        written = (anchor[0] if anchor else "") + json.dumps(value) + "\n" * text.count("\n", start, end)
        splices[start] = Splice(start, end, written)
    return apply_splices(text, list(splices.values()))


def macro_calls(text: str) -> tuple[str, ...]:
    """Return the calls of macros in a file of our own tests; none of one that is no YAML."""
    return tuple(node.value for node in _calls(_compose(text)))


def _compose(text: str) -> yaml.Node | None:
    try:
        read_document("", text)  # which refuses a long and a deep one
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except (ProjectError, yaml.YAMLError):
        return None  # its reader names the mistake
    return root


def _calls(root: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    for _, body in _pairs(root):
        fields = {key.value: value for key, value in _pairs(body)}
        call = fields.get("call")
        if "macro" in fields and isinstance(call, yaml.ScalarNode):
            yield call


def _name_nodes(root: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    for _, body in _pairs(root):
        for key, value in _pairs(body):
            names = [value] if key.value == "model" else [name for name, _ in _pairs(value)]
            if key.value in ("model", "inputs"):
                yield from (name for name in names if isinstance(name, yaml.ScalarNode))


def _pairs(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return [(key, value) for key, value in pairs if isinstance(key, yaml.ScalarNode)]


def unit_test_text(tests: Iterable[tuple[DbtUnitTest, Mapping[str, object]]], source: str) -> str:
    """Return a file of tests with these bodies; `source` is the text of dbt's own file."""
    lines: dict[int, list[str]] = {}
    for test, body in tests:
        match = re.search(rf"^.*\bname:\s*['\"]?{re.escape(test.name)}\b", source, re.MULTILINE)
        line = source.count("\n", 0, match.start()) + 1 if match else 1
        name = test.id.partition(".")[2].partition(".")[2]  # without the project's
        lines.setdefault(line, []).append(f"{json.dumps(name)}: {json.dumps(body)}")
    texts: list[str] = []
    for line, written_tests in sorted(lines.items()):
        texts += [""] * (line - 1 - len(texts)) + written_tests
    return "\n".join(texts) + "\n"


def _select_inputs(test: DbtUnitTest, model: DbtNode, load: Mapping[str, Any]) -> Sequence[DbtFixture]:
    """Return the inputs that the model's query reads; the model's own rows decide whether a run is a later one.

    A load adds to these rows, whether the query reads them or not.
    """
    model_inputs = [fixture for fixture in test.inputs if fixture.table == model.table]
    parent_inputs = [fixture for fixture in test.inputs if fixture.table != model.table]
    is_twofold = model.materialized == "incremental" and model.text.strip() != model.later.strip()
    if "table" in load and not is_twofold:
        return test.inputs
    if not is_twofold or not test.is_incremental:
        return parent_inputs
    if not any(fixture.rows or fixture.query for fixture in model_inputs):
        raise _not_run(test, "`is_incremental()` is true, and `this` has no rows")
    return [*model_inputs, *parent_inputs]


def _relation_data(fixture: DbtFixture) -> dict[str, Any]:
    return {"query": fixture.query} if fixture.query else {"rows": [*fixture.rows]}


def _not_run(test: DbtUnitTest, why: str) -> ProjectError:
    message = f"The unit test `{test.name}` does not run: {why.rstrip('.')}."
    return ProjectError(message, place=Place(test.path, 1), hint="`dbt test` runs it.")
