"""What dbt said of a project, recorded: a program that repeats it stands in for the Python that has dbt.

`MERGEPLAN_DBT_PYTHON=.venv-dbt/bin/python python -m tests.planner.dbt.recorded` records anew; `make prove` compares.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.parsing.files.dbt.nodes import DbtProject
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.project.dbt.compile import compile_dbt
from mergeplan.planner.project.dbt.inputs import PYTHON
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.python.isolation import NO_ISOLATION

SHOP = Path(__file__).parents[2] / "projects/dbt/shop"
ANSWER = SHOP.with_suffix(".json")
PROGRAM = """#!{python}
import json, pathlib, sys
here = pathlib.Path(__file__)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["op"] == "open":
        answer = {{"ok": None}}
    else:
        with here.with_suffix(".log").open("a") as log:
            log.write(line)
        answer = json.loads(here.with_suffix(".json").read_text())
    print(json.dumps(answer), flush=True)
"""


def record(folder: Path, answer: dict[str, Any] | None = None, *, root: Path | None = None) -> Path:
    """A program in this folder that answers as dbt did, for a project that lies in `root`."""
    program = folder / "dbt-python"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    known = answer or {"ok": json.loads(ANSWER.read_text())}
    if root is not None:
        known["ok"]["files"] = [str(root / name) for name in known["ok"]["files"]]
    program.with_suffix(".json").write_text(json.dumps(known))
    return program


def times_asked(program: Path) -> int:
    """How often a program compiled a project."""
    log = program.with_suffix(".log")
    return len(log.read_text().splitlines()) if log.exists() else 0


def compile_shop() -> DbtProject:
    """The shop as the dbt of the environment compiles it; its files by their paths from the root."""
    project = compile_dbt(Folder(SHOP, Cache(None)), DbtConfig(), os.environ, NO_ISOLATION, Cache(None))
    files = tuple(os.path.relpath(file, SHOP) for file in project.files)
    return project.model_copy(update={"files": files})


if __name__ == "__main__":
    os.environ.setdefault(PYTHON, str(Path(".venv-dbt/bin/python").resolve()))
    ANSWER.write_text(json.dumps(compile_shop().model_dump(mode="json"), indent=1) + "\n")
