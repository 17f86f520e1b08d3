"""The first pages of `mergeplan ui` after a start, with and without cached analyses.

Prints the seconds until the list of models is shown, by the clock and of CPU, then the CPU seconds until the page of a
model is, which needs every query; and the largest memory of the server.

    python -m benchmarks.first_page [1000 5000]
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from benchmarks.projects import HUB, write_project

SIZES = (1000, 5000)
COMMAND = (sys.executable, "-m", "mergeplan", "ui", "--port", "0")
TICK = os.sysconf("SC_CLK_TCK")


def measure_pages(root: Path) -> tuple[float, float, float, int]:
    """The list's seconds by the clock and of CPU, a page's of CPU, and megabytes, of a server that starts for them."""
    began = time.monotonic()
    with subprocess.Popen(COMMAND, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip().rstrip("/")
        wait_for_page(f"{address}/")
        shown, listed = time.monotonic() - began, count_seconds(process.pid)
        wait_for_page(f"{address}/models/{HUB}")
        seconds = count_seconds(process.pid) - listed
        peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        process.terminate()
    return shown, listed, seconds, int(peak[1]) // 1024 if peak else 0


def wait_for_page(address: str) -> None:
    while (answer := httpx.get(address, timeout=600)).status_code == httpx.codes.SERVICE_UNAVAILABLE:
        time.sleep(float(answer.headers["Retry-After"]))
    answer.raise_for_status()


def count_seconds(process: int) -> float:
    """CPU seconds of a process and of its ended children."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICK


def main() -> None:
    """Print a line for each size, without caches and with them."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    print(f"{'models':>7} {'caches':>7} {'list':>7} {'CPU':>7} {'model':>7} {'MB':>5}")
    for size in tuple(int(argument) for argument in sys.argv[1:]) or SIZES:
        with tempfile.TemporaryDirectory() as name:
            root = Path(name, "project")
            root.mkdir()
            write_project(root, size)
            os.environ["MERGEPLAN_CACHE"] = f"{name}/other"
            subprocess.run([sys.executable, "-m", "benchmarks.promoted", str(root)], check=True)
            os.environ["MERGEPLAN_CACHE"] = f"{name}/cache"
            for caches in ("none", "warm"):
                shown, listed, model, size_mb = measure_pages(root)
                print(f"{size:>7,} {caches:>7} {shown:>7.2f} {listed:>7.2f} {model:>7.2f} {size_mb:>5}", flush=True)


if __name__ == "__main__":
    main()
