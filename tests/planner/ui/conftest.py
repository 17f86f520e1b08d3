"""Pages of a small shop over HTTP, without Spark; a job is a program that stands in for `mergeplan`, or the planner."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response

from mergeplan.planner.api.access import Access
from mergeplan.planner.api.app import create_app
from mergeplan.planner.api.context import ApiContext
from mergeplan.planner.api.jobs.child import Launch
from mergeplan.planner.api.opening import open_context
from mergeplan.planner.session.settings import SessionSettings
from mergeplan.planner.ui.routes import make_pages
from tests.planner.catalog.conftest import catalog
from tests.planner.shop import write_shop

__all__ = ["catalog"]
LOCAL = "http://localhost:8080"


@dataclass(frozen=True)
class Browser:
    """What reads the pages as a browser without JavaScript does."""

    client: TestClient
    context: ApiContext

    def get(self, address: str, status: int = 200) -> str:
        """The page at an address."""
        answer = self.client.get(address, headers={"Accept": "text/html"})
        assert answer.status_code == status, answer.text
        return answer.text

    def post(self, address: str, **fields: str) -> Response:
        """The answer to a form with its token, before its redirect."""
        fields = {"csrf": self.csrf()} | fields
        return self.client.post(address, data=fields, follow_redirects=False)

    def csrf(self) -> str:
        """The token of the forms."""
        page = self.client.get("/plans/new").text
        return page.partition('name="csrf" value="')[2].partition('"')[0]

    def wait(self, address: str, seconds: float = 120.0) -> str:
        """The page of a job that has ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            page = self.get(address)
            if "data-events" not in page:
                return page
            time.sleep(0.1)
        raise AssertionError(page)


Open = Callable[..., Browser]


@pytest.fixture
def browse(tmp_path: Path) -> Iterator[Open]:
    """Opens the pages of a shop of some files; `command` stands in for `mergeplan` in jobs."""
    with ExitStack() as stack:

        def open_shop(access: Access | None = None, command: tuple[str, ...] = (), **files: str) -> Browser:
            write_shop(tmp_path, **files)
            settings = SessionSettings(tmp_path)
            context = open_context(settings, access or Access(), os.environ)
            if command:
                context.jobs._launch = replace(Launch(settings, os.environ), command=command)
            context.reader.first_page = 60.0  # the machine may do other things too
            client = stack.enter_context(TestClient(create_app(context, make_pages()), base_url=LOCAL))
            return Browser(client, context)

        yield open_shop


def printing(*lines: str) -> tuple[str, ...]:
    """A program in place of `mergeplan` that prints these lines."""
    return (sys.executable, "-I", "-c", f"for line in {lines!r}: print(line, flush=True)")


def links_of(page: str) -> set[str]:
    """The addresses that a page leads to."""
    return {link.partition("#")[0] for link in re.findall(r'href="([^"]+)"', page)} - {""}
