"""The drill of docs/guides/backup.md: its commands back up, restore what was destroyed, and prod rolls back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.doc_commands import Shell, blocks_of
from tests.planner.shop import write_shop
from tests.waiting import wait_for

pytestmark = pytest.mark.prove
PAGE = "docs/guides/backup.md"
TOTAL = "MODEL (name shop.total, kind FULL);\nSELECT {} FROM shop.daily\n"
DAILY = """MODEL (name shop.daily, kind INCREMENTAL_BY_TIME_RANGE (time_column day));
SELECT id, day, price FROM shop.items WHERE day BETWEEN @start_date AND @end_date
"""
EARLY = "2026-01-04 05:00:00"  # the third item comes later


@contextmanager
def warm_spark(shell: Shell) -> Iterator[None]:
    """One Spark for the commands in between, as a service keeps it."""
    shell("nohup mergeplan warm >warm.log 2>&1 & echo $! >warm.pid")
    wait_for("a warm Spark", lambda: "ready" in (shell.folder / "warm.log").read_text() or None)
    try:
        yield
    finally:
        shell("kill $(cat warm.pid); while kill -0 $(cat warm.pid) 2>/dev/null; do sleep 0.2; done")


def write_total(shell: Shell, columns: str) -> None:
    (shell.folder / "models/total.sql").write_text(TOTAL.format(columns))


def build_environments(shell: Shell) -> None:
    """Two revisions of prod, and `dev` with an edit of its own."""
    write_shop(shell.folder, apart="", shown="", daily=DAILY, total=TOTAL.format("sum(price) AS total"))
    shell(f"mergeplan plan --auto-apply --skip-tests --execution-time '{EARLY}'")
    write_total(shell, "sum(price) AS total, count(*) AS items")
    shell("mergeplan plan --auto-apply --skip-tests")
    write_total(shell, "sum(price) * 2 AS total, count(*) AS items")
    shell("mergeplan plan dev --auto-apply --skip-tests")
    write_total(shell, "sum(price) AS total, count(*) AS items")


def read_facts(shell: Shell) -> list[Any]:
    """Environments, prod's history, and the rows of prod and dev."""
    answers = (shell(f"mergeplan {verb} --output json") for verb in ("environments", "history prod"))
    return [*(json.loads(answer.splitlines()[-1]) for answer in answers), rows_of(shell, "shop__dev.total")]


def rows_of(shell: Shell, *others: str) -> str:
    """The rows of prod's total, its days, and other tables of one row."""
    tables = ", ".join(("shop.total", "(SELECT count(*), sum(price) FROM shop.daily)", *others))
    return shell(f"mergeplan fetchdf 'SELECT * FROM {tables}'")


def check_as_the_page_says(shell: Shell) -> None:
    (*_, check) = blocks_of(PAGE, "Restore")
    said = shell(check)

    assert " wrong " not in said
    assert "No changes to plan" in said


def test_a_folder_or_its_state_is_restored_whole_and_prod_rolls_back(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    (back_up, export), (restore, _, import_, _) = blocks_of(PAGE, "Back up a folder"), blocks_of(PAGE, "Restore")
    with warm_spark(shell):
        build_environments(shell)
        before = read_facts(shell)
        shell(export)  # while it runs

    shell(back_up)
    shutil.rmtree(tmp_path / ".mergeplan")
    shell(restore)

    with warm_spark(shell):
        check_as_the_page_says(shell)
        assert read_facts(shell) == before
        for file in (tmp_path / ".mergeplan").glob("state.db*"):
            file.unlink()
        shell(import_)
        check_as_the_page_says(shell)
        assert read_facts(shell) == before
        shell("mergeplan rollback prod --auto-apply")
        assert "items" not in rows_of(shell)


def test_postgresql_is_restored_and_what_happened_since_is_made_again(
    tmp_path: Path, new_postgresql: Callable[[], str]
) -> None:
    shell = Shell(tmp_path, {"MERGEPLAN_STATE_URL": new_postgresql()})
    (back_up,), (_, restore, *_) = blocks_of(PAGE, "Back up PostgreSQL"), blocks_of(PAGE, "Restore")
    (go_on,) = blocks_of(PAGE, "A state that is older than its tables")
    with warm_spark(shell):
        build_environments(shell)
        before = read_facts(shell)
        shell(back_up)  # while it runs
        shell("psql --quiet --command 'DROP SCHEMA public CASCADE' \"$MERGEPLAN_STATE_URL\"")
        shell(restore)
        check_as_the_page_says(shell)
        assert read_facts(shell) == before

        write_total(shell, "sum(price) AS total, count(*) AS items, max(price) AS dearest")
        shell("mergeplan plan --auto-apply --skip-tests; mergeplan run")
        newest = rows_of(shell)
        shell(restore)
        assert "shows another version of the model's table than the state says" in shell.run("mergeplan doctor").stdout
        shell(go_on)

        assert rows_of(shell) == newest
        shell("mergeplan rollback prod --auto-apply")
        assert "dearest" not in rows_of(shell)
