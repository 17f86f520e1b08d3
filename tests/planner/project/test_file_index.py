"""A file that did not change is an item of an index: the text of its models is read when something needs it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mergeplan.planner import serial
from mergeplan.planner.cache.store import Cache
from mergeplan.planner.deferred import is_deferred
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.project import remembered
from mergeplan.planner.project.file_index import decode_index
from mergeplan.planner.project.loader import LoadOptions, Project, load_project
from tests.planner.project.test_loader import project_of
from tests.planner.project.test_remembered import FILES, NOW, content
from tests.planner.project.test_remembered import load as load_here

READ_LATER = {"s.c", "s.d", "s.e", "raw.t"}  # s.a has an audit of the project, s.b asks for columns, s.f is a seed


def load(root: Path, cache: Path | None) -> Project:
    """Load the project as a new process does, which has no models yet."""
    serial._DECODED.clear()
    return load_here(root, cache)


def load_warm(tmp_path: Path) -> Project:
    root = project_of(tmp_path / "project", FILES)
    load(root, tmp_path / "cache")
    return load(root, tmp_path / "cache")


def forget_entries(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "cache" / "entries.db")) as connection, connection:
        connection.execute("DELETE FROM entries")


def list_deferred(project: Project) -> set[str]:
    return {name for name, model in project.models.items() if is_deferred(model)}


def test_models_of_unchanged_files_are_not_read(tmp_path: Path) -> None:
    project = load_warm(tmp_path)

    assert list_deferred(project) == READ_LATER
    assert {name: model.depends_on for name, model in project.models.items() if name in READ_LATER} == {
        "s.c": ("raw.t",), "s.d": (), "s.e": ("raw.t",), "raw.t": (),
    }  # fmt: skip
    assert list_deferred(project) == READ_LATER
    assert content(project) == content(load(project.root, None))


def test_an_edit_reads_its_own_file_alone(tmp_path: Path) -> None:
    root = load_warm(tmp_path).root
    (root / "models/c.sql").write_text("MODEL (name s.c, kind VIEW);\nSELECT id FROM raw.t")

    edited, again = load(root, tmp_path / "cache"), load(root, tmp_path / "cache")

    assert (list_deferred(edited), list_deferred(again)) == (READ_LATER - {"s.c"}, READ_LATER)
    assert content(edited) == content(again) == content(load(root, None))


def test_the_index_of_an_unchanged_project_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = load_warm(tmp_path).root  # with files that are in no index: of audits, of a seed, that ask for columns
    made: list[object] = []
    monkeypatch.setattr(remembered, "build_index", lambda *arguments: made.append(arguments))

    assert list_deferred(load(root, tmp_path / "cache")) == READ_LATER
    assert made == []


def test_a_text_whose_entry_is_gone_is_parsed(tmp_path: Path) -> None:
    project = load_warm(tmp_path)
    forget_entries(tmp_path)

    assert list_deferred(project) == READ_LATER
    assert content(project) == content(load(project.root, None))


def test_a_file_that_changed_before_its_text_was_read_is_an_error(tmp_path: Path) -> None:
    project = load_warm(tmp_path)
    forget_entries(tmp_path)
    (project.root / "models/c.sql").write_text("MODEL (name s.c, kind VIEW);\nSELECT id FROM raw.t")

    with pytest.raises(ProjectError, match="changed while it was read"):
        _ = project.models["s.c"].sql


def test_a_removed_file_and_a_new_one_are_seen(tmp_path: Path) -> None:
    root = load_warm(tmp_path).root
    (root / "models/c.sql").rename(root / "models/h.sql")
    (root / "models/e.sql").unlink()

    first, second = load(root, tmp_path / "cache"), load(root, tmp_path / "cache")

    assert content(first) == content(second) == content(load(root, None))
    assert second.models["s.c"].path == "models/h.sql"
    assert "s.e" not in second.models


def test_proposed_texts_leave_the_index_as_it_is(tmp_path: Path) -> None:
    root = load_warm(tmp_path).root
    text = "MODEL (name s.c, kind VIEW);\nSELECT id FROM raw.t"
    options = LoadOptions(cache=Cache(tmp_path / "cache"), proposed={"models/c.sql": text})

    assert load_project(root, NOW, options=options).models["s.c"].kind is Kind.VIEW
    assert list_deferred(load(root, tmp_path / "cache")) == READ_LATER


@pytest.mark.parametrize("text", [None, "", "[", "{}", "[1, 2, 3]", '[[], [{"nonsense": 1}], {}]', "[[], [[]], {}]"])
def test_what_is_no_index_is_an_empty_one(text: str | None) -> None:
    assert decode_index(text).find("models/a.sql", "") is None
