"""adopt: tables that are there already, declared, checked and taken over as the first versions of models."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mergeplan.planner.apply.adoption import Move, apply_adoption
from mergeplan.planner.apply.outcome import Outcome
from mergeplan.planner.errors import ProjectError, QueryError, Refused, RequestError
from mergeplan.planner.intervals import Timeline
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.environments import naming_of
from mergeplan.planner.plan.adoption import models_of_adoption
from mergeplan.planner.plan.build import Plan, Request, build_plan, build_run
from mergeplan.planner.plan.change import Adoption
from mergeplan.planner.plan.schedule import Loaded, Window
from mergeplan.planner.plan.selected_changes import select_models
from mergeplan.planner.project.refused import Refusal
from mergeplan.planner.session.adoption.adoption_checks import Checked, Declared, check_table, columns_over
from mergeplan.planner.session.unopened import merge_deployed
from mergeplan.planner.session.use_cases.apply import check_queries
from mergeplan.planner.session.use_cases.applying import Record, execute_plan
from mergeplan.planner.session.workspace import Workspace, load_state
from mergeplan.planner.snapshot.environment import PROD, Environment


@dataclass(frozen=True)
class Survey:
    """A project looked over: what opens, what is refused, which tables could be taken over, and how far they fit."""

    opened: int
    refused: tuple[Refusal, ...]
    deployed: tuple[str, ...]  # models that prod has already
    candidates: tuple[Checked, ...]
    without: tuple[str, ...]  # models with rows for which there is no table


@dataclass(frozen=True)
class Adopting:
    """What adopting these tables comes to: each as it was checked, and the plan; None when one of them does not fit.

    `left` is what the next run computes since the tables do not hold it. `replaced` are views that models replace.
    """

    checked: tuple[Checked, ...]
    plan: Plan | None
    moves: tuple[Move, ...] = ()
    left: Mapping[str, Timeline] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(problem for check in self.checked for problem in check.problems)


def survey_project(work: Workspace, schema: str = "") -> Survey:
    """Survey the project: a table can be adopted if it has a model's name, in this schema or in the model's own."""
    work.about = frozenset({PROD})
    refused, prod = work.project.refused, work.store.environments.get(PROD)
    models = _merge_prod_models(work, prod)
    stored = [
        stored_model
        for name, stored_model in models.items()
        if stored_model.kind.is_stored and not stored_model.kind.is_seed
    ]
    missing = [stored_model for stored_model in stored if stored_model.name not in prod.snapshots]
    declarations: dict[str, Declared] = {}
    for model in missing:
        model_schema, _, table = model.name.rpartition(".")
        name = f"{schema or model_schema}.{table}"
        if (relation := work.engine.catalog.standing(name)) and not relation.is_view:
            declarations[model.name] = Declared(model.name, name)
    checked = tuple(_check_tables(work, models, prod, declarations, only_columns=True).values())
    without = tuple(stored_model.name for stored_model in missing if stored_model.name not in declarations)
    deployed = tuple(stored_model.name for stored_model in stored if stored_model.name in prod.snapshots)
    return Survey(len(models), refused.refusals, deployed, checked, without)


def prepare_adoption(work: Workspace, declared_tables: tuple[Declared, ...]) -> Adopting:
    """Check the adoption of these tables and plan it, without any change; raise RequestError for a wrong request."""
    work.about = frozenset({PROD})
    prod = work.store.environments.get(PROD)
    models = _merge_prod_models(work, prod)
    declarations = _match_declarations(declared_tables, models, prod, work)
    names = models_of_adoption(models, declarations, prod.snapshots)
    chosen = select_models(models, prod, names)
    checked = _check_tables(work, {**chosen}, prod, declarations)
    if any(check.problems for check in checked.values()):
        return Adopting(tuple(checked.values()), None)
    adoptions = {name: check.adoption(work.now.isoformat()) for name, check in checked.items()}
    loaded = load_state(work)
    plan = _plan_adoption(work, chosen, prod, loaded, adoptions)
    check_queries(work, plan)
    moves = tuple(Move(adoption.table, adoption.moved_to) for adoption in adoptions.values() if adoption.moved_to)
    replaced = _replaceable_views(work, plan, {move.old for move in moves})
    adopted_timelines = {c.new.table: c.adopts.rows for c in plan.changes if c.new and c.adopts}
    full = replace(loaded, timelines={**loaded.timelines, **adopted_timelines})
    run = build_run(plan.new, full, Window(work.now))
    missing_timelines = {backfill.name: backfill.missing for backfill in run.backfills if backfill.name in adoptions}
    return Adopting(tuple(checked.values()), plan, moves, missing_timelines, replaced)


def adopt_tables(work: Workspace, preparation: Adopting, record: Record) -> Outcome:
    """Adopt the tables and promote prod to them, completely or not at all; raise Refused for what does not fit."""
    plan = preparation.plan
    if plan is None:
        raise Refused(preparation.problems[0])
    with work.lease(PROD, f"adoption {plan.id}") as lease:
        work.settle(lease)
        return apply_adoption(
            plan, preparation.moves, work.store, work.engine, lease, lambda: execute_plan(work, plan, lease, record)
        )


def _merge_prod_models(work: Workspace, prod: Environment) -> Mapping[str, Model]:
    deployed = {name: snapshot.model for name, snapshot in prod.snapshots.items()}
    return merge_deployed(work.models, work.project.refused, deployed)[0]


def _match_declarations(
    declared_tables: tuple[Declared, ...], models: Mapping[str, Model], prod: Environment, work: Workspace
) -> dict[str, Declared]:
    declarations: dict[str, Declared] = {}
    for declaration in declared_tables:
        if declaration.model in declarations:
            raise RequestError(f"`{declaration.model}` is given two tables.")
        if declaration.model not in models:
            raise _explain_missing_model(declaration.model, work)
        kind = models[declaration.model].kind
        if not kind.is_stored or kind.is_seed:
            raise RequestError(f"`{declaration.model}` is of kind {kind}: it has no rows to take over.")
        if declaration.model in prod.snapshots:
            hint = "A table is adopted for a model that prod lacks; `mergeplan plan` changes one that it has."
            raise RequestError(f"Prod has `{declaration.model}` already.", hint=hint)
        declarations[declaration.model] = declaration
    if not declarations:
        raise RequestError("No table is named.", hint="Write `--table shop.orders=legacy.orders`, or use `--file`.")
    return declarations


def _explain_missing_model(name: str, work: Workspace) -> RequestError | ProjectError:
    for refusal in work.project.refused.refusals:
        if name in refusal.models:
            return refusal.errors[0]
    return RequestError(f"There is no model `{name}` in the project.", hint="`mergeplan adopt` lists them.")


def _check_tables(
    work: Workspace,
    models: Mapping[str, Model],
    prod: Environment,
    declarations: Mapping[str, Declared],
    *,
    only_columns: bool = False,
) -> dict[str, Checked]:
    naming = naming_of(work.project.config)
    sources = {name: declaration.table for name, declaration in declarations.items()}
    first = _plan_adoption(
        work, models, prod, load_state(work), {name: Adoption(source) for name, source in sources.items()}
    )
    checks: dict[str, Checked] = {}
    for change in first.changes:
        if change.new is None or (declared := declarations.get(change.name)) is None:
            continue
        begun = Checked(declared, change.new.model, view=naming.view(change.name, PROD), plan=first)
        try:
            query_columns = columns_over(first, sources, work.engine, change.new, work.now)
        except (QueryError, ProjectError) as error:
            place = f"{error.place}: " if error.place else ""
            checks[change.name] = replace(begun, problems=(f"{place}{error.message} {error.hint}".strip(),))
            continue
        checks[change.name] = check_table(
            work.engine, begun, change.new, query_columns, work.now, only_columns=only_columns
        )
    return checks


def _plan_adoption(
    work: Workspace,
    models: Mapping[str, Model],
    prod: Environment,
    table_state: Loaded,
    adoptions: Mapping[str, Adoption],
) -> Plan:
    request = Request(Window(work.now), naming=naming_of(work.project.config), adopted=adoptions)
    return build_plan(models, prod, prod, table_state, request)


def _replaceable_views(work: Workspace, plan: Plan, moved_views: set[str]) -> tuple[str, ...]:
    """Return the existing views that views of the plan replace; raise Refused if a table has such a name."""
    old, names = plan.old.views_by_name, []
    for name, view in plan.new.views_by_name.items():
        if name in old or name in moved_views or (relation := work.engine.catalog.standing(name)) is None:
            continue
        if not relation.is_view:
            raise Refused(
                f"`{name}` is a table, but the view of `{view.model}` needs this name.",
                hint=f"Adopt it: `--table {view.model}={name}`; or rename it first.",
            )
        names.append(name)
    return tuple(names)
