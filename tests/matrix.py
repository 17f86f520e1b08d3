"""`make test-matrix`: a small set of tests on every Python of this machine and every Spark that pyproject.toml allows.

    python -m tests.matrix                   all that this machine has
    python -m tests.matrix 3.13 lowest       only the environments with such a name
    python -m tests.matrix --record          and write the results to docs/reference/versions.md

An environment is made by uv in `.venv-matrix` and stays there. A Python that is not found is reported, and no failure.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-matrix"
UV = FOLDER / "uv" / "bin" / "uv"
PAGE = ROOT / "docs" / "reference" / "versions.md"
RESULTS = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- end -->)", re.DOTALL)
RECORD = "--record"
PYTHONS, SPARKS = ("3.11", "3.12", "3.13", "3.14"), ("4.1", "4.2", "4.3")
LOCKED, LOWEST, NEWEST = "locked", "lowest", "newest"
IMPORTS = """import importlib, pkgutil, mergeplan, mergeplan_sandbox
ours = (mergeplan, mergeplan_sandbox)
away = ("mergeplan.airflow", "mergeplan.dagster", "migrations", "__main__")
names = [m.name for top in ours for m in pkgutil.walk_packages(top.__path__, f"{top.__name__}.")]
for name in names: any(part in name for part in away) or importlib.import_module(name)
"""
# Start, quickstart, the API, and the bot's main line.
TESTS = (
    "tests/planner/cli/test_start.py",
    "tests/planner/cli/test_quickstart.py",
    "tests/planner/api/test_models.py",
    "tests/bot/pulls/test_publish.py",
)


@dataclass(frozen=True)
class Cell:
    """One environment: a Python, and which versions of the dependencies."""

    python: str
    versions: str
    spark: str = ""

    @property
    def name(self) -> str:
        return "-".join(part for part in (self.python, self.versions, self.spark) if part)


def main(arguments: Sequence[str]) -> int:
    """Run the matrix and print its table; 1 when a cell failed."""
    if not UV.exists():
        subprocess.run([sys.executable, "-m", "venv", str(UV.parents[1])], check=True)
        subprocess.run([str(UV.parent / "pip"), "install", "--quiet", "uv"], check=True)
    pythons = {version: python for version in PYTHONS if (python := find_python(version))}
    words = {*arguments} - {RECORD}
    chosen = [cell for cell in cells(list(pythons)) if words <= {*cell.name.split("-")}]
    print("| Python | Versions | pyspark | Imports | Tests | Seconds |\n|---|---|---|---|---|---|", flush=True)
    failed = False
    for cell in chosen:
        results, took = run_cell(cell, pythons[cell.python])
        failed |= not all(text.startswith(("passed", "4.")) for text in results)
        print(f"| {cell.python} | {cell.versions} | {' | '.join(results)} | {took:.0f} |", flush=True)
        if RECORD in arguments:
            PAGE.write_text(record(PAGE.read_text(encoding="utf-8"), cell, results), encoding="utf-8")
    for version in sorted(set(PYTHONS) - pythons.keys()):
        print(f"Python {version} is not on this machine.")
    return int(failed)


def cells(pythons: Sequence[str]) -> list[Cell]:
    """Return each Python with the locked versions, then the Sparks, and the lowest and the newest of everything."""
    return [
        *(Cell(python, LOCKED) for python in pythons),
        *(Cell(pythons[-1], LOCKED, spark) for spark in SPARKS),
        Cell(pythons[0], LOWEST),
        Cell(pythons[-1], NEWEST),
    ]


def find_python(version: str) -> str:
    """Return the path of a Python on this machine, of pyenv's too; '' without one."""
    of_pyenv = map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin"))
    process = subprocess.run(
        [str(UV), "python", "find", "--no-project", "--python-preference", "system", version],
        capture_output=True,
        text=True,
        check=False,
        cwd=FOLDER,
        env={**os.environ, "PATH": os.pathsep.join((os.environ["PATH"], *of_pyenv))},
    )
    return process.stdout.strip()


def record(page: str, cell: Cell, results: Sequence[str]) -> str:
    """Return the page with the row of this cell, in the order of all cells."""
    rows = read_results(page) | {cell.name: " | ".join(results)}
    order = [cell.name for cell in cells(PYTHONS)]
    lines = [f"| `{name}` | {rows[name]} |\n" for name in order if name in rows]
    head = "| Environment | pyspark | Imports | Tests |\n|---|---|---|---|\n"
    return RESULTS.sub(lambda _: head + "".join(lines), page)


def read_results(page: str) -> dict[str, str]:
    """Return the results on the page by the names of their cells."""
    (text,) = RESULTS.findall(page)
    return dict(re.findall(r"(?m)^\| `(\S+)` \| (.*) \|$", text))


def run_cell(cell: Cell, python: str) -> tuple[list[str], float]:
    """Return pyspark's version and the results of imports and tests, and the seconds that they took."""
    started, folder = time.monotonic(), FOLDER / cell.name
    log = FOLDER / f"{cell.name}.log"
    with log.open("w") as output:

        def succeeds(*command: str) -> bool:
            return not subprocess.run(command, stdout=output, stderr=output, cwd=ROOT, check=False).returncode

        if not install(cell, python, folder, succeeds):
            return ["", f"not installed: {log.relative_to(ROOT)}", ""], time.monotonic() - started
        own = str(folder / "bin" / "python")
        shown = [own, "-c", "import pyspark; print(pyspark.__version__)"]
        spark = subprocess.run(shown, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
        results = [succeeds(own, "-W", "error", "-c", IMPORTS), succeeds(own, "-m", "pytest", "-q", *TESTS)]
    return [
        spark,
        *("passed" if ok else f"failed: {log.relative_to(ROOT)}" for ok in results),
    ], time.monotonic() - started


def install(cell: Cell, python: str, folder: Path, succeeds: Callable[..., bool]) -> bool:
    """Make the environment of a cell; False when uv finds no versions that fit."""
    constraints = FOLDER / f"{cell.name}.txt"
    constraints.write_text("\n".join(constraint_lines(cell)) + "\n", encoding="utf-8")
    lowest = (
        "pip",
        "compile",
        "pyproject.toml",
        "sandbox/pyproject.toml",
        "--group",
        "test",
        "--resolution",
        "lowest-direct",
        "--quiet",
    )
    return bool(
        succeeds(str(UV), "venv", "--quiet", "--clear", "--python", python, str(folder))
        and (
            cell.versions != LOWEST or succeeds(str(UV), *lowest, "--python", python, "--output-file", str(constraints))
        )
        and succeeds(
            *(str(UV), "pip", "install", "--quiet", "--python", str(folder / "bin" / "python")),
            *("--constraint", str(constraints), "--group", "test", "--editable", "./sandbox", "--editable", ".[demo]"),
        )
    )


def constraint_lines(cell: Cell) -> list[str]:
    """Return what the versions of a cell are held to, before uv looks for the lowest."""
    if cell.versions != LOCKED:
        return []
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    if not cell.spark:
        return lines
    return [line for line in lines if not re.match(r"pyspark|py4j", line)] + [f"pyspark=={cell.spark}.*"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
