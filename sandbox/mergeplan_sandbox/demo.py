"""The demo: a GitHub and the bot on this machine, and two pull requests on their way to prod, reported as they go."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.markdown import Markdown
from rich.panel import Panel

from mergeplan.planner.errors import MergeplanError, RequestError
from mergeplan.planner.project.scaffold import Wishes, write_project
from mergeplan_sandbox.server import KEY_FILE, Sandbox
from mergeplan_sandbox.state import Comment

REPOSITORY = "acme/shop"
ANN, BEN = "ann", "ben"
PATIENCE = 600.0  # seconds for one step on a slow machine
MODEL = "models/incremental_model.sql"
VIEW = "sqlmesh_example.incremental_model"
ENVIRONMENT = "mergeplan / environment"
SECRET = "demo-secret"  # noqa: S105 # of a GitHub that lives on this machine for the demo only


@dataclass
class Demo:
    """What the steps share."""

    console: Console
    github: Sandbox
    folder: Path
    service: subprocess.Popen[bytes]

    def say(self, text: str) -> None:
        self.console.print(f"\n[bold cyan]▸[/bold cyan] {text}")

    def wait(self, what: str, ready: Callable[[], bool]) -> None:
        """Wait until it is so, with the seconds shown; a MergeplanError when the service ends or patience does."""
        started = time.monotonic()
        with self.console.status(f"{what}...") as status:
            while not ready():
                seconds = time.monotonic() - started
                if self.service.poll() is not None or seconds > PATIENCE:
                    reason = (
                        "the service ended" if self.service.poll() is not None else f"it took over {PATIENCE:.0f} s"
                    )
                    raise MergeplanError(f"{what}: {reason}.", hint=f"See {self.folder / 'service.log'}.")
                status.update(f"{what}... {seconds:.0f} s")
                time.sleep(0.5)
        self.console.print(f"  [green]✔[/green] {what} ({time.monotonic() - started:.0f} s)")

    def comment(self, number: int) -> Comment | None:
        comments = self.github.comments(REPOSITORY, number)
        return next(
            (comment for comment in comments if comment.author == self.github.bot_login and "<!--" in comment.body),
            None,
        )

    def body(self, number: int) -> str:
        """Return the plan comment's text, '' while there is none."""
        comment = self.comment(number)
        return comment.body if comment else ""

    def show(self, number: int) -> None:
        """Print the plan comment as Markdown; the terminal draws no graphs and folds nothing."""
        self.console.print(
            Panel(
                Markdown(plain_comment(self.body(number))),
                title=f"pull request #{number}: the bot's comment",
                border_style="dim",
            )
        )

    def is_built(self, number: int) -> bool:
        pull = self.github.pull_request(REPOSITORY, number)
        run = self.github.checks(REPOSITORY, pull.head_sha).get(ENVIRONMENT)
        return run is not None and run.status == "completed" and self.body(number).count("\u23f3") == 0

    def prod(self) -> None:
        self.console.print(f"\n[bold]prod:[/bold] select * from {VIEW} order by id")
        self.console.print(self._planner_output("fetchdf", f"select * from {VIEW} order by id"))

    def has_prod(self) -> bool:
        lines = self._planner_output("environments", "--output", "json").splitlines()
        result = json.loads(lines[-1]) if lines else {}
        return any(row["name"] == "prod" for row in result.get("environments", []))

    def _planner_output(self, *arguments: str) -> str:
        done = run_planner(self.folder, self.folder / "home" / REPOSITORY, *arguments)
        return (done.stdout or done.stderr).rstrip()


def plain_comment(body: str) -> str:
    """Return a comment without what a terminal does not draw: graphs, folds, alerts, line breaks within cells."""
    text = re.sub(r"```mermaid.*?```\n?| ?<!--.*?-->|</?(?:details|sub)[^>]*>", "", body, flags=re.S)
    text = re.sub(r"<summary>(.*?)</summary>", r"**\1**", text.replace("<br>", "; "))
    text = re.sub(r"^> \[!\w+\]\n", "", text, flags=re.M)
    return re.sub(r"<code>(.*?)</code>", lambda name: f"`{name[1].replace('<wbr>', '')}`".replace("\\", ""), text)


def run_planner(folder: Path, home: Path, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mergeplan.planner.cli.main", verb, "--project", str(folder / "shop"), *arguments]
    environ = {**os.environ, "MERGEPLAN_HOME": str(home), "MERGEPLAN_PROJECT": REPOSITORY}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False)


def run_demo(folder: Path, *, keep: bool, spark: str = "") -> int:
    """Run the whole story and return the exit code; everything is in `folder`, which is created again.

    `spark` is a setting of the project's connection, such as `table_format: delta`.
    """
    console = Console(highlight=False)
    folder = folder.resolve()
    if folder.exists() and not (folder / ".mergeplan-demo").exists() and any(folder.iterdir()):
        raise RequestError(f"`{folder}` exists and is not the folder of a demo.", hint="Name another with --folder.")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / ".mergeplan-demo").touch()
    started = time.monotonic()
    write_project(folder / "shop", Wishes(spark=spark))
    if spark:
        console.print(f"Spark with `{spark}`")
        with console.status("Spark starts, and fetches its jars if they are not there..."):
            done = run_planner(folder, folder / "first-start", "fetchdf", "select 1 as one")
        if done.returncode:
            raise RequestError(f"Spark does not start: {done.stderr.rpartition('Error: ')[2].strip()}")
    signal.signal(signal.SIGTERM, _end_now)  # so that what was started is stopped, whoever ends us
    with start_demo(console, folder) as demo:
        _play_story(demo)
        console.print(f"\n[bold green]Done[/bold green] in {time.monotonic() - started:.0f} s.")
        _end_demo(demo, keep)
    if not keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _play_story(demo: Demo) -> None:
    demo.say(f"A repository [bold]{REPOSITORY}[/bold] with the quickstart's project: seed → incremental → full")
    demo.wait("prod is built from main", demo.has_prod)
    demo.prod()

    demo.say("Ann opens a pull request that [bold]adds a column[/bold]")
    first = open_demo_pull(
        demo, "new-column", "Add new_column", ("  item_id,\n", "  item_id,\n  'z' AS new_column,\n"), ANN
    )
    demo.wait(f"pull request #{first} is planned and built in pr_{first}", lambda: demo.is_built(first))
    demo.show(first)

    demo.say("Ben opens another that [bold]changes a WHERE[/bold]: what reads it must be computed again")
    change = ("event_date BETWEEN", "item_id < 3 AND event_date BETWEEN")
    second = open_demo_pull(demo, "without-item-3", "Leave out item 3", change, BEN)
    demo.wait(f"pull request #{second} is planned and built in pr_{second}", lambda: demo.is_built(second))
    demo.show(second)

    demo.say("Ann knows better and comments: [bold]/categorize non-breaking[/bold]")
    earlier_body = demo.body(second)
    demo.github.comment(REPOSITORY, second, "/categorize non-breaking", author=ANN)
    demo.wait(
        "the plan shows the category", lambda: demo.body(second) != earlier_body and "categorized" in demo.body(second)
    )
    demo.wait("its environment is built", lambda: demo.is_built(second))
    demo.show(second)

    demo.say(f"Ann merges #{first}")
    stale = demo.body(second)
    demo.github.merge(REPOSITORY, first, author=ANN)
    demo.wait("prod shows the tables that were built: nothing is computed", lambda: "romoted" in demo.body(first))
    demo.show(first)
    demo.prod()

    demo.say(f"Prod has moved, so #{second}'s plan went stale")
    demo.wait("it was planned again", lambda: demo.body(second) != stale and demo.is_built(second))
    demo.show(second)


def _end_demo(demo: Demo, keep: bool) -> None:
    page = f"{demo.github.url}/{REPOSITORY}/pulls"
    if not keep:
        demo.console.print(f"The pull requests were at {page}; run with --keep to look around there.")
        return
    demo.console.print(f"Look around and click at [bold]{page}[/bold]. Ctrl-C ends it.")
    demo.console.print(f"To push with git: git clone {clone_address(demo.github)}", soft_wrap=True, highlight=False)
    try:
        demo.service.wait()
    except KeyboardInterrupt:
        demo.console.print("Stopping...")


def clone_address(github: Sandbox) -> str:
    """Return the repository's address with a token that may push."""
    return github.clone_url(REPOSITORY).replace("://", f"://{BEN}:{github.add_user(BEN)}@")


def open_demo_pull(demo: Demo, branch: str, title: str, change: tuple[str, str], author: str) -> int:
    text = demo.github.read(REPOSITORY, MODEL)
    if change[0] not in text:
        raise MergeplanError(f"`{change[0].strip()}` is not in {MODEL}.")
    demo.github.commit(REPOSITORY, branch, {MODEL: text.replace(*change, 1)}, title, author=author)
    message = f"{title}\n\n{title}, please."
    return demo.github.open_pull_request(REPOSITORY, branch, "main", message, author=author)


@contextmanager
def start_demo(console: Console, folder: Path) -> Iterator[Demo]:
    port = _free_port()
    github = Sandbox(folder / "github", webhook_url=f"http://127.0.0.1:{port}/webhook", secret=SECRET)
    (folder / "github").mkdir()
    with github:
        key = folder / KEY_FILE
        key.touch(mode=0o600)
        key.write_text(github.app_private_key)
        console.print(f"A GitHub on this machine: [bold]{github.url}[/bold]")
        for login in (ANN, BEN):
            github.add_user(login)
        github.create_repository(REPOSITORY, folder / "shop")
        github.set_permission(REPOSITORY, ANN, "admin")
        github.set_permission(REPOSITORY, BEN, "write")
        with (folder / "service.log").open("wb") as log:
            service = subprocess.Popen(
                [sys.executable, "-m", "mergeplan.bot.main", "serve"],
                env=_service_environment(github, folder, key, port),
                stdout=log,
                stderr=log,
            )
            try:
                demo = Demo(console, github, folder, service)
                demo.wait("the bot listens", lambda: _is_listening(port))
                github.install_app(REPOSITORY)
                yield demo
            finally:
                service.terminate()
                try:
                    service.wait(30)
                except subprocess.TimeoutExpired:
                    service.kill()


def _service_environment(github: Sandbox, folder: Path, key: Path, port: int) -> dict[str, str]:
    demo_variables = {
        "MERGEPLAN_GITHUB_API_URL": github.url,
        "MERGEPLAN_GITHUB_APP_ID": str(github.app_id),
        "MERGEPLAN_GITHUB_PRIVATE_KEY_PATH": str(key),
        "MERGEPLAN_WEBHOOK_SECRET": SECRET,
        "MERGEPLAN_HOME": str(folder / "home"),
        "MERGEPLAN_PORT": str(port),
        "MERGEPLAN_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "MERGEPLAN_WRITE_SPACING_SECONDS": "0",
    }
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("MERGEPLAN_")},
        **demo_variables,
    }


def _end_now(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(143)


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
