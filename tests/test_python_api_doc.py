"""docs/reference/python-api.md: its example runs as it stands, on a Spark of its own, and names what there is."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mergeplan
import mergeplan.events
from mergeplan.planner.project.scaffold import Wishes, write_project
from tests.planner.cli.conftest import VARIABLES

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/reference/python-api.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
ENVIRON = {name: value for name, value in os.environ.items() if name not in VARIABLES}
ENDING = """
import json, sys
kept = {"click", "rich", "mergeplan.planner.cli", "mergeplan.bot"} & sys.modules.keys()
print(json.dumps({"loaded": sorted(kept), "virtual": merge.decision.is_virtual, "spark": "pyspark" in sys.modules}))
"""


def options(kind: type[Any]) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


@pytest.fixture(scope="module")
def example_lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the page's example prints, in a Python of its own."""
    folder = tmp_path_factory.mktemp("api")
    write_project(folder / "shop", Wishes())
    (folder / "example.py").write_text("\n".join([*BLOCKS, ENDING]))
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", "example.py"], cwd=folder, timeout=540,
        env={**ENVIRON, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.prove
def test_the_example_plans_and_applies_without_the_command_line(example_lines: list[str]) -> None:
    assert json.loads(example_lines[-1]) == {"loaded": [], "virtual": True, "spark": True}
    assert example_lines[-2] == "['dev', 'prod']"
    assert any(line.startswith("sqlmesh_example.full_model added None ") for line in example_lines)


@pytest.mark.prove
def test_a_cancelled_apply_goes_on_where_it_ended(example_lines: list[str]) -> None:
    at = example_lines.index("nothing is promoted")
    before, after = (
        [line for line in part if line.endswith(" rows")] for part in (example_lines[:at], example_lines[at:])
    )

    assert before == ["sqlmesh_example.seed_model: 7 rows"]
    assert after == ["sqlmesh_example.incremental_model: 7 rows", "sqlmesh_example.full_model: 3 rows"]


def test_each_call_of_a_session_is_described() -> None:
    calls = {name for name, _ in inspect.getmembers(mergeplan.Session, inspect.isfunction) if not name.startswith("_")}
    described = set(re.findall(r"^\| `(\w+)\(", PAGE.partition("\n## SessionPlan")[0], flags=re.MULTILINE))

    assert calls == described
    assert len(set(vars(mergeplan.Session)) & calls) <= 15


@pytest.mark.parametrize("name", ["PlanOptions", "RunOptions", "AuditOptions", "TableDiffOptions", "TestOptions"])
def test_each_option_is_described(name: str) -> None:
    section = next(part for part in PAGE.split("\n## ") if name in part.partition("\n")[0])
    rows = section if name == "PlanOptions" else next(row for row in section.splitlines() if f"`{name}`" in row)

    assert {field for field in options(getattr(mergeplan, name)) if f"`{field}`" not in rows} == set()


def test_every_name_is_there_and_described() -> None:
    assert all(getattr(mergeplan, name) is not None for name in dir(mergeplan))
    assert {name for name in dir(mergeplan) if f"{name}" not in PAGE} == set()
    with pytest.raises(AttributeError, match="has no attribute 'opne'"):
        mergeplan.opne  # type: ignore[attr-defined]  # noqa: B018


def test_every_event_can_be_imported() -> None:
    assert {kind.__name__ for kind in mergeplan.events.Event.__subclasses__()} <= set(dir(mergeplan.events))
