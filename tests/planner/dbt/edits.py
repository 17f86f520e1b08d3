"""Edits of a dbt project, each with its verdict: the case table `edits.yaml`, and what dbt said of each edit.

`edits.json` is a recording: the project as dbt compiles it, what an edit changes of that, and the models that dbt's
`state:modified+` selects. `MERGEPLAN_DBT_PYTHON=.venv-dbt/bin/python python -m tests.planner.dbt.edits` records anew;
`make prove` compares.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.dbt.nodes import DbtProject
from mergeplan.planner.project.loader import LoadOptions, load_project
from tests.planner.shop import NOW

ROOT = Path(__file__).parents[3]
BASE = ROOT / "tests/projects/dbt/edits"
CASES = Path(__file__).with_suffix(".yaml")
RECORD = BASE.with_suffix(".json")
Edit = dict[str, Any]  # path -> the file's new text, [old, new] within it, or None where it is deleted
PROGRAM = """
import io, json, pathlib, sys, tempfile
from contextlib import redirect_stdout
sys.path.insert(0, sys.argv[1])
from dbt.cli.main import dbtRunner
from mergeplan.planner.python.dbt_code.child import DbtWork
profiles = json.dumps({"edits": {"target": "prod", "outputs": {"prod": {"type": "spark", "method": "session",
                       "host": "none", "schema": "shop", "threads": 1}}}})

def compiled(root):
    work = DbtWork()
    work.answer({"op": "open", "root": root})
    request = {"op": "compile", "home": tempfile.mkdtemp(), "profile": "edits", "profiles": profiles,
               "environment": {}, "vars": "{}"}
    return {**work.answer(request), "files": []}

def ask_dbt(root, *arguments):
    folders = ["--project-dir", root, "--profiles-dir", root, "--log-path", tempfile.mkdtemp()]
    with redirect_stdout(io.StringIO()):
        done = dbtRunner().invoke(["--quiet", *arguments, *folders])
    assert done.success, (root, done.exception)
    return done.result

base, *roots = sys.argv[2:]
target = tempfile.mkdtemp()
ask_dbt(base, "parse", "--target-path", target)
types = [part for kind in ("model", "seed", "snapshot") for part in ("--resource-type", kind)]
print("SAYS " + json.dumps({"compiled": compiled(base)}), flush=True)
for root in roots:
    modified = ask_dbt(root, "ls", "--select", "state:modified+", "--state", target, *types, "--output", "name",
                       "--target-path", tempfile.mkdtemp())
    print("SAYS " + json.dumps({"compiled": compiled(root), "dbt": sorted(modified or ())}), flush=True)
"""


@dataclass(frozen=True)
class EditCase:
    """One edit: what we make of each model that it changes, and what dbt rebuilds."""

    name: str
    kind: str
    edit: Edit
    changes: dict[str, str]  # name of a model -> category
    recomputed: tuple[str, ...]
    dbt: tuple[str, ...]


@cache
def cases() -> tuple[EditCase, ...]:
    """The cases, in the order of the table."""
    rows = yaml.safe_load(CASES.read_text("utf-8"))
    return tuple(
        EditCase(row["name"], row["kind"], row["edit"], row.get("changes", {}), tuple(row.get("recomputed", ())),
                 tuple(row.get("dbt", ())))
        for row in rows
    )  # fmt: skip


def copy_edited(folder: Path, edit: Edit) -> Path:
    """The project in a folder, with an edit."""
    shutil.copytree(BASE, folder)
    for name, change in edit.items():
        path = folder / name
        if change is None:
            path.unlink()
            continue
        if isinstance(change, list):
            old, new = change
            text = path.read_text()
            assert old in text, (name, old)
            change = text.replace(old, new, 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(change)
    return folder


def ask_dbt(folder: Path, python: str) -> list[dict[str, Any]]:
    """What dbt says of the base and of each case: the compiled project, and the names that it would rebuild."""
    base = copy_edited(folder / "base", {})
    roots = [copy_edited(folder / f"case{number}", case.edit) for number, case in enumerate(cases())]
    command = [python, "-c", PROGRAM, str(ROOT), str(base), *map(str, roots)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3000, check=False, env={
        **os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"})  # fmt: skip
    says = [json.loads(line[5:]) for line in done.stdout.splitlines() if line.startswith("SAYS ")]
    assert len(says) == len(roots) + 1, done.stderr[-3000:] + done.stdout[-1000:]
    return says


def difference(base: dict[str, Any], edited: dict[str, Any]) -> dict[str, Any]:
    """What of a compiled project is another than in the base."""
    nodes = {node["id"]: node for node in base["nodes"]}
    ids = [node["id"] for node in edited["nodes"]]
    changed = [node for node in edited["nodes"] if node != nodes.get(node["id"])]
    parts = {key: value for key, value in edited.items() if key != "nodes" and value != base[key]}
    gone = sorted(nodes.keys() - set(ids))
    return {**parts, **({"nodes": changed} if changed else {}), **({"gone": gone} if gone else {})}


@cache
def recorded() -> dict[str, Any]:
    """The recording."""
    content: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return content


def compiled_project(name: str = "") -> DbtProject:
    """The project as dbt compiles it after the edit of a case, or before any."""
    base = recorded()["base"]
    change = dict(recorded()["cases"][name]) if name else {}
    nodes = {node["id"]: node for node in base["nodes"]}
    nodes |= {node["id"]: node for node in change.pop("nodes", ())}
    gone = change.pop("gone", ())
    return DbtProject.model_validate(
        {**base, **change, "nodes": [node for id, node in nodes.items() if id not in gone]}
    )


def load_models(root: Path, name: str = "") -> dict[str, Model]:
    """The models of a copy of the project, as dbt compiled it after the edit of a case."""
    compiled = compiled_project(name)
    with mock.patch("mergeplan.planner.project.dbt.compile.compile_dbt", lambda *_: compiled):
        return dict(load_project(root, NOW, options=LoadOptions(strict=True)).models)


def summary() -> str:
    """The table of docs/explanation/dbt-results.md: by kind of edit, how many tables each tool builds."""
    lines = ["| Edits of | Edits | Tables that mergeplan computes | Nodes that dbt builds |", "|---|---|---|---|"]
    kinds = dict.fromkeys(case.kind for case in cases())
    names = {"model": "models", "config": "settings", "macro": "macros", "var": "variables", "package": "packages",
             "yml": "YAML", "seed": "seeds", "snapshot": "snapshots"}  # fmt: skip
    for kind in kinds:
        own = [case for case in cases() if case.kind == kind]
        ours, theirs = (sum(len(part) for part in parts)
                        for parts in ([c.recomputed for c in own], [c.dbt for c in own]))  # fmt: skip
        lines.append(f"| {names[kind]} | {len(own)} | {ours} | {theirs} |")
    ours, theirs = sum(len(c.recomputed) for c in cases()), sum(len(c.dbt) for c in cases())
    return "\n".join([*lines, f"| all | {len(cases())} | {ours} | {theirs} |"])


def record(says: list[dict[str, Any]]) -> dict[str, Any]:
    """The recording of what dbt said."""
    base = says[0]["compiled"]
    differences = {case.name: difference(base, said["compiled"])
                   for case, said in zip(cases(), says[1:], strict=True)}  # fmt: skip
    return {"base": base, "cases": differences}


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        answers = ask_dbt(Path(place), os.environ.get("MERGEPLAN_DBT_PYTHON", ".venv-dbt/bin/python"))
    RECORD.write_text(json.dumps(record(answers), indent=1) + "\n")
    table = yaml.safe_load(CASES.read_text("utf-8"))
    for row, said in zip(table, answers[1:], strict=True):
        row["dbt"] = said["dbt"]
    CASES.write_text(yaml.safe_dump(table, sort_keys=False, width=118, allow_unicode=True))
