"""One unit test, run by a separate process, since it starts Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import MutableSet
from pathlib import Path
from typing import Any

from mergeplan.planner.isolation.mode import REQUIRED, VARIABLE

SECONDS = 600.0
Children = MutableSet["subprocess.Popen[str]"]


def run_unit_test(root: Path, path: str, name: str, children: Children) -> dict[str, Any]:
    """Return whether the test of a file passes, and its output.

    The file is read as it is on the disk. The process is among `children` while it runs.
    """
    # `-P`: no module of the editor's working folder replaces one of ours
    command = [sys.executable, "-P", "-m", "mergeplan", "test", f"{path}::{name}", "-p", str(root)]
    environ = {VARIABLE: REQUIRED, **os.environ}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, env=environ, **pipes) as child:  # type: ignore[call-overload]
        children.add(child)
        try:
            output, _ = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            child.terminate()
            return {"ok": False, "message": f"`{name}` did not end within {SECONDS:.0f} seconds.", "output": ""}
        finally:
            children.discard(child)
    summary = "passed" if child.returncode == 0 else "failed"
    return {"ok": child.returncode == 0, "message": f"`{name}` {summary}.", "output": output.strip()}
