"""One pass over one pull request: what is read once, and the record as it is stored."""

import time
from dataclasses import dataclass, field, replace

from mergeplan.bot.branches import branches_of
from mergeplan.bot.context import BotContext
from mergeplan.bot.forge.port import RepositoryGateway
from mergeplan.bot.git.checkout import Checkout, Merge, changes_no_model
from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.bot.inbox.queue import Job
from mergeplan.bot.pull_parts import Layer
from mergeplan.bot.pulls.decide import interrupt_reason
from mergeplan.bot.pulls.stacks import build_stack_base, find_layers
from mergeplan.bot.records import Prod, ProdRecord, Pull, PullRecord
from mergeplan.bot.rules import BotConfig
from mergeplan.bot.transitions.planning import Transition
from mergeplan.planner.errors import ProjectError


@dataclass(frozen=True)
class StackMerge:
    """A merge of the head with all that is below it; `at` is the layer that cannot be merged, 0 for the head itself.

    It is level when merging the head alone gives the same tree: then what was planned is what its merge brings,
    whatever becomes of the layers.
    """

    merge: Merge
    at: int = 0
    is_level: bool = True


@dataclass
class PullPass:
    """A pull request while its job has the turn; `pull` is read again after each action."""

    context: BotContext
    job: Job
    gateway: RepositoryGateway
    pull: Pull
    checkout: Checkout
    config: BotConfig
    config_error: ProjectError | None = None
    fetched: str = ""  # the branch that was fetched for this pass, with the head
    seen: int = 0  # the last delivery that this pass has taken in
    looked_at: float = field(default_factory=time.monotonic)

    @property
    def inbox(self) -> Inbox:
        return self.context.inbox

    @property
    def is_fork(self) -> bool:
        return self.pull.is_fork

    @property
    def environment(self) -> str:
        return self.config.environment(self.pull.number)

    @property
    def record(self) -> PullRecord:
        return self.inbox.pulls.get(self.job.repository, self.pull.number)

    @property
    def prod(self) -> ProdRecord:
        return self.inbox.prods.get(self.job.repository)

    def update(self, transition: Transition) -> PullRecord:
        return self.inbox.pulls.update(self.job.repository, self.pull.number, transition)

    def overtaken(self) -> str:
        """Return why a question has to wait: a newer head, or a close."""
        return interrupt_reason(self.inbox.deliveries.news(self.job.key, self.seen), self.pull.head)

    def refresh(self) -> None:
        self.pull = self.gateway.pull(self.job.number)
        self.find_place()
        self.looked_at = time.monotonic()

    def find_place(self) -> None:
        """Find the layers that the pull request is on, or, when it was one and is merged, if it is in the branch."""
        pull, branch = self.pull, self.config.prod_branch
        layers = self._find_layers() if pull.is_open and pull.base_ref != branch else ()
        was_layer = pull.merged and pull.base_ref != branch and bool(self.record.stack.planned_on.layers)
        landed = was_layer and self._is_in_branch(pull.merge_sha)
        stack = build_stack_base(layers, self.record_of, self.prod.revision)
        self.pull = replace(pull, stack=stack, landed=landed)

    def _find_layers(self) -> tuple[Layer, ...]:
        if self.pull.base_ref in branches_of(self.prod.branches):
            return ()  # it is planned against the environment of that branch
        return find_layers(self.pull, self.gateway.open_pulls(), self.config.prod_branch)

    def _is_in_branch(self, commit: str) -> bool:
        self.checkout.fetch(self.config.prod_branch)
        return self.checkout.contains(self.checkout.head(self.config.prod_branch), commit)

    def record_of(self, number: int) -> PullRecord:
        return self.inbox.pulls.get(self.job.repository, number)

    def fetch_head(self) -> None:
        if self.fetched != self.config.prod_branch or not self.checkout.has(self.pull.head):
            self.checkout.fetch(self.config.prod_branch, self.pull.number)

    def base_commit(self, prod: ProdRecord) -> str:
        """Return the commit that the head is planned on: that which prod shows."""
        return prod.promoted_commit or self.checkout.head(self.config.prod_branch)

    def merge_head(self, base: str) -> StackMerge:
        """Merge the layers below, the lowest first, and then the head into a commit of the prod branch."""
        commit = base
        for layer in (*self.pull.stack.layers, Layer(0, self.pull.head)):
            merge = self.checkout.merge(commit, layer.head)
            if not merge.commit:
                return StackMerge(merge, at=layer.number)
            commit = merge.commit
        is_level = not self.pull.stack.layers or self.checkout.merge(base, self.pull.head).tree == merge.tree
        return StackMerge(merge, is_level=is_level)

    def is_untouched(self, record: PullRecord, base: str, merge: Merge) -> bool:
        """Return True for a change of no model, where no planner has anything to take back either."""
        if record.environment.exists or record.restates or self.prod.state is not Prod.READY:
            return False
        return changes_no_model(self.checkout.diff_paths(base, merge.commit), self.checkout.project)
