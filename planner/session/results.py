"""What a session hands back of plans, differences and lineages: data, which a notebook shows as HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mergeplan.planner.apply.events import Emit, ignore_event
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.model.model import Model
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Blocker, Change
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.project.lineage import Edge, Lineage, Node
from mergeplan.planner.session.notebook.lineage_page import lineage_fragment
from mergeplan.planner.session.notebook.plan_page import difference_fragment, plan_fragment
from mergeplan.planner.session.options import PlanOptions
from mergeplan.planner.session.wording import plan_headline


class Apply(Protocol):
    """How a session applies a plan."""

    def __call__(self, plan: SessionPlan, *, note: str, check: bool, on_event: Emit) -> Outcome: ...


@dataclass(frozen=True)
class SessionPlan:
    """A plan that a session made: its decision, its options, and its estimated cost."""

    decision: Plan
    options: PlanOptions
    estimates: Mapping[str, Estimate]
    _apply: Apply = field(repr=False, compare=False)

    @property
    def id(self) -> str:
        """What `Session.apply` and `mergeplan apply` know it by."""
        return self.decision.id

    @property
    def environment(self) -> str:
        """The environment that it is for."""
        return self.decision.environment

    @property
    def changes(self) -> tuple[Change, ...]:
        """Each model that changes, or is computed, in the order of the graph."""
        return self.decision.changes

    @property
    def blockers(self) -> tuple[Blocker, ...]:
        """What forbids to apply it."""
        return self.decision.blockers

    @property
    def is_empty(self) -> bool:
        """True when there is nothing to do."""
        return self.decision.is_empty

    def apply(self, *, note: str = "", check: bool = True, on_event: Emit = ignore_event) -> Outcome:
        """Apply this plan, as `Session.apply` does."""
        return self._apply(self, note=note, check=check, on_event=on_event)

    def __repr__(self) -> str:
        return f"<plan {self.id}: {plan_headline(self.decision)}>"

    def _repr_html_(self) -> str:
        return plan_fragment(self.decision, self.estimates)


@dataclass(frozen=True)
class Difference:
    """How the project's files, or the environment `other`, differ from an environment."""

    decision: Plan = field(repr=False)
    other: str = ""

    @property
    def environment(self) -> str:
        """The environment that is compared."""
        return self.decision.environment

    @property
    def changes(self) -> tuple[Change, ...]:
        """Each model that differs."""
        return self.decision.changes

    @property
    def same(self) -> bool:
        """True when nothing differs."""
        return not self.decision.changes

    def _repr_html_(self) -> str:
        return difference_fragment(self.decision, self.other)


@dataclass(frozen=True)
class LineageView:
    """A lineage, and the models that it leads through."""

    lineage: Lineage
    models: Mapping[str, Model] = field(repr=False)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Every column that is in it, each once."""
        return self.lineage.nodes

    @property
    def edges(self) -> tuple[Edge, ...]:
        """What goes into what."""
        return self.lineage.edges

    def _repr_html_(self) -> str:
        return lineage_fragment(self.lineage, self.models)
