"""What the editor says of an edit is what `plan` says of the same files: category, reason, what is computed.

Random projects and edits, judged while they are typed, one file after the other. MERGEPLAN_CASES says how many (`make
prove`: 300 of its 2,000), MERGEPLAN_SEED where they begin.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from mergeplan.planner.errors import ProjectErrors
from mergeplan.planner.lsp.edit_plan import EditEffect, describe_edit
from mergeplan.planner.lsp.editor import Editor
from mergeplan.planner.model.model import Model
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.session.use_cases.planning import check_request, estimate_costs, make_plan
from mergeplan.planner.session.workspace import Workspace
from tests.planner.generating import generate
from tests.planner.lsp.conftest import promote, write_files
from tests.planner.session.conftest import refuse_engine

pytestmark = pytest.mark.sampled

CASES = min(int(os.environ.get("MERGEPLAN_CASES", "10")), 300)
SEED = int(os.environ.get("MERGEPLAN_SEED", "1"))
BLOCK = 10
CONFIG = "gateways: {local: {connection: {type: spark}}}\nmodel_defaults: {dialect: spark, start: 2026-01-01}\n"


def files_of(models: Mapping[str, Model]) -> dict[str, str]:
    """The models as files of a project."""
    texts, outer = {"config.yaml": CONFIG}, []
    for name, model in models.items():
        if model.kind.is_external:
            columns = "".join(f"    {column.name}: {column.type}\n" for column in model.columns)
            partial = "  partial_columns: true\n" if model.open_columns else ""
            outer.append(f"- name: {name}\n{partial}  columns:\n{columns}")
        else:
            time = f" (time_column {model.by_time.time_column})" if model.by_time.time_column else ""
            texts[f"models/{name.partition('.')[2]}.sql"] = (
                f"MODEL (name {name}, kind {model.kind}{time});\n{model.sql}\n"
            )
    return texts | {"external_models.yaml": "".join(outer)}


def effects_by_plan(settings: SessionSettings, names: set[str]) -> dict[str, EditEffect]:
    """What `plan prod` says of these models, by the files on the disk."""
    work = Workspace(settings, only_looks=True)
    with closing(work):
        plan = make_plan(work, check_request(work, PlanOptions()), work.project.models)
        costs = estimate_costs(work, plan)
        return {name: describe_edit(work.project, plan, name, costs) for name in names & work.project.models.keys()}


def summary(effect: EditEffect) -> tuple[object, ...]:
    """What is compared."""
    change = effect.change
    about = (change.category, change.rule, change.reason, change.columns, change.missing) if change else ()
    computed = sorted((c.name, c.missing) for c in effect.computed)
    return effect.title, about, computed, effect.kept, dict(effect.estimates or {})


@pytest.mark.parametrize("block", range(max(CASES // BLOCK, 1)))
def test_the_effect_of_an_edit_is_what_plan_says(tmp_path: Path, block: int) -> None:
    compared = 0
    for seed in range(SEED + block * BLOCK, SEED + (block + 1) * BLOCK):
        case, root = generate(seed), tmp_path / str(seed)
        before, after = files_of(case.before), files_of(case.after)
        write_files(root, before)
        settings = SessionSettings(root.resolve(), open_engine=refuse_engine)
        promote(settings)
        editor = Editor(settings, trusted=True)
        editor.live.load()
        edited = [path for path in after if path.startswith("models/") and after[path] != before.get(path)]
        wrong = [diagnostic for path in edited for diagnostic in editor.judge(path, after[path])]
        if any(diagnostic.severity == "error" for diagnostic in wrong) or editor.view is None:
            continue
        said = {
            effect.model: summary(effect.effect)
            for path in edited
            for effect in editor.effects(path, editor.view, lambda: True) or ()
            if effect.effect is not None
        }
        write_files(root, after)
        if said:
            try:
                planned = effects_by_plan(settings, set(said))
            except ProjectErrors as errors:  # a reader of what the edit drops; the editor marks it, too
                paths = {error.place.path for error in errors.errors if error.place}
                assert all(editor.judge(path, after[path]) for path in paths), f"seed {seed}"
                continue
            assert said == {name: summary(effect) for name, effect in planned.items()}, f"seed {seed}"
            compared += len(said)
    assert compared > BLOCK // 2
