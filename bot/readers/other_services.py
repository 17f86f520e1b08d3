"""The catalogs of projects that other services look after, as the operator lists them in a file."""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mergeplan.bot.projects import check_repository
from mergeplan.planner.parsing.sql.yaml_documents import read_document
from mergeplan.planner.wording import validation_text

MARK = "="  # before the name in a key: no repository's name has it
CATALOGS_MAX = 200


def _check_address(address: str) -> str:
    url = urlsplit(address)
    is_local = url.scheme == "http" and url.hostname in ("127.0.0.1", "localhost")
    is_path = not url.scheme and not url.netloc and PurePosixPath(address).is_absolute()
    if not is_path and not is_local and (url.scheme != "https" or not url.hostname):
        raise ValueError("it is an https:// address, or the absolute path of a file")
    return address


Repository = Annotated[str, AfterValidator(check_repository)]


class OtherCatalog(BaseModel):
    """A project of another service: whose it is, where its catalog is, and who may see its names."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    project: Repository
    address: Annotated[str, AfterValidator(_check_address)] = Field(repr=False)  # it may hold a token
    show_reads_to: tuple[Repository, ...] = ()

    @property
    def key(self) -> str:
        return f"{MARK}{self.project}"


_CATALOGS = TypeAdapter(Annotated[tuple[OtherCatalog, ...], Field(max_length=CATALOGS_MAX)])


def read_other_catalogs(path: str, text: str) -> tuple[OtherCatalog, ...]:
    """Return the catalogs of the operator's file; raise ProjectError at the line of what is wrong."""
    document = read_document(path, text)
    try:
        catalogs = _CATALOGS.validate_python(document.value or ())
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise document.error(first["loc"], f"`{where}` is wrong: {validation_text(first)}.") from None
    if len({catalog.key for catalog in catalogs}) < len(catalogs):
        raise document.error((), "The file names a project twice.")
    return catalogs


def name_of(key: str) -> str:
    """Return the name of a project's repository as its key has it, of this service or of another.

    >>> name_of("=acme/finance"), name_of("acme/core")
    ('acme/finance', 'acme/core')
    """
    return key.removeprefix(MARK)


def is_elsewhere(key: str) -> bool:
    return key.startswith(MARK)


def find_gone(keys: Iterable[str], catalogs: Iterable[OtherCatalog]) -> tuple[str, ...]:
    listed = {catalog.key for catalog in catalogs}
    return tuple(key for key in keys if is_elsewhere(key) and key not in listed)
