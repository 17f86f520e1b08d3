"""A project's configuration: config.yaml, config.yml, or the config.py of SQLMesh, which was run elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Protocol

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.sql.yaml_documents import Document, Path, read_document
from mergeplan.planner.parsing.sql.yaml_variables import Replacement, Variable

CONFIGS = ("config.yaml", "config.yml", "config.py")
NAME = "config.yaml"  # the default
_IMPORTS = re.compile(r"^[ \t]*(?:from|import)\b.*\bsqlmesh\b", re.MULTILINE)
START, END = "\ue002", "\ue003"  # around the name of a variable in place of its value
MARK = re.compile("\ue010(\\d+):\\w+\ue011")  # a variable in the texts of a config.py, by its number
_UNSET = "\ue012"  # in place of a default that is no text
# Keys that `Config` accepts without effect, with any value.
NO_EFFECT = frozenset(
    """cache_dir default_test_connection disable_anonymized_analytics infer_python_dependencies janitor log_limit
    migration notification_targets run ui username users""".split()
)


class Configuration(Protocol):
    """A configuration, which may read environment variables."""

    def document(self, replacement: Replacement) -> Document:
        """Return the configuration with each use of a variable replaced; raise ProjectError."""

    @property
    def mentioned(self) -> frozenset[str]:
        """The names of variables that code of the configuration mentions, even if it did not read them."""


@dataclass(frozen=True)
class Source:
    """The file with a configuration: its name, which shows its language, and its text."""

    name: str
    text: str

    mentioned = frozenset[str]()

    @property
    def is_code(self) -> bool:
        return self.name.endswith(".py")

    @property
    def is_configuration(self) -> bool:
        """False for a config.py that does not import SQLMesh, because it is another file of the project."""
        return not self.is_code or _IMPORTS.search(self.text) is not None

    @property
    def path(self) -> str:
        """The name of the file in errors."""
        return "config.py" if self.is_code else NAME

    def document(self, replacement: Replacement) -> Document:
        return read_document(self.path, self.text, replacement)


@dataclass(frozen=True)
class CodeVariable:
    """An environment variable that a config.py reads; its default may be no text."""

    name: str
    default: str | int | float | bool | None
    filters: tuple[str, ...]


@dataclass(frozen=True)
class CodeConfiguration:
    """The result of a config.py: values with marks for `variables`, lines of keys, and why paths are `unclear`."""

    path: str
    value: Mapping[str, Any]
    lines: Mapping[Path, int]
    variables: tuple[CodeVariable, ...] = ()
    unclear: tuple[tuple[Path, str], ...] = ()
    root: str = ""
    mentioned: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()  # files of the project that it read, including itself

    def document(self, replacement: Replacement, section: str | None = None) -> Document:
        """Return the configuration, or one `section`, with each use of a variable replaced; raise ProjectError."""
        dropped = {str(at[0]) for at, _ in self.unclear if at and at[0] in NO_EFFECT}
        sections = {key: value for key, value in self.value.items() if key not in dropped and section in (None, key)}
        document = Document(self.path, sections, self.lines)
        for at, reason in self.unclear:
            if not at or (at[0] in sections and not self._is_of_another_engine(at)):
                raise document.error(at, reason, replacement_hint(self.value))
        return Document(self.path, self._fill_variables(document, sections, (), replacement), self.lines)

    def moved(self, root: str) -> CodeConfiguration:
        return replace(self, value=_move_paths(self.value, self.root, root), root=root)

    def _is_of_another_engine(self, key_path: Path) -> bool:
        if key_path[0] != "gateways" or len(key_path) < 4 or key_path[2] != "connection":
            return False
        section: Any = self.value
        for key in key_path[:3]:
            section = section.get(key) if isinstance(section, dict) else None
        return isinstance(section, dict) and section.get("type") not in ("spark", "databricks")

    @cached_property
    def _project_folders(self) -> tuple[str, ...]:
        """The project's folder and those above it, except folders that many machines have in common."""
        root = PurePosixPath(self.root)
        return tuple(str(folder) for folder in (root, *root.parents) if len(folder.parts) > 2 or folder == root)

    def _fill_variables(self, document: Document, value: Any, key_path: Path, replacement: Replacement) -> Any:
        if isinstance(value, dict):
            filled: dict[str, Any] = {}
            for key, inner in value.items():
                name = str(self._fill_text(document, key, (*key_path, key), replacement))
                if name in filled:
                    raise document.error((*key_path, key), f"`{name}` is given twice.")
                filled[name] = self._fill_variables(document, inner, (*key_path, key), replacement)
            return filled
        if isinstance(value, list):
            return [
                self._fill_variables(document, inner, (*key_path, index), replacement)
                for index, inner in enumerate(value)
            ]
        return self._fill_text(document, value, key_path, replacement) if isinstance(value, str) else value

    def _fill_text(self, document: Document, text: str, key_path: Path, replacement: Replacement) -> Any:
        place = document.place(key_path)
        if "{{" in text:
            raise document.error(key_path, "Double braces are not supported in the texts of a configuration.")
        if "variables" in key_path and any(folder in text for folder in self._project_folders):
            message = "A variable cannot hold the project's folder: it differs from machine to machine."
            raise document.error(key_path, message, "Write what the models need of it as a text.")
        if (whole := MARK.fullmatch(text)) is not None:
            return self._variable_value(self.variables[int(whole[1])], place, replacement)
        return MARK.sub(lambda mark: str(self._variable_value(self.variables[int(mark[1])], place, replacement)), text)

    def _variable_value(self, variable: CodeVariable, place: Place, replacement: Replacement) -> Any:
        default = variable.default
        stand_in = _UNSET if default is not None and not isinstance(default, str) and not variable.filters else None
        default_text = None if default is None else str(default)
        text = replacement(Variable(variable.name, stand_in or default_text, variable.filters), place)
        if text == _UNSET:
            return default
        number = {"int": int, "float": float}.get(variable.filters[-1] if variable.filters else "")
        return number(text) if number and START not in text else text


def _move_paths(value: Any, old: str, new: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _move_paths(inner, old, new) for key, inner in value.items()}
    if isinstance(value, list):
        return [_move_paths(inner, old, new) for inner in value]
    return value.replace(old, new) if isinstance(value, str) else value


def replacement_hint(keys: Iterable[str]) -> str:
    names = ", ".join(f"`{key}`" for key in keys)
    named = f" with the keys that it gives: {names}" if names else ""
    return (
        f"Write a config.yaml in its place{named}. A value that config.py computes is read from the environment there: "
        "`{{ env_var('NAME') }}`."
    )


def the_one(candidates: Iterable[Source]) -> Source | None:
    """Return the only configuration in a folder, or None; raise ProjectError for two, as SQLMesh does."""
    sources = [source for source in candidates if source.is_configuration]
    if len(sources) > 1:
        names = " and ".join(f"`{source.name}`" for source in sources)
        message = f"There are several configurations, {names}: it is not known which one counts."
        raise ProjectError(message, place=Place(sources[-1].name), hint="Keep one of them.")
    return sources[0] if sources else None


def read_source(source: Configuration, environment: Mapping[str, str]) -> Document:
    return source.document(lambda variable, place: variable.value(environment, place))


def mark_variables(source: Configuration) -> Document:
    """Return the configuration with variables as their names between `START` and `END`, in place of their values."""
    return source.document(lambda variable, _: f"{START}{variable.name}{END}")
