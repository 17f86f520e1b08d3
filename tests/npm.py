"""Packages of npm that GitHub publishes itself, for tests that hold the project to them."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest


def fetch_package(package: str, folder: Path) -> Path:
    """The files of a package's newest version, below `folder`; the test is skipped where npm cannot fetch it."""
    npm = shutil.which("npm")
    packed = npm and subprocess.run([npm, "pack", package], cwd=folder, capture_output=True, timeout=300, check=False)
    if not packed or packed.returncode:
        pytest.skip(f"npm could not fetch {package}")
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder / "package"
