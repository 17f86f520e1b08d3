"""Make the connections of PyGithub 2.10 fit for a service with many threads, and for renamed repositories.

- `request` stores verb, address and body on the connection, and `getresponse` sends them. Between the two another
  thread may store its own: that request is sent twice, the first never, and both threads read the same answer.
- A redirect of a GET is followed without its query, and one of a POST or PATCH is taken for success. GitHub redirects
  each call that names a repository by an earlier name, and asks to repeat it verbatim.
- A success whose body is a proxy's page, or is cut, is taken for an object without fields, which is kept for good.
"""

import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, RequestsResponse

from mergeplan.bot.forge.failures import ForgeFailed

FIELDS = ("verb", "url", "input", "headers", "stream")
REDIRECTS = frozenset({301, 307, 308})
REDIRECTS_MAX = 3  # of one call
WITH_JSON = frozenset({200, 201})
PORTS = {"http": 80, "https": 443}
Connection = HTTPRequestsConnectionClass | HTTPSRequestsConnectionClass


class PerThread:
    """One field of the request in progress; each thread has its own.

    A thread that stored a request sends it before it stores another: the value needs no connection to belong to.
    """

    def __init__(self) -> None:
        self._local = threading.local()

    def __get__(self, connection: object, owner: type) -> Any:
        return self._local.value

    def __set__(self, connection: object, value: Any) -> None:
        self._local.value = value


def prepare_connections() -> None:
    """Let threads share PyGithub's connections, and follow redirects, in the whole process."""
    for connection_class in (HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass):
        if not isinstance(vars(connection_class).get("verb"), PerThread):
            for name in FIELDS:
                setattr(connection_class, name, PerThread())
            setattr(connection_class, "getresponse", _follow_redirects(connection_class.getresponse))  # noqa: B010 - as the line above


def _follow_redirects(send: Callable[[Any], RequestsResponse]) -> Callable[[Connection], RequestsResponse]:
    def get_response(connection: Connection) -> RequestsResponse:
        response = send(connection)
        for _ in range(REDIRECTS_MAX):
            if response.status not in REDIRECTS:
                break
            connection.url = _find_target(connection, response)
            response = send(connection)
        if response.status in REDIRECTS:  # PyGithub would follow it without an end, or take it for success
            raise ForgeFailed(f"GitHub redirected more than {REDIRECTS_MAX} times.")
        if response.status in WITH_JSON and not response.read().rstrip().endswith(("}", "]")):
            raise ForgeFailed("GitHub's answer is cut, or is a proxy's page.")
        return response

    return get_response


def _find_target(connection: Connection, response: RequestsResponse) -> str:
    """Return the path to ask instead, with the query; raise ForgeFailed for another host: the token is not for it."""
    target, asked = urlsplit(response.headers.get("location", "")), urlsplit(connection.url)
    place = target.scheme, target.hostname, target.port or PORTS.get(target.scheme)
    if place != (connection.protocol, connection.host, connection.port):
        raise ForgeFailed(f"GitHub redirected to another host: {target.scheme}://{target.netloc}")
    return target._replace(scheme="", netloc="", query=target.query or asked.query).geturl()
