"""A plan is shown again without planning while nothing that it follows from has changed, and made anew otherwise."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from benchmarks.promoted import promote
from mergeplan.planner.cache.folder_looks import look_at
from mergeplan.planner.cli import answers
from mergeplan.planner.cli.answers import Answer, ask
from mergeplan.planner.cli.main import VERBS, run
from mergeplan.planner.engine.spark.catalog import CatalogLock, Owner, spark_folder
from mergeplan.planner.state.store import StateStore
from tests.planner.project.test_loader import CONFIG, project_of

PLAN = ("plan", "--no-prompts")
FILES = {
    "external_models.yaml": "- name: raw.events\n  columns:\n    id: bigint\n    ds: string\n",
    "models/a.sql": "MODEL (name s.a, kind FULL);\nSELECT id, ds FROM raw.events",
    "models/b.sql": "MODEL (name s.b, kind VIEW);\nSELECT id FROM s.a WHERE ds > 'x'",
}
EDIT = "MODEL (name s.a, kind FULL);\nSELECT id + 1 AS id, ds FROM raw.events"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, in whose folder the command line is."""
    monkeypatch.setenv("MERGEPLAN_CACHE", str(tmp_path / "cache"))
    return project_of(tmp_path / "project", FILES)


def shown(root: Path, arguments: Sequence[str] = PLAN) -> str:
    """What the command line writes."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(root), redirect_stdout(out), redirect_stderr(err):
        code = run(VERBS, arguments)
    assert code == 0, err.getvalue()
    return out.getvalue() + err.getvalue()


def recalled(root: Path, arguments: Sequence[str] = PLAN) -> Answer | None:
    """The answer that is remembered for a command line."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(root), redirect_stdout(out), redirect_stderr(err):
        question = ask(arguments)
        return question.recall() if question else None


def fresh(root: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is written where nothing is remembered."""
    with monkeypatch.context() as patched:
        patched.setenv("MERGEPLAN_CACHE", "off")
        return shown(root)


@pytest.mark.parametrize("arguments", [PLAN, ("plan", "dev", "--no-prompts", "--no-diff")])
def test_a_plan_is_shown_again_without_planning(root: Path, arguments: Sequence[str]) -> None:
    first = shown(root, arguments)

    answer = recalled(root, arguments)
    assert answer is not None
    assert answer.out + answer.err == first
    assert shown(root, arguments) == first


def test_a_plan_that_has_nothing_to_do_is_remembered_too(root: Path) -> None:
    promote(root)

    assert shown(root).startswith("No changes to plan")
    assert recalled(root) is not None


def write(name: str, text: str) -> Callable[[Path, pytest.MonkeyPatch], object]:
    return lambda root, _: (root / name).write_text(text)


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "an edit": write("models/a.sql", EDIT),
    "an edit of the same size": write("models/a.sql", FILES["models/a.sql"].replace("s.a", "s.c")),
    "a new file": write("models/c.sql", "MODEL (name s.c, kind FULL);\nSELECT 1 AS x"),
    "a file fewer": lambda root, _: (root / "models/b.sql").unlink(),
    "the configuration": write("config.yaml", "model_defaults: {dialect: spark, start: 2026-01-02}\n"),
    "Python code": write("models/m.py", "x = 1"),
    "a variable of the environment": lambda _, patched: patched.setenv("SOME_VARIABLE", "1"),
    "a state elsewhere": lambda _, patched: patched.setenv("MERGEPLAN_STATE_URL", "sqlite:///other.db"),
    "a promotion": lambda root, _: promote(root),
    "another program": lambda _, patched: patched.setattr(answers, "PACKAGE", answers.PACKAGE / "cli"),
    "a Spark that runs": lambda root, _: (
        (root / ".mergeplan/spark").mkdir(parents=True),
        (root / ".mergeplan/spark/owner.json").write_text("{}"),
    ),
    "the terminal": lambda _, patched: patched.setattr(sys, "stdin", None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_plan_follows_from_makes_it_anew(change: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown(root)
    assert recalled(root) is not None
    CHANGES[change](root, monkeypatch)

    assert recalled(root) is None


def test_a_file_that_is_edited_back_within_the_same_tick_is_read(root: Path) -> None:
    shown(root)
    path, before = root / "models/a.sql", (root / "models/a.sql").stat()
    path.write_text(FILES["models/a.sql"].replace("id, ds", "ds, id"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert recalled(root) is None


def test_the_answer_after_an_edit_is_what_a_plan_without_memory_says(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promote(root)
    for text in (EDIT, FILES["models/a.sql"], EDIT):
        (root / "models/a.sql").write_text(text)
        said = [shown(root), shown(root), fresh(root, monkeypatch)]

        assert said[0] == said[1] == said[2]


def test_a_project_without_a_model_has_nothing_to_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERGEPLAN_CACHE", str(tmp_path / "cache"))
    root = project_of(tmp_path / "project", FILES)
    promote(root)
    for name in FILES:
        (root / name).unlink()
    promote(root)

    assert "No changes to plan" in shown(root)


def test_an_answer_holds_until_the_next_tick(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown(root)
    answer = recalled(root)

    class Later(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(hours=1, seconds=1)

    assert answer is not None
    assert answer.until <= datetime.now(UTC).timestamp() + 3600
    monkeypatch.setattr(answers, "datetime", Later)
    assert recalled(root) is None


def test_what_is_written_to_the_state_meanwhile_keeps_no_answer(root: Path) -> None:
    shown(root)
    store = StateStore(f"sqlite:///{root}/.mergeplan/state.db")
    try:
        (saved,) = store.plans.list_by_status("open")
        store.plans.close(saved.id, "stale")
    finally:
        store.close()

    assert recalled(root) is None


@pytest.mark.parametrize(
    "arguments", [("plan", "--explain"), ("plan", "--auto-apply"), ("plan", "-s", "2026-01-01"), ("run",), ()]
)
def test_only_plans_that_do_nothing_are_remembered(root: Path, arguments: Sequence[str]) -> None:
    with chdir(root):
        assert ask(arguments) is None


def test_a_project_whose_dates_move_is_planned_each_time(root: Path) -> None:
    (root / "models/a.sql").write_text(
        "MODEL (name s.a, kind FULL, start '3 days ago');\nSELECT id, ds FROM raw.events"
    )
    shown(root)

    assert recalled(root) is None


def test_a_variable_that_config_yaml_reads_counts_whichever_it_is(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "config.yaml").write_text(CONFIG + "variables: {level: \"{{ env_var('SHLVL') }}\"}\n")
    (root / "models/a.sql").write_text(
        "MODEL (name s.a, kind FULL);\nSELECT id, ds FROM raw.events WHERE id > @VAR('level')"
    )
    monkeypatch.setenv("SHLVL", "1")
    promote(root)
    assert shown(root).startswith("No changes to plan")

    monkeypatch.setenv("SHLVL", "2")
    assert "Directly Modified: s.a" in shown(root)


def test_no_answer_is_kept_beside_a_warm_spark_that_does_not_answer(root: Path) -> None:
    lock = CatalogLock(spark_folder(root / ".mergeplan"))
    lock.folder.mkdir(parents=True)
    lock.publish(Owner(os.getpid(), "mergeplan warm", port=1, warm=True))
    shown(root)

    assert recalled(root) is None


def test_a_state_that_is_named_by_an_address_of_sqlite_is_planned_each_time(root: Path) -> None:
    state = f"    state_connection: {{type: sqlite, url: 'sqlite:///file:{root}/state.db?uri=true'}}\n"
    (root / "config.yaml").write_text(CONFIG + state)
    shown(root)

    assert recalled(root) is None


@pytest.mark.parametrize("folder_is_there", [True, False])
def test_files_that_come_into_a_linked_folder_are_seen(
    folder_is_there: bool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A share that is empty, or not mounted yet."""
    share = root.parent / "share"
    if folder_is_there:
        share.mkdir()
    (root / "tests").symlink_to(share)
    promote(root)
    shown(root)
    share.mkdir(exist_ok=True)
    (share / "t.yaml").write_text("test_t:\n  model: s.nowhere\n  outputs:\n    query: [{x: 1}]\n")

    assert "tests/t.yaml" in shown(root)
    assert shown(root) == fresh(root, monkeypatch)


def test_a_project_of_which_a_model_cannot_be_opened_is_planned_each_time(root: Path) -> None:
    """What it lacks may be a file that nobody looks at, as one of a hidden folder."""
    (root / "models/s.sql").write_text("MODEL (name s.s, kind SEED (path '../.data/s.csv'), columns (id int));")
    promote(root)
    assert "Cannot be opened: models/s.sql" in shown(root)
    (root / ".data").mkdir()
    (root / ".data/s.csv").write_text("id\n1\n")

    assert "s.s" in shown(root)
    assert "Cannot be opened" not in shown(root)


def test_a_file_that_says_something_else_for_a_moment_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("SELECT 1")
    looks = look_at(tmp_path)

    assert looks is not None
    assert looks.recent.keys() == {"a.sql"}
    assert look_at(tmp_path / "nowhere") is None
