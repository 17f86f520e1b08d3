"""`.ci/run` takes the newest Python that is found and works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "newest_python"


def newest(path: Path, home: Path) -> str:
    """Return the answer where the PATH has these programs alone."""
    environ = {"PATH": str(path), "HOME": str(home)}
    return subprocess.run([str(SCRIPT)], env=environ, capture_output=True, text=True, check=True, timeout=60).stdout


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_program_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    minor = sys.version_info.minor
    for other in {12, 13} - {minor}:
        program(tmp_path / "bin" / f"python3.{other}", "echo 'pyenv: python3: command not found' >&2; exit 127")
    program(tmp_path / "bin" / f"python3.{minor}", f'exec "{sys.executable}" "$@"')

    assert os.path.samefile(newest(tmp_path / "bin", tmp_path).strip(), sys.executable)


def test_one_of_pyenv_is_found_in_the_home_folder(tmp_path: Path) -> None:
    minor = sys.version_info.minor
    program(tmp_path / f".pyenv/versions/3.{minor}.9/bin/python3", f'exec "{sys.executable}" "$@"')

    assert os.path.samefile(newest(tmp_path / "bin", tmp_path).strip(), sys.executable)
