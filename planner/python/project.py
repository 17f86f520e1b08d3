"""The Python of one project: its macros, its models, and what runs them. None of its code runs in this process.

A project without Python files starts no child. The one that reads the project is ended with `close`; each model that is
computed has its own child.
"""

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.parsing.files.model_file import Defaults
from mergeplan.planner.parsing.sql.macro_scope import Lookup
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.parsing.sql.user_macros import ColumnsWanted, MacroCall
from mergeplan.planner.python.files.datafiles import DataFiles
from mergeplan.planner.python.files.filereads import FileReads
from mergeplan.planner.python.host import Child, ChildFailed
from mergeplan.planner.python.isolation import NO_ISOLATION, Isolation
from mergeplan.planner.python.messages import LoadedCode, RegisteredModel, Wrong
from mergeplan.planner.python.models import ModelReader, python_models
from mergeplan.planner.python.packages import versions_in
from mergeplan.planner.python.reached import Reached

A = TypeVar("A")
LOADING = 120.0  # seconds that importing a project's files may take
CALLING = 60.0  # seconds that a macro may take, or a signal; a model may take as long as it likes
TEXTS = TypeAdapter(tuple[str, ...])


@dataclass(frozen=True)
class Traced:
    """The code that a model reaches, the texts that it gets, and a digest of the data files that it may read."""

    code: Reached
    texts: tuple[str, ...]
    data: str


@dataclass
class ProjectCode:
    """A project's Python files (path -> text) and what they register; it is a `UserMacros`."""

    root: Path
    files: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, Any] = field(default_factory=dict)
    gateway: str = ""
    isolation: Isolation = NO_ISOLATION
    names: frozenset[str] = frozenset()  # of its macros
    unavailable: tuple[str, ...] = ()  # files that cannot be imported
    signals: Mapping[str, Place] = field(default_factory=dict)
    registrations: tuple[RegisteredModel, ...] = ()
    digests: dict[str, str] = field(default_factory=dict)  # of the code of its Python models, by name
    queried: dict[str, tuple[tuple[str, Place], ...]] = field(
        default_factory=dict
    )  # names in the texts of their queries
    traced: dict[str, Traced] = field(default_factory=dict)  # of the models that were read again
    _paths: tuple[str, ...] = ()
    _child: Child | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _data: DataFiles | None = None
    catalog: str = SESSION_CATALOG  # of names without one

    def load(self, paths: Sequence[str]) -> tuple[tuple[str, ProjectError], ...]:
        """Import these files and record what they register; return the files that cannot be imported, and why."""
        if not paths:
            return ()
        self._paths = tuple(paths)
        loaded = self._load_code()
        self.names = frozenset(loaded.macros)
        self.unavailable = tuple(error.file for error in loaded.errors)
        self.signals = {signal.name: Place(signal.path, signal.line) for signal in loaded.signals}
        self.registrations = tuple(registration for registration in loaded.models if registration.path in self.files)
        return tuple((error.file, code_error(error, Place(error.file, 1))) for error in loaded.errors)

    def models(self, registration: RegisteredModel, defaults: Defaults) -> Iterator[Model]:
        """Yield the models of one decorated function; raise ProjectError(s)."""
        query = partial(self._make_query, defaults.columns)
        versions = partial(find_version, packages=self.isolation.packages)
        reader = ModelReader(self.files, defaults, query, versions, self._record_reach)
        for model in python_models(registration, reader):
            if model.python is not None:
                self.digests[model.name] = model.python.digest
            yield model

    def again(self, model: Model, defaults: Defaults) -> Model:
        """Return a model of a Python file as it would be with these defaults."""
        fresh: dict[str, Any] = {"digests": {}, "queried": {}, "traced": {}, "_child": None, "_lock": threading.Lock()}
        fresh_code = replace(self, variables=defaults.variables, registrations=(), **fresh)
        try:
            registrations = (entry for entry in self.registrations if entry.path == model.path)
            return next(
                candidate
                for registration in registrations
                for candidate in fresh_code.models(registration, defaults)
                if candidate.name == model.name
            )
        finally:
            fresh_code.close()

    def call(self, call: MacroCall) -> tuple[str, ...]:
        """Return the SQL texts that replace a call, in its dialect; raise ProjectError at the macro or the call."""
        place = call.place or Place(call.model)
        request = {
            "op": "macro",
            "name": call.name,
            "args": call.arguments,
            "kwargs": dict(call.keywords),
            "dialect": call.dialect,
            "model": call.model,
            "variables": dict(call.variables),
            "gateway": call.gateway,
            "columns": {name: list(columns) for name, columns in call.columns.items()},
        }
        try:
            return validate_reply(TEXTS, self._ask_child(request))
        except ChildFailed as failed:
            error = code_error(failed.wrong, place, f"The macro `@{call.name}`")
            wants = failed.wrong.wants
            raise ColumnsWanted(error, wants) if wants and wants not in call.columns else error from None

    def close(self) -> None:
        """End the child that reads the project; the next call starts another."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.stop()

    def start(self, paths: Sequence[str]) -> tuple[Child, LoadedCode]:
        """Return a child that has loaded these files of the project, and what they register."""
        child = Child(self.root, self.files, self.isolation)
        try:
            answer = child.ask({"op": "load", "paths": paths}, LOADING)
            return child, validate_reply(TypeAdapter(LoadedCode), answer)
        except BaseException:
            child.stop()
            raise

    def check_tables(self, model: str, models: Collection[str]) -> None:
        """Raise ProjectError if a query in a model's code names a model's table, which differs between environments."""
        for written, place in self.queried.get(model, ()):
            if (name := without_default(written, self.catalog)) in models:
                hint = f'Write `{{context.table("{name}")}}` in its place.'
                message = f"The query names `{name}` directly, which is not its table in every environment."
                raise ProjectError(message, place=place, hint=hint)

    def _record_reach(self, model: str, code: Reached, texts: Iterable[str]) -> str:
        """Record what a model's code reaches; return a digest of the files that it may read, '' if there is none."""
        self.queried[model] = code.queried
        self.traced[model] = Traced(code, tuple(texts), self.digest_data(code.reads, texts))
        return self.traced[model].data

    def digest_data(self, reads: FileReads, texts: Iterable[str]) -> str:
        """Return a digest of the data files that code with these texts may read; '' if there is none."""
        if self._data is None:
            self._data = DataFiles(self.root)
        return self._data.digest(reads, texts)

    def _load_code(self) -> LoadedCode:
        try:
            self._child, loaded = self.start(self._paths)
        except ChildFailed as failed:
            raise code_error(failed.wrong, Place(self._paths[0], 1), "The project's Python") from None
        return loaded

    def _ask_child(self, request: Mapping[str, Any]) -> Any:
        with self._lock:
            if self._child is None:
                self._child, _ = self.start(self._paths)
            child = self._child
        try:
            return child.ask(request, CALLING)
        except ChildFailed:
            if not child.stop.alive:
                self._child = None
            raise

    def _make_query(
        self, columns: Lookup, registration: RegisteredModel, blueprint: Mapping[str, Any], dialect: str
    ) -> str:
        """Return the SQL of an `is_sql` model; call it again with the columns of each table that it requests."""
        requested_columns: dict[str, list[tuple[str, str]]] = {}
        request = {
            "op": "sql",
            "path": registration.path,
            "entrypoint": registration.name,
            "dialect": dialect,
            "variables": {**self.variables, **blueprint},
            "gateway": self.gateway,
            "columns": requested_columns,
        }
        while True:
            try:
                texts = validate_reply(TEXTS, self._ask_child(request))
                return ", ".join(texts)
            except ChildFailed as failed:
                wants = failed.wrong.wants
                table_columns = columns(wants) if wants and wants not in requested_columns else None
                if not table_columns:
                    raise code_error(
                        failed.wrong, Place(registration.path, registration.line), f"`{registration.name}`"
                    ) from None
                requested_columns[wants] = list(table_columns.items())


def validate_reply(kind: TypeAdapter[A], answer: Any) -> A:
    """Return the reply as data of that type; raise ChildFailed if it is invalid."""
    try:
        return kind.validate_python(answer)
    except ValidationError:
        raise ChildFailed(Wrong(message="Its reply is invalid.")) from None


def code_error(wrong: Wrong, place: Place, what: str = "") -> ProjectError:
    """Return the error of the project's code, at its place, or else at the given place."""
    at = place if wrong.called or not wrong.path else Place(wrong.path, wrong.line)
    message = wrong.message.rstrip(".")
    text = f"{what} failed: {message}." if what else f"{message}."
    return ProjectError(text, place=at)


def find_version(package: str, packages: Path | None = None) -> str:
    """Return the version of an import's package: of mergeplan's own libraries, else of a folder of packages."""
    if packages and find_spec(package) is None and (version := versions_in(packages, package)):
        return version
    return _find_own_version(package)


@cache
def _find_own_version(package: str) -> str:
    """Return the version of a package among mergeplan's own libraries.

    For a package without a version, or one that is installed to be edited, it includes a digest of the package's files.
    """
    try:
        distributions = [distribution(package)]
    except PackageNotFoundError:
        distributions = [distribution(name) for name in sorted(set(packages_distributions().get(package, [])))]
    versions = [f"{dist.name} {dist.version}" for dist in distributions]
    if not distributions or any(
        '"editable": true' in (dist.read_text("direct_url.json") or "") for dist in distributions
    ):
        versions.append(_digest_sources(package))
    return " ".join(versions)


def _digest_sources(package: str) -> str:
    """Return a digest of the Python files of a module or package that can be imported; '' if there is none."""
    spec = find_spec(package)
    places = [Path(location) for location in spec.submodule_search_locations or ()] if spec else []
    if spec is not None and not places and spec.origin:
        places = [Path(spec.origin)]
    files = [file for place in places for file in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
    return digest(*(file.read_bytes().hex() for file in files if file.is_file()))
