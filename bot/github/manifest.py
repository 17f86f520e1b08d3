"""The GitHub App's manifest: what GitHub makes an App of, where it is sent, and what comes back. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from mergeplan.bot.github.permissions import EVENTS, token_permissions
from mergeplan.planner.errors import RequestError

CODE = re.compile(r"[A-Za-z0-9_-]{1,200}")
ORGANIZATION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?")
SECRET = re.compile(r"[!-~]{8,500}")
API = "https://api.github.com"
WEB = ("https", "http")


@dataclass(frozen=True)
class Registered:
    app_id: int
    slug: str
    page: str
    key: str
    webhook_secret: str


def build_manifest(name: str, webhook_url: str, redirect_url: str, *, public: bool = False) -> dict[str, Any]:
    hook = urlsplit(webhook_url)
    if hook.scheme not in WEB or not hook.hostname or hook.path in ("", "/"):  # a proxy may lead any path to /webhook
        hint = "For example `https://bot.example/webhook`: the service answers there."
        raise RequestError("The webhook's address lacks `https://`, a host or a path.", hint=hint)
    return {
        "name": name,
        "url": f"{hook.scheme}://{hook.netloc}",
        "description": "Plans pull requests that change Spark models, and promotes the plan's own tables.",
        "hook_attributes": {"url": webhook_url, "active": True},
        "redirect_url": redirect_url,
        "public": public,
        "default_permissions": token_permissions(),
        "default_events": list(EVENTS),
    }


def web_address(api_url: str) -> str:
    """Return the address of GitHub's pages, of an Enterprise Server's or an Enterprise Cloud domain's, by its API's."""
    url = urlsplit(api_url.rstrip("/") or API)
    if url.scheme not in WEB or not url.hostname:
        raise RequestError("MERGEPLAN_GITHUB_API_URL is no address.", hint=f"For example {API}.")
    path = url.path.removesuffix("/api/v3")
    return f"{url.scheme}://{url.netloc.removeprefix('api.') if not path else url.netloc}{path}"


def form_address(api_url: str, organization: str, state: str) -> str:
    if organization and not ORGANIZATION.fullmatch(organization):
        raise RequestError(f"`{organization}` is no organization's name.")
    owner = f"organizations/{organization}/" if organization else ""
    return f"{web_address(api_url)}/{owner}settings/apps/new?state={quote(state)}"


def conversion_address(api_url: str, code: str) -> str:
    """Return the address that gives the App's key for a code, once."""
    return f"{api_url.rstrip('/') or API}/app-manifests/{quote(code, safe='')}/conversions"


def parse_registration(answer: Mapping[str, Any]) -> Registered:
    """Parse the App from GitHub's answer; raise RequestError, without its content, for any other answer."""
    number, key, secret = answer.get("id"), answer.get("pem"), answer.get("webhook_secret")
    page = str(answer.get("html_url") or "")
    is_key = isinstance(key, str) and key.startswith("-----BEGIN ") and "PRIVATE KEY-----" in key
    is_secret = isinstance(secret, str) and SECRET.fullmatch(secret)
    if not isinstance(number, int) or number < 1 or not is_key or not is_secret or urlsplit(page).scheme not in WEB:
        raise RequestError(
            "GitHub's answer holds no App with a key and a webhook secret.",
            hint="Delete the App on GitHub, if it was made, and run this again.",
        )
    return Registered(number, str(answer.get("slug") or ""), page, str(key), str(secret))
