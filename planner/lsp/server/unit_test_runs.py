"""One unit test, run by a process of its own: it starts Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from mergeplan.planner.isolation.mode import REQUIRED, VARIABLE

SECONDS = 600.0


def run_unit_test(root: Path, path: str, name: str) -> dict[str, Any]:
    """Whether the test of a file passes, and what it says; the file is read as it is on the disk."""
    # `-P`: no module of the folder that the editor stands in takes the place of one of ours
    command = [sys.executable, "-P", "-m", "mergeplan", "test", f"{path}::{name}", "-p", str(root)]
    environ = {VARIABLE: REQUIRED, **os.environ}
    try:
        ran = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env=environ,
        )
    except subprocess.TimeoutExpired:
        return {"ok": False, "message": f"`{name}` did not end within {SECONDS:.0f} seconds.", "output": ""}
    lines = (ran.stdout + ran.stderr).strip()
    summary = "passed" if ran.returncode == 0 else "failed"
    return {"ok": ran.returncode == 0, "message": f"`{name}` {summary}.", "output": lines}
