"""A verb about one model of a project takes what one model takes: it parses, analyses and reads no other."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.projects import write_project
from mergeplan.planner.project import model_files, sql_files
from mergeplan.planner.project.folder import Folder
from mergeplan.planner.semantics import columns
from tests.planner.cli.conftest import CommandLine
from tests.planner.cli.test_start import imports_of

SIZE = 40
NAME = "marts.m35"
RULES = "linter:\n  enabled: true\n  rules: ALL\n"
VERBS = (("lint", NAME), ("render", NAME), ("lineage", NAME), ("lineage", f"{NAME}.country"), ("dag", f"+{NAME}"))


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of many models, which a verb has opened, and what it remembered."""
    folder = tmp_path_factory.mktemp("many")
    command_line = CommandLine(folder / "project")
    command_line.root.mkdir()
    write_project(command_line.root, SIZE)
    command_line.write("config.yaml", (command_line.root / "config.yaml").read_text() + RULES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MERGEPLAN_CACHE", str(folder / "cache"))
        assert command_line("dag").code == 0
    return folder


@pytest.fixture
def many(opened: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """A copy of that project and of what was remembered."""
    shutil.copytree(opened, tmp_path / "many")
    monkeypatch.setenv("MERGEPLAN_CACHE", str(tmp_path / "many/cache"))
    many = CommandLine(tmp_path / "many/project")
    assert many("dag").code == 0  # which notes how its files lie here
    return many


class Work:
    """What a verb does, from now on: files that it parses, queries that it analyses, texts that it reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parsed, self.analysed, self.read, self.laid_out = list[str](), list[str](), list[str](), list[str]()
        self._note(monkeypatch, model_files, "parse_models", self.parsed, 1)
        self._note(monkeypatch, columns, "_read", self.analysed, 0)
        self._note(monkeypatch, Folder, "text", self.read, 1)
        self._note(monkeypatch, sql_files, "format_file", self.laid_out, 0)
        columns._analyze_query.cache_clear()

    def _note(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, notes: list[str], argument: int) -> None:
        function = getattr(owner, name)

        def call(*arguments: Any, **more: Any) -> Any:
            notes.append(arguments[argument])
            return function(*arguments, **more)

        monkeypatch.setattr(owner, name, call)

    @property
    def sql(self) -> set[str]:
        """The SQL files that were read."""
        return {name for name in self.read if name.endswith(".sql")}


@pytest.mark.parametrize("arguments", VERBS)
def test_it_analyses_what_it_reads_once_and_parses_nothing(
    arguments: tuple[str, ...], many: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    above = many("dag", f"+{NAME}").out.count("\n")
    work = Work(monkeypatch)

    first, analysed = many(*arguments), {*work.analysed}
    work.analysed.clear()
    columns._analyze_query.cache_clear()
    second = many(*arguments)

    assert first == second
    assert work.parsed == []
    assert work.sql == set()
    assert len(analysed) <= above < SIZE / 2
    assert work.analysed == []


def test_all_models_are_linted_as_each_is_alone(many: CommandLine) -> None:
    together = many("lint").out.splitlines()[:-1]

    apart = {line for number in range(SIZE) for line in many("lint", f"*.m{number}").out.splitlines()[:-1]}

    assert {*together} == apart
    assert together


def test_format_reads_and_lays_out_the_files_that_it_is_about(
    many: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    many("format", NAME)  # which looks once which models the files define
    work = Work(monkeypatch)

    assert many("format", "--check", NAME).code == 0
    assert (work.sql, work.laid_out) == ({"models/marts/m35.sql"}, [])

    many.edit("models/marts/m35.sql", "tags (mart, daily)", "tags  (mart,daily)")
    assert many("format", "--check", NAME).code == 1
    assert (work.sql, work.laid_out) == ({"models/marts/m35.sql"}, ["models/marts/m35.sql"])


def test_no_file_is_laid_out_twice(many: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    first = many("format", "--check", "--diff")
    assert len(work.laid_out) == SIZE
    work.laid_out.clear()

    assert many("format", "--check", "--diff") == first
    assert work.laid_out == []
    many("format", "--check", "--indent", "3")
    assert len(work.laid_out) == SIZE


def test_they_import_nothing_of_the_state(many: CommandLine) -> None:
    """One after the other in one Python: what none of them imports, each does without."""
    calls = [[*arguments, "-p", str(many.root)] for arguments in (*VERBS, ("format", "--check", NAME))]
    code = "\n".join(["from mergeplan.planner.cli.main import VERBS, run", *(f"run(VERBS, {call})" for call in calls)])

    assert not imports_of(code) & {"sqlalchemy", "alembic", "pyspark"}
