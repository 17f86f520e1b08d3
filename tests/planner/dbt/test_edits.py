"""The case table of edits of a dbt project: each has the narrowest verdict that is sound, and nothing else moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.change import Change
from tests.planner.building import change_of

from .edits import ROOT, EditCase, cases, copy_edited, load_models, summary


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    return load_models(copy_edited(tmp_path_factory.mktemp("edits") / "base", {}))


def verdicts(changes: dict[str, Change]) -> tuple[dict[str, str], list[str]]:
    """The category of each model that moves, and the models that are computed."""
    moved = {name: (change.category or change.change).value for name, change in changes.items()}
    return moved, sorted(name for name, change in changes.items() if change.recomputed)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_an_edit_has_the_narrowest_sound_verdict(case: EditCase, before: dict[str, Model], tmp_path: Path) -> None:
    after = load_models(copy_edited(tmp_path / "edited", case.edit), case.name)

    assert verdicts(change_of(before, after)) == (case.changes, list(case.recomputed))


def test_the_table_has_sixty_edits_of_all_kinds() -> None:
    kinds = {case.kind for case in cases()}

    assert kinds == {"model", "config", "macro", "var", "package", "yml", "seed", "snapshot"}
    assert len(cases()) >= 60


def test_the_guide_has_the_table() -> None:
    assert summary() in (ROOT / "docs/explanation/dbt-results.md").read_text("utf-8")
