"""What a project's prod publishes for the pull requests of other projects, and who may see its names."""

import re
from collections.abc import Mapping
from dataclasses import replace

import structlog
from pydantic import ValidationError

from mergeplan.bot.context import BotContext
from mergeplan.bot.git.checkout import Checkout
from mergeplan.bot.prod.reading_pulls import show_readers
from mergeplan.bot.pulls.code_owners import read_code_owners
from mergeplan.bot.readers.publication import Publication, TableReader, publish_catalog
from mergeplan.planner.contract.catalog import CatalogView
from mergeplan.planner.errors import ProjectError

log = structlog.get_logger(__name__)
LARGEST = 64 << 20  # bytes of a document
PERSON = re.compile(r"@([A-Za-z0-9][A-Za-z0-9-]*(?:/[A-Za-z0-9_.-]+)?)")  # a login, or a team


def publish_permission(context: BotContext, project: str, checkout: Checkout, commit: str) -> None:
    """Store who may see a project's names, by the configuration that prod shows; nobody where it cannot be read."""
    try:
        config = context.config(checkout, commit, "")
        shown_to = config.show_reads_to if config else ()
    except ProjectError:
        shown_to = ()
    show_readers(context, project, context.inbox.publications.show_to(project, shown_to))


def publish_document(
    context: BotContext, project: str, checkout: Checkout, commit: str, mark: str, document: bytes
) -> None:
    """Store what a catalog of prod says of shared tables; what was published last stays where it cannot be read."""
    publication = read_publication(project, document)
    if publication is None:
        return
    paths = {reader.path for readers in publication.reads.values() for reader in readers if reader.path}
    try:
        owners = read_code_owners(context, checkout, commit, sorted(paths))
    except ProjectError as error:
        log.warning("code_owners_not_read", why=error.message)
        owners = {}
    publication = add_approvers(publication, owners)
    show_readers(context, project, context.inbox.publications.put(project, mark, publication))
    log.info("catalog_published", repository=project, tables=len(publication.reads))


def read_publication(project: str, document: bytes) -> Publication | None:
    try:
        if len(document) > LARGEST:
            raise ValueError(f"it has more than {LARGEST} bytes")
        return publish_catalog(CatalogView.model_validate_json(document))
    except (ValidationError, ValueError) as error:
        log.warning("catalog_not_published", repository=project, why=str(error)[:200])
        return None


def add_approvers(publication: Publication, owners: Mapping[str, tuple[str, ...]]) -> Publication:
    def add(reader: TableReader) -> TableReader:
        named = PERSON.fullmatch(reader.owner)
        return replace(reader, approvers=owners.get(reader.path) or ((named[1].lower(),) if named else ()))

    reads = {table: tuple(map(add, readers)) for table, readers in publication.reads.items()}
    return replace(publication, reads=reads)
