"""The addresses that packages come from: as the operator gave them, and as an installer knows them. Pure.

An installer gets no credential and speaks plain HTTP to a forwarder of ours, so every address that it knows begins
with `http://`. The forwarder puts the operator's address, with its credential, in the place of that.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import SplitResult, unquote, urlsplit

from mergeplan.planner.errors import RequestError

HOSTS = "MERGEPLAN_PACKAGES_HOSTS"
HUB = "DBT_PACKAGE_HUB_URL"  # the operator's own hub; dbt's else
DBT_HUB, DBT_FILES = "https://hub.getdbt.com/", "codeload.github.com"
HUB_INSIDE = "http://hub.mergeplan/"
PYPI, PYPI_FILES = "https://pypi.org/simple", "files.pythonhosted.org"
PLACES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS")
PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy")
HOST = re.compile(r"[\w.-]+|[0-9a-fA-F:.]+", re.ASCII)
PORTS = {"http": 80, "https": 443}
TOKEN_MIN = 16  # characters of a part of a path that may be a token


@dataclass(frozen=True)
class Origin:
    """An address with everything below it: `inside` as the installer knows it, `outside` as it is fetched."""

    inside: str
    outside: str
    authorization: str = field(default="", repr=False)

    @property
    def host(self) -> str:
        """The host, and its port if it is not the scheme's."""
        return urlsplit(self.outside).netloc


def hub_origins(environ: Mapping[str, str], hosts: str = "") -> tuple[Origin, ...]:
    """Return the addresses of dbt's packages; raise RequestError for an invalid one."""
    url = environ.get(HUB, "") or DBT_HUB
    base = _build_origin(url, HUB, f"{_split_url(url, HUB).path.rstrip('/')}/")
    named = [DBT_FILES, *_split_list(hosts)]
    host_origins = (_build_host(url, HUB), *(_build_host(host, HOSTS) for host in named))
    return (replace(base, inside=HUB_INSIDE), *host_origins)


def index_origins(environ: Mapping[str, str], hosts: str = "") -> tuple[Origin, ...]:
    """Return the addresses of Python packages, none for folders alone; raise RequestError for an invalid one."""
    places = [(url, name) for name in PLACES for url in environ.get(name, "").split() if urlsplit(url).scheme in PORTS]
    if environ.get("PIP_NO_INDEX"):
        places = [(url, name) for url, name in places if name == PLACES[2]]
    elif not environ.get(PLACES[0]):
        places.insert(0, (PYPI, PLACES[0]))
    if not places:
        return ()
    named = _split_list(hosts) + [PYPI_FILES for url, _ in places if urlsplit(url).hostname == "pypi.org"]
    bases = [_build_origin(url, name, _split_url(url, name).path or "/") for url, name in places]
    above = [_build_host(url, name) for url, name in places]
    origins = [*bases, *above, *(_build_host(host, HOSTS) for host in named)]
    first_by_inside = {origin.inside: origin for origin in reversed(origins)}
    return tuple(sorted(first_by_inside.values(), key=lambda origin: -len(origin.inside)))


def check_hosts(text: str) -> None:
    """Raise RequestError for an entry that is no host."""
    for host in _split_list(text):
        _build_host(host, HOSTS)


def inside_url(url: str) -> str:
    """Return an address as an installer gets it: no user, no password, plain HTTP."""
    parts = urlsplit(url)
    return parts._replace(scheme="http", netloc=_format_host(parts)).geturl() if parts.scheme in PORTS else url


def find_origin(origins: Sequence[Origin], url: str) -> tuple[Origin, str] | None:
    """Return the origin of an address of the installer's, and the address to fetch; None when no origin has it."""
    try:
        parts = urlsplit(url)
        host = _format_host(parts)
    except ValueError:
        return None
    steps = unquote(parts.path).replace("\\", "/").split("/")
    if parts.scheme != "http" or ".." in steps or any(not " " < char < "\x7f" for char in url):
        return None
    full = parts._replace(netloc=host, path=parts.path or "/", fragment="").geturl()
    for origin in origins:
        if full.startswith(origin.inside):
            return origin, origin.outside + full.removeprefix(origin.inside)
    return None


def name_inside(origins: Sequence[Origin], content: bytes) -> bytes:
    """Return a text of an origin with the addresses of all origins as an installer knows them."""
    for origin in origins:
        for escape in ("/", "\\/"):  # JSON may write either
            outside, inside = (address.replace("/", escape).encode() for address in (origin.outside, origin.inside))
            content = content.replace(outside, inside)
    return content


def address_secrets(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return each credential in the addresses of proxies, hubs and indexes, in every form in which it may be shown."""
    urls = [url for name in (*PROXIES, HUB, *PLACES) for url in environ.get(name, "").split() if "://" in url]
    return tuple(dict.fromkeys(secret for url in urls for secret in _secrets_of(url)))


def _secrets_of(url: str) -> Iterable[str]:
    user_info = urlsplit(url).netloc.rpartition("@")[0]
    if user_info:
        user, _, password = user_info.partition(":")
        yield from (f"{user_info}@", user_info, _encode_basic(user_info), _encode_basic(unquote(user_info)))
        yield from {password or user, unquote(password or user)}
    parts = urlsplit(url)
    yield from (part for part in parts.path.split("/") if len(part) >= TOKEN_MIN)
    yield from (value for item in parts.query.split("&") if len(value := item.partition("=")[2]) >= TOKEN_MIN)


def _split_list(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


def _build_host(text: str, variable: str) -> Origin:
    return _build_origin(text if "://" in text else f"https://{text}", variable, "/")


def _build_origin(url: str, variable: str, path: str) -> Origin:
    parts = _split_url(url, variable)
    user_info = parts.netloc.rpartition("@")[0]
    outside = f"{parts.scheme}://{_format_host(parts)}{path}"
    return Origin(
        f"http://{_format_host(parts)}{path}", outside, f"Basic {_encode_basic(unquote(user_info))}" * bool(user_info)
    )


def _split_url(url: str, variable: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in PORTS and HOST.fullmatch(parts.hostname or "") and _format_host(parts):
            return parts
    except ValueError:
        pass
    raise RequestError(f"{variable} holds an address that is not usable.", hint="Write `https://HOST/PATH/`.")


def _format_host(parts: SplitResult) -> str:
    """Return host and port as in an address, without a port that its scheme implies; raise ValueError."""
    host = (parts.hostname or "").rstrip(".")
    name = f"[{host}]" if ":" in host else host
    return name if parts.port in (None, PORTS.get(parts.scheme)) else f"{name}:{parts.port}"


def _encode_basic(user_info: str) -> str:
    return b64encode((user_info if ":" in user_info else f"{user_info}:").encode()).decode()
