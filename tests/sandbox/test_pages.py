"""The pages show what there is, and their forms act as the chosen person."""

from collections.abc import Iterator

import httpx
import pytest

from mergeplan_sandbox.server import Sandbox

from .conftest import SHOP


@pytest.fixture(name="browser")
def _browser(sandbox: Sandbox) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=sandbox.url, headers={"Origin": sandbox.url}, follow_redirects=True) as client:
        yield client


@pytest.fixture(name="run")
def _run(sandbox: Sandbox, api: httpx.Client, number: int) -> int:
    note = {
        "path": "models/orders.sql",
        "start_line": 1,
        "end_line": 1,
        "annotation_level": "failure",
        "message": "Bad <id>",
    }
    body = {
        "name": "plan",
        "head_sha": sandbox.pull_request(SHOP, number).head_sha,
        "conclusion": "failure",
        "output": {"title": "One problem", "summary": "**Look**", "annotations": [note]},
        "actions": [{"label": "Apply", "description": "Apply the plan", "identifier": "apply"}],
    }
    return int(api.post("/check-runs", json=body).json()["id"])


def test_every_page_opens(sandbox: Sandbox, browser: httpx.Client, number: int, run: int) -> None:
    sha = sandbox.head(SHOP, "more")
    pull = f"/{SHOP}/pull/{number}"
    paths = ["/", f"/{SHOP}", f"/{SHOP}/pulls", pull, f"{pull}/checks", f"{pull}/files"]
    paths += [f"/{SHOP}/runs/{run}", f"/{SHOP}/commit/{sha}", f"/{SHOP}/blob/{sha}/models/orders.sql"]

    for path in paths:
        answer = browser.get(path)
        assert answer.status_code == 200, path
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "https://" not in answer.text  # no page loads anything from elsewhere


def test_the_conversation_shows_comments_reactions_and_checks(
    sandbox: Sandbox, browser: httpx.Client, number: int, run: int
) -> None:
    comment = sandbox.comment(SHOP, number, "**Bold** <script>x</script>", author="rea")
    sandbox.react(SHOP, comment, "rocket", author="ann")

    page = browser.get(f"/{SHOP}/pull/{number}").text

    assert "<strong>Bold</strong>" in page and "<script>x" not in page
    assert "🚀 1" in page
    assert "<b>plan</b>" in page and "One problem" in page


def test_the_checks_page_shows_reports_and_annotations(browser: httpx.Client, number: int, run: int) -> None:
    page = browser.get(f"/{SHOP}/pull/{number}/checks").text

    assert "<strong>Look</strong>" in page
    assert "models/orders.sql:1" in page and "Bad &lt;id&gt;" in page
    assert ">Apply</button>" in page and ">Re-run</button>" in page


def test_a_comment_is_made_as_the_chosen_person(sandbox: Sandbox, browser: httpx.Client, number: int) -> None:
    browser.post(f"/{SHOP}/pull/{number}/comment", data={"body": "/plan\r\nplease", "person": "rea"})

    assert [(item.author, item.body) for item in sandbox.comments(SHOP, number)] == [("rea", "/plan\nplease")]
    assert "Merge as rea" in browser.get(f"/{SHOP}/pull/{number}").text


def test_what_the_person_may_not_do_is_said_on_the_page(sandbox: Sandbox, browser: httpx.Client, number: int) -> None:
    browser.post("/person", data={"person": "rea"})
    page = f"{sandbox.url}/{SHOP}/pull/{number}"

    answer = browser.post(f"{page}/merge", data={"method": "merge"}, headers={"Referer": page})

    assert "Must have write access" in answer.text
    assert sandbox.pull_request(SHOP, number).state == "open"


def test_merge_close_and_reopen_are_buttons(sandbox: Sandbox, browser: httpx.Client, number: int) -> None:
    page = f"/{SHOP}/pull/{number}"
    states = []

    for deed in ("close", "reopen", "merge"):
        browser.post(f"{page}/{deed}", data={"method": "squash"})
        states.append(sandbox.pull_request(SHOP, number).state)

    assert states == ["closed", "open", "closed"]
    assert sandbox.pull_request(SHOP, number).merged_by == "ann"


def test_a_box_in_the_bot_s_comment_can_be_ticked(
    sandbox: Sandbox, browser: httpx.Client, api: httpx.Client, number: int
) -> None:
    comment = api.post(f"/issues/{number}/comments", json={"body": "Plan\n\n- [ ] apply\n"}).json()["id"]

    browser.post(f"/{SHOP}/pull/{number}/tick", data={"comment": comment, "line": 2})

    assert sandbox.comments(SHOP, number)[0].body == "Plan\n\n- [x] apply\n"


def test_a_check_s_buttons_reach_the_app(sandbox: Sandbox, browser: httpx.Client, number: int, run: int) -> None:
    browser.post(f"/{SHOP}/pull/{number}/click", data={"run": run, "identifier": "apply"})
    browser.post(f"/{SHOP}/pull/{number}/rerequest", data={"run": run})
    sandbox.wait_idle()

    assert [item.action for item in sandbox.deliveries[-2:]] == ["requested_action", "rerequested"]


def test_a_check_of_a_merge_has_its_buttons_too(
    sandbox: Sandbox, browser: httpx.Client, api: httpx.Client, number: int
) -> None:
    sandbox.merge(SHOP, number, author="ann")
    action = {"label": "Roll back", "description": "As it was before", "identifier": "rollback"}
    body = {"name": "promotion", "head_sha": sandbox.pull_request(SHOP, number).merge_commit_sha, "actions": [action]}
    run = api.post("/check-runs", json={**body, "conclusion": "success"}).json()["id"]

    assert ">Roll back</button>" in browser.get(f"/{SHOP}/runs/{run}").text


@pytest.mark.parametrize("path", ["/ann/shop/pull/1/merge", "/person"])
def test_a_form_of_another_site_is_not_taken(sandbox: Sandbox, browser: httpx.Client, number: int, path: str) -> None:
    answer = browser.post(path, data={"person": "ann"}, headers={"Origin": "http://127.0.0.2"})

    assert answer.status_code == 403
    assert sandbox.pull_request(SHOP, number).state == "open"


def test_what_is_not_there_has_no_page(browser: httpx.Client) -> None:
    for path in ("/ann/nothing", f"/{SHOP}/pull/9", f"/{SHOP}/pull/x", f"/{SHOP}/commit/ffff", f"/{SHOP}/runs/1"):
        assert browser.get(path).status_code == 404
