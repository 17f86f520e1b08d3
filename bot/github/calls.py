"""Calls of GitHub for one repository: patient on reads, never twice on writes."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from github.Repository import Repository

from mergeplan.bot.forge.failures import ForgeFailed, ForgePaused, OwnerUnavailable
from mergeplan.bot.github.owners import OwnerConnection, Owners
from mergeplan.bot.github.patience import READ_TRIES, call_patiently
from mergeplan.bot.github.polling import MOST_PAGES, Polls
from mergeplan.bot.records import Repository as NamedRepository
from mergeplan.bot.settings import redact_secrets

T = TypeVar("T")
WRITE_TRIES = 3


class Calls:
    def __init__(self, repository: NamedRepository, owners: Owners, polls: Polls, secrets: Sequence[str]) -> None:
        self.repository = repository
        self.name = repository.name
        self._owners = owners
        self._polls = polls
        self._secrets = secrets
        self._open: tuple[OwnerConnection, Repository] | None = None

    @property
    def connection(self) -> OwnerConnection:
        return self._owners.connect(self.name)

    @property
    def repo(self) -> Repository:
        """Return the repository for use within `read`, opened again if its installation has changed."""
        connection = self.connection
        if self._open is None or self._open[0] is not connection:
            self._open = connection, connection.client.get_repo(self.name)
        return self._open[1]

    def read(self, call: Callable[[], T], tries: int = READ_TRIES) -> T:
        """Make a call; once more when its installation is gone and there is a new one."""
        connection = self.connection
        try:
            return call_patiently(connection.pause, call, tries)
        except OwnerUnavailable:
            raise
        except ForgeFailed as error:
            if error.status == 404 or not self._owners.was_shut(connection, error):
                raise
        return call_patiently(self.connection.pause, call, tries)

    def turn(self, is_late: Callable[[], bool]) -> AbstractContextManager[None]:
        return self.connection.turns.turn(is_late=is_late)

    def write(self, call: Callable[[], T], tries: int = WRITE_TRIES, *, first: bool = False) -> T:
        """Make a call that writes, in the installation's turn; more than one try needs an idempotent call."""

        def write_in_turn() -> T:
            turns = self.connection.turns
            with turns.turn(first=first):
                try:
                    return call()
                finally:
                    turns.wrote()

        return self.read(write_in_turn, tries)

    def poll(self, path: str, keep: Callable[[Any], tuple[T, ...]], pages: int = MOST_PAGES) -> tuple[T, ...]:
        """Read an address below the repository's; free while it has not changed."""
        return self.poll_at(f"/repos/{self.name}/{path}", keep, pages)

    def poll_at(self, url: str, keep: Callable[[Any], tuple[T, ...]], pages: int = MOST_PAGES) -> tuple[T, ...]:
        def read() -> tuple[T, ...]:
            connection = self.connection
            key = str(connection.installation)
            return self._polls.read(connection.ask, url, keep, key=key, pages=pages)

        return self.read(read)

    def write_once(self, look: Callable[[], T | None], post: Callable[[], T], *, look_first: bool = True) -> T:
        """Make a POST whose answer may be lost: before a repetition, look whether it was done."""
        existing = self.read(look) if look_first else None
        for attempt in range(WRITE_TRIES):
            if existing is not None:
                return existing
            try:
                return self.write(post, tries=1)
            except ForgeFailed as error:
                if not error.is_passing or attempt == WRITE_TRIES - 1:
                    raise
                threading.Event().wait(0.2 * 2**attempt)
            existing = self.read(look)
        raise AssertionError("unreachable")

    def clean(self, text: str) -> str:
        return redact_secrets(text, (*self._secrets, *self._live_tokens()))

    def _live_tokens(self) -> tuple[str, ...]:
        try:
            return (self.connection.token(),)
        except (ForgeFailed, ForgePaused):
            return ()
