"""The Python files below a project's root."""

import os
from collections.abc import Iterator
from pathlib import Path


def list_code_files(root: Path) -> Iterator[Path]:
    """Yield every Python file, without hidden folders and virtual environments."""
    for folder, names, files in os.walk(root):
        names[:] = sorted(
            name
            for name in names
            if not name.startswith((".", "__pycache__")) and not Path(folder, name, "pyvenv.cfg").exists()
        )
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(".py"))
