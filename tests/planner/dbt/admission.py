"""Letting the user of project code into the folders of a test."""

from __future__ import annotations

import tempfile
from pathlib import Path


def admit_project_code(folder: Path) -> None:
    """Open a test's folder, and those of pytest above it, to the user as whom project code runs."""
    top = Path(tempfile.gettempdir())
    for opened in (folder, *folder.parents):
        if opened == top or not opened.is_relative_to(top):
            return
        opened.chmod(0o755)
