"""One project in an editor: it takes texts, and returns diagnostics, effects of edits and answers. No protocol here.

`judge` and all questions are for one thread, which reads the project; `effects` is for another, which plans.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from mergeplan.planner.cache.store import Cache, Lookups
from mergeplan.planner.cache.version import reader_version
from mergeplan.planner.errors import MergeplanError, Place, ProjectError, RequestError
from mergeplan.planner.lsp.diagnostics import Diagnostic, diagnose_errors, diagnose_models
from mergeplan.planner.lsp.edit_plan import EditEffect, describe_edit, effect_text, error_text, plan_edit
from mergeplan.planner.lsp.live import LiveProject
from mergeplan.planner.lsp.navigation import Target
from mergeplan.planner.lsp.project_files import CONFIGS, Layout, layout_of
from mergeplan.planner.lsp.project_view import ProjectView, file_of
from mergeplan.planner.lsp.remembered_state import ProdState, read_prod_state
from mergeplan.planner.lsp.rename import rename_edits
from mergeplan.planner.lsp.texts import Edit
from mergeplan.planner.parsing.definitions.formatting import format_file, format_tree
from mergeplan.planner.parsing.definitions.unit_tests import UnitTest
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.render import render_model
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.project.sql_files import style_of
from mergeplan.planner.semantics.shape_memory import ShapeMemory
from mergeplan.planner.session.settings import SessionSettings

UNTRUSTED = "Trust the folder to see the plan: until then its code does not run and its state is not opened."
LINTED = 100_000  # characters of a text that is held to rules while it is typed, and not when it is saved only


@dataclass(frozen=True)
class Effect:
    """A line about a model of a file: the effect of its edit, or why that is not known."""

    model: str
    line: int  # of its block, from 1
    text: str
    title: str = ""
    effect: EditEffect | None = None


@dataclass
class Editor:
    """The project of a folder; until it is `trusted`, none of its code runs and no database is opened."""

    settings: SessionSettings
    trusted: bool = False
    live: LiveProject = field(init=False)
    _state: ProdState | None = None
    _state_error: MergeplanError | None = None
    _state_read: bool = False
    _lookups: Lookups | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.settings = replace(self.settings, runs_code=self.trusted)
        self.live = LiveProject(self.settings)

    @property
    def root(self) -> Path:
        return self.settings.root

    @property
    def view(self) -> ProjectView | None:
        """The project as it was last read; None while it cannot be opened."""
        return self.live.view

    @property
    def layout(self) -> Layout:
        """The tool whose layout the project's files have."""
        return layout_of(self.root)

    @property
    def state(self) -> ProdState | None:
        return self._state

    def trust(self) -> None:
        """Let the folder's code run, isolated, and its state be read, from now on."""
        self.trusted = True
        self.settings = replace(self.settings, runs_code=True)
        self.live.settings = self.settings
        self._state_read = False
        self.live.load()

    def judge(self, path: str, text: str, *, saved: bool = False) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of a file's newest text; rules in the project's own code run when it is saved."""
        if self.view is None and not self.live.loads:
            self.live.texts[path] = text
            self.live.load()
        elif saved or self.live.texts.get(path) != text or self.view is None:
            self.live.change(path, text)
        if saved:
            self._state_read = False
            if self.view is None or not self.live.reads_texts(path):
                self.live.load()
        errors = self.live.errors.get(path, ())
        diagnostics = diagnose_errors(path, text, (*errors, *self._errors_elsewhere(path)))
        if self.view is None or errors or (len(text) > LINTED and not saved):
            return diagnostics
        return (*diagnostics, *diagnose_models(self.view, path, text, own_rules=saved and self.trusted))

    def _errors_elsewhere(self, path: str) -> tuple[MergeplanError, ...]:
        """Return errors of other places that a file shows: those of no file, and why the project cannot be opened."""
        if path in CONFIGS:
            return self.live.errors.get("", ())
        if self.view is not None:
            return ()
        other_errors = [error for file, errors in sorted(self.live.errors.items()) for error in errors if file != path]
        return tuple(
            ProjectError(f"The project cannot be opened: {error}", place=Place(path, 1), hint=error.hint)
            for error in other_errors[:1]
        )

    def effects(self, path: str, view: ProjectView, is_newest: Callable[[], bool]) -> tuple[Effect, ...] | None:
        """Return the effects on prod of the edits of a file's models; None if a newer text makes them outdated."""
        models = view.path_models.get(path, ())
        models = tuple(model for model in models if not model.kind.is_external)
        if not models or not is_newest():
            return () if not models else None
        if not self.trusted:
            return tuple(Effect(model.name, model.line, UNTRUSTED) for model in models)
        state = self._remember_state(view)
        if not is_newest():
            return None
        if state is None:
            reason = error_text(self._state_error) if self._state_error else "Not planned yet: there is no state."
            return tuple(Effect(model.name, model.line, reason) for model in models)
        names = {model.name for model in models} | {
            name for name, snapshot in state.base.snapshots.items() if file_of(snapshot.model) == path
        }
        try:
            if self._lookups is None:
                self._lookups = Lookups(Cache(self.settings.cache))
            self._lookups.keep()
            plan = plan_edit(view, state, names, datetime.now(UTC), ShapeMemory(self._lookups, reader_version()))
        except MergeplanError as error:
            return tuple(Effect(model.name, model.line, error_text(error)) for model in models)
        estimates = state.estimates(plan)
        described = (describe_edit(view.project, plan, model.name, estimates) for model in models)
        as_saved = "" if self.live.reads_texts(path) or self.live.is_saved(path) else "As saved: "
        return tuple(Effect(e.model, e.place.line, as_saved + effect_text(e), e.title, e) for e in described)

    def _remember_state(self, view: ProjectView) -> ProdState | None:
        with self._lock:
            if not self._state_read or (self._state is not None and self._state.is_old):
                try:
                    self._state, self._state_error = read_prod_state(self.settings, view.project), None
                except MergeplanError as error:
                    self._state, self._state_error = None, error
                self._state_read = True
            return self._state

    def rename(self, target: Target, new: str) -> tuple[Edit, ...]:
        """Return the edits that rename a target; raise RequestError, with the reason, if they would do more."""
        view = self._open_view()
        if self.live.errors:
            path = min(self.live.errors)
            raise RequestError(f"{path or 'The project'} has errors, so that not every name is known: fix them first.")
        return rename_edits(view, target, new, datetime.now(UTC))

    def format(self, path: str, text: str) -> str:
        """Return a file's text in its layout; raise RequestError if it is left unchanged."""
        view = self._open_view()
        style = style_of(view.project.config)
        formatted = format_file(path, text, view.project.defaults.dialect, style)
        if formatted.left:
            raise RequestError(f"It is left as it is: {formatted.left}.")
        return formatted.text

    def render(self, name: str) -> str:
        """Return a model's query as Spark runs it, with the dates of its last interval."""
        view = self._open_view()
        model = view.project.models.get(without_default(name.lower(), view.project.catalogs.default))
        if model is None or not model.sql:
            raise RequestError(f"`{name}` has no query.")
        sql = render_model(model, {}, view.project.models_to_inline, None, datetime.now(UTC))
        return format_tree(spark_tree(sql), "spark")

    def unit_tests(self) -> tuple[UnitTest, ...]:
        """Return the project's unit tests; none while it cannot be opened."""
        if self.view is None and not self.live.loads:
            self.live.load()
        return self.view.project.tests if self.view is not None else ()

    def _open_view(self) -> ProjectView:
        if self.view is None:
            raise RequestError("The project cannot be opened: see its errors.")
        return self.view

    def close(self) -> None:
        if self._lookups is not None:
            self._lookups.close()
