"""The configuration of a folder, config.yaml or config.py; the base branch's, if one is named, gives the gateways."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.files.base_branch import RULED, restrict_environment
from mergeplan.planner.parsing.files.config import read_config
from mergeplan.planner.parsing.files.configuration import CONFIGS, NAME, Configuration, Source, read_source, the_one
from mergeplan.planner.parsing.files.schema import Config, DbtConfig
from mergeplan.planner.parsing.sql.yaml_documents import Document
from mergeplan.planner.parsing.sql.yaml_variables import Replacement
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.pipeline_folder import is_pipeline, read_spec
from mergeplan.planner.project_format import is_dbt_project
from mergeplan.planner.python.config_code.reading import mentioned_names, run_config
from mergeplan.planner.python.isolation import Isolation


@dataclass(frozen=True)
class DbtSource(Source):
    """The config.yaml of a dbt project, which needs no gateways: without them, Spark is this machine's."""

    folder: Folder

    def document(self, replacement: Replacement) -> Document:
        """Return the text as a document, with a gateway if it has none; raise ProjectError."""
        document = super().document(replacement)
        value = {} if document.value is None else document.value
        if not isinstance(value, dict) or "gateways" in value:
            return document
        section = value.get("dbt")
        settings = section if isinstance(section, dict) else {}
        from mergeplan.planner.project.dbt.compile import target_catalog  # which most projects do without

        catalog = settings.get("target_catalog") or target_catalog(
            self.folder, os.environ, DbtConfig(target=str(settings.get("target") or ""))
        )
        return replace(
            document, value={**_local_config({"type": "spark", "default_catalog": catalog or None}), **value}
        )


def read_config_files(
    reading: Folder, gateways_from: Path | None, isolation: Isolation
) -> tuple[Config, Document, Document]:
    """Return the configuration, the folder's own file of it, and the file in which its gateways are written."""
    folder_configuration = read_configuration(reading, isolation)
    if gateways_from is None:
        document = read_source(folder_configuration, os.environ)
        return read_config(document), document, document
    ruling = _ruling_configuration(gateways_from, reading.root, isolation)
    document = read_source(folder_configuration, restrict_environment(folder_configuration, ruling, os.environ))
    ruled_by = read_source(ruling, os.environ)
    ruled = read_config(ruled_by)
    config = read_config(document).model_copy(update={name: getattr(ruled, name) for name in RULED})
    return config, document, ruled_by


def _ruling_configuration(file: Path, root: Path, isolation: Isolation) -> Configuration:
    """Return the configuration whose gateways replace those of the folder `root`, with paths of that folder."""
    source = Source(file.name, file.read_text("utf-8"))
    if not source.is_code:
        return source
    ruling_folder = file.parent.resolve()
    code = run_config(ruling_folder, source.text, os.environ, isolation)
    return replace(code.moved(str(root)), mentioned=mentioned_names(ruling_folder, os.environ))


def read_configuration(reading: Folder, isolation: Isolation) -> Configuration:
    """Return the configuration in a folder, not yet parsed; raise ProjectError if there is none."""
    names = [name for name in CONFIGS if (reading.root / name).is_file()]
    source = the_one(Source(name, reading.text(name)) for name in names)
    if is_dbt_project(reading.root) and (source is None or not source.is_code):
        return DbtSource(source.name, source.text, reading) if source else DbtSource(NAME, "{}\n", reading)
    if source is None and is_pipeline(reading.root):
        return Source(NAME, json.dumps(_local_config({"type": "spark", "config": read_spec(reading).configuration})))
    if source is not None and not source.is_code:
        return source
    if source is not None:
        code = run_config(reading.root, source.text, os.environ, isolation)
        for name in code.files:
            with suppress(ProjectError):  # it is gone again
                reading.hash(name)
        return code
    above = next((folder for folder in reading.root.parents if _is_project(folder)), None)
    hint = "Run `mergeplan init` to create a project."
    if above is not None:
        path_to_project = os.path.relpath(above, reading.root)
        hint = f"The project above is {above}: go there, or add `-p {path_to_project}`."
    raise ProjectError(f"There is no config.yaml in {reading.root}.", hint=hint)


def _local_config(connection: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of another tool's project without a config.yaml: a Spark on this machine."""
    return {"gateways": {"spark": {"connection": connection}}, "model_defaults": {"dialect": "spark"}}


def _is_project(folder: Path) -> bool:
    with suppress(OSError):
        files = ((folder / name) for name in CONFIGS if (folder / name).is_file())
        return (
            is_dbt_project(folder)
            or is_pipeline(folder)
            or any(Source(file.name, file.read_text("utf-8", "replace")).is_configuration for file in files)
        )
    return False
