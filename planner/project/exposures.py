"""The files of a project's exposures: `exposures.yaml`, and those of the folder `exposures`."""

from collections.abc import Collection

from mergeplan.planner.model.exposure import Exposure
from mergeplan.planner.parsing.files.exposures import read_exposures
from mergeplan.planner.parsing.files.schema import Config
from mergeplan.planner.parsing.sql.yaml_documents import read_document
from mergeplan.planner.project.folder import Folder

FILES = ("exposures.yaml", "exposures.yml")


def load_exposures(
    reading: Folder, config: Config, catalog: str, models: Collection[str] | None
) -> tuple[Exposure, ...]:
    """Read the uses of models outside of the project; `models` is None if not every model's name is known."""
    exposures: list[Exposure] = []

    def read(path: str) -> None:
        exposures.extend(read_exposures(read_document(path, reading.text(path)), catalog, models))

    paths = [name for name in FILES if (reading.root / name).is_file()]
    reading.each((*paths, *reading.files("exposures", config.ignore_patterns, ".yaml", ".yml")), read)
    return tuple(exposures)
