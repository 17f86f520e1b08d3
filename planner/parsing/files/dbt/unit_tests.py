"""Unit tests of dbt as unit test files of mergeplan, each test on the line where dbt's begins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.files.dbt.nodes import DbtFixture, DbtNode, DbtProject, DbtUnitTest


def unit_test_body(test: DbtUnitTest, project: DbtProject) -> dict[str, object]:
    """Return a test as the body of a mergeplan test; raise ProjectError if it would mean something else."""
    model = project.by_id.get(test.model)
    if model is None or model.error:
        raise _not_run(test, "its model is not compiled")
    if test.error:
        raise _not_run(test, test.error)
    if model.settings.get("incremental_strategy") == "microbatch" and model.materialized == "incremental":
        raise _not_run(test, "its model is filled by batches")
    expected = _relation_data(test.expect)
    if not test.expect.query:
        names = [*test.expect.rows[0]] if test.expect.rows else []
        if any({*row} != {*names} for row in test.expect.rows):
            raise _not_run(test, "its expected rows do not name the same columns")
        expected["partial"] = bool(names)
    return {
        "model": model.table,
        "description": test.description,
        "inputs": {fixture.table: _relation_data(fixture) for fixture in _select_inputs(test, model, project)},
        "outputs": {"query": expected},
    }


def unit_test_text(tests: Iterable[tuple[DbtUnitTest, Mapping[str, object]]], source: str) -> str:
    """Return a file of tests with these bodies; `source` is the text of dbt's own file."""
    lines: dict[int, list[str]] = {}
    for test, body in tests:
        line = _find_line(test.name, source)
        name = test.id.partition(".")[2].partition(".")[2]  # without the project's
        lines.setdefault(line, []).append(f"{json.dumps(name)}: {json.dumps(body)}")
    texts: list[str] = []
    for line, written_tests in sorted(lines.items()):
        texts += [""] * (line - 1 - len(texts)) + written_tests
    return "\n".join(texts) + "\n"


def _select_inputs(test: DbtUnitTest, model: DbtNode, project: DbtProject) -> Sequence[DbtFixture]:
    """Return the inputs that the model's query reads; the model's own rows decide whether a run is a later one."""
    model_inputs = [fixture for fixture in test.inputs if fixture.table == model.table]
    parent_inputs = [fixture for fixture in test.inputs if fixture.table != model.table]
    is_twofold = model.materialized == "incremental" and model.text.strip() != model.later.strip()
    if not is_twofold or not test.is_incremental:
        return parent_inputs
    if not any(fixture.rows or fixture.query for fixture in model_inputs):
        raise _not_run(test, "`is_incremental()` is true, and `this` has no rows")
    return [*model_inputs, *parent_inputs]


def _relation_data(fixture: DbtFixture) -> dict[str, Any]:
    return {"query": fixture.query} if fixture.query else {"rows": [*fixture.rows]}


def _find_line(name: str, source: str) -> int:
    match = re.search(rf"^.*\bname:\s*['\"]?{re.escape(name)}\b", source, re.MULTILINE)
    return source.count("\n", 0, match.start()) + 1 if match else 1


def _not_run(test: DbtUnitTest, why: str) -> ProjectError:
    message = f"The unit test `{test.name}` does not run: {why.rstrip('.')}."
    return ProjectError(message, place=Place(test.path, 1), hint="`dbt test` runs it.")
