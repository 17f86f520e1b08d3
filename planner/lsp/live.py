"""A project in an editor: loaded once, then reread by file, with unsaved texts; an unreadable text changes nothing."""

import ast
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from mergeplan.planner.cache.store import Cache
from mergeplan.planner.errors import MergeplanError, Place, ProjectError, ProjectErrors
from mergeplan.planner.lsp.project_files import CONFIGS
from mergeplan.planner.lsp.project_view import ProjectView
from mergeplan.planner.lsp.sql_file import LARGEST
from mergeplan.planner.project.folder import is_unicode
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from mergeplan.planner.project.reread import NeedsLoad, reread_file
from mergeplan.planner.project_format import is_dbt_project
from mergeplan.planner.session.settings import SessionSettings

TOO_LARGE = f"The text has more than {LARGEST:,} characters: it is not checked while it is open."
Clock = Callable[[], datetime]
utc_now: Clock = partial(datetime.now, UTC)


@dataclass
class LiveProject:
    """The project of a folder with the editor's texts; `errors` are by file, '' for those without one."""

    settings: SessionSettings
    clock: Clock = utc_now
    view: ProjectView | None = None
    texts: dict[str, str] = field(default_factory=dict)
    errors: dict[str, tuple[MergeplanError, ...]] = field(default_factory=dict)
    loads: int = 0
    _wrong: set[str] = field(default_factory=set)  # files whose text the project did not read

    def load(self) -> None:
        """Read the whole folder, with the open texts instead of files."""
        proposed = {
            path: text
            for path, text in self.texts.items()
            if self.reads_texts(path) and len(text) <= LARGEST and is_unicode(text)
        }
        self.loads += 1
        try:
            project = self._load_project(proposed)
        except ProjectErrors as errors:
            self.errors = _group_errors(errors.errors)
            self._keep_going(proposed)
        except MergeplanError as error:
            self.errors = _group_errors((error,))
            self._keep_going(proposed)
        else:
            self._set_view(project)
            refused = (error for refusal in project.refused.refusals for error in refusal.errors)
            self.errors = _group_errors(refused)
            self._wrong = {path for path in self.errors if path in self.texts}

    def _keep_going(self, proposed: dict[str, str]) -> None:
        """Read the project from its files when an unsaved text prevents the first load."""
        self._wrong = set(self.texts)
        if self.view is None and proposed:
            try:
                self._set_view(self._load_project({}))
            except MergeplanError:
                return

    def change(self, path: str, text: str) -> None:
        self.texts[path] = text
        if path.endswith(".py"):
            self._check_syntax(path, text)
            return
        if not self.reads_texts(path) or (self.view is None and not self._may_open(path)):
            return  # until it is saved
        if self.view is None or not _is_model(path) or path in self._wrong or "" in self.errors:
            if len(text) > LARGEST:
                self.errors[path] = (ProjectError(TOO_LARGE, place=Place(path, 1)),)
                return
            self._change_slowly(path, text)
            return
        self._reread_model(path, text)

    def reads_texts(self, path: str) -> bool:
        """Return True for a file that is read while it is typed; others are read when saved, as only then code runs."""
        return not path.endswith(".py") and not is_dbt_project(self.settings.root)

    def is_saved(self, path: str) -> bool:
        """Return True if a file on the disk is the same as its open text."""
        return _is_text_of(self.settings.root / path, self.texts.get(path, ""))

    def _may_open(self, path: str) -> bool:
        """Return True if a text may be why the project cannot be opened; a load for any other error may run code."""
        return path in CONFIGS or not self.errors or not self.errors.keys().isdisjoint(self.texts)

    def _check_syntax(self, path: str, text: str) -> None:
        """Record the errors of Python's parser; do not run the code."""
        self.errors.pop(path, None)
        try:
            ast.parse(text if len(text) <= LARGEST else "")
        except SyntaxError as error:
            place = Place(path, error.lineno or 1, error.offset or 0)
            self.errors[path] = (ProjectError(f"This is not Python: {error.msg}.", place=place),)
        except (ValueError, RecursionError, MemoryError) as error:
            self.errors[path] = (ProjectError(f"This is not Python: {error}.", place=Place(path, 1)),)

    def _reread_model(self, path: str, text: str) -> None:
        assert self.view is not None
        self.errors.pop(path, None)
        if len(text) > LARGEST or not is_unicode(text):
            message = TOO_LARGE if len(text) > LARGEST else "The text is not Unicode."
            self.errors[path] = (ProjectError(message, place=Place(path, 1)),)
            return
        try:
            project = reread_file(self.view.project, path, text, self.view.graph)
        except NeedsLoad:
            self.load()
        except ProjectErrors as errors:
            self.errors[path] = errors.errors
        except MergeplanError as error:
            self.errors[path] = (error,)
        else:
            files = dict(project.hashes) | {path: hashlib.sha256(text.encode()).hexdigest()}
            self.view = self.view.update(replace(project, hashes=files), path)

    def _change_slowly(self, path: str, text: str) -> None:
        """Read a file that the project does not contain: first alone, for its errors; load if it may open."""
        if self.view is not None and _is_model(path) and "" not in self.errors:
            try:
                reread_file(self.view.project, path, text, self.view.graph)
            except NeedsLoad:
                pass
            except ProjectErrors as errors:
                self.errors[path] = errors.errors
                return
            except MergeplanError as error:
                self.errors[path] = (error,)
                return
        self.load()

    def close(self, path: str) -> None:
        """Forget the open text of a file, so that the file on the disk counts."""
        text = self.texts.pop(path, None)
        if text is not None and not _is_text_of(self.settings.root / path, text):
            self.load()

    def _load_project(self, proposed: dict[str, str]) -> Project:
        settings = self.settings
        options = LoadOptions(
            settings.gateways_from,
            settings.isolation.hiding(settings.folder),
            Cache(settings.cache),
            strict=False,
            proposed=proposed,
            runs_code=settings.runs_code,
        )
        return load_project(settings.root, self.clock(), settings.gateway, options)

    def _set_view(self, project: Project) -> None:
        self.view = ProjectView(project, self.texts)


def _is_text_of(file: Path, text: str) -> bool:
    try:
        return file.read_text("utf-8-sig") == text
    except (OSError, UnicodeDecodeError):
        return False


def _is_model(path: str) -> bool:
    return path.startswith("models/") and path.endswith(".sql")


def _group_errors(errors: Iterable[MergeplanError]) -> dict[str, tuple[MergeplanError, ...]]:
    files: dict[str, list[MergeplanError]] = {}
    for error in errors:
        files.setdefault(error.place.path if error.place else "", []).append(error)
    return {path: tuple(found_errors) for path, found_errors in files.items()}
