"""A project's configuration: config.yaml, config.yml, or the config.py of SQLMesh, which is read and never run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.parsing.config_code.document import read_code
from mergeplan.planner.parsing.config_code.values import Scalar, Substitutions, Unreadable, Variable
from mergeplan.planner.parsing.sql.yaml_documents import Document, read_document

CONFIGS = ("config.yaml", "config.yml", "config.py")
NAME = "config.yaml"  # what a project has that has nothing else
_IMPORTS = re.compile(r"^[ \t]*(?:from|import)\b.*\bsqlmesh\b", re.MULTILINE)
START, END = "\ue002", "\ue003"  # around the name of a variable in the place of its value


@dataclass(frozen=True)
class Source:
    """The file with a configuration: its name, which says in what language it is, and its text."""

    name: str
    text: str

    @property
    def is_code(self) -> bool:
        return self.name.endswith(".py")

    @property
    def is_configuration(self) -> bool:
        """False for a config.py that imports nothing of SQLMesh: it is something else of the project."""
        return not self.is_code or _IMPORTS.search(self.text) is not None

    @property
    def path(self) -> str:
        """What errors call the file."""
        return "config.py" if self.is_code else NAME


def the_one(found: Iterable[Source]) -> Source | None:
    """The configuration among the files of a folder, None when there is none; ProjectError for two, as in SQLMesh."""
    sources = [source for source in found if source.is_configuration]
    if len(sources) > 1:
        names = " and ".join(f"`{source.name}`" for source in sources)
        message = f"There are several configurations, {names}: which one counts is not known."
        raise ProjectError(message, place=Place(sources[-1].name), hint="Keep one of them.")
    return sources[0] if sources else None


def read_source(source: Source, environment: Mapping[str, str], root: str) -> Document:
    """The configuration with its environment variables filled in; `root` is the project's folder. ProjectError."""
    if not source.is_code:
        return read_document(source.path, source.text, lambda variable, place: variable.value(environment, place))

    def value(variable: Variable, line: int) -> Scalar:
        return _value(variable, environment, line)

    return read_code(source.path, source.text, Substitutions(value, PurePosixPath(root)))


def mark_variables(source: Source) -> Document:
    """The configuration with the names of variables, between `START` and `END`, in the place of their values."""
    if not source.is_code:
        return read_document(source.path, source.text, lambda variable, _: f"{START}{variable.name}{END}")

    def name(variable: Variable, line: int) -> Scalar:
        return f"{START}{variable.name}{END}"

    return read_code(source.path, source.text, Substitutions(name, PurePosixPath()))


def section_of_code(path: str, text: str, section: str) -> Document:
    """One section of a config.py, which may use no environment variable; ProjectError."""

    def refuse_variable(variable: Variable, line: int) -> Scalar:
        raise Unreadable(line, f"`{section}` cannot use environment variables.", "Write the value itself.")

    return read_code(path, text, Substitutions(refuse_variable, PurePosixPath()), section)


def _value(variable: Variable, environment: Mapping[str, str], line: int) -> Scalar:
    value: Scalar = environment.get(variable.name, variable.default)
    if value is None:
        hint = f"Set it, or give a default: `os.environ.get('{variable.name}', '...')`."
        raise Unreadable(line, f"The environment variable `{variable.name}` is not set.", hint)
    if not variable.whole:
        return value
    try:
        return int(value)
    except (ValueError, OverflowError):
        message = f"The environment variable `{variable.name}` is not a whole number."
        raise Unreadable(line, message, "Set it to one.") from None
