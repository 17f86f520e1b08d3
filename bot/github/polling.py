"""Poll GitHub with ETags: a page that did not change costs nothing of the rate limit.

GitHub charges nothing for a 304. Its tags hold for one token: after a token's hour each page is charged once more.
"""

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")
MOST_ITEMS = 100_000  # some 70 MB of pull requests
MOST_PAGES = 200  # of one list
NEXT = re.compile(r'<([^<>]+)>;\s*rel="next"')

# A call by address with these headers -> status, headers in small letters, body; it raises for a refusal.
Ask = Callable[[str, dict[str, str]], tuple[int, Mapping[str, Any], str]]


@dataclass(frozen=True)
class Page:
    """One answer as far as it is needed: what was read from it, and where the list goes on."""

    etag: str
    items: tuple[object, ...]
    after: str = ""


class Polls:
    """The pages that were read last, the oldest dropped when they are too many; safe to use from many threads."""

    def __init__(self, most_items: int = MOST_ITEMS) -> None:
        self._most = most_items
        self._pages: OrderedDict[tuple[str, str], Page] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    def read(
        self, ask: Ask, url: str, keep: Callable[[Any], tuple[T, ...]], *, key: str = "", pages: int = MOST_PAGES
    ) -> tuple[T, ...]:
        """Return the items of a list's first pages, or of one answer; `key` tells apart the tokens that ask."""
        entries: list[object] = []
        for _ in range(pages):
            page = self._read_page(ask, url, keep, key)
            entries += page.items
            url = page.after
            if not url:
                break
        return cast("tuple[T, ...]", tuple(entries))

    def _read_page(self, ask: Ask, url: str, keep: Callable[[Any], tuple[object, ...]], key: str) -> Page:
        cached_page = self._find_page(key, url)
        status, headers, body = ask(url, {"If-None-Match": cached_page.etag} if cached_page else {})
        if status == 304 and cached_page:
            return cached_page
        link = NEXT.search(str(headers.get("link", "")))
        page = Page(str(headers.get("etag", "")), keep(json.loads(body)), link[1] if link else "")
        if page.etag:
            with self._lock:
                old = self._pages.pop((key, url), None)
                self._pages[(key, url)] = page
                self._held += _page_weight(page) - (_page_weight(old) if old else 0)
                while self._held > self._most and len(self._pages) > 1:
                    self._held -= _page_weight(self._pages.popitem(last=False)[1])
        return page

    def _find_page(self, key: str, url: str) -> Page | None:
        with self._lock:
            page = self._pages.get((key, url))
            if page:
                self._pages.move_to_end((key, url))
            return page


def _page_weight(page: Page) -> int:
    return 1 + len(page.items)
