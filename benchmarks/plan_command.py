"""`mergeplan plan` as a person starts it: projects of three sizes, cold and warm, unchanged and edited.

Prints CPU seconds (medians), the largest memory, and ratios: a plan should cost what the change costs. `again` is a
plan of an edit that was planned before, `next` that of another edit of the same column.

    python -m benchmarks.plan_command [100 1000 5000]
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import sqlglot

from benchmarks.projects import HUB, write_project

SIZES = (100, 1000, 5000)
ROUNDS = 5
COMMAND = (sys.executable, "-m", "mergeplan", "plan", "--no-prompts")
COLUMN = ("\nSELECT\n", "\nSELECT\n  1 AS more,\n")  # in the outermost query
KEY, NEXT_KEY = (("    id,\n", f"    id + {number} AS id,\n") for number in (1, 2))


def measure_parse(root: Path) -> float:
    """CPU seconds in which sqlglot parses the models' files, and does nothing else."""
    texts = [path.read_text() for path in sorted((root / "models").rglob("*.sql"))]
    began = time.process_time()
    for text in texts:
        sqlglot.parse(text, dialect="spark", error_level=sqlglot.ErrorLevel.IGNORE)
    return time.process_time() - began


def measure_plan(root: Path) -> tuple[float, float]:
    """CPU seconds and megabytes of one plan, by the counts that the system keeps of ended children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(COMMAND, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stdout and process.stderr
        out, err = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{root}: {out}{err}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, usage.ru_maxrss / 1024


def median(root: Path, rounds: int = ROUNDS) -> tuple[float, float]:
    taken = [measure_plan(root) for _ in range(rounds)]
    return statistics.median(seconds for seconds, _ in taken), max(size for _, size in taken)


def measure_project(folder: Path, size: int) -> dict[str, tuple[float, float]]:
    """What -> CPU seconds and megabytes."""
    root, cache = folder / f"p{size}", folder / "cache"
    root.mkdir()
    os.environ["MERGEPLAN_CACHE"] = str(cache)
    files = write_project(root, size)
    subprocess.run([sys.executable, "-m", "benchmarks.promoted", str(root)], check=True)  # so that we stay small

    def measure_edit(name: str, path: Path, edit: tuple[str, str]) -> None:
        text = path.read_text()
        path.write_text(text.replace(*edit, 1))
        results[f"{name}, first"], results[f"{name}, again"] = median(root, 1), median(root)
        path.write_text(text)

    os.environ["MERGEPLAN_CACHE"] = str(folder / f"cold{size}")
    results = {"no edit, cold": median(root, 1)}
    os.environ["MERGEPLAN_CACHE"] = str(cache)  # of the machine that planned what is in prod
    results["no edit"] = median(root)
    measure_edit("leaf +1 column", files[f"marts.m{size - 1}"], COLUMN)
    measure_edit("hub +1 column", files[HUB], COLUMN)
    measure_edit("hub, other key", files[HUB], KEY)
    files[HUB].write_text(files[HUB].read_text().replace(*NEXT_KEY, 1))
    results["hub, other key, next"] = median(root, 1)
    results["parse of all files"] = statistics.median(measure_parse(root) for _ in range(ROUNDS)), 0.0
    return results


def main() -> None:
    """Print the table."""
    sizes = tuple(int(argument) for argument in sys.argv[1:]) or SIZES
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    with tempfile.TemporaryDirectory() as name:
        results = {size: measure_project(Path(name), size) for size in sizes}
    print(f"{'CPU seconds':<22}" + "".join(f"{size:>10,}" for size in sizes) + "   models")
    for what in results[sizes[0]]:
        print(f"{what:<22}" + "".join(f"{results[size][what][0]:>10.2f}" for size in sizes))
    for what in ("no edit", "hub +1 column, again"):
        print(f"{f'MB, {what}':<22}" + "".join(f"{results[size][what][1]:>10.0f}" for size in sizes))
    for one, other in pairwise(sizes):
        growth = results[other]["no edit"][0] / results[one]["no edit"][0]
        print(f"{other:,} / {one:,} models, no edit: {growth:.1f} times")
    for size in sizes:
        parse, cold = results[size]["parse of all files"][0], results[size]["no edit, cold"][0]
        for what in ("no edit", "hub +1 column, first"):
            seconds = results[size][what][0]
            print(f"{size:,} models, {what}: {seconds / parse:.2f} of a parse, {seconds / cold:.3f} of a cold plan")


if __name__ == "__main__":
    main()
