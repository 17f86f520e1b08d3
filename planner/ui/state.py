"""The memory of one server's pages: the prepared catalogs, the facts of jobs, and the secret of the forms."""

import hmac
import secrets
import threading
from dataclasses import dataclass, field

from mergeplan.planner.api.catalog_reader import CatalogSnapshot
from mergeplan.planner.api.context import ApiContext
from mergeplan.planner.api.jobs.job import JobRecord
from mergeplan.planner.ui.catalog_pages import CatalogPages
from mergeplan.planner.ui.job_facts import JobFacts, read_facts

FACTS_MOST = 40  # jobs whose facts are remembered


@dataclass
class UiState:
    """The memory of the pages; safe to share between threads, since a missing entry is made again."""

    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _catalogs: dict[str, tuple[CatalogSnapshot, CatalogPages]] = field(default_factory=dict, repr=False)
    _facts: dict[str, JobFacts] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def csrf(self, principal: str) -> str:
        """Return the token of a principal's forms; another server has other tokens."""
        return hmac.digest(self.secret, principal.encode(), "sha256").hex()

    def is_csrf(self, principal: str, token: str) -> bool:
        """Return True for the token that a page of this server put into a form for this principal."""
        return hmac.compare_digest(self.csrf(principal).encode(), token.encode())

    def pages(self, snapshot: CatalogSnapshot) -> CatalogPages:
        """Return the pages of a catalog, prepared once."""
        name = snapshot.catalog.environment
        cached_catalog = self._catalogs.get(name)
        if cached_catalog is None or cached_catalog[0] is not snapshot:
            cached_catalog = snapshot, CatalogPages(snapshot.catalog)
            self._catalogs[name] = cached_catalog
        return cached_catalog[1]

    def facts(self, context: ApiContext, record: JobRecord) -> JobFacts:
        """Return the facts of a job; those of the last jobs that have ended are remembered."""
        cached_facts = self._facts.get(record.id)
        if cached_facts is not None:
            return cached_facts
        facts = read_facts(record.id, context.jobs.journal(record.id).lines())
        if record.status.is_final:
            with self._lock:
                self._facts[record.id] = facts
                while len(self._facts) > FACTS_MOST:
                    del self._facts[next(iter(self._facts))]
        return facts
