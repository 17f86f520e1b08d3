"""What every job works with, and the errors by which a job ends that has to come back."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import structlog

from mergeplan.bot.child.dbt_packages import lay_dbt_packages, read_dbt_requirements
from mergeplan.bot.child.isolated import brings_code
from mergeplan.bot.child.packages import packages_folder, read_file
from mergeplan.bot.child.planner_process import SHUTDOWN, Finished, Task, isolation_variables, project_home, run_planner
from mergeplan.bot.child.planner_slots import PlannerSlots, SparkTurns
from mergeplan.bot.child.reader import CodeFolder, RepositoryReader
from mergeplan.bot.child.requirements import FILES, MOST_CHARACTERS
from mergeplan.bot.child.standby import Standby
from mergeplan.bot.cicd_section import CicdSection
from mergeplan.bot.forge.failures import ForgeFailed, ForgePaused
from mergeplan.bot.forge.port import Forge, RepositoryGateway
from mergeplan.bot.forge.waiting import mark_waiting
from mergeplan.bot.git.call import BadCommit, CheckoutFailed
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.inbox.progress import Recorder
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.inbox.runs import Run
from mergeplan.bot.metrics import RUNS
from mergeplan.bot.notifications.notifications import Notifications
from mergeplan.bot.projects import owner_of, repository_of
from mergeplan.bot.records import Repository
from mergeplan.bot.rules import BotConfig, config_of
from mergeplan.bot.settings import Settings
from mergeplan.bot.tracing import RunTrace, Tracing
from mergeplan.planner.contract.lines import ErrorLine, PlanLine
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.wire import Line
from mergeplan.planner.errors import Cancelled, MergeplanError, Place, ProjectError
from mergeplan.planner.parsing.files.configuration import CONFIGS, Source, the_one
from mergeplan.planner.project_format import is_dbt_project
from mergeplan.planner.site.progress import RunProgress

log = structlog.get_logger(__name__)
EMBEDDED = "gateways:\n  spark:\n    connection:\n      type: spark\n"
DEFECT_TRIES = 3
MEND = "Push a commit that fixes it; its history may have to be rewritten."
TRY_AGAIN = "The log of the service says more. Type `/plan` to try again."
RUNS_CODE = (
    "plan",
    "apply",
    "run",
    "test",
    "lint",
    "audit",
    "data_diff",
    "table_diff",
    "docs",
    "diff",
)  # a project's own
WAITED_FOR = ("plan", "rollback")  # somebody looks on: these get the child that is ready, and leave it to no other verb


class Superseded(Exception):
    """Something newer took the place of this run: the job comes back after a settling time."""


class Later(Exception):
    """Not now: the job comes back after that many seconds, and nothing is wrong."""

    def __init__(self, seconds: float, why: str) -> None:
        super().__init__(why)
        self.seconds = seconds


class ShuttingDown(Exception):
    """This process ends, or another one took the job over: it is handed back as it is."""


@dataclass(frozen=True)
class PlannerCall:
    job: Job
    folder: Path  # of the project, once its files are written
    arguments: tuple[str, ...]
    run_id: str
    gateways: Path | None = None  # the configuration whose gateways count; None: the folder's own
    own_code: bool = False  # the change brings code of its own
    is_fork: bool = False  # the folder is a fork's, which nobody has merged
    is_silent: bool = False  # the verb prints no lines: it writes a file
    is_alone: bool = False  # no plan of another pull request uses the project's Spark meanwhile


@dataclass
class BotContext:
    """The tools of one process; `closing` is set when it must end."""

    settings: Settings
    inbox: Inbox
    forge: Forge
    worker: str
    closing: threading.Event = field(default_factory=threading.Event)
    look: threading.Event = field(default_factory=threading.Event)  # the timer should look now
    lost: set[str] = field(default_factory=set)  # keys that another worker took over while they were worked on here
    before_plan: Callable[[str], None] = lambda repository: None  # what a service does to make children start fast
    standby: Standby | None = None  # a planner child kept ready
    notifications: Notifications = field(default_factory=Notifications)
    tracing: Tracing = field(default_factory=Tracing)
    reader: RepositoryReader = field(default_factory=RepositoryReader)
    turns: SparkTurns = field(default_factory=SparkTurns)
    _checkouts: dict[tuple[str, str], Checkout] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.slots = PlannerSlots(self.settings.workers, mark_waiting)

    def is_only_owner(self, owner: str) -> bool:
        """Return True while no other owner's repositories are known."""
        return {owner_of(key) for key in self.inbox.queue.repositories()} <= {owner}

    def note_repositories(self, repositories: Sequence[Repository]) -> tuple[str, ...]:
        """Store the present names of repositories, decide whose records a reused name stands for; return their keys.

        One of which GitHub does not tell that yet is left out.
        """
        for taken in self.inbox.repositories.note({one.number: one.name for one in repositories if one.number}):
            try:
                holders_name = self.forge.find_name(taken.holder, taken.name)
            except (ForgeFailed, ForgePaused) as error:  # the other repositories go on
                log.warning("repository_left_out", repository=taken.name, number=taken.number, why=str(error))
            else:
                self.inbox.repositories.settle(taken, holders_name)
        return self.inbox.repositories.keys_of(repositories)

    def follow_repository(self, key: str) -> bool:
        """Store the present name of a repository whose name another one has; return False if GitHub tells none."""
        repository = self.inbox.repositories.find(repository_of(key))
        name = self.forge.find_name(repository.number, repository.name)
        if name and name != repository.name:
            self.inbox.repositories.note({repository.number: name})
        return bool(name) and name != repository.name

    def checkout(self, gateway: RepositoryGateway) -> Checkout:
        with self._lock:
            place = gateway.name, gateway.repository.name
            if place not in self._checkouts:
                home = project_home(self.settings, repository_of(gateway.name))
                made = Checkout(home, gateway.repository.name, gateway.clone_url, gateway.git_token, gateway.folder)
                self._checkouts[place] = made
            return self._checkouts[place]

    def config(self, checkout: Checkout, commit: str, default_branch: str) -> BotConfig | None:
        """Return the rules at a commit of the prod branch, None without a project; raise ProjectError if unreadable."""
        section = self.section(checkout, commit)
        return None if section is None else config_of(section, default_branch)

    def section(self, checkout: Checkout, commit: str) -> CicdSection | None:
        """Return `cicd_bot` at a commit, which may have any author; None if there is no project. Raise ProjectError."""
        source = the_one(self.configurations(checkout, commit))
        if source is None:
            return None
        path = (Path(checkout.project) / source.name).as_posix()
        folder = None
        if source.is_code:
            isolation = isolation_variables(self.settings, own_code=True)
            files = partial(checkout.files, commit, checkout.project)
            folder = CodeFolder(checkout.tree(commit), files, isolation)
        return self.reader.section(path, source.text, folder)

    def has_project(self, checkout: Checkout, commit: str, folder: str = "") -> bool:
        return bool(self.configurations(checkout, commit, folder))

    def configurations(self, checkout: Checkout, commit: str, folder: str = "") -> tuple[Source, ...]:
        """Return the configurations in the project's folder, or in the given one, at a commit; a project has one."""
        paths = ((name, (Path(folder or checkout.project) / name).as_posix()) for name in CONFIGS)
        texts = ((name, checkout.read(commit, path)) for name, path in paths)
        sources = (Source(name, text) for name, text in texts if text is not None)
        return tuple(source for source in sources if source.is_configuration)

    def no_project(self, checkout: Checkout, subject: str) -> Finished:
        """Return the failed result of a plan that found no project; `subject` is the change that would leave none."""
        path = (Path(checkout.project) / CONFIGS[0]).as_posix()
        hint = "Bring the file back; to move the project, tell the bot's operator its new folder."
        return failure_result(
            f"{subject} would leave no `{path}`, and without it there is no project.", "ProjectError", hint=hint
        )

    def project(self, checkout: Checkout, commit: str) -> AbstractContextManager[Path]:
        return checkout.files(commit, checkout.project)

    @contextmanager
    def open_change(self, call: PlannerCall, checkout: Checkout, base: str, commit: str) -> Iterator[PlannerCall]:
        """Yield a call in the folder of a commit that changes its base, on the gateways of the base."""
        changed = checkout.diff_paths(base, commit)
        with self.project(checkout, commit) as folder, self._open_gateways(checkout, base, call.run_id) as gateways:
            yield replace(call, folder=folder, gateways=gateways, own_code=brings_code(changed, folder))

    @contextmanager
    def _open_gateways(self, checkout: Checkout, base: str, run_id: str) -> Iterator[Path]:
        """Yield a file with the base commit's configuration: a pull request chooses neither its Spark nor the jars.

        A configuration that is code is yielded in its own folder. If the base has no project yet, the embedded Spark is
        used.
        """
        source = next(iter(self.configurations(checkout, base)), Source(CONFIGS[0], EMBEDDED))
        if source.is_code:
            with checkout.files(base, checkout.project) as folder:
                yield folder / source.name
            return
        file = checkout.folder / "trees" / f"{run_id}.gateways{Path(source.name).suffix}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source.text)
        try:
            yield file
        finally:
            file.unlink(missing_ok=True)

    def plan_in_turn(
        self, call: PlannerCall, *, on_event: Callable[[Line], None], should_stop: Callable[[], str]
    ) -> Finished:
        """Plan a pull request beside others, or alone; errors as `plan`."""
        stop = self._stop_reader(call, should_stop)
        with self.turns.take(call.job.repository, call.run_id, alone=call.is_alone, should_stop=stop) as stopped:
            if stopped:
                return self._raise_if_shutdown(call, Finished((), 1, stopped))
            return self.plan(call, on_event=on_event, should_stop=should_stop)

    def plan(
        self,
        call: PlannerCall,
        *,
        on_event: Callable[[Line], None] = lambda line: None,
        should_stop: Callable[[], str] = lambda: "",
    ) -> Finished:
        repository, owner, arguments = call.job.repository, owner_of(call.job.repository), call.arguments
        purpose = " ".join(arguments[:2])
        child_run = f"{call.run_id}-{arguments[0]}"

        def record_start(pid: int, began: str) -> None:
            self.inbox.runs.begin(Run(child_run, call.job.key, self.worker, pid, began), purpose)

        stop = self._stop_reader(call, should_stop)
        self.before_plan(repository)
        try:
            packages = self._prepare_packages(call, stop)
            self._lay_dbt_packages(call, stop)
        except Cancelled as cancelled:
            return self._raise_if_shutdown(call, Finished((), 1, str(cancelled)))
        except MergeplanError as error:
            return error_result(error)
        planner_arguments = arguments if call.is_silent else (*arguments, "--output", "json")
        task = Task(
            planner_arguments, call.folder, repository, child_run, call.gateways, call.own_code, packages, call.is_fork
        )
        log.info("planner_started", run=child_run, repository=repository, purpose=purpose)
        standby = self.standby if arguments[0] in WAITED_FOR else None
        with (
            self.tracing.span(f"planner {arguments[0]}", run=child_run, purpose=purpose) as trace,
            self._record_progress(call, on_event) as on_line,
        ):
            task = replace(task, trace=trace)
            with self.slots.take(owner, is_only_owner=self.is_only_owner(owner), should_stop=stop) as stopped:
                finished = (
                    Finished((), 1, stopped)
                    if stopped
                    else run_planner(
                        self.settings, task, on_start=record_start, on_event=on_line, should_stop=stop, standby=standby
                    )
                )
            self.tracing.note(exit_code=finished.exit_code, stopped=finished.stopped)
        self._prepare_next()
        self.inbox.runs.end(child_run, finished.exit_code)
        RUNS.labels(arguments[0], "stopped" if finished.stopped else str(finished.exit_code)).inc()
        return self._raise_if_shutdown(call, finished)

    def _stop_reader(self, call: PlannerCall, should_stop: Callable[[], str]) -> Callable[[], str]:
        """Return a question for the reason to stop a call: the service ends, another worker has its job, or its own."""
        return lambda: SHUTDOWN if self.closing.is_set() or call.job.key in self.lost else should_stop()

    def _prepare_next(self) -> None:
        if self.standby and not self.closing.is_set():
            self.standby.prepare()

    def _raise_if_shutdown(self, call: PlannerCall, finished_run: Finished) -> Finished:
        """Return the finished run; raise ShuttingDown if the service ends or another worker has taken the job over."""
        if finished_run.stopped == SHUTDOWN or (call.job.worker and not self.inbox.queue.holds(call.job)):
            raise ShuttingDown
        return finished_run

    def _prepare_packages(self, call: PlannerCall, should_stop: Callable[[], str]) -> Path | None:
        """Return the folder with the project's packages, installed if missing; None if the command runs no code."""
        if call.arguments[0] not in RUNS_CODE:
            return None
        home = project_home(self.settings, call.job.repository)
        texts = ((name, read_file(call.folder / name, MOST_CHARACTERS[name])) for name in FILES)
        requirements = self.reader.requirements({name: text for name, text in texts if text is not None})
        return packages_folder(self.settings, home, requirements, os.environ, should_stop)

    def _lay_dbt_packages(self, call: PlannerCall, should_stop: Callable[[], str]) -> None:
        """Put the packages into a dbt project, which opens only with them, for any command."""
        if not is_dbt_project(call.folder):
            return
        home = project_home(self.settings, call.job.repository)
        requirements = read_dbt_requirements(self.reader, call.folder)
        lay_dbt_packages(self.settings, home, requirements, call.folder, os.environ, should_stop)

    @contextmanager
    def _record_progress(self, call: PlannerCall, on_event: Callable[[Line], None]) -> Iterator[Callable[[Line], None]]:
        """Yield a listener for the lines of a run that records the progress of a plan for the pages of any process."""
        if call.arguments[0] != "plan":
            yield on_event
            return
        steps = RunTrace(self.tracing)
        run_subject = call.arguments[call.arguments.index("--note") + 1] if "--note" in call.arguments else ""
        begun = RunProgress(call.run_id, subject=run_subject)
        recorder = Recorder(self.inbox.progress, call.job.repository, call.job.number, begun)

        def record_line(line: Line) -> None:
            recorder.record_line(line)
            steps.trace_line(line)
            on_event(line)
            if isinstance(line, PlanLine):  # what follows may take hours, and another pull request may come meanwhile
                self._prepare_next()

        try:
            yield record_line
        finally:
            recorder.end()


def failure_result(message: str, kind: str, *, path: str = "", line: int = 0, hint: str = "") -> Finished:
    """Return the result of a run that failed before a planner started."""
    error = ErrorLine(message=message, kind=kind, path=path, line=line, hint=hint)
    return Finished((error, ResultLine(ok=False)), 1)


def error_result(error: MergeplanError) -> Finished:
    path, line = (error.place.path, error.place.line) if error.place else ("", 0)
    return failure_result(error.message, type(error).__name__, path=path, line=line, hint=error.hint)


def unreadable_error(error: CheckoutFailed) -> ProjectError:
    bad = isinstance(error, BadCommit)
    place = Place(error.path) if isinstance(error, BadCommit) and error.path else None
    return ProjectError(f"The files cannot be read: {error}", place=place, hint=MEND if bad else TRY_AGAIN)


def now_text() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def parse_moment(text: str) -> datetime:
    """Parse an ISO 8601 time, also with GitHub's `Z`."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
