"""Signed links: a reader of a check can open the pages of that pull request until the link expires. Pure."""

import hmac
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mergeplan.bot.settings import Settings

PURPOSE = b"mergeplan: links to pages, 1"
DAYS = 30
PAGES = ("plan", "diffs", "lineage", "progress", "promotion")
STAMP = re.compile(r"[1-9a-f][0-9a-f]{0,11}")  # of every moment one spelling only
Verdict = Literal["open", "expired", "wrong"]


@dataclass(frozen=True)
class PageLinks:
    """Where the pages are, and the key that signs the links to them; without either there are none."""

    site: str = ""
    key: bytes = b""

    def url(self, repository: str, number: int, page: str, now: float) -> str:
        """Return the signed address of a page, valid for some days; '' where there are no pages."""
        if not self.is_open:
            return ""
        signed = self.sign_access(repository, number, int(now) + DAYS * 86_400)
        return f"{self.site}/pulls/{quote(repository)}/{int(number)}/{page}?key={signed}"

    @property
    def is_open(self) -> bool:
        return bool(self.site and self.key)

    def catalog_url(self, repository: str, until: int) -> str:
        """Return the address of prod's catalog, valid until then for everyone who may see the page of prod."""
        key = self.sign_access(repository, 0, until)
        return f"{self.site}/catalog/{quote(repository)}?key={key}" if self.is_open else ""

    def sign_access(self, repository: str, number: int, until: int) -> str:
        """Return the token that opens the pages of one pull request until then: `until.signature`."""
        return f"{until:x}.{self._access_signature(repository, number, until)}"

    def verdict(self, repository: str, number: int, token: str, now: float) -> Verdict:
        stamp, _, signature = token.partition(".")
        if not self.key or not STAMP.fullmatch(stamp):
            return "wrong"
        until = int(stamp, 16)
        if not hmac.compare_digest(signature.encode(), self._access_signature(repository, number, until).encode()):
            return "wrong"
        return "open" if now < until else "expired"

    def _access_signature(self, repository: str, number: int, until: int) -> str:
        text = f"{repository}\n{int(number)}\n{until}"
        return urlsafe_b64encode(hmac.digest(self.key, text.encode(), "sha256")).rstrip(b"=").decode()


def end_of(token: str) -> int:
    """Return the end of a token's validity in seconds of the epoch; 0 for an invalid token."""
    stamp = token.partition(".")[0]
    return int(stamp, 16) if STAMP.fullmatch(stamp) else 0


def links_of(settings: Settings) -> PageLinks:
    """Return the links of a service; services with the same App make and open the same ones."""
    secret = settings.github_private_key.get_secret_value() or settings.github_token.get_secret_value()
    return PageLinks(settings.public_url, page_key(secret))


def page_key(secret: str) -> bytes:
    """Derive the key of the links from a secret that cannot be guessed; return b'' without one.

    People read the links, so these must not let them test guesses of a secret that a person chose, as a webhook's may
    be. The key is made of the App's private key or of the token, which are random.
    """
    if not secret:
        return b""
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE).derive(secret.strip().encode())
