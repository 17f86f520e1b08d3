"""The SQL files of a project for `format`; models and layouts are remembered by text, so few files are read."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.cache.version import reader_version
from mergeplan.planner.errors import ProjectError, ProjectErrors, RequestError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.parsing.definitions.block_format import COMMENT
from mergeplan.planner.parsing.definitions.formatting import Formatted, Style, format_file
from mergeplan.planner.parsing.files.config import read_config
from mergeplan.planner.parsing.files.configuration import read_source
from mergeplan.planner.parsing.files.schema import Config
from mergeplan.planner.parsing.sql.yaml_documents import Document
from mergeplan.planner.project.configuration_files import read_configuration
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.pipeline_folder import is_pipeline
from mergeplan.planner.project_format import is_dbt_project
from mergeplan.planner.python.isolation import Isolation

_NAME = re.compile(r"\bMODEL\s*\(.*?\bname\s+['\"`]?([\w.]+)", re.IGNORECASE | re.DOTALL)
AT_ONCE = 500  # files whose layouts are asked for, and kept, in one question


@dataclass(frozen=True)
class SqlFile:
    """A file of models/ or audits/, not yet parsed: its path from the root, its text, its ends of lines."""

    name: str
    text: str
    newline: str = "\n"


class SqlFiles:
    """The files of models/ and audits/ of these names."""

    def __init__(self, folder: Folder, cache: Cache, names: Sequence[str]) -> None:
        self._folder, self._cache, self.names = folder, cache, tuple(names)

    def read(self, names: Iterable[str]) -> Iterator[SqlFile]:
        """Yield these files; raise ProjectErrors for all that cannot be read."""
        for name in names:
            try:
                text = self._folder.text(name)
                newline = "\r\n" if b"\r\n" in (self._folder.root / name).read_bytes() else "\n"
            except ProjectError as error:
                self._folder.errors.append(error)
                continue
            yield SqlFile(name, text, newline)
        self._folder.finish()

    def find_models(self) -> dict[str, str]:
        """Return the file that seems to define each model; read only files that changed since the last call."""
        key = digest("models of files", reader_version(), str(self._folder.root))
        cached_models: dict[str, list[str]] = json.loads(self._cache.get([key]).get(key, "{}"))
        hashes = {name: self._folder.hash(name) for name in self.names}
        models = {name: [hashed, self._find_model(name, hashed, cached_models)] for name, hashed in hashes.items()}
        if models != cached_models:
            self._cache.put({key: json.dumps(models, separators=(",", ":"))})
        self._folder.finish()
        return {model: name for name, (_, model) in models.items() if model}

    def _find_model(self, name: str, hashed: str, known: dict[str, list[str]]) -> str:
        if name in known and known[name][0] == hashed:
            return known[name][1]
        match = _NAME.search(COMMENT.sub(lambda match: " " if match["comment"] else match[0], self._folder.text(name)))
        return match[1].lower() if match else ""

    def format(self, names: Iterable[str], dialect: str, style: Style) -> Iterator[tuple[SqlFile, Formatted]]:
        """Yield each of these files with its formatted text; raise ProjectErrors for all that cannot be read."""
        layout = digest("layout", reader_version(), dialect, repr(style))
        waiting, errors = list(self.read(names)), list[ProjectError]()
        while file_batch := waiting[:AT_ONCE]:
            del waiting[:AT_ONCE]
            cached_layouts, new = self._cache.get([digest(layout, file.text) for file in file_batch]), dict[str, str]()
            for file in file_batch:
                key = digest(layout, file.text)
                if key in cached_layouts:
                    text, reason = json.loads(cached_layouts[key])
                    yield file, Formatted(file.text if text is None else text, reason)
                    continue
                try:
                    formatted = format_file(file.name, file.text, dialect, style)
                except ProjectError as error:
                    errors.append(error)
                    continue
                new[digest(layout, formatted.text)] = json.dumps([None, formatted.left])  # laid out, it stays so
                if formatted.text != file.text:
                    new[key] = json.dumps([formatted.text, formatted.left])
                yield file, formatted
            self._cache.put(new)
        if errors:
            raise ProjectErrors(tuple(errors))


def open_sql_files(root: Path, isolation: Isolation, cache: Cache) -> tuple[Config, Document, SqlFiles]:
    """Return the configuration, its document, and the SQL files of a folder.

    Raise ProjectError for a name that is not UTF-8, and RequestError for a project of another tool.
    """
    reading = Folder(root.resolve(), cache)
    if is_dbt_project(reading.root):
        hint = "sqlfluff and others know dbt's templates."
        raise RequestError(
            "This is a dbt project: its files are templates, which `format` does not lay out.", hint=hint
        )
    if is_pipeline(reading.root):
        raise RequestError("This is a pipeline of Spark: `format` lays out projects of mergeplan only.")
    document = read_source(read_configuration(reading, isolation), os.environ)
    config = read_config(document)
    folders = ("models", "audits")
    names = [name for folder in folders for name in reading.files(folder, config.ignore_patterns, ".sql")]
    return config, document, SqlFiles(reading, cache, names)


def style_of(config: Config) -> Style:
    return Style(**config.format.model_dump(), models=config.model_defaults.formatting is not False)
