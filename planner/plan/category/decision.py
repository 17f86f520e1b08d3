"""Values that no step changes: the inputs of all decisions of a plan, and the decision about one model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.fingerprint import Fingerprint
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.naming import DEFAULT, Naming
from mergeplan.planner.plan.category.categorize import UNTOUCHED
from mergeplan.planner.plan.change import Adoption, Blocker, Category, Change, Columns, Override
from mergeplan.planner.plan.early_cutoff import Comparison
from mergeplan.planner.plan.forward_only import NOT_ASKED, ForwardOnly
from mergeplan.planner.plan.schedule import Loaded
from mergeplan.planner.semantics.digests import TableDigest
from mergeplan.planner.semantics.shape import Shape
from mergeplan.planner.semantics.shape_memory import NO_MEMORY, ShapeMemory
from mergeplan.planner.snapshot.environment import Environment
from mergeplan.planner.snapshot.snapshot import Snapshot


@dataclass(frozen=True)
class Inputs:
    """The inputs that all models of a plan share; `limited` are those whose earliest days a request leaves out."""

    graph: Graph
    compared: Environment  # the base: its snapshots are the models before the change
    loaded: Loaded
    overrides: tuple[Override, ...] = ()
    limited: frozenset[str] = frozenset()
    since: str = ""
    naming: Naming = DEFAULT  # of new tables
    forward: ForwardOnly = NOT_ASKED
    empty: bool = False  # new tables are left empty
    adopted: Mapping[str, Adoption] = field(default_factory=dict)  # model that is added -> whose rows it takes over
    shapes: ShapeMemory = NO_MEMORY
    refuted: Mapping[str, str] = field(default_factory=dict)  # claim with which Spark's analyzer disagrees -> why

    @property
    def base(self) -> Mapping[str, Snapshot]:
        return self.compared.snapshots

    @cached_property
    def base_graph(self) -> Graph:
        """The models before the change."""
        return graph_of({name: snapshot.model for name, snapshot in self.base.items()})

    @cached_property
    def names_to_decide(self) -> frozenset[str]:
        """The models that are decided one by one; every other one and all that it reads are as in the base.

        They are those that are not the very objects of the base, those that an override names or that read a table that
        went or has its columns in another order, and everything downstream.
        """
        models, base = self.graph.models, self.base
        names = {name for name, model in models.items() if name not in base or base[name].model is not model}
        names |= models.keys() & {override.model for override in self.overrides}
        odd = base.keys() - models.keys() | {name for name, snapshot in base.items() if snapshot.is_reordered}
        if odd:
            names |= {name for name, model in models.items() if not odd.isdisjoint(model.depends_on)}
        return self.graph.downstream(names) | names

    @cached_property
    def below_moved_starts(self) -> frozenset[str]:
        """The models that may take their own first day from one above them that starts elsewhere now."""
        models, base = self.graph.models.items(), self.base
        moved = (
            name for name, model in models if name not in base or _model_start(model) != _model_start(base[name].model)
        )
        return self.graph.downstream(moved)


def _model_start(model: Model) -> str | datetime | None:
    return model.schedule.start_text or model.schedule.start


@dataclass(frozen=True)
class Analysis:
    """A model over its parents as they are decided.

    `shape` is its query's, None without one. `began` is the start of the time that fills its table, '' for any other.
    """

    shape: Shape | None
    began: str
    fingerprint: Fingerprint


@dataclass(frozen=True)
class Decision:
    """The decision about one model, by which alone its readers are decided.

    `visible` is what its readers see. That is usually what its snapshot holds, with two exceptions: a person said that
    an edit does not concern them, or a comparison of tables showed that the rows are the same.
    """

    snapshot: Snapshot
    change: Change | None = None  # None: it is as it was in the base
    effect: Columns = UNTOUCHED  # what of its old rows a reader cannot take from the new ones
    reported: TableDigest | None = None  # what readers see where that is not what the snapshot holds
    comparisons: tuple[Comparison, ...] = ()  # of tables, that might show it unchanged inputs
    blockers: tuple[Blocker, ...] = ()
    warnings: tuple[Blocker, ...] = ()
    errors: tuple[ProjectError, ...] = ()

    @property
    def visible(self) -> TableDigest:
        return self.snapshot.visible_digest if self.reported is None else self.reported

    @property
    def override(self) -> Override | None:
        """The category that a person chose for this change."""
        return self.change.override if self.change else None

    @property
    def is_forward_only(self) -> bool:
        return self.change is not None and self.change.category is Category.FORWARD_ONLY

    @property
    def is_partial(self) -> bool:
        """True if its table is new and will hold part of the rows that it should, because of the request."""
        return self.change is not None and self.change.preview

    def add_problem(self, problem: Blocker | ProjectError | None) -> Decision:
        if isinstance(problem, ProjectError):
            return replace(self, errors=(problem, *self.errors))
        return replace(self, blockers=(problem, *self.blockers)) if problem else self


@dataclass(frozen=True)
class Candidate:
    """A changed model: as the base has it, as it would be with its own new table, and its parents."""

    inputs: Inputs
    old: Snapshot
    fresh: Snapshot
    analysis: Analysis
    parents: Mapping[str, Decision]
    edited: bool  # a person changed the model itself, and not only something that it reads

    @property
    def model(self) -> Model:
        return self.fresh.model


@dataclass(frozen=True)
class Decisions:
    """The decision of each model, parents first, and what concerns the plan as a whole."""

    by_name: Mapping[str, Decision] = field(default_factory=dict)
    removed: tuple[Change, ...] = ()
    broken: tuple[Blocker, ...] = ()  # readers of what is removed

    @property
    def snapshots(self) -> dict[str, Snapshot]:
        return {name: decision.snapshot for name, decision in self.by_name.items()}

    @property
    def changes(self) -> tuple[Change, ...]:
        return (*(decision.change for decision in self.by_name.values() if decision.change), *self.removed)

    @property
    def blockers(self) -> tuple[Blocker, ...]:
        return (*(blocker for decision in self.by_name.values() for blocker in decision.blockers), *self.broken)

    @property
    def warnings(self) -> tuple[Blocker, ...]:
        return tuple(warning for decision in self.by_name.values() for warning in decision.warnings)

    @property
    def errors(self) -> tuple[ProjectError, ...]:
        return tuple(error for decision in self.by_name.values() for error in decision.errors)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        return tuple(comparison for decision in self.by_name.values() for comparison in decision.comparisons)

    @property
    def used_overrides(self) -> tuple[Override, ...]:
        return tuple(decision.override for decision in self.by_name.values() if decision.override)
