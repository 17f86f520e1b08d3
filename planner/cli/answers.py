"""Answers of `plan` that hold still: shown again without planning, while nothing that they follow from has changed.

An answer is what the command wrote. It follows from the program, the command line, the environment variables, the files
of the project, what was read of the state, and the time up to the next tick of a cron. All of that is found before the
project is read, and compared when the answer is kept, so that what changed meanwhile is asked anew.

Remembered are only plans that do nothing: of projects without Python, whose state is a file, and where no Spark runs or
was asked. A plan is applied by its id, and is made again for that, whoever showed it. An answer about a dbt project
follows, too, from the dbt that compiles it and from its profiles.yml, wherever that lies.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from mergeplan.planner.cache.file_hashes import looks_of
from mergeplan.planner.cache.folder_looks import FolderLooks, hash_file, look_at
from mergeplan.planner.cache.place import cache_of, home_of
from mergeplan.planner.cache.state_reads import Read, StateReads, digest_reads
from mergeplan.planner.cache.store import Cache
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.project.dbt.inputs import VARIABLES, digest_outside, is_dbt_project, profiles_path

if TYPE_CHECKING:
    from mergeplan.planner.plan.build import Plan
    from mergeplan.planner.project.loader import Project
    from mergeplan.planner.session.workspace import Workspace

FORM = "answer 1"
FLAGS = {"--no-prompts", "--skip-tests", "--skip-linter", "--no-diff", "--output=json", "--output=text"}
VALUES = {"-o": ("json", "text"), "--output": ("json", "text")}
# What a shell changes by itself; a plan of a config.yaml that reads one of them is always made.
UNREAD = {"_", "OLDPWD", "PWD", "SHLVL"}
# What may hold a password, or names files beside the project's: such a plan is always made.
OUTSIDE = {"MERGEPLAN_STATE_URL", "MERGEPLAN_OPENLINEAGE_API_KEY", "MERGEPLAN_GATEWAYS_FROM"}
LONGEST = timedelta(hours=1)
SAVED = "SELECT id, environment, status, options, components, tables FROM plans WHERE id = ?"
PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class Answer:
    """What a command wrote, and what it followed from."""

    asked: str
    files: str
    recent: dict[str, str]  # file that was edited a moment before -> hash of its content
    owner: list[int] | None  # how the file looks that names a running Spark
    state: str
    reads: list[Read]
    rows: list[str]  # a digest of what each returned
    since: float
    until: float
    out: str
    err: str


@dataclass
class Question:
    """One call of `plan` that may have been answered before."""

    key: str
    asked: str  # a digest of the program, of where it is called, and of the environment variables
    root: Path
    cache: Cache
    owner_path: Path
    outside: str = ""  # a digest of what a dbt project follows from beside its folder
    reads: StateReads = field(default_factory=StateReads)

    @cached_property
    def looks(self) -> FolderLooks | None:
        """The project's files as they were when the question was asked; None for one with Python in it."""
        looks = look_at(self.root)
        return None if looks is None or any(map(self._may_run, looks.names)) else looks

    def _may_run(self, name: str) -> bool:
        """True for a file of Python that a plan may run: of a dbt project, whatever dbt does with the others."""
        return name.endswith(".py") and (not self.outside or name == "config.py" or name.startswith("linter/"))

    @cached_property
    def owner(self) -> list[int] | None:
        """How the file looks by which a running Spark is found; None where there is none."""
        try:
            return looks_of(self.owner_path.stat())
        except OSError:
            return None

    def recall(self) -> Answer | None:
        """The answer, if everything is as it was."""
        text = self.cache.get([self.key]).get(self.key)
        if text is None:
            return None
        try:
            answer = Answer(**json.loads(text))
            return answer if self._holds(answer) else None
        except (OSError, ValueError, TypeError, AttributeError):
            return None

    def _holds(self, answer: Answer) -> bool:
        looks = self.looks
        return (
            answer.asked == self.asked
            and answer.since <= datetime.now(UTC).timestamp() < answer.until
            and looks is not None
            and looks.digest == answer.files
            and all(hash_file(self.root, name) == hashed for name, hashed in answer.recent.items())
            and looks.recent.keys() <= answer.recent.keys()
            and self.owner == answer.owner
            and digest_reads(answer.state, answer.reads) == answer.rows
        )


QUESTION: ContextVar[Question | None] = ContextVar("question", default=None)


def ask(arguments: Sequence[str]) -> Question | None:
    """The question that a command line asks; None for one whose answer is not remembered."""
    root, environ = _project_folder(arguments), os.environ
    if root is None or not OUTSIDE.isdisjoint(name for name in environ if environ[name]):
        return None
    folder = cache_of(environ)
    if folder is None:
        return None
    variables = sorted((name, value) for name, value in environ.items() if name not in UNREAD)
    terminals = [_describe_terminal(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)]
    outside = _outside(root)
    asked = digest(_program(), os.getcwd(), repr(variables), repr(terminals), outside)
    key = digest(FORM, str(root), repr(list(arguments)), str(os.getuid()))
    home = home_of(environ) or root / ".mergeplan"
    return Question(key, asked, root, Cache(folder), home.resolve() / "spark" / "owner.json", outside)


def replay(arguments: Sequence[str]) -> bool:
    """Write the answer to a command line once more, if it still holds; else note the question for whoever answers."""
    question = ask(arguments)
    QUESTION.set(question)
    answer = question.recall() if question else None
    if answer is None:
        return False
    sys.stdout.write(answer.out)
    sys.stderr.write(answer.err)
    sys.stdout.flush()
    return True


class Recording:
    """What a command writes, and what of the state it reads, until it is kept as the answer to a question."""

    def __init__(self, question: Question | None) -> None:
        self._question = question if question and question.looks else None
        if self._question:
            _ = self._question.owner  # as it is before the project is read
        self.out, self.err = io.StringIO(), io.StringIO()
        self._rows: list[str] | None = None
        self._ends: tuple[list[Read], float, float] | None = None  # the saved plan; since when and until when

    @property
    def reads(self) -> StateReads | None:
        """What notes the statements that are made of the state; None where nothing is remembered."""
        return self._question.reads if self._question else None

    def before_save(self) -> None:
        """What was read of the state is as it was read: from here on the plan itself is written."""
        self._rows = self._question.reads.digests() if self._question else None

    def keep(self, work: Workspace, planned: Plan) -> None:
        """Keep what the command has written by the time that it ends as the answer, if that can hold still."""
        if self._question is not None and _holds_still(self._question, work, planned):
            saved: list[Read] = [] if planned.is_empty else [(SAVED, [planned.id])]
            self._ends = saved, work.now.timestamp(), _until(work, planned)

    def write(self) -> None:
        """Write the answer, if one is kept, and the files are as they were when the question was asked."""
        question, ends = self._question, self._ends
        if question is None or ends is None or question.looks is None:
            return
        saved, since, until = ends
        rows = self._rows if saved else question.reads.digests()  # what is empty is not saved
        plan = digest_reads(question.reads.file, saved)
        again = look_at(question.root)
        if rows is None or plan is None or again is None or again.digest != question.looks.digest:
            return
        if question.outside != _outside(question.root):
            return
        answer = Answer(question.asked, question.looks.digest, dict(question.looks.recent), question.owner,
                        question.reads.file, [*question.reads.statements.values(), *saved], [*rows, *plan],
                        since, until, self.out.getvalue(), self.err.getvalue())  # fmt: skip
        question.cache.put({question.key: json.dumps(asdict(answer), separators=(",", ":"))})


@contextmanager
def recording() -> Iterator[Recording]:
    """Within, what is written is recorded too, if it may be the answer to the question that was asked."""
    question = QUESTION.get()
    QUESTION.set(None)
    record = Recording(question)
    if record.reads is None or not all(_is_plain(stream) for stream in (sys.stdout, sys.stderr)):
        yield record
        return
    try:
        with redirect_stdout(_Tee(sys.stdout, record.out)), redirect_stderr(_Tee(sys.stderr, record.err)):
            yield record
        record.write()
    finally:
        record.reads.close()


def _is_plain(stream: TextIO) -> bool:
    """True for a stream to which everybody writes text: of another encoding click writes bytes below it."""
    return (getattr(stream, "encoding", None) or "utf-8").lower() in ("utf-8", "utf8")


class _Tee:
    """A stream whose text is written to a second one too."""

    def __init__(self, stream: TextIO, copy: io.StringIO) -> None:
        self._stream, self._copy = stream, copy

    def write(self, text: str) -> int:
        count = self._stream.write(text)
        self._copy.write(text)
        return count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _project_folder(arguments: Sequence[str]) -> Path | None:
    """The project of a plan that only looks, by its command line; None for any other command line."""
    root, left = Path(), list(arguments[1:])
    if list(arguments[:1]) != ["plan"]:
        return None
    while left:
        word = left.pop(0)
        if word in ("-p", "--project") and left:
            root = Path(left.pop(0))
        elif word in VALUES and left and left[0] in VALUES[word]:
            left.pop(0)
        elif word.startswith("-") and word not in FLAGS:
            return None
    with suppress(OSError, UnicodeEncodeError):  # this folder is gone, or its path is no text
        path = root.resolve(strict=True)
        return path if path.is_dir() and str(path).encode() else None
    return None


def _holds_still(question: Question, work: Workspace, planned: Plan) -> bool:
    """True when the answer comes out the same until the next tick of a cron, whoever asks."""
    project, looks = work.project, question.looks
    connections = [gateway.connection for gateway in project.config.gateways.values()]
    seeds = {model.seed.path for model in project.models.values() if model.seed}
    return (
        looks is not None
        and question.reads.file != ""
        and not (project.moves or project.refused or work.recovered or work.has_engine)
        and not work.may_be_warm
        and not _reads_shell(project)
        and not any(connection.config_dir or connection.remote for connection in connections)
        and not any(model.start_moves or model.allow_partials or model.python for model in project.models.values())
        # nothing was read by way of a linked or hidden folder
        and seeds | project.hashes.keys() <= looks.names
        and _dbt_reads(project, looks)
        and _read_as_found(project, looks)
    )


def _dbt_reads(project: Project, looks: FolderLooks) -> bool:
    """True when dbt read nothing but files that were looked at, and nobody asked a Spark."""
    files = project.dbt_files
    return files is not None and {os.path.relpath(file, project.root) for file in files} <= looks.names


def _reads_shell(project: Project) -> bool:
    """True when the configuration, or dbt, may read a variable that a shell changes by itself."""
    paths = [project.root / project.config_path]
    names = ""
    if project.is_dbt:
        paths.append(profiles_path(project.root, os.environ))
        names = os.environ.get(VARIABLES, "")
    texts = [path.read_text("utf-8", "replace") for path in paths if path.is_file()]
    return not UNREAD.isdisjoint(re.findall(r"\w+", " ".join([names, *texts])))


def _outside(root: Path) -> str:
    """What a dbt project follows from beside its folder; '' for another project."""
    return digest_outside(root, os.environ) if is_dbt_project(root) else ""


def _read_as_found(project: Project, looks: FolderLooks) -> bool:
    """True when each file that was edited a moment before says what it said when the question was asked."""
    return all(project.hashes.get(name) == hashed for name, hashed in looks.recent.items())


def _until(work: Workspace, planned: Plan) -> float:
    """Up to when nothing new is due: the next tick or unit of a cron, at the latest the next whole hour."""
    crons = {snapshot.model.cron for snapshot in planned.new.snapshots.values()}
    crons |= {model.cron for model in work.project.models.values()}
    hour = work.now.replace(minute=0, second=0, microsecond=0) + LONGEST
    moments = (min(cron.next_tick(work.now), cron.next_cut(work.now)) for cron in crons)
    return min([hour, *moments]).timestamp()


def _describe_terminal(stream: TextIO | None) -> tuple[object, ...]:
    """What of a stream shapes what is written to it."""
    try:
        is_terminal = stream is not None and stream.isatty()
        size = tuple(os.get_terminal_size(stream.fileno())) if is_terminal and stream else ()
    except (OSError, ValueError):
        is_terminal, size = True, ()
    return is_terminal, size, getattr(stream, "encoding", "")


def _program() -> str:
    """What answers: its own files, the packages that are installed beside it, and its Python."""
    code = look_at(PACKAGE)
    folders = [looks_of(os.stat(folder)) for folder in sys.path if folder and os.path.isdir(folder)]
    return digest(repr(code and (code.digest, code.recent)), repr(folders), sys.version, sys.executable)
