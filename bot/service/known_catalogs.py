"""The catalogs and plans that the pages of a service show, read from its database and prepared once."""

import threading
import time
from dataclasses import dataclass, field, replace

import structlog
from pydantic import ValidationError

from mergeplan.bot.context import BotContext
from mergeplan.bot.inbox.catalogs import CatalogMark
from mergeplan.bot.inbox.queue import CATALOG
from mergeplan.bot.pages.catalog import PlanSummary, PullPlan, summarize_plan
from mergeplan.bot.prod.catalog import catalog_mark
from mergeplan.bot.records import ProdRecord, PullRecord
from mergeplan.planner.contract.catalog import CatalogView
from mergeplan.planner.site.progress import RunProgress
from mergeplan.planner.ui.catalog_document import catalog_of
from mergeplan.planner.ui.catalog_pages import CatalogPages

log = structlog.get_logger(__name__)
CATALOGS_MOST = 8  # that are kept prepared
PLANS_SHOWN = 100  # of the newest pull requests
SUMMARIES_MOST = 2_000
OLDEST = 3_600.0  # seconds: who reads an older catalog has it read again, for what its tables hold


@dataclass(frozen=True)
class KnownCatalog:
    mark: CatalogMark
    pages: CatalogPages
    notice: str = ""


@dataclass
class KnownCatalogs:
    """Safe to share between threads; each document is read once."""

    context: BotContext
    _known: dict[str, KnownCatalog] = field(default_factory=dict)
    _summaries: dict[tuple[str, int, str, str], PlanSummary | None] = field(default_factory=dict)
    _asked: dict[str, float] = field(default_factory=dict)  # when a catalog was asked for
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, repository: str) -> KnownCatalog | None:
        """Return the catalog that was last read of a repository's prod, or None; request a missing or old one anew."""
        mark, prod_mark = self.context.inbox.catalogs.mark(repository), catalog_mark(self.prod(repository))
        if prod_mark and (mark.mark != prod_mark or time.time() - mark.made_at > OLDEST):
            self._request_catalog(repository)
        known_catalog = self._known.get(repository)
        if known_catalog is None or known_catalog.mark != mark:
            with self._lock:
                known_catalog = self._known.get(repository)
                if known_catalog is None or known_catalog.mark != mark:
                    known_catalog = self._read_catalog(repository)
        if known_catalog is None:
            return None
        moved = bool(prod_mark) and known_catalog.mark.mark != prod_mark
        revision = known_catalog.pages.catalog.revision
        notice = f"Prod has moved on since: this is revision {revision}, and it is read again." if moved else ""
        return KnownCatalog(known_catalog.mark, known_catalog.pages, notice)

    def prod(self, repository: str) -> ProdRecord:
        return self.context.inbox.prods.get(repository)

    def pull(self, repository: str, number: int) -> PullRecord:
        return self.context.inbox.pulls.get(repository, number)

    def progress(self, repository: str, number: int) -> RunProgress | None:
        return self.context.inbox.progress.get(repository, number)

    def list_plans(self, repository: str) -> tuple[PullPlan, ...]:
        records = self.context.inbox.pulls.newest(repository, PLANS_SHOWN)
        pairs = ((record, self._get_summary(record)) for record in records)
        return tuple(PullPlan(record, summary) for record, summary in pairs if summary)

    def _get_summary(self, record: PullRecord) -> PlanSummary | None:
        key = record.repository, record.number, record.run.id, f"{record.run.planned_at}{len(record.run.lines)}"
        if key not in self._summaries:
            while len(self._summaries) >= SUMMARIES_MOST:
                self._summaries.pop(next(iter(self._summaries)), None)
            self._summaries[key] = summarize_plan(record)
        return self._summaries[key]

    def _read_catalog(self, repository: str) -> KnownCatalog | None:
        mark, document = self.context.inbox.catalogs.load(repository)
        if not document:
            return None
        try:
            catalog = catalog_of(CatalogView.model_validate_json(document))
        except (ValidationError, ValueError) as error:  # another version wrote it
            log.warning("catalog_not_read", repository=repository, why=str(error)[:200])
            self._request_catalog(repository)
            return None
        while len(self._known) >= CATALOGS_MOST:
            self._known.pop(next(iter(self._known)), None)
        self._known[repository] = KnownCatalog(mark, CatalogPages(replace(catalog, project=repository)))
        return self._known[repository]

    def _request_catalog(self, repository: str) -> None:
        """Wake the job that reads the catalog in a planner child, but not too often."""
        current_time = time.time()
        if current_time - self._asked.get(repository, 0.0) > OLDEST / 12:
            self._asked[repository] = current_time
            self.context.inbox.queue.wake(repository, CATALOG)
