"""Models that cannot be opened: each is refused by itself, with what reads it, and the rest of the project opens.

Which models a file would define is guessed from its text. `clear` says whether the guess names all of them: where it
does not, nothing that stands in prod may be taken for removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import TypeVar

from sqlglot import exp

from mergeplan.planner.errors import Located, Place, ProjectError, ProjectErrors
from mergeplan.planner.file_note import note_file
from mergeplan.planner.limits import limit_resources
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import SESSION_CATALOG
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.project.folder import SIMPLER

T = TypeVar("T")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_BLOCK = re.compile(r"\bMODEL\s*\(", re.IGNORECASE)
_NAME = re.compile(r"[(,]\s*name\s+((?:`?\w+`?\.)+`?\w+`?)\s*[,)]", re.IGNORECASE)
_DECORATOR = re.compile(r"@(?:\w+\.)*model\s*\(")
_DECORATED = re.compile(r"@(?:\w+\.)*model\s*\(\s*(?:name\s*=\s*)?['\"]([\w.]+)['\"]")


@dataclass(frozen=True)
class Refusal:
    """A file, or one model of it, that cannot be opened; `models` are those that it would define."""

    path: str
    errors: tuple[ProjectError, ...]
    models: tuple[str, ...] = ()
    clear: bool = True
    whole: bool = True  # nothing of the file opens


@dataclass(frozen=True)
class LeftOut:
    """A model that could be opened and reads one that cannot."""

    model: str
    reads: str
    place: Located


@dataclass(frozen=True)
class RefusedModels:
    """What of a project cannot be opened, and what is left out because it reads that."""

    refusals: tuple[Refusal, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.refusals)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every model that is not planned, as far as it is known."""
        refused = (name for refusal in self.refusals for name in refusal.models)
        return frozenset((*refused, *(reader.model for reader in self.left_out)))

    @cached_property
    def paths(self) -> frozenset[str]:
        """The files of which nothing opens."""
        return frozenset(refusal.path for refusal in self.refusals if refusal.whole)

    @property
    def clear(self) -> bool:
        """True when every model that a refused file would define is known."""
        return all(refusal.clear for refusal in self.refusals)

    def merge_dialects(self, known_dialects: Mapping[str, str]) -> Mapping[str, str]:
        """Return the dialects of models by name, `spark` for refused ones: for all names if these are unclear."""
        return {**dict.fromkeys(self.names, "spark"), **known_dialects} if self.clear else _Any(known_dialects)

    def and_tests(self, unknown: Iterable[ProjectError]) -> RefusedModels:
        test_refusals = (
            Refusal(error.place.path if error.place else "tests", (error,), whole=False) for error in unknown
        )
        return replace(self, refusals=(*self.refusals, *test_refusals))

    @property
    def errors(self) -> tuple[ProjectError, ...]:
        """Why, in the order of files."""
        return tuple(error for refusal in self.refusals for error in refusal.errors)

    def check_model(self, name: str) -> None:
        """Raise the errors of this model if it is refused, or a ProjectError if it reads a refused one."""
        for refusal in self.refusals:
            if name in refusal.models:
                raise refusal.errors[0] if len(refusal.errors) == 1 else ProjectErrors(refusal.errors)
        for reader in self.left_out:
            if reader.model == name:
                raise ProjectError(f"`{name}` reads `{reader.reads}`, which cannot be opened.", place=reader.place)

    def check(self) -> None:
        """Raise ProjectErrors if anything is refused."""
        if self.errors:
            raise self.errors[0] if len(self.errors) == 1 else ProjectErrors(self.errors)


NOTHING = RefusedModels()


class _Any(dict[str, str]):
    """The dialects of models, where every name may be that of a model."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "spark"


@dataclass
class Refusing:
    """What is refused while a project is read; under `strict` every error is the whole project's."""

    strict: bool
    errors: list[ProjectError]  # of the whole project
    names_in: Callable[[str], tuple[tuple[str, ...], bool]]  # the models of a file, and whether these are all
    on_read: Callable[[int, int], None] = lambda done, total: None  # how many files of how many
    _files: dict[str, list[ProjectError]] = field(default_factory=dict)
    _models: dict[tuple[str, str], list[ProjectError]] = field(default_factory=dict)  # by path and name

    def files(
        self, paths: Iterable[str], read: Callable[[str], None], is_cheap: Callable[[str], bool] | None = None
    ) -> None:
        """Read every file; one that is wrong is refused."""
        names = tuple(paths)

        def read_next(item: tuple[int, str]) -> None:
            self.on_read(item[0], len(names))
            read(item[1])

        cheap = (lambda item: is_cheap(item[1])) if is_cheap else None
        self.each(enumerate(names), read_next, lambda item: item[1], cheap)

    def each(
        self,
        things: Iterable[T],
        read: Callable[[T], None],
        path: Callable[[T], str],
        is_cheap: Callable[[T], bool] | None = None,
    ) -> None:
        """Read every entry of these files, and refuse the file of a wrong one; cheap entries need no limits."""
        for thing in things:
            note_file(path(thing))
            no_limit = is_cheap is not None and is_cheap(thing)
            try:
                with nullcontext() if no_limit else limit_resources(partial(_too_much, path(thing))):
                    read(thing)
            except ProjectError as error:
                self.file(path(thing), error)

    def file(self, path: str, error: ProjectError) -> None:
        (self.errors if self.strict else self._files.setdefault(path, [])).extend(_split_errors(error))

    def check(self, models: Iterable[Model], check: Callable[[Model], None]) -> None:
        """Check every model; one that is wrong is refused, and others of its file are not."""
        for model in models:
            try:
                check(model)
            except ProjectError as error:
                errors = self.errors if self.strict else self._models.setdefault((model.path, model.name), [])
                errors.extend(_split_errors(error))

    def map_models(self, models: Mapping[str, Model], make: Callable[[Model], Model]) -> dict[str, Model]:
        """Return every model as `make` returns it; refuse one that fails, and leave it unchanged."""
        results = dict(models)

        def one(model: Model) -> None:
            results[model.name] = make(model)

        self.check(models.values(), one)
        return results

    def names(self) -> RefusedModels:
        """Return the refusals so far, without the models that read refused ones."""
        refusals = [Refusal(path, _unique_errors(errors), *self.names_in(path)) for path, errors in self._files.items()]
        refusals += [
            Refusal(path, _unique_errors(errors), (name,), whole=False)
            for (path, name), errors in self._models.items()
            if path not in self._files
        ]
        return RefusedModels(tuple(sorted(refusals, key=lambda refusal: (refusal.path, refusal.models))))


def _too_much(path: str, why: str) -> ProjectError:
    return ProjectError(f"The file cannot be read: it {why}.", place=Place(path), hint=SIMPLER)


def without_refused(
    models: Mapping[str, Model], refused_models: RefusedModels
) -> tuple[dict[str, Model], RefusedModels]:
    """Return the models that are not refused and read no refused one, and the refusals with all that read them."""
    if not refused_models:
        return dict(models), refused_models
    remaining_models = {
        name: model
        for name, model in models.items()
        if model.path not in refused_models.paths and name not in refused_models.names
    }
    out = readers_of(remaining_models, refused_models.names)
    exclusions = tuple(
        LeftOut(name, read, _reference_place(remaining_models[name], read)) for name, read in sorted(out.items())
    )
    opened = {name: model for name, model in remaining_models.items() if name not in out}
    return opened, RefusedModels(refused_models.refusals, exclusions)


def refuse_old_versions(model: Model, models: Mapping[str, Model]) -> None:
    """Raise ProjectError for a query of an earlier version of a model: its next table has another history."""
    if not model.may_read_versions:
        return
    for table in spark_tree(model.sql).find_all(exp.Table):
        name = ".".join(part.name.lower() for part in table.parts)
        read = next((parent for parent in model.depends_on if parent == name or name.endswith(f".{parent}")), "")
        if table.args.get("version") and read in models and not models[read].kind.is_external:
            message = f"`{model.name}` reads an earlier version of the model `{read}`, whose next table has none."
            hint = "Read the model as it is, or an external table."
            raise ProjectError(message, place=_reference_place(model, read), hint=hint)


def readers_of(models: Mapping[str, Model], refused_names: Collection[str]) -> dict[str, str]:
    """Return the models downstream of these, each with the name of the refused or excluded model that it reads."""
    readers: dict[str, str] = {}
    while True:
        next_readers = {
            name: next(read for read in model.depends_on if read in refused_names or read in readers)
            for name, model in models.items()
            if name not in readers and any(read in refused_names or read in readers for read in model.depends_on)
        }
        if not next_readers:
            return readers
        readers |= next_readers


def find_model_names(
    path: str, text: str, catalog: str = SESSION_CATALOG, *, infer_names: bool = False
) -> tuple[tuple[str, ...], bool]:
    """Return the models that a file seems to define, and True if these are all; Python files may define none."""
    if not path.startswith("models/"):
        return (), True
    if path.endswith(".py"):
        named = _DECORATED.findall(text)
        return _normalize_names(named, catalog), len(named) == len(
            _DECORATOR.findall(text)
        ) and "blueprints" not in text
    bare = _COMMENT.sub(" ", text)
    begins = _BLOCK.search(bare)
    if begins is None:
        return (), False
    match = _NAME.search(bare, begins.end() - 1)
    if match is None and infer_names:
        return _normalize_names([".".join(PurePosixPath(path).with_suffix("").parts[1:][-3:])], catalog), False
    return _normalize_names(
        [match[1]] if match else [], catalog
    ), match is not None and "blueprints" not in bare.lower()


def _normalize_names(names: Iterable[str], catalog: str) -> tuple[str, ...]:
    """Return names as models have them; others could not be opened either."""
    bare = (without_default(name.replace("`", "").lower(), catalog) for name in names)
    return tuple(dict.fromkeys(bare))


def _split_errors(error: ProjectError) -> tuple[ProjectError, ...]:
    return error.errors if isinstance(error, ProjectErrors) else (error,)


def _unique_errors(errors: Iterable[ProjectError]) -> tuple[ProjectError, ...]:
    return tuple({str(error): error for error in errors}.values())


def _reference_place(model: Model, read: str) -> Located:
    return model.place if model.python or not model.sql else model.locate(read)
