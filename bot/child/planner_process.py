"""The planner as a child: its own process group, an allow-listed environment, JSON lines on its standard output."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import structlog

from mergeplan.bot.child.reader import SIMPLER
from mergeplan.bot.child.standby import Standby
from mergeplan.bot.metrics import REFUTED
from mergeplan.bot.results import KEPT, Kept, PlannerOutcome, read_outcome, select_lines
from mergeplan.bot.settings import Settings
from mergeplan.planner import file_note
from mergeplan.planner.contract.lines import ErrorLine, PlanLine, RefutedLine
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.wire import Line, read_line
from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.mode import AVAILABLE, FUNCTIONS, HIDDEN, MEMORY, PACKAGES, REQUIRED, VARIABLE
from mergeplan.planner.isolation.processes import CANCEL, LEAVE, birth, signal_group
from mergeplan.planner.session.settings import DBT_ROWS

log = structlog.get_logger(__name__)
# What any program may need to start, and nothing that opens a door.
ALLOWED = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "JAVA_HOME",
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "HADOOP_CONF_DIR",
    "PYSPARK_PYTHON",
    "PYSPARK_DRIVER_PYTHON",
    "VIRTUAL_ENV",
    "SSL_CERT_FILE",
    "LD_LIBRARY_PATH",
    "MERGEPLAN_SPARK_ARCHIVE",
    "MERGEPLAN_SPARK_PROFILE",
    "MERGEPLAN_DBT_PYTHON",
    "MERGEPLAN_DBT_VARIABLES",
)
# Programs read settings, passwords and code from below HOME: in none that project code can write to.
NO_HOME = "/nonexistent"
ISOLATED_PYTHON = {"PYTHONNOUSERSITE": "1", "PYTHONSAFEPATH": "1"}  # for a planner command of the operator's own
POLL_SECONDS = 0.2
SHUTDOWN = "shutdown"  # why a child is stopped when its job goes on elsewhere, or later
OTHER_VERSION = "OtherVersion"  # the kind of the error that the planner speaks another version than the bot
TOO_LONG = "It took too long."
NO_PLAN = "It made no plan in the time of `MERGEPLAN_PLAN_TIMEOUT_SECONDS`."
LINES_MOST = 20_000  # lines beyond this are not kept, the result excepted


@dataclass(frozen=True)
class Finished:
    """The end of a child: its stored lines, its exit code, and the reason if it was stopped."""

    lines: tuple[Kept, ...]
    exit_code: int
    stopped: str = ""

    @property
    def outcome(self) -> PlannerOutcome:
        return read_outcome(self.lines, self.exit_code)


@dataclass(frozen=True)
class Task:
    arguments: tuple[str, ...]
    folder: Path
    repository: str
    run_id: str
    gateways: Path | None = None  # a config.yaml whose gateways hold, whatever the folder's own says
    own_code: bool = False  # the folder holds code that nobody has merged
    packages: Path | None = None  # a folder with the project's own packages
    is_fork: bool = False  # of a fork, which nobody has merged
    trace: str = ""  # the W3C traceparent of the step that it is


def new_run_id() -> str:
    return f"run-{uuid4().hex[:12]}"


def planner_argv(settings: Settings) -> tuple[str, ...]:
    """Return the planner's command: the one in the settings, or this Python's.

    -I: nothing is imported from the project's folder, from below HOME, or from where a variable says. -u: lines are not
    buffered.
    """
    return settings.planner_command or (sys.executable, "-I", "-u", "-m", "mergeplan.planner.cli.main")


def project_home(settings: Settings, repository: str) -> Path:
    """Return the folder of a repository's catalog, mirror and logs."""
    owner, _, name = repository.partition("/")
    return settings.home.resolve() / owner / name


def child_environment(settings: Settings, repository: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a planner child: no token, no key, no webhook secret, no password.

    `-` says that the state database's address, or OpenLineage's key, comes on standard input: an environment can be
    read by any process of the same user, Spark included.
    """
    project_variables = {"MERGEPLAN_HOME": str(project_home(settings, repository)), "MERGEPLAN_PROJECT": repository}
    return {**bare_environment(settings, environ), **project_variables, **dict.fromkeys(stdin_secrets(settings), "-")}


def bare_environment(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that every planner child gets, for any repository."""
    variables = {name: environ[name] for name in (*ALLOWED, *settings.planner_environment) if name in environ}
    return {**variables, "HOME": variables.get("HOME", NO_HOME), **ISOLATED_PYTHON, "PYTHONUNBUFFERED": "1"}


def open_standby(settings: Settings) -> Standby | None:
    """Return a standby child; None if the operator configured a planner command, which may be any program."""
    if settings.planner_command:
        return None
    return Standby(settings.home.resolve(), bare_environment(settings, os.environ))


def run_planner(
    settings: Settings,
    task: Task,
    *,
    on_start: Callable[[int, str], None],
    on_event: Callable[[Line], None],
    should_stop: Callable[[], str],
    standby: Standby | None = None,
) -> Finished:
    """Run a child to its end; stop its process group if `should_stop` gives a reason or the time is up."""
    note = project_home(settings, task.repository) / "logs" / f"{task.run_id}.reading"
    child = start_child(settings, task, task.run_id, standby=standby, note=note)
    on_start(child.pid, birth(child.pid))
    printed: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read_into, args=(child, printed), name=f"{task.run_id}-reader", daemon=True)
    reader.start()
    began = time.monotonic()
    seconds, timeout_text = settings.run_timeout_seconds, TOO_LONG
    if task.arguments[:1] == ("plan",) and settings.plan_timeout_seconds < seconds:
        seconds, timeout_text = settings.plan_timeout_seconds, NO_PLAN
    lines: list[Kept] = []
    home = _build_path_pattern(str(settings.home.resolve()))  # a path of the server's is nobody's business on GitHub
    stopped, polled_at = "", 0.0
    try:
        while (line := _next_line(printed)) is not None:
            if line:
                printed_line = _handle_line(home.sub("MERGEPLAN_HOME", line), lines, on_event)
                if isinstance(printed_line, PlanLine) and not printed_line.plan.awaits_spark:
                    seconds, timeout_text = settings.run_timeout_seconds, TOO_LONG
            if time.monotonic() - polled_at < POLL_SECONDS:
                continue
            stopped = should_stop() or (timeout_text if time.monotonic() > began + seconds else "")
            polled_at = time.monotonic()
            if stopped:
                break
    finally:
        kill = bool(stopped) or sys.exc_info()[0] is not None
        exit_code = _end_child(
            child, settings.grace_seconds, (LEAVE if stopped == SHUTDOWN else CANCEL) if kill else None
        )
        reader.join(timeout=5)
        if child.stdout:
            child.stdout.close()
    if exit_code < 0 and not stopped and (path := file_note.read_note(note)):
        lines += _lines_of_crash(path, -exit_code)
        exit_code = exit_code if exit_code == -signal.SIGKILL else 1  # the machine's memory may be there again later
    note.unlink(missing_ok=True)
    log.info("planner_ended", run=task.run_id, repository=task.repository, exit_code=exit_code, stopped=stopped)
    refused = any(isinstance(line, ErrorLine) and line.kind == OTHER_VERSION for line in lines)
    return Finished(select_lines(lines), (exit_code or 1) if refused else exit_code, stopped)


def _lines_of_crash(path: str, number: int) -> tuple[Kept, ...]:
    """Return the lines that report a child that a signal ended while it read a file."""
    name = signal.Signals(number).name if number in signal.valid_signals() else f"signal {number}"
    killed = " Most likely it took all of the machine's memory." if number == signal.SIGKILL else ""
    message = f"Reading the file ended the planner ({name}).{killed}"
    return ErrorLine(message=message, kind="ProjectError", path=path, hint=SIMPLER), ResultLine(ok=False)


def _build_path_pattern(path: str) -> re.Pattern[str]:
    forms = {path, json.dumps(path)[1:-1], quote(path)}
    return re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))


def start_child(
    settings: Settings,
    task: Task,
    log_name: str,
    *,
    quiet: bool = False,
    standby: Standby | None = None,
    note: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a planner in a new session; log its standard error, and its output too if `quiet`."""
    logs = project_home(settings, task.repository) / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    file = logs / f"{log_name}.log"
    environment = (
        child_environment(settings, task.repository, os.environ)
        | ({"MERGEPLAN_GATEWAYS_FROM": str(task.gateways)} if task.gateways else {})
        | isolation_variables(settings, own_code=task.own_code)
        | ({PACKAGES: str(task.packages)} if task.packages else {})
        | ({DBT_ROWS: "off"} if task.is_fork else {})
        | ({"TRACEPARENT": task.trace} if task.trace else {})
    )
    if note is not None:
        file_note.make_note(note)
        environment[file_note.VARIABLE] = str(note)
    child = standby.hand_over(task.arguments, task.folder, environment, file) if standby else None
    if child is None:
        with file.open("ab") as errors:
            child = subprocess.Popen(
                [*planner_argv(settings), *task.arguments],
                cwd=task.folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=errors if quiet else subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
    assert child.stdin is not None
    with suppress(BrokenPipeError), child.stdin as pipe:
        pipe.writelines(f"{secret}\n".encode() for secret in stdin_secrets(settings).values())
    return child


def stdin_secrets(settings: Settings) -> dict[str, str]:
    """Return the secrets that the planner reads from standard input, one a line, in the order in which it reads."""
    secrets = {
        "MERGEPLAN_STATE_URL": settings.state_url.get_secret_value(),
        "MERGEPLAN_OPENLINEAGE_API_KEY": settings.openlineage_api_key.get_secret_value(),
    }
    return {name: secret for name, secret in secrets.items() if secret}


def isolation_variables(settings: Settings, *, own_code: bool) -> dict[str, str]:
    """Return the variables for isolation: whether to isolate, how much memory, and which paths code may not read.

    Merged code was reviewed by people, so it also runs on a machine that cannot isolate.
    """
    isolation_mode = AVAILABLE if settings.isolation == REQUIRED and not own_code else settings.isolation
    hidden = (str(path) for path in settings.secret_paths())
    variables = {VARIABLE: isolation_mode, MEMORY: str(settings.isolation_memory), HIDDEN: os.pathsep.join(hidden)}
    variables |= {FUNCTIONS: settings.isolation_udf} if settings.isolation_udf else {}
    return variables | settings.spark_variables()


def _read_into(child: subprocess.Popen[bytes], line_queue: queue.SimpleQueue[str | None]) -> None:
    assert child.stdout is not None
    try:
        for line in child.stdout:
            line_queue.put(line.decode("utf-8", "replace").strip() or " ")
    except ValueError:
        pass  # closed under us: the child was stopped
    line_queue.put(None)


def _next_line(line_queue: queue.SimpleQueue[str | None]) -> str | None:
    """Return the next line; '' if there is none yet, None at the end."""
    try:
        return line_queue.get(timeout=POLL_SECONDS)
    except queue.Empty:
        return ""


def _handle_line(text: str, lines: list[Kept], on_event: Callable[[Line], None]) -> Line | None:
    """Parse a line once, pass it on and return it; another version's becomes an error line, other text is ignored."""
    try:
        line = read_line(text)
    except RequestError as error:
        line = ErrorLine(message=error.message, hint=error.hint, kind=OTHER_VERSION)
    if line is None:
        return None
    if isinstance(line, RefutedLine):
        REFUTED.inc()
        log.warning("witness_disagrees", model=line.model, reason=line.reason)
    if isinstance(line, KEPT) and (len(lines) < LINES_MOST or isinstance(line, ResultLine)):
        lines.append(line)
    on_event(line)
    return line


def _end_child(child: subprocess.Popen[bytes], grace: float, first_signal: signal.Signals | None) -> int:
    if first_signal:
        signal_group(child.pid, first_signal)
    try:
        child.wait(timeout=grace if first_signal else max(grace, 10.0))
    except subprocess.TimeoutExpired:
        log.warning("planner_did_not_end", pid=child.pid)
    if first_signal or child.poll() is None:
        # Whatever of the group is left, grandchildren included.
        signal_group(child.pid, signal.SIGKILL)
    return child.wait()
