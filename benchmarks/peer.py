"""SQLMesh's plans beside ours: the same models in both, prod promoted, nothing computed; cold, warm, and with a leaf or
the hub edited, for the first time and again.

SQLMesh is given DuckDB and not Spark, so that no start of Spark is in its figures; ours starts none for these plans.
Prints CPU seconds (medians), the largest memory, and ratios.

    make bench-peer                                 installs SQLMesh into a virtual environment of its own
    python -m benchmarks.peer SQLMESH [100 1000]    with the `sqlmesh` that is installed there
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.plan_command import COLUMN
from benchmarks.projects import COLUMNS, CONFIG, HUB, MEASURES, SOURCES, write_project

SIZES = (100, 1000)
ROUNDS = 3
OURS = (sys.executable, "-m", "mergeplan", "plan", "--no-prompts")
PLAN = ("plan", "--explain", "--no-prompts", "--skip-tests", "--skip-linter", "--no-diff")
FILL = ("plan", "--auto-apply", "--no-prompts", "--empty-backfill", "--skip-tests", "--skip-linter", "--no-diff")
GATEWAY = "gateways:\n  local:\n    connection:\n      type: duckdb\n      database: peer.db\n"
Taken = tuple[float, float]


def measure_command(command: Sequence[str], root: Path) -> Taken:
    """CPU seconds and megabytes of one command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command}: {said[-4000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, usage.ru_maxrss / 1024


def middle(command: Sequence[str], root: Path, rounds: int = ROUNDS) -> Taken:
    """The medians of some runs."""
    runs = [measure_command(command, root) for _ in range(rounds)]
    return median(cpu for cpu, _ in runs), max(size for _, size in runs)


def measure_project(command: Sequence[str], root: Path, edits: dict[str, Path], cache: Path) -> dict[str, Taken]:
    """What -> CPU seconds and megabytes, of a project whose prod is as its files say."""
    shutil.rmtree(cache, ignore_errors=True)
    results = {"no edit, cold": measure_command(command, root), "no edit": middle(command, root)}
    for name, path in edits.items():
        text = path.read_text()
        path.write_text(text.replace(*COLUMN, 1))
        results[f"{name} edited"], results[f"{name} again"] = measure_command(command, root), middle(command, root)
        path.write_text(text)
    return results


def edited_models(files: dict[str, Path], size: int) -> dict[str, Path]:
    """What is edited, by what it is in the graph."""
    return {"leaf": files[f"marts.m{size - 1}"], "hub": files[HUB]}


def ours(folder: Path, size: int) -> dict[str, Taken]:
    """Of mergeplan."""
    root, cache = folder / f"ours{size}", folder / f"cache{size}"
    root.mkdir()
    os.environ["MERGEPLAN_CACHE"] = str(cache)
    files = write_project(root, size)
    subprocess.run([sys.executable, "-m", "benchmarks.promoted", str(root)], check=True)
    return measure_project(OURS, root, edited_models(files, size), cache)


def theirs(sqlmesh: str, folder: Path, size: int) -> dict[str, Taken]:
    """Of SQLMesh: its tables are created empty, over empty sources."""
    root = folder / f"theirs{size}"
    root.mkdir()
    files = write_project(root, size)
    (root / "config.yaml").write_text(GATEWAY + CONFIG[CONFIG.index("\nmodel_defaults") :])
    typed = (*COLUMNS, *((name, "double") for name in MEASURES))
    columns = ", ".join(f"{name} {'varchar' if kind == 'string' else kind}" for name, kind in typed)
    creates = ["CREATE SCHEMA raw", *(f"CREATE TABLE raw.source_{n} ({columns})" for n in range(SOURCES))]
    script = f"import duckdb\nwith duckdb.connect('peer.db') as c:\n    for each in {creates!r}: c.execute(each)"
    subprocess.run([str(Path(sqlmesh).with_name("python")), "-c", script], cwd=root, check=True)
    measure_command((sqlmesh, *FILL), root)
    return measure_project((sqlmesh, *PLAN), root, edited_models(files, size), root / ".cache")


def main() -> None:
    """Print the table."""
    sqlmesh, sizes = str(Path(sys.argv[1]).absolute()), tuple(int(argument) for argument in sys.argv[2:]) or SIZES
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    print(f"{'':<14}{'':<14}{'mergeplan':>12}{'SQLMesh':>10}   SQLMesh / mergeplan, CPU seconds; megabytes")
    with tempfile.TemporaryDirectory() as name:
        for size in sizes:
            our, their = ours(Path(name), size), theirs(sqlmesh, Path(name), size)
            for what, (cpu, memory) in our.items():
                other, other_memory = their[what]
                print(
                    f"{f'{size:,} models':<14}{what:<14}{cpu:>10.2f} s{other:>8.2f} s{other / cpu:>9.1f} x"
                    f"{memory:>12.0f}{other_memory:>8.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
