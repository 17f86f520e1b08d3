"""The progress of the newest run of each pull request, and of prod (0), readable by every process."""

import time
from collections.abc import Callable
from dataclasses import replace

import sqlalchemy as sa
import structlog
from pydantic import TypeAdapter, ValidationError

from mergeplan.bot.inbox.database import InboxDatabase, database_seconds
from mergeplan.bot.inbox.tables import PROGRESS
from mergeplan.planner.contract.wire import Line
from mergeplan.planner.errors import RequestError
from mergeplan.planner.site.progress import RunProgress, apply_line
from mergeplan.planner.state.database import put_rows

log = structlog.get_logger(__name__)
PUT_SECONDS = 2.0  # at most one write in that time, but at a stage's beginning
_PROGRESS = TypeAdapter(RunProgress)


class ProgressStore:
    def __init__(self, database: InboxDatabase) -> None:
        self._database = database

    def get(self, repository: str, number: int) -> RunProgress | None:
        """Return the progress of the newest run; None if there was none, or another version noted it."""
        query = sa.select(PROGRESS.c.data).where(PROGRESS.c.repository == repository, PROGRESS.c.number == number)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        try:
            return _PROGRESS.validate_json(row.data) if row else None
        except ValidationError:
            return None

    def put(self, repository: str, number: int, progress: RunProgress) -> None:
        with self._database.writing() as connection:
            data = _PROGRESS.dump_json(replace(progress, updated_at=database_seconds(connection))).decode()
            put_rows(connection, PROGRESS, [{"repository": repository, "number": number, "data": data}])


class Recorder:
    """Notes one run's progress while its lines come; a database that does not answer stops no run."""

    def __init__(self, store: ProgressStore, repository: str, number: int, progress: RunProgress) -> None:
        self._put: Callable[[RunProgress], None] = lambda noted_progress: store.put(repository, number, noted_progress)
        self._progress = progress
        self._noted = 0.0
        self.note()

    def record_line(self, line: Line) -> None:
        old_progress, self._progress = self._progress, apply_line(self._progress, line)
        is_new_stage = (old_progress.stage, old_progress.ended) != (self._progress.stage, self._progress.ended)
        if self._progress is not old_progress and (is_new_stage or time.monotonic() - self._noted > PUT_SECONDS):
            self.note()

    def end(self) -> None:
        self._progress = replace(self._progress, ended=True)
        self.note()

    def note(self) -> None:
        self._noted = time.monotonic()
        try:
            self._put(self._progress)
        except RequestError as error:
            log.warning("progress_not_noted", run=self._progress.run_id, why=error.message)
