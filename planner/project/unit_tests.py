"""The unit tests of a project, from the files of tests/."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.project_defaults import Defaults
from mergeplan.planner.parsing.definitions.unit_tests import Surroundings, UnitTest, read_tests
from mergeplan.planner.parsing.files.schema import Config
from mergeplan.planner.parsing.sql.yaml_documents import read_document
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.project.refused import RefusedModels


def read_unit_tests(
    reading: Folder,
    config: Config,
    models: Mapping[str, Model],
    defaults: Defaults,
    refused_models: RefusedModels,
    unknown: Callable[[ProjectError], None],
) -> list[UnitTest]:
    """Return the tests of models that open, none if the project has errors: an unread model would seem unknown."""
    if reading.errors:
        return []
    tests: list[UnitTest] = []
    dialects = refused_models.merge_dialects({name: model.dialect for name, model in models.items()})
    load_time, catalog = defaults.now, defaults.catalog
    read = partial(_test_file, reading)
    around = Surroundings(dialects, config.gateways, read, load_time, catalog, defaults.dialect, unknown)
    files = reading.files("tests", config.ignore_patterns, ".yaml", ".yml")
    reading.each(files, lambda name: tests.extend(_load_tests(reading, name, around)))
    reading.each(tests, lambda test: _check_name(test, tests))
    opened = [test for test in tests if test.call or test.model in models]
    reading.each(opened, lambda test: None if test.call else check_table(test, models[test.model]))
    return opened


def check_table(test: UnitTest, model: Model) -> None:
    """Raise ProjectError for a table that the model does not have, or whose rows the test leaves to the clock."""
    if test.table is None and (test.this is None or model.reads_itself):
        return
    if test.table is None:
        message = f"The test `{test.name}` has rows under `this`, which the query of {model.name} does not read."
        raise ProjectError(message, place=test.place, hint="Expect the table: `outputs: {table: {rows: [...]}}`.")
    if not model.kind.is_stored or not model.kind.has_query:
        message = f"The test `{test.name}` expects a table, and {model.name} is a {model.kind} model: nothing loads it."
        raise ProjectError(message, place=test.place, hint="Expect rows of its query: `outputs: {query: ...}`.")
    if model.kind.is_by_time and test.start is None and test.end is None:
        message = f"The test `{test.name}` does not state the time that the load replaces in the table of {model.name}."
        raise ProjectError(message, place=test.place, hint="Add `vars: {start: 2026-01-02}`.")
    history = model.history
    by_clock = history is not None and (not history.updated_at or history.invalidates_deleted or history.dbt)
    if by_clock and test.execution_time is None:
        message = f"The test `{test.name}` does not state when {model.name} is loaded, which its table shows."
        raise ProjectError(message, place=test.place, hint="Add `vars: {execution_time: 2026-01-02}`.")


def _load_tests(reading: Folder, name: str, around: Surroundings) -> tuple[UnitTest, ...]:
    """Return the tests of a file; a list is rows, which a test may name, unless the file is called `test...`."""
    document = read_document(name, reading.text(name))
    rows = isinstance(document.value, list) and not Path(document.path).name.startswith("test")
    return () if rows else read_tests(document, around)


def _test_file(reading: Folder, path: str, test: str) -> str:
    for folder in (reading.root, (reading.root / test).parent):
        target = (folder / path).resolve()
        if target.is_file() and target.is_relative_to(reading.root):
            return reading.text(reading.name(target))
    raise ProjectError(f"There is no file `{path}` in the project.")


def _check_name(test: UnitTest, tests: list[UnitTest]) -> None:
    first = next(candidate for candidate in tests if candidate.name == test.name)
    if first is not test:
        raise ProjectError(f"The test `{test.name}` is already defined at {first.place}.", place=test.place)
