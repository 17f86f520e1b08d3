"""A document at an address of the operator's: of limited size and time, and from nowhere else than that address."""

import time
from pathlib import Path
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

LARGEST = 64 << 20  # bytes, unpacked
TIMEOUT_SECONDS = (5, 20)  # to connect, and between two parts
LONGEST_SECONDS = 60.0
PART = 1 << 16


class NotFetched(Exception):
    """A document could not be read. Its text is logged, so it holds no address, which may have a token."""


def fetch_document(address: str, largest: int = LARGEST, longest_seconds: float = LONGEST_SECONDS) -> bytes:
    """Return the document at an address or in a file; raise NotFetched. Redirects are not followed."""
    try:
        if not urlsplit(address).scheme:
            with Path(address).open("rb") as file:
                document = file.read(largest + 1)
            _check_size(document, largest)
            return document
        return _download(address, largest, time.monotonic() + longest_seconds)
    except (requests.RequestException, HTTPError, OSError) as error:
        raise NotFetched(type(error).__name__) from None


def _download(address: str, largest: int, deadline: float) -> bytes:
    with requests.get(address, timeout=TIMEOUT_SECONDS, allow_redirects=False, stream=True) as answer:
        if answer.status_code != requests.codes.ok:
            raise NotFetched(f"the answer is {answer.status_code}")
        document = bytearray()
        # What has arrived, and not a full part: else a byte now and then would keep this waiting past the deadline.
        while part := answer.raw.read1(PART, decode_content=True):
            document += part
            _check_size(document, largest)
            if time.monotonic() > deadline:
                raise NotFetched("it takes too long")
    return bytes(document)


def _check_size(document: bytes | bytearray, largest: int) -> None:
    if len(document) > largest:
        raise NotFetched(f"it has more than {largest} bytes")
