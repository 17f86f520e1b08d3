"""Run dbt's own compiler in an isolated child, started at its first use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.python.host import Child, ChildFailed
from mergeplan.planner.python.isolation import Isolation

PROGRAM = "mergeplan.planner.python.dbt_code.child"
SECONDS = 600.0  # that dbt may take


class DbtChild:
    """One project's dbt; use it as a context manager."""

    def __init__(self, root: Path, python: str, request: Mapping[str, Any], isolation: Isolation, path: str) -> None:
        """Create the child; `path` is the file for an error without a place."""
        self._root, self._python, self._request = root, python, request
        self._isolation, self._path = isolation, path
        self._child: Child | None = None

    def __enter__(self) -> DbtChild:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.stop()

    def compile(self, answers: Mapping[str, Mapping[str, object]]) -> str:
        """Compile the project to JSON with these answers to its templates' questions; raise ProjectError."""
        try:
            if self._child is None:
                self._child = Child(self._root, {}, self._isolation, PROGRAM, self._python)
            home = str(self._child.scratch / "home")
            return json.dumps(self._child.ask({**self._request, "home": home, "answers": answers}, SECONDS))
        except ChildFailed as failed:
            place = Place(failed.wrong.path or self._path, failed.wrong.line or 1)
            raise ProjectError(f"{failed.wrong.message.rstrip('.')}.", place=place) from None
