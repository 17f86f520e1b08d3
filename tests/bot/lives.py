"""Random lives of pull requests, several at a time: what people, GitHub and the machine may do to them.

Each life is a branch that is edited, pushed, labeled, commented on, closed, reopened, reviewed, queued or merged, its
buttons pressed and its boxes ticked, while webhooks are lost or doubled, calls fail, and the service is killed. Some
stand on others, as the layers of a stack. What must hold afterwards is always the same.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.projects import ROOT, project_keys
from mergeplan.bot.records import AFTER_MERGE, PullRecord, PullState
from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.faults import RateLimit
from mergeplan_sandbox.markdown import toggle_box
from mergeplan_sandbox.state import MergeMethod
from tests.bot.conftest import SHOP, until
from tests.bot.test_crash import Scene

Files = dict[str, str | None]
Edit = Callable[[random.Random, int], Files]  # an edit that fits every other one, of the life with that number
PATIENCE = 240.0
BACKLOG = 4  # lives that are over and not ended: more of them are no other lives
STACKED = 0.4  # how likely a life that begins beside others is a layer on one of them
READERS = 0.3  # how often somebody waits for the plan before the next act
COMMANDS = (
    "/plan", "/status", "/help", "/cancel", "/categorize --all breaking", "/categorize --all reset", "/skip-backfill",
    "/backfill", "/diff", "/extend 1", "/destroy", "/pln", "/restate shop.*", "Nice.",
)  # fmt: skip
SKIP_LABEL = "no-plan"
TAKES_BACK = ("`/rollback`", "Roll back")  # the branch holds what prod then does not
NAMES = (SHOP, "ann/store", "ann/market")
METHODS: tuple[MergeMethod, ...] = ("merge", "squash")
READS = (r"/pulls/\d+$", r"/comments$", r"/permission$", r"/reviews$", r"/ref/heads/")
WRITES = (r"^/graphql$", r"/check-runs$", r"/check-runs/\d+$", r"/comments$", r"/issues/comments/\d+$", r"/reactions$")


@dataclass
class Life:
    """One pull request: its branch, and what a person knows of it."""

    number: int
    branch: str
    steps: int  # that are still to come before its end
    broken: str = ""  # a file that no planner reads
    heads: list[str] = field(default_factory=list)


@dataclass
class World:
    """A sandbox with a service, and the lives in it."""

    scene: Scene
    chance: random.Random
    edit: Edit
    folders: tuple[str, ...] = (ROOT,)  # of the repository's projects
    kills: float = 0.04  # how likely each step is a kill
    name: str = SHOP  # of the repository, which is renamed now and then
    born: int = 0
    killed: int = 0
    patience: float = PATIENCE  # for all that is left at the end
    alive: list[Life] = field(default_factory=list)
    over: list[Life] = field(default_factory=list)
    unsettled: list[Life] = field(default_factory=list)  # over, and the service has still to end them
    commands: list[int] = field(default_factory=list)
    pressed: int = 0  # buttons, and boxes
    renamed: int = 0

    def __str__(self) -> str:
        counts = {"lives": len(self.over), "kills": self.killed, "renames": self.renamed}
        counts |= {"commands": len(self.commands), "presses": self.pressed}
        return ", ".join(f"{count} {name}" for name, count in counts.items())

    def live(self, lives: int, together: int = 3) -> None:
        """So many lives, some at the same time, at the pace of the service; then what everybody waits for."""
        while len(self.over) < lives:
            if len(self.alive) < together and self.born < lives:
                until(lambda: self._settle() <= BACKLOG, self.patience, "merges to reach prod")
                self._open()
            life = self.chance.choice(self.alive)
            if self.chance.random() < READERS:
                self._read_plan(life)
            self._act(life)
            time.sleep(self.chance.uniform(0, 0.4) ** 2)
        self.settle()

    def _read_plan(self, life: Life) -> None:
        """Somebody waits for what becomes of the head before the next act."""

        def is_shown() -> bool:
            self._settle()  # a merge that is held stays unsettled until its review
            head, waits = self._head(life.number), self._leads_to_prod(life)
            records = self.records(life.number)
            return not waits or all(
                record.is_settled and (record.head == head or record.state in AFTER_MERGE) for record in records
            )

        until(is_shown, self.patience, f"the plan of #{life.number}")

    @property
    def projects(self) -> tuple[str, ...]:
        return project_keys(SHOP, self.folders)

    @property
    def git(self) -> Path:
        """The repository's own folder, in the sandbox."""
        return self.scene.github.state.git(self.name)

    # --- acts ---

    def _open(self) -> None:
        self.born += 1
        branch, github = f"life-{self.born}", self.scene.github
        below = self.chance.choice(self.alive) if self.alive and self.chance.random() < STACKED else None
        if below:
            github.create_branch(self.name, branch, below.branch, author="wim")
        github.commit(self.name, branch, self.edit(self.chance, self.born), "A change", author="wim")
        base = below.branch if below else "main"
        number = github.open_pull_request(self.name, branch, base, f"Life {self.born}", author="wim")
        broken = below.broken if below else ""
        self.alive.append(Life(number, branch, self.chance.randint(0, 5), broken, heads=[self._head(number)]))

    def _leads_to_prod(self, life: Life) -> bool:
        """Return True if its base is the prod branch, or the branch of an open life for which that holds."""
        github = self.scene.github
        base = github.pull_request(self.name, life.number).base_ref
        below = next((other for other in self.alive if other.branch == base), None)
        if below is None or github.pull_request(self.name, below.number).state != "open":  # it landed by itself
            return base == "main"
        return self._leads_to_prod(below)

    def _act(self, life: Life) -> None:
        if life.steps <= 0:
            self._end(life)
            return
        life.steps -= 1
        acts = [
            self._push,
            self._push,
            self._comment,
            self._comment,
            self._label,
            self._press,
            self._tick,
            self._reopen,
            self._review,
            self._fault,
            self._move,
            self._rename,
        ]
        self._kill() if self.chance.random() < self.kills else self.chance.choice(acts)(life)

    def _push(self, life: Life) -> None:
        kind = self.chance.random()
        files: Files = {"README.md": f"# {self.chance.random()}\n"} if kind < 0.2 else self.edit(self.chance, self.born)
        if kind > 0.9 and not life.broken:
            life.broken = f"{self.chance.choice(self.folders)}/models/broken.sql".removeprefix("./")
            files = {life.broken: "BROKEN ((\n"}
        elif life.broken:
            files, life.broken = {**files, life.broken: None}, ""
        self.scene.github.commit(self.name, life.branch, files, "More", author="wim")
        life.heads.append(self._head(life.number))

    def _comment(self, life: Life) -> None:
        text = self.chance.choice(COMMANDS)
        if len(self.folders) > 1 and text.startswith("/") and self.chance.random() < 0.4:
            text += f" --project {self.chance.choice(self.folders)}"
        comment = self.scene.github.comment(self.name, life.number, text, author=self.chance.choice(("wim", "ann")))
        if text.startswith("/"):
            self.commands.append(comment)

    def _press(self, life: Life) -> None:
        """Any button of any of its heads, by anybody who may write; GitHub shows those of older heads as well."""
        runs = self.scene.github.checks(self.name, self.chance.choice(life.heads)).values()
        shown = [
            (run.id, action.identifier) for run in runs for action in run.actions if action.label not in TAKES_BACK
        ]
        if shown:
            try:
                self.scene.github.click(
                    self.name, *self.chance.choice(shown), author=self.chance.choice(("wim", "ann"))
                )
                self.pressed += 1
            except ApiError:
                return  # it went while a hand was on its way to it

    def _tick(self, life: Life) -> None:
        plan = [
            comment
            for comment in self.scene.github.comments(self.name, life.number)
            if "mergeplan:plan" in comment.body
        ]
        if not plan:
            return
        shown = self.chance.choice(plan)
        lines = shown.body.split("\n")
        boxes = [n for n, line in enumerate(lines) if line.startswith("- [ ] ") and TAKES_BACK[0] not in line]
        if boxes:
            text = toggle_box(shown.body, self.chance.choice(boxes))
            self.scene.github.edit_comment(self.name, shown.id, text, author=self.chance.choice(("wim", "ann")))
            self.pressed += 1

    def _label(self, life: Life) -> None:
        """One that asks for no plan, or another one; set, or taken away."""
        name = self.chance.choice(("urgent", SKIP_LABEL))
        has = name in self.scene.github.pull_request(self.name, life.number).labels
        self.scene.github.label(self.name, life.number, name, author="wim", remove=has)

    def _review(self, life: Life) -> None:
        state = self.chance.choice(("APPROVED", "CHANGES_REQUESTED", "COMMENTED"))
        self.scene.github.review(self.name, life.number, state, author="ann")  # type: ignore[arg-type]

    def _reopen(self, life: Life) -> None:
        self.scene.github.close(self.name, life.number, author="wim")
        time.sleep(self.chance.choice((0.0, 0.5)))
        with suppress(ApiError):  # the layer above was merged meanwhile, and this one with it
            self.scene.github.reopen(self.name, life.number, author="wim")

    def _move(self, life: Life) -> None:
        """It gets the prod branch as its base, or that of a life that does not stand on it."""
        others = [other.branch for other in self.alive if other.number < life.number]
        base = self.chance.choice(["main", *others])
        try:
            self.scene.github.edit_pull_request(self.name, life.number, base=base, author="wim")
        except ApiError:
            return  # a branch is gone

    def _rename(self, _life: Life) -> None:
        """The repository gets another name, one that it had earlier among them."""
        name = self.chance.choice([name for name in NAMES if name != self.name])
        self.scene.github.move_repository(self.name, name)
        self.name = name
        self.renamed += 1

    def _fault(self, life: Life) -> None:
        faults = self.scene.github.faults
        match self.chance.randrange(5):
            case 0:
                faults.drop(times=self.chance.randint(1, 3))
            case 1:
                faults.duplicate(times=2)
            case 2:
                faults.fail("GET", self.chance.choice(READS), status=502, times=1)
            case 3:
                faults.lose_answer("*", self.chance.choice(WRITES), times=1)
            case _:
                faults.rate_limit("*", self.chance.choice(WRITES), says=RateLimit(retry_after=1))

    def _kill(self) -> None:
        self.killed += 1
        self.scene.kill()
        self.scene.start()

    def _end(self, life: Life) -> None:
        """Merged by the button, the queue or /deploy, or closed; what cannot be merged is closed.

        A layer is merged into the one below, or into prod's branch.
        """
        github = self.scene.github
        self.alive.remove(life)
        self.over.append(life)
        self.unsettled.append(life)
        if life.broken or self.chance.random() < 0.2:
            github.close(self.name, life.number, author="wim")
            return
        try:
            is_layer = github.pull_request(self.name, life.number).base_ref != "main"
            if is_layer and not (self._leads_to_prod(life) and self.chance.random() < 0.3):
                github.edit_pull_request(self.name, life.number, base="main", author="wim")
                is_layer = False
            if not is_layer and self.chance.random() < 0.25:
                github.enqueue(self.name, life.number, author="wim")
                github.advance_queue(self.name, author="wim")
            else:
                github.merge(self.name, life.number, author="ann", method=self.chance.choice(METHODS))
                if self.chance.random() < 0.8:
                    github.delete_branch(self.name, life.branch, author="ann")
        except ApiError:
            if github.pull_request(self.name, life.number).state == "open":
                github.close(self.name, life.number, author="wim")

    # --- the end ---

    def settle(self) -> None:
        """Everybody who waited for a review gets it, until nothing is left to do."""
        until(lambda: not self._settle(), self.patience, "all lives to end")
        until(self._is_answered, self.patience, "all commands to be answered")
        until(self._are_presses_answered, self.patience, "all presses to be answered")
        until(lambda: not self.unfinished_checks(), self.patience, "all checks to end")
        until(lambda: self.prod_is_at_rest(), self.patience, "prod")

    def _settle(self) -> int:
        """How many lives the service has still to end; who waits for a review of a merge gets it."""
        self.unsettled = [life for life in self.unsettled if not self._is_ended(life)]
        return len(self.unsettled)

    def _is_ended(self, life: Life) -> bool:
        records = self.records(life.number)
        for record in records:
            if record.rules.held:
                self._approve(record)
        pull = self.scene.github.pull_request(self.name, life.number)
        merged = pull.merged_at is not None
        ends = AFTER_MERGE - {PullState.MERGED} if merged else {PullState.CLOSED}
        if merged and pull.base_ref != "main":  # it is a part of the layer below
            ends, merged = ends | {PullState.CLOSED}, False
        return all(record.state in ends or not (merged or record.head) for record in records)

    def _approve(self, record: PullRecord) -> None:
        pull, promised = self.scene.github.pull_request(self.name, record.number), record.shown.plans
        last = pull.reviews[-1] if pull.reviews else None
        if promised and (
            last is None
            or last.state != "APPROVED"
            or last.submitted_at.replace(microsecond=0).isoformat() <= promised[-1].since
        ):
            self.scene.github.review(self.name, record.number, "APPROVED", author="ann")

    def _is_answered(self) -> bool:
        """A pull request that was over before anybody heard of it is nobody's: what was asked there is not answered."""
        known = [life.number for life in self.over if all(record.head for record in self.records(life.number))]
        every = (comment for number in known for comment in self.scene.github.comments(self.name, number))
        asked = (comment for comment in every if comment.id in self.commands)
        return all({"rocket", "confused"} & {reaction.content for reaction in comment.reactions} for comment in asked)

    def _are_presses_answered(self) -> bool:
        with closing(Inbox(self.scene.url)) as inbox:
            every = ((key, life.number) for key in self.projects for life in self.over)
            return not any(row.press for where in every for row in inbox.commands.open(*where))

    def unfinished_checks(self) -> list[str]:
        """Checks that nobody will end: on a head of any life, or a merge."""
        runs = self.scene.github.state.repositories[self.name].checks.values()
        return [f"{run.name} on {run.head_sha[:7]}" for run in list(runs) if run.status != "completed"]

    def prod_is_at_rest(self) -> bool:
        with closing(Inbox(self.scene.url)) as inbox:
            prods, head = [inbox.prods.get(key) for key in self.projects], self.scene.github.head(self.name)
        return all(prod.commit == prod.promoted_commit == head for prod in prods)

    def records(self, number: int) -> tuple[PullRecord, ...]:
        """What the service knows of a pull request, for each project."""
        with closing(Inbox(self.scene.url)) as inbox:
            return tuple(inbox.pulls.get(key, number) for key in self.projects)

    def comments_of_plans(self) -> Mapping[tuple[int, str], int]:
        """How many plan comments each life has for a project, by the hidden marker of the comment."""
        every = (
            (life.number, comment.body)
            for life in self.over
            for comment in self.scene.github.comments(self.name, life.number)
        )
        return Counter((number, body.split("-->")[0]) for number, body in every if "mergeplan:plan" in body)

    def replies(self) -> list[str]:
        """The hidden key of every reply: none may be there twice."""
        bodies = (comment.body for life in self.over for comment in self.scene.github.comments(self.name, life.number))
        return [body.split("-->")[0] for body in bodies if "mergeplan:reply" in body]

    def _head(self, number: int) -> str:
        return self.scene.github.pull_request(self.name, number).head_sha
