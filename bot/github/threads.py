"""Let the threads of the service share one client of GitHub.

PyGithub 2.10 keeps the request in progress on the connection: `request` stores verb, address and body there, and
`getresponse` sends them. Between the two another thread may store its own. Then that request is sent twice, the other
never, and both threads read the same answer.
"""

from __future__ import annotations

import threading
from typing import Any

from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass

FIELDS = ("verb", "url", "input", "headers", "stream")


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


def separate_threads() -> None:
    """Make each connection of PyGithub keep the request in progress by thread, in the whole process."""
    for connection_class in (HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass):
        for name in FIELDS:
            if not isinstance(vars(connection_class).get(name), PerThread):
                setattr(connection_class, name, PerThread())
