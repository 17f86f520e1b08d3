"""The Action: the same routine, once, from the event's file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.pulls.due import what_is_due
from mergeplan.bot.records import Prod, ProdRecord
from mergeplan.bot.service.action import action_settings, run_action
from mergeplan.planner.errors import RequestError
from mergeplan_sandbox.server import Sandbox
from tests.bot.conftest import COLUMN, PROJECT, SCRIPT, SHOP

LOGIN = "github-actions[bot]"
STORE = "ann/store"  # the shop's later name


class Workflow:
    """A repository whose workflow runs mergeplan."""

    def __init__(self, folder: Path, github: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.github = github
        self.summary = folder / "summary.md"
        self.outputs = folder / "outputs"
        self.runs = 0
        self.edited: dict[str, Any] = {}
        self.name = SHOP  # of the repository whose workflow it is
        monkeypatch.setenv("MERGEPLAN_HOME", str(folder / "home"))
        monkeypatch.setenv("MERGEPLAN_PLANNER_COMMAND", json.dumps([sys.executable, "-P", "-S", str(SCRIPT)]))
        monkeypatch.setenv("MERGEPLAN_WRITE_SPACING_SECONDS", "0")

    def run(self, name: str, payload: dict[str, Any], *, read_only: bool = False) -> int:
        return self.run_text(name, json.dumps(payload), read_only=read_only)

    def run_text(self, name: str, text: str, *, read_only: bool = False) -> int:
        self.runs += 1
        path = self.folder / "event.json"
        path.write_text(text)
        return run_action({
            "GITHUB_TOKEN": self.github.actions_token(self.name, read_only=read_only),
            "GITHUB_API_URL": self.github.url,
            "GITHUB_EVENT_NAME": name,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_REPOSITORY": self.name,
            "GITHUB_REPOSITORY_ID": str(self.number),
            "GITHUB_RUN_ID": str(self.runs),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.outputs),
        })  # fmt: skip

    def comment(self, number: int, text: str, author: str) -> int:
        said = self.github.comment(SHOP, number, text, author=author)
        shape = {
            "id": said,
            "body": text,
            "user": {"login": author, "type": "User"},
            "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        issue = {"number": number, "pull_request": {"url": "."}}
        payload = {"action": "created", "repository": {"full_name": SHOP}, "issue": issue, "comment": shape}
        return self.run("issue_comment", payload)

    def tick(self, number: int, command: str, author: str, *, again: bool = False) -> int:
        """The box of a command in the plan comment is ticked; `again` runs the same event once more."""
        if not again:
            (comment,) = [comment for comment in self.github.comments(SHOP, number) if "mergeplan:plan" in comment.body]
            after = comment.body.replace(f"- [ ] `{command}`", f"- [x] `{command}`")
            self.github.edit_comment(SHOP, comment.id, after, author=author)
            at = datetime.now(UTC).isoformat(timespec="seconds")
            written = {"id": comment.id, "body": after, "user": {"login": LOGIN, "type": "Bot"}, "updated_at": at}
            self.edited = {
                "action": "edited",
                "repository": {"full_name": SHOP},
                "issue": {"number": number, "pull_request": {"url": "."}},
                "comment": written,
                "changes": {"body": {"from": comment.body}},
                "sender": {"login": author, "type": "User"},
            }
        return self.run("issue_comment", self.edited)

    def propose(self, files: dict[str, str]) -> int:
        self.github.commit(SHOP, "change", files, "A change", author="wim")
        return self.github.open_pull_request(SHOP, "change", "main", "A change", author="wim")

    def pull_request(self, number: int, action: str, label: str = "") -> int:
        pull = self.github.pull_request(SHOP, number)
        shape = {"number": number, "base": {"ref": pull.base_ref}, "head": {"sha": pull.head_sha}}
        payload = {"action": action, "repository": {"full_name": SHOP}, "pull_request": shape}
        return self.run("pull_request_target", payload | ({"label": {"name": label}} if label else {}))

    def push(self, branch: str = "main", head: str = "") -> int:
        after, repository = head or self.github.head(self.name), {"full_name": self.name, "id": self.number}
        return self.run("push", {"ref": f"refs/heads/{branch}", "after": after, "repository": repository})

    @property
    def number(self) -> int:
        return self.github.state.repositories[self.name].id

    def prod(self, key: str) -> ProdRecord:
        with closing(Inbox(f"sqlite:///{self.folder / 'home' / 'bot.db'}")) as inbox:
            return inbox.prods.get(key)


@contextmanager
def workflow_on(folder: Path, monkeypatch: pytest.MonkeyPatch, project: dict[str, str]) -> Iterator[Workflow]:
    """A workflow in ann's repository of this project, where wim may write."""
    with Sandbox(folder / "github") as github:
        for login in ("ann", "wim"):
            github.add_user(login)
        github.create_repository(SHOP, project)
        github.set_permission(SHOP, "wim", "write")
        yield Workflow(folder, github, monkeypatch)


@pytest.fixture(name="workflow")
def _workflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workflow]:
    with workflow_on(tmp_path, monkeypatch, PROJECT) as workflow:
        yield workflow


def test_the_action_plans_and_promotes_as_the_service_does(workflow: Workflow) -> None:
    """One routine: prod is built, the pull request planned, and the merge promoted, each by a run of its own."""
    github = workflow.github
    assert workflow.push() == 0
    github.commit(SHOP, "change", COLUMN, "A change", author="wim")
    number = github.open_pull_request(SHOP, "change", "main", "A change", author="wim")
    assert workflow.pull_request(number, "opened") == 0

    (comment,) = [comment for comment in github.comments(SHOP, number) if comment.author == LOGIN]
    assert "1 non-breaking" in comment.body
    assert comment.body in workflow.summary.read_text()
    github.merge(SHOP, number, author="ann")
    assert workflow.push() == 0
    (comment,) = [comment for comment in github.comments(SHOP, number) if comment.author == LOGIN]
    assert "In prod" in comment.body


def test_later_steps_read_what_came_of_a_run(workflow: Workflow) -> None:
    """What the Action's `outputs` name, one line each, and nothing of the project's own words."""
    workflow.push()
    number = workflow.propose(COLUMN)
    workflow.outputs.unlink()
    workflow.pull_request(number, "opened")
    outputs = dict(line.split("=", 1) for line in workflow.outputs.read_text().splitlines())
    (comment,) = [comment for comment in workflow.github.comments(SHOP, number) if comment.author == LOGIN]

    assert (outputs["state"], outputs["environment"], outputs["exit-code"]) == ("planned", f"pr_{number}", "0")
    assert (outputs["changed"], outputs["computed"], outputs["prod-revision"]) == ("2", "1", "1")
    assert outputs["comment-url"].endswith(f"/{SHOP}/pull/{number}#issuecomment-{comment.id}")
    assert outputs["plan-id"] in comment.body
    declared = yaml.safe_load((Path(__file__).parents[3] / "action.yml").read_text())["outputs"]
    assert outputs.keys() == declared.keys()


def test_a_command_and_a_merge_are_heeded_as_by_the_service(workflow: Workflow) -> None:
    """A comment's run answers it with eyes and a rocket; the run of a merged pull request promotes it."""
    github = workflow.github
    workflow.push()
    number = workflow.propose(COLUMN)
    workflow.pull_request(number, "opened")
    assert workflow.comment(number, "/categorize orders breaking", "wim") == 0
    reply = [comment for comment in github.comments(SHOP, number) if comment.author == LOGIN][-1]
    (asked,) = [comment for comment in github.comments(SHOP, number) if comment.author == "wim"]
    assert "`shop.orders` is now Breaking" in reply.body
    assert [reaction.content for reaction in asked.reactions] == ["eyes", "rocket"]

    github.merge(SHOP, number, author="ann")
    assert workflow.pull_request(number, "closed") == 0
    assert "### ✅ In prod" in workflow.summary.read_text().rpartition("<!-- mergeplan:plan -->")[2]


@pytest.mark.prove
def test_a_ticked_box_is_a_command_once_and_no_check_has_buttons(workflow: Workflow) -> None:
    """Behaviour 36: where no button could fire; the run may be run again, and the box is empty at the end."""
    github = workflow.github
    workflow.push()
    number = workflow.propose(COLUMN)
    workflow.pull_request(number, "opened")
    command = "/categorize shop.orders breaking"
    assert workflow.tick(number, command, "wim") == 0
    assert workflow.tick(number, command, "wim", again=True) == 0

    plan, reply = [comment.body for comment in github.comments(SHOP, number) if comment.author == LOGIN]
    assert f"`wim` ticked:\n\n🚀 `{command}`\n`shop.orders` is now Breaking" in reply
    assert "- [ ] `/categorize shop.orders non-breaking`" in plan
    assert "[x]" not in plan
    head = github.pull_request(SHOP, number).head_sha
    assert not any(run.actions for run in github.checks(SHOP, head).values())


def test_the_service_would_leave_the_same_comment_byte_for_byte(workflow: Workflow) -> None:
    """It writes nothing but the buttons of the checks, whose presses reach no Action."""
    workflow.push()
    number = workflow.propose(COLUMN)
    workflow.pull_request(number, "opened")
    inbox = Inbox(f"sqlite:///{workflow.folder / 'home' / 'bot.db'}")
    record, prod = inbox.pulls.get(SHOP, number), inbox.prods.get(SHOP)
    inbox.close()
    due = what_is_due(record, prod, presses=True)

    assert what_is_due(record, prod) is None
    assert due is not None
    assert due.comment == ""
    assert [(view.name, bool(view.actions)) for _, view in due.checks] == [("mergeplan / plan", True)]


def test_a_token_that_only_reads_ends_the_run_with_the_reason(workflow: Workflow) -> None:
    """A fork's `pull_request` event: the step fails soon, and its summary says what the token lacks."""
    workflow.push()
    number = workflow.propose(COLUMN)
    pull = workflow.github.pull_request(SHOP, number)
    shape = {"number": number, "base": {"ref": pull.base_ref}, "head": {"sha": pull.head_sha}}
    payload = {"action": "opened", "repository": {"full_name": SHOP}, "pull_request": shape}

    assert workflow.run("pull_request", payload, read_only=True) == 1
    assert "May the token write checks, issues and pull requests?" in workflow.summary.read_text()
    assert workflow.github.comments(SHOP, number) == []


@pytest.mark.parametrize(("text", "code"), [("{}", 2), ("not json", None), ("", None)])
def test_an_event_that_is_not_githubs_is_said(workflow: Workflow, text: str, code: int | None) -> None:
    """Exit 2 for a payload that lacks what GitHub documents; a sentence for a file that is none."""
    if code is None:
        with pytest.raises(RequestError, match="cannot be read"):
            workflow.run_text("push", text)
    else:
        assert workflow.run_text("push", text) == code
    assert workflow.github.calls == []


def test_a_project_that_does_not_load_fails_the_step(workflow: Workflow) -> None:
    """The exit code tells the workflow, the comment tells the people."""
    github = workflow.github
    workflow.push()
    github.commit(SHOP, "change", {"models/orders.sql": "BROKEN\n"}, "A change", author="wim")
    number = github.open_pull_request(SHOP, "change", "main", "A change", author="wim")

    assert workflow.pull_request(number, "opened") == 1
    assert "The project does not load" in workflow.summary.read_text()


def test_a_push_to_a_branch_with_an_environment_fails_its_job_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {"config.yaml": "gateways: {}\ncicd_bot: {branch_environments: {qa: qa}}\n"}
    with workflow_on(tmp_path, monkeypatch, PROJECT | rules) as workflow:
        assert workflow.push() == 0
        bad = workflow.github.commit(SHOP, "qa", {"models/orders.sql": "BROKEN\n"}, "Bad", author="wim")
        assert workflow.push("qa", bad) == 1
        good = workflow.github.commit(SHOP, "qa", COLUMN, "Good", author="wim")
        assert workflow.push("qa", good) == 0

        state = json.loads((workflow.folder / "home" / SHOP / "scripted.json").read_text())
        assert state["environments"]["qa"]["models"]["shop.orders"] == COLUMN["models/orders.sql"]
        assert state["environments"]["prod"]["models"]["shop.orders"] == PROJECT["models/orders.sql"]


def test_a_label_makes_no_job_green_and_any_labels_job_does_what_a_dropped_one_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job may be a required check; and of the runs that wait GitHub keeps the last, whatever its event."""
    rules = {"config.yaml": "gateways: {}\ncicd_bot: {skip_label: no-plan}\n"}
    with workflow_on(tmp_path, monkeypatch, PROJECT | rules) as workflow:
        workflow.push()
        number = workflow.propose(COLUMN)
        workflow.github.label(SHOP, number, "no-plan", author="wim")
        assert workflow.pull_request(number, "opened") == 1
        assert "it has the label `no-plan`" in workflow.summary.read_text()

        workflow.github.label(SHOP, number, "no-plan", author="wim", remove=True)
        assert workflow.pull_request(number, "labeled", "urgent") == 0
        assert "**Ready.**" in workflow.summary.read_text()


def test_an_event_that_asks_nothing_is_success(workflow: Workflow) -> None:
    """A label, a star: exit 0, nothing called."""
    assert workflow.run("star", {"action": "created"}) == 0
    assert workflow.github.calls == []


def test_a_job_signs_no_link_that_no_service_would_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job's token lasts for the job; with the service's App the links are the service's."""
    monkeypatch.setenv("MERGEPLAN_PUBLIC_URL", "https://bot.example")
    monkeypatch.delenv("MERGEPLAN_GITHUB_APP_ID", raising=False)

    assert action_settings({"GITHUB_TOKEN": "ghs_x"}).public_url == ""
    assert action_settings({"MERGEPLAN_GITHUB_APP_ID": "7"}).public_url == "https://bot.example"


def test_one_job_sees_to_every_project_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The summary and the outputs are of the project that changes, the exit code is of all."""
    both = {f"{folder}/{path}": text for folder in ("shop", "ads") for path, text in PROJECT.items()}
    monkeypatch.setenv("MERGEPLAN_PROJECT_PATH", "shop,ads")
    with workflow_on(tmp_path, monkeypatch, both) as workflow:
        assert workflow.push() == 0
        number = workflow.propose({f"ads/{path}": text for path, text in COLUMN.items()})
        assert workflow.pull_request(number, "opened") == 0
        assert "Ready to merge · replaces 1 table of prod · `ads`" in workflow.summary.read_text()
        assert {"environment=pr_1", "changed=2", "exit-code=0"} <= set(workflow.outputs.read_text().split())
        workflow.github.commit(SHOP, "change", {"shop/models/orders.sql": "BROKEN\n"}, "More", author="wim")
        assert workflow.pull_request(number, "synchronize") == 1


def test_a_scheduled_run_goes_on_with_the_prod_of_a_renamed_repository(workflow: Workflow) -> None:
    workflow.push()
    workflow.github.move_repository(SHOP, STORE)
    workflow.name = STORE

    assert workflow.run("schedule", {"schedule": "0 0 * * *"}) == 0
    assert workflow.prod(SHOP).state is Prod.READY
    assert workflow.prod(STORE).state is Prod.UNKNOWN  # it has no records of its own


def test_repositories_that_share_a_database_and_a_name_get_their_events_apart(workflow: Workflow) -> None:
    """The workflow's token of the new one does not see the private one that had its name."""
    workflow.push()
    workflow.github.state.repositories[SHOP].private = True
    workflow.github.move_repository(SHOP, STORE)
    workflow.github.create_repository(SHOP, PROJECT)
    workflow.push()
    new_key = f"{SHOP}.{workflow.number}"
    assert workflow.prod(new_key).state is Prod.READY

    workflow.name = STORE
    head = workflow.github.commit(STORE, "main", COLUMN, "A push", author="ann")
    workflow.push()
    assert workflow.prod(SHOP).promoted_commit == head != workflow.prod(new_key).promoted_commit
