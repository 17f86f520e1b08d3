"""The catalog of the project, read once and again only when its files, its state or what is due has moved."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import NamedTuple

from mergeplan.planner.api.first_reading import Progress, StillReading
from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.cache.folder_looks import FolderLooks, hash_file, look_at
from mergeplan.planner.catalog.catalog import Catalog, CatalogModel, CatalogQuery
from mergeplan.planner.contract.catalog import CatalogModelRow
from mergeplan.planner.contract.from_catalog import model_row
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.fingerprint import digest
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.project.loader import Project
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.session.use_cases.catalog import outline_catalog
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import PROD, Environment
from mergeplan.planner.state.store import StateStore
from mergeplan.planner.versions import mergeplan_version

log = logging.getLogger(__name__)
CHECK = 1.0  # seconds between two looks at the files and the state
PATIENCE = 2.0  # seconds that who reads waits for a new catalog, before the last one is good enough
FIRST = 15.0  # seconds that a program waits for the first catalog, before the answer is how far the reading is
FIRST_PAGE = 1.0  # and a person
LONGEST = timedelta(hours=1)  # the oldest that a catalog may be
Clock = Callable[[], datetime]


@dataclass(frozen=True)
class CatalogSnapshot:
    """The catalog as it was at one moment; nothing in it changes, so that any thread may read it."""

    project: Project
    catalog: Catalog
    environments: tuple[Environment, ...]  # every one, as it was then
    files: FolderLooks | None  # that it was made from; None: how they look cannot be said
    state: str  # the mark of the state that it was made from
    until: datetime  # when something else is due
    due: str  # a mark of what is due

    @cached_property
    def queries(self) -> tuple[CatalogQuery, ...]:
        """The lineage and the text of each query, which take longest to make."""
        return tuple(model.query for model in self.catalog.models.values())

    @property
    def has_queries(self) -> bool:
        return "queries" in vars(self)

    @cached_property
    def models(self) -> Mapping[str, CatalogModelRow]:
        """The models as the API gives them, by name, parents first; made when they are asked for."""
        return _ModelRows(self.catalog.models)

    @cached_property
    def graph(self) -> Graph:
        """The models and what each reads, for selectors."""
        return graph_of(self.project.models)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """What a search looks through, by model."""
        return {name: _search_text(row) for name, row in self.models.items()}

    @cached_property
    def etag(self) -> str:
        """An entity tag that is the same for the same catalog, in another process too: it is of contents alone."""
        shown = (
            text
            for name, model in self.catalog.models.items()
            for about in (model.declared.metadata,)
            for text in (name, model.kind, model.schedule, about.owner, *about.tags, model.rendered)
        )
        return digest(self.project.files, self.state, self.catalog.environment, self.due, mergeplan_version(), *shown)


class _ModelRows(Mapping[str, CatalogModelRow]):
    """A row of each model: those of 5,000 models take seconds, and pages need none."""

    def __init__(self, models: Mapping[str, CatalogModel]) -> None:
        self._models = models
        self._rows: dict[str, CatalogModelRow] = {}

    def __getitem__(self, name: str) -> CatalogModelRow:
        if name not in self._rows:
            self._rows[name] = model_row(self._models[name])
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)


class _Reading(NamedTuple):
    """The parts of the catalog that are read: its environment, and if its queries are followed."""

    environment: str
    with_queries: bool


class CatalogReader:
    """A reader of the catalog and an environment; threads may share it, and it blocks, so call it in a thread.

    The lock is held while a catalog is made, never while one is read: if that takes long, readers get the last one.
    """

    def __init__(self, settings: SessionSettings, clock: Clock = lambda: datetime.now(UTC)) -> None:
        self.settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._store: StateStore | None = None
        self._is_closed = False
        self._known: dict[_Reading, CatalogSnapshot] = {}
        self._failure: tuple[tuple[_Reading, str], MergeplanError] | None = None  # with the mark
        self._looked: dict[_Reading, float] = {}  # when the files and the state were looked at
        self._opened: Project | None = None  # the last one that could be opened
        self._progress = Progress()
        self.first_page = FIRST_PAGE

    def read(self, environment: str = PROD, patience: float = FIRST, *, with_queries: bool = True) -> CatalogSnapshot:
        """Return the present catalog; raise MergeplanError if the project cannot be opened or has no such environment.

        Raise StillReading if there is no catalog yet after `patience` seconds. Without queries it is there much sooner,
        and who asks for a query waits.
        """
        reading = _Reading(environment, with_queries)
        snapshot = self._known.get(reading)
        if snapshot and time.monotonic() - self._looked.get(reading, -CHECK) < CHECK and self._clock() < snapshot.until:
            return snapshot
        if snapshot is None:
            return self._read_first(reading, patience)
        if self._lock.acquire(blocking=False):
            thread = threading.Thread(target=self._read_aside, args=(reading,), name="catalog", daemon=True)
            thread.start()
            thread.join(PATIENCE)
            if not thread.is_alive():  # `read` raises what was wrong
                return self._known.get(reading) or self.read(environment, with_queries=with_queries)
        return snapshot

    @property
    def project_name(self) -> str:
        """Return the project's name, or that of its folder."""
        name = self._opened.config.project if self._opened else ""
        return name or self.settings.root.name

    def read_for_page(self, *, with_queries: bool = True) -> CatalogSnapshot:
        """Return the catalog of prod with the shorter patience for a person who waits before an empty page."""
        return self.read(patience=self.first_page, with_queries=with_queries)

    def expire(self) -> None:
        """Look at the files and the state again before the next answer: something was written."""
        self._looked = {}

    @contextmanager
    def open(self) -> Iterator[Workspace]:
        """Yield a read-only workspace over the project as it was last read; it starts no Spark."""
        snapshot = self.read(with_queries=False)
        with self._open_workspace() as work:
            work.reuse(snapshot.project)
            yield work

    @contextmanager
    def open_state(self) -> Iterator[Workspace]:
        """Yield a read-only workspace for reading the state, even if the project cannot be opened."""
        try:
            self.read_for_page(with_queries=False)
        except StillReading:
            raise
        except MergeplanError:
            pass
        with self._open_workspace() as work:
            if self._opened:
                work.reuse(self._opened)
            yield work

    def close(self) -> None:
        """Close the state; a reading that goes on longer than `PATIENCE` closes it when it ends."""
        self._is_closed = True
        if self._lock.acquire(timeout=PATIENCE):
            self._end_reading()

    def _end_reading(self) -> None:
        if self._is_closed and self._store is not None:
            self._store.close()
            self._store = None
        self._lock.release()

    def _open_workspace(self) -> closing[Workspace]:
        return closing(Workspace(self.settings, "metadata", self._clock(), ignore_event, only_looks=True))

    def _read_first(self, reading: _Reading, patience: float) -> CatalogSnapshot:
        """Return the first catalog, made in a thread; raise StillReading with the progress after `patience` seconds."""
        until, ended = time.monotonic() + patience, list[CatalogSnapshot | BaseException]()
        if not self._lock.acquire(timeout=patience):
            raise StillReading(self._progress)

        def make() -> None:
            try:
                ended.append(self._known.get(reading) or self._read_again(reading))
            except BaseException as error:
                ended.append(error)
            finally:
                self._end_reading()

        thread = threading.Thread(target=make, name="first catalog", daemon=True)
        thread.start()
        thread.join(max(0.0, until - time.monotonic()))
        if not ended:
            raise StillReading(self._progress)
        if isinstance(ended[0], BaseException):
            raise ended[0]
        return ended[0]

    def _read_aside(self, reading: _Reading) -> None:
        """Read again while others get the last catalog; the next reader gets the error, if there is one."""
        try:
            self._read_again(reading)
        except MergeplanError:
            pass
        except Exception:
            self._known.pop(reading, None)  # who reads next meets it too
            log.exception("the catalog could not be made")
        finally:
            self._end_reading()

    def _read_again(self, reading: _Reading) -> CatalogSnapshot:
        looked, outline = time.monotonic(), reading._replace(with_queries=False)
        files, state = look_at(self.settings.root), self._store.mark() if self._store else ""
        snapshots = (self._known.get(reading), self._known.get(outline))
        current = next((snapshot for snapshot in snapshots if self._is_current(snapshot, files, state)), None)
        mark = digest(files.digest if files else "", repr(sorted(files.recent.items())) if files else "", state)
        if files and self._failure and self._failure[0] == (reading, mark):
            raise self._failure[1].with_traceback(None)
        try:
            current = current or self._make(reading.environment)
            if reading.with_queries:
                _ = current.queries
        except MergeplanError as error:
            self._known.pop(reading, None)
            self._failure = (reading, mark), error
            raise
        self._known |= dict.fromkeys((outline, reading), current)
        self._looked |= dict.fromkeys((outline, reading), looked)
        self._failure = None
        return current

    def _is_current(self, snapshot: CatalogSnapshot | None, files: FolderLooks | None, state: str) -> bool:
        """Return True if nothing can have changed; hash again each file that was edited just before it was read."""
        if snapshot is None or self._clock() >= snapshot.until or state != snapshot.state:
            return False
        before = snapshot.files
        if before is None or files is None or before.looks != files.looks or files.recent.keys() - before.recent.keys():
            return False
        try:
            return all(hash_file(self.settings.root, name) == text for name, text in before.recent.items())
        except OSError:
            return False

    def _make(self, environment: str) -> CatalogSnapshot:
        files = look_at(self.settings.root)  # before anything is read: what moves meanwhile is seen the next time
        self._progress = Progress()
        with self._open_workspace() as work:
            work.on_read = lambda done, total: self._note("Files read", total, done)
            if self._store is None:
                self._store = work.release_store()
            state = self._store.mark()
            project = self._opened = work.project
            on_follow = partial(self._note, "Queries followed", len(project.models))
            catalog = outline_catalog(work, environment, on_follow)
            shown = self._store.environments.all()
            return CatalogSnapshot(project, catalog, shown, files, state, _next_due_time(work), _due_mark(work))

    def _note(self, step: str, total: int, done: int) -> None:
        self._progress = Progress(step, done, total)


def _next_due_time(work: Workspace) -> datetime:
    """Return the time when the next interval of a model is due, at most an hour from now."""
    crons = {model.cron for model in work.project.models.values()}
    return min([work.now + LONGEST, *(min(cron.next_tick(work.now), cron.next_cut(work.now)) for cron in crons)])


def _due_mark(work: Workspace) -> str:
    """Return the last tick and the last unit of each cron; while they are the same, the same intervals are due."""
    crons = {model.cron for model in work.project.models.values()}
    return repr(sorted((cron.text, cron.tz, cron.floor(work.now), cron.cut(work.now)) for cron in crons))


def _search_text(row: CatalogModelRow) -> str:
    columns = (f"{column.name} {column.description}" for column in row.columns or ())
    return " ".join((row.name, row.owner, row.description, *row.tags, *columns)).lower()
