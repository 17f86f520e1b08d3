"""The App, registered on the sandbox as a person does it in a browser: one form, one code, one key."""

from __future__ import annotations

import html
import json
import queue
import re
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from github import Auth, GithubIntegration

from mergeplan.bot.github.manifest import Registered, build_manifest, conversion_address, form_address, web_address
from mergeplan.bot.github.permissions import EVENTS, OPTIONAL, PERMISSIONS
from mergeplan.bot.service.register_app import Registration, register_app
from mergeplan.planner.errors import RequestError
from mergeplan_sandbox.server import Sandbox
from mergeplan_sandbox.state import APP_EVENTS, APP_PERMISSIONS

HOOK = "https://bot.example/webhook"
Begin = Callable[[Registration], str]


@pytest.fixture(name="sandbox")
def _sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture(name="registration")
def _registration(sandbox: Sandbox, tmp_path: Path) -> Registration:
    return Registration("mergeplan", HOOK, sandbox.url, "", False, tmp_path / "key.pem", tmp_path / "bot.env")


@pytest.fixture(name="results")
def _results() -> queue.Queue[Registered | RequestError]:
    return queue.Queue()


@pytest.fixture(name="begin")
def _begin(results: queue.Queue[Registered | RequestError]) -> Begin:
    """Starts a registration; the address that the browser is opened at."""

    def begin(wanted: Registration) -> str:
        opened: queue.Queue[str] = queue.Queue()

        def run() -> None:
            try:
                results.put(register_app(wanted, 0, opened.put, 60))
            except RequestError as error:
                results.put(error)

        threading.Thread(target=run, daemon=True).start()
        return opened.get(timeout=30)

    return begin


def send_form(page: httpx.Response) -> httpx.Response:
    """What a browser gets that presses the form's button; it follows GitHub back."""
    action, text = (html.unescape(attribute) for attribute in re.findall(r'(?:action|value)="([^"]*)"', page.text))
    return httpx.post(action, data={"manifest": text}, follow_redirects=True)


def test_the_browser_registers_the_app_and_its_key_is_read_by_nobody_else(
    sandbox: Sandbox, registration: Registration, begin: Begin, results: queue.Queue[Registered | RequestError]
) -> None:
    done = send_form(httpx.get(begin(registration)))
    app = results.get(timeout=30)

    assert isinstance(app, Registered)
    assert (done.status_code, f"{app.page}/installations/new" in done.text) == (200, True)
    assert [stat.S_IMODE(file.stat().st_mode) for file in (registration.key_file, registration.variables_file)] == [
        0o600,
        0o600,
    ]
    variables = dict(line.split("=", 1) for line in registration.variables_file.read_text().splitlines())
    assert variables["MERGEPLAN_WEBHOOK_SECRET"] == sandbox.webhook_secret
    assert sandbox.state.hook.url == HOOK
    key = Path(variables["MERGEPLAN_GITHUB_PRIVATE_KEY_PATH"]).read_text()
    auth = Auth.AppAuth(int(variables["MERGEPLAN_GITHUB_APP_ID"]), key)
    assert GithubIntegration(auth=auth, base_url=sandbox.url).get_app().slug == app.slug
    assert app.webhook_secret not in done.text and "PRIVATE" not in done.text


def test_only_the_browser_that_was_opened_gets_the_form_and_only_githubs_answer_is_taken(
    registration: Registration, begin: Begin, results: queue.Queue[Registered | RequestError]
) -> None:
    start = begin(registration)
    site = start.rpartition("/")[0]
    refused = [
        httpx.get(f"{site}/"),
        httpx.get(f"{site}/callback?code=abc"),
        httpx.get(f"{site}/callback?code=abc&state=guess"),
        httpx.get(start, headers={"Host": "evil.example"}),
    ]

    assert [response.status_code for response in refused] == [403] * 4
    assert not registration.key_file.exists()
    assert registration.state not in "".join(response.text for response in refused)
    assert send_form(httpx.get(start)).status_code == 200
    assert isinstance(results.get(timeout=30), Registered)


def test_a_code_that_github_refuses_leaves_no_file_and_says_so(
    registration: Registration, begin: Begin, results: queue.Queue[Registered | RequestError]
) -> None:
    site = begin(registration).rpartition("/")[0]
    answer = httpx.get(f"{site}/callback", params={"code": "deadbeef", "state": registration.state})
    error = results.get(timeout=30)

    assert answer.status_code == 502
    assert isinstance(error, RequestError)
    assert error.message == "GitHub refused the code with 404."
    assert not registration.key_file.exists() and not registration.variables_file.exists()


def test_a_key_is_never_written_over(registration: Registration) -> None:
    registration.key_file.write_text("a key")
    with pytest.raises(RequestError, match="exists"):
        register_app(registration, 0, lambda address: None, 1)


@pytest.mark.parametrize("address", ["bot.example/webhook", "https://bot.example"])
def test_an_address_at_which_no_service_answers_is_refused_before_a_browser_opens(address: str) -> None:
    with pytest.raises(RequestError, match="lacks `https://`, a host or a path"):
        build_manifest("mergeplan", address, "http://127.0.0.1:1/callback")


def test_a_code_is_good_once(sandbox: Sandbox) -> None:
    made = build_manifest("mergeplan", HOOK, "http://127.0.0.1:1/callback")
    answer = httpx.post(form_address(sandbox.url, "acme", "s"), data={"manifest": json.dumps(made)})
    code = httpx.URL(answer.headers["location"]).params["code"]
    answers = [httpx.post(conversion_address(sandbox.url, code)) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 404]
    assert answers[0].json()["permissions"] == {permission.name: permission.level for permission in PERMISSIONS}
    assert answers[0].json()["events"] == list(EVENTS)


def test_the_sandboxs_app_has_every_permission_and_event_that_the_bot_asks_for() -> None:
    assert {permission.name for permission in (*PERMISSIONS, *OPTIONAL)} <= APP_PERMISSIONS.keys()
    assert set(EVENTS) <= set(APP_EVENTS)


@pytest.mark.parametrize(
    ("api", "web"),
    [
        ("", "https://github.com"),
        ("https://api.github.com", "https://github.com"),
        ("https://github.acme.example/api/v3", "https://github.acme.example"),
        ("https://api.acme.ghe.com", "https://acme.ghe.com"),
        ("http://127.0.0.1:8900", "http://127.0.0.1:8900"),
    ],
)
def test_the_pages_of_each_sort_of_github_are_found_by_its_api(api: str, web: str) -> None:
    assert web_address(api) == web
    assert form_address(api, "acme", "s/1") == f"{web}/organizations/acme/settings/apps/new?state=s/1"


@pytest.mark.parametrize("organization", ["../x", "a b", "-a", "a?b"])
def test_an_organization_that_is_none_is_refused(organization: str) -> None:
    with pytest.raises(RequestError, match="no organization's name"):
        form_address("", organization, "s")
