"""What people and processes did before a release was replaced: the same acts make a fixture and its GitHub."""

from __future__ import annotations

from mergeplan_sandbox.server import Sandbox
from tests.bot.conftest import COLUMN, FILTER, PROJECT, SHOP

AT = "2026-01-06 05:00:00"  # of every call of the planner
# An edit of the shop on disk: file, old text, new text.
Edit = tuple[str, str, str]
MORE_ITEMS: Edit = ("models/total.sql", "sum(price) AS total", "sum(price) AS total, count(*) AS items")
ONLY_DEAR: Edit = ("models/daily.sql", "WHERE day", "WHERE price > 10 AND day")
EIGHT: Edit = ("models/apart.sql", "7 AS seven", "8 AS eight")
NEW_MODEL = {"models/late.sql": "SELECT 3 AS id\n"}
PEOPLE = {"ann": "admin", "wim": "write"}
# What stands in a fixture for what is another value in each GitHub.
HEADS = {
    name: f"{number:040x}" for number, name in enumerate(("main", "pull 1", "pull 2", "pull 3", "merge"), 0xC0FFEE1)
}
COMMENT, COMMAND = 9_000_000_001, 9_000_000_002


def set_scene(github: Sandbox) -> None:
    """People, a repository and the App on it."""
    for login in PEOPLE:
        github.add_user(login)
    github.create_repository(SHOP, PROJECT)
    github.set_permission(SHOP, "wim", "write")
    github.install_app(SHOP)


def merge_first(github: Sandbox) -> None:
    """The first pull request is merged."""
    github.merge(SHOP, 1, author="ann")


def open_pull(github: Sandbox, number: int) -> None:
    """Open one of three pull requests: a column, a filter, a new model."""
    files = {1: COLUMN, 2: {"models/totals.sql": FILTER["models/orders.sql"]}, 3: NEW_MODEL}[number]
    github.commit(SHOP, f"change{number}", files, f"Change {number}", author="wim")
    assert github.open_pull_request(SHOP, f"change{number}", "main", f"Change {number}", author="wim") == number


def commits(github: Sandbox) -> dict[str, str]:
    """The commits of this GitHub by the ones that stand for them in a fixture."""
    first_main = github.pull_request(SHOP, 1).base_sha
    pulls = {f"pull {number}": github.pull_request(SHOP, number).head_sha for number in (1, 2, 3)}
    named = {"main": first_main, "merge": github.head(SHOP), **pulls}
    return {HEADS[name]: sha for name, sha in named.items()}
