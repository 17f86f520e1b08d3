"""The catalogs of other services' projects: fetched from the addresses of the operator's file, now and then.

The file is the operator's: no repository, no pull request and no catalog names an address.
"""

import time
from hashlib import sha256
from pathlib import Path

import structlog

from mergeplan.bot.context import BotContext
from mergeplan.bot.fetching.documents import NotFetched, fetch_document
from mergeplan.bot.prod.catalog import wake_unpublished
from mergeplan.bot.prod.publishing import add_approvers, read_publication
from mergeplan.bot.prod.reading_pulls import show_readers
from mergeplan.bot.readers.other_services import OtherCatalog, find_gone, read_other_catalogs
from mergeplan.planner.errors import ProjectError, RequestError

log = structlog.get_logger(__name__)
FETCH_SECONDS = 900.0  # between two looks at the addresses


def load_other_catalogs(path: Path | None) -> tuple[OtherCatalog, ...]:
    """Return the catalogs of the operator's file; raise RequestError if it cannot be used."""
    if path is None:
        return ()
    try:
        return read_other_catalogs(str(path), path.read_text(encoding="utf-8"))
    except ProjectError as error:
        place = error.place.line if error.place else 0
        raise RequestError(f"MERGEPLAN_OTHER_CATALOGS is not usable: line {place}: {error.message}") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "it is not UTF-8 text")
        raise RequestError(f"MERGEPLAN_OTHER_CATALOGS cannot be read: {reason}.") from None


class OtherCatalogs:
    def __init__(self, context: BotContext) -> None:
        self._context = context
        self._next_look = 0.0

    def fetch_due(self) -> None:
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + FETCH_SECONDS
        publications, catalogs = (
            self._context.inbox.publications,
            load_other_catalogs(self._context.settings.other_catalogs),
        )
        for key in find_gone(publications.list_keys(), catalogs):
            publications.forget(key)
        for catalog in catalogs:
            self._fetch_catalog(catalog)
        if catalogs:
            wake_unpublished(self._context)

    def _fetch_catalog(self, catalog: OtherCatalog) -> None:
        publications = self._context.inbox.publications
        show_readers(self._context, catalog.key, publications.show_to(catalog.key, catalog.show_reads_to))
        try:
            document = fetch_document(catalog.address)
        except NotFetched as error:
            log.warning("catalog_not_fetched", project=catalog.project, why=str(error))
            return
        mark = sha256(document).hexdigest()
        publication = None if mark == publications.mark(catalog.key) else read_publication(catalog.project, document)
        if publication is not None:
            tables = publications.put(catalog.key, mark, add_approvers(publication, {}))
            show_readers(self._context, catalog.key, tables)
            log.info("catalog_fetched", project=catalog.project, tables=len(publication.reads))
