"""A dbt project by the manifests that the configuration names: `dbt` itself is not needed."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.files.dbt.manifest import Manifest, load_manifest, manifest_project
from mergeplan.planner.parsing.files.dbt.manifest_types import CatalogFile
from mergeplan.planner.parsing.files.dbt.nodes import DbtProject
from mergeplan.planner.parsing.files.dbt.parsed_files import NAME
from mergeplan.planner.parsing.files.schema import DbtConfig
from mergeplan.planner.parsing.files.typed_json import read_json

LARGEST = 100_000_000  # bytes of a file: dbt writes 20,000 for a model
RESULTS, CATALOG = "run_results.json", "catalog.json"


def read_manifests(root: Path, name: str, config: DbtConfig, files: Iterable[str]) -> DbtProject:
    """Read the project of this name from `dbt: {manifest: ..., manifest_later: ...}`; raise ProjectErrors."""
    reader = _Reader(root, name)
    first = reader.manifest(config.manifest)
    later = reader.manifest(config.manifest_later) if config.manifest_later else None
    catalog = reader.sibling(config.manifest, CATALOG)
    path = str(Path(config.manifest).with_name(CATALOG))
    types = read_json(CatalogFile, path, catalog).types() if catalog else {}
    project = manifest_project(first, later, types, files, reader.text, config.target)
    return project.model_copy(update={"files": tuple(sorted(reader.read))})


class _Reader:
    """Reads files of the project; `read` are the paths of those that are there."""

    def __init__(self, root: Path, project: str) -> None:
        self._root, self._project = root.resolve(), project
        self.read: set[str] = set()

    def manifest(self, path: str) -> Manifest:
        text = self.text(path)
        if text is None:
            hint = "`dbt compile --full-refresh` writes it to target/manifest.json."
            raise ProjectError(f"There is no `{path}` in the project.", place=Place("config.yaml", 1), hint=hint)
        parsed = self._read_bytes(str(Path(path).with_name(NAME)))
        return load_manifest(path, text, self.sibling(path, RESULTS), parsed, self._project)

    def sibling(self, path: str, name: str) -> str | None:
        return self.text(str(Path(path).with_name(name)))

    def text(self, path: str) -> str | None:
        """Return the text of a file of the project; None if it is missing, outside the project, or not UTF-8."""
        data = self._read_bytes(path)
        with suppress(UnicodeDecodeError):
            return None if data is None else data.decode("utf-8").replace("\r\n", "\n")
        return None

    def _read_bytes(self, path: str) -> bytes | None:
        file = (self._root / path).resolve()
        with suppress(OSError):
            if file.is_relative_to(self._root):
                if file.stat().st_size > LARGEST:
                    size = f"{file.stat().st_size / 10**6:,.0f} MB"
                    message = f"The file has {size}: of what dbt writes, {LARGEST // 10**6} MB are read."
                    raise ProjectError(message, place=Place(path, 1), hint="Let mergeplan ask dbt itself.")
                data = file.read_bytes()
                self.read.add(str(self._root / path))
                return data
        return None
