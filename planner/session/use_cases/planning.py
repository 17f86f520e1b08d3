"""Build a plan from its options, keep it for `apply`, and report what moved when a new plan differs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from mergeplan.planner.apply.backfill.estimate import forecast_costs
from mergeplan.planner.errors import Place, PlanMoved, RequestError
from mergeplan.planner.model.graph import Graph, graph_of
from mergeplan.planner.model.model import Model
from mergeplan.planner.model.selection import select, strip_default_catalog
from mergeplan.planner.parsing.files.catalogs import check_views
from mergeplan.planner.parsing.files.environments import environment_ttl, naming_of
from mergeplan.planner.parsing.sql.names import without_default
from mergeplan.planner.plan.build import Category, Plan, Request, build_plan
from mergeplan.planner.plan.category.reasons import format_names
from mergeplan.planner.plan.change import Blocker, Change
from mergeplan.planner.plan.costs import Estimate
from mergeplan.planner.plan.exposures import exposures_hit
from mergeplan.planner.plan.forward_only import ForwardOnly
from mergeplan.planner.plan.restatement_plan import build_restatement
from mergeplan.planner.plan.schedule import Window
from mergeplan.planner.plan.selected_changes import find_unselected, select_models
from mergeplan.planner.semantics.traits import traits_of
from mergeplan.planner.serial import decode_json, encode_json
from mergeplan.planner.session.moments import parse_moment
from mergeplan.planner.session.options import RESET, PlanOptions, categories, category_resets
from mergeplan.planner.session.restated_copies import find_taken_back, read_copies, resolve_copy
from mergeplan.planner.session.unopened import add_unopened, merge_deployed
from mergeplan.planner.session.use_cases.git_changes import git_change_finder
from mergeplan.planner.session.workspace import Workspace, load_state
from mergeplan.planner.snapshot.content_hash import Contents
from mergeplan.planner.snapshot.environment import PROD, Environment, parse_environment_name
from mergeplan.planner.state.leases import Lease
from mergeplan.planner.wording import age_text


def check_request(work: Workspace, options: PlanOptions) -> PlanOptions:
    """Return the options with names checked and dates like `yesterday` fixed; raise RequestError for wrong ones."""
    start, end = parse_moment(options.start, work.now), parse_moment(options.end, work.now, end=True)
    since = parse_moment(options.effective_from, work.now)
    if start and end and start >= end:
        raise RequestError(f"The end `{options.end}` does not come after the start `{options.start}`.")
    _check_together(options)
    config, catalog, others = work.project.config.plan, work.project.catalogs.default, options.overrides_from
    return replace(
        options,
        select=_qualify_selectors(options.select, catalog),
        backfill=_qualify_selectors(options.backfill, catalog),
        restate=_qualify_selectors(options.restate, catalog),
        restate_copy=tuple(resolve_copy(text, work) for text in options.restate_copy),
        restated_at=options.restated_at or (work.now.isoformat() if options.restate_copy else None),
        allow_destructive=_qualify_selectors(options.allow_destructive, catalog),
        allow_additive=_qualify_selectors(options.allow_additive, catalog),
        environment=parse_environment_name(options.environment or work.project.config.default_target_environment),
        start=start.isoformat() if start else None,
        end=end.isoformat() if end else None,
        categories=categories(
            f"{without_default(model.lower(), catalog)}={category}" for model, category in options.categories.items()
        ),
        overrides_from=",".join(map(parse_environment_name, others.split(","))) if others else None,
        execution_time=work.now.isoformat() if options.execution_time else None,
        include_unmodified=options.include_unmodified or config.include_unmodified,
        forward_only=not options.restate and (options.forward_only or config.forward_only),
        effective_from=since.isoformat() if since else None,
        enable_preview=config.enable_preview if options.enable_preview is None else options.enable_preview,
    )


def _qualify_selectors(selectors: Iterable[str], catalog: str) -> tuple[str, ...]:
    return tuple(strip_default_catalog(selector, catalog) for selector in selectors)


def _check_together(options: PlanOptions) -> None:
    """Raise RequestError for options that are valid alone but not together."""
    about_changes = {
        "--restate-copy": options.restate_copy,
        "--categorize": options.categories,
        "--skip-backfill": options.skip_backfill,
        "--overrides-from": options.overrides_from,
        "--select-model": options.select,
        "--backfill-model": options.backfill,
        "--empty-backfill": options.empty_backfill,
        "--no-gaps": options.no_gaps,
        "--min-intervals": options.min_intervals,
        "--forward-only": options.forward_only,
        "--effective-from": options.effective_from,
        "--allow-destructive-model": options.allow_destructive,
        "--allow-additive-model": options.allow_additive,
    }
    if options.restate and (odd := [name for name, setting in about_changes.items() if setting]):
        message = f"`--restate-model` does not go with `{odd[0]}`: a restatement changes no model."
        raise RequestError(message, hint="Plan the changes apart from it.")
    if options.empty_backfill and options.skip_backfill:
        message = "`--empty-backfill` does not go with `--skip-backfill`."
        raise RequestError(message, hint="The first says that tables hold their days, the second that they lack them.")
    if options.others_from and not options.select:
        raise RequestError("`--others-from` does nothing without `--select-model`.", hint="Select some models.")
    if options.min_intervals and not options.start:
        raise RequestError("`--min-intervals` does nothing without `--start`.", hint="Give a start, or leave it out.")


def make_plan(work: Workspace, options: PlanOptions, models: Mapping[str, Model]) -> Plan:
    plan = _make_plan(work, options, models)
    work.lookups.keep()
    warnings = (*plan.warnings, *find_late_schedules(plan))
    return replace(plan, exposures=exposures_hit(work.project.exposures, plan.changes), warnings=warnings)


def _make_plan(work: Workspace, options: PlanOptions, models: Mapping[str, Model]) -> Plan:
    store = work.store
    if options.restate:
        environment = work.environment(options.environment)
        window = _build_window(work, options)
        past, changed = work.store.restatements.past(), git_change_finder(work.project)
        return build_restatement(environment, load_state(work), window, options.restate, past, changed)
    if options.restate_copy and options.environment == PROD:
        message = "`--restate-copy` is for other environments: prod's own tables are restated."
        raise RequestError(message, hint="Use `--restate-model`.")
    overrides = store.overrides.list_for(options.environment)
    for other in (options.overrides_from or "").split(","):
        overrides = (*overrides, *store.overrides.list_for(other))
    overrides = tuple(override for override in overrides if override.model not in category_resets(options))
    loaded = load_state(work)
    base = store.environments.get(PROD)
    target = base if options.environment == PROD else store.environments.get(options.environment)
    deployed = {name: snapshot.model for name, snapshot in base.snapshots.items()}
    models, unopened = merge_deployed(models, work.project.refused, deployed)
    taken_back = find_taken_back(options, models, git_change_finder(work.project))
    overrides = tuple(override for override in overrides if not (override.restates and override.model in taken_back))
    not_selected: tuple[str, ...] = ()
    if options.select:
        every, other_environment = models, _others_environment(work, options, target, base)
        models = select_models(every, other_environment, options.select, git_change_finder(work.project))
        not_selected = find_unselected(every, models)
    request = build_request(work, options, models)
    _read_concerned_snapshots(work, models, base)
    _check_default(work, target)
    if options.empty_backfill or not work.project.config.plan.early_cut_off:
        plan = replace(build_plan(models, target, base, loaded, request, overrides), not_selected=not_selected)
        return _check_placement(work, add_unopened(plan, unopened))
    contents: dict[str, Contents] = {}
    while True:
        full_state = replace(loaded, contents=contents)
        plan = build_plan(models, target, base, full_state, request, overrides)
        compared = {compared_snapshot.table for pair in plan.comparisons for compared_snapshot in (pair.old, pair.new)}
        new_contents = store.contents.load(compared - contents.keys())
        if not any(table_contents.known for table_contents in new_contents.values()):
            return _check_placement(work, add_unopened(replace(plan, not_selected=not_selected), unopened))
        contents |= new_contents


def _read_concerned_snapshots(work: Workspace, models: Mapping[str, Model], base: Environment) -> None:
    """Read what will be asked of changed models, of what reads them, and of what all of these read."""
    shown = base.snapshots
    changed = {name for name, model in models.items() if name not in shown or shown[name].model is not model}
    if changed:
        graph = graph_of(models)
        names = changed | graph.downstream(changed)
        names |= {parent for name in names for parent in graph.parents[name]}
        work.store.snapshots.read_whole(shown[name] for name in names & shown.keys())


def _others_environment(work: Workspace, options: PlanOptions, target: Environment, base: Environment) -> Environment:
    """Return the environment from which unselected models are taken; raise RequestError if it does not exist."""
    if options.others_from:
        return work.environment(parse_environment_name(options.others_from))
    return target if target.exists else base


def _check_placement(work: Workspace, plan: Plan) -> Plan:
    """Return the plan if the catalogs of its views exist; raise ProjectError otherwise."""
    check_views(sorted(plan.new.view_names), work.project.catalogs, lambda: Place(work.project.config_path))
    return plan


def _check_default(work: Workspace, target: Environment) -> None:
    """Raise RequestError if names without a catalog meant other tables at the last promotion."""
    old_catalog, new_catalog = target.naming.default, work.project.catalogs.in_spark
    if target.exists and old_catalog and old_catalog != new_catalog:
        raise RequestError(
            f"`{target.name}` was built with the default catalog `{old_catalog}`, and it is `{new_catalog}` now: every "
            "name of two parts would be another table.",
            hint=f"Set `catalog: {old_catalog}` again, or keep a state of its own under another `project`.",
        )


def build_request(work: Workspace, options: PlanOptions, models: Mapping[str, Model]) -> Request:
    copies, warnings = read_copies(options, models, git_change_finder(work.project))
    only = select(graph_of(models), options.backfill, git_change_finder(work.project)) if options.backfill else None
    preview = True if options.enable_preview is None else options.enable_preview
    since = parse_moment(options.effective_from, work.now)
    length = environment_ttl(work.project.config, options.environment)
    return Request(
        _build_window(work, options),
        {name: Category(category) for name, category in options.categories.items() if category != RESET},
        options.skip_backfill,
        options.who,
        naming_of(work.project.config, work.project.catalogs.in_spark),
        None if length is None else work.began_at + length,
        forward=ForwardOnly(options.forward_only, since, preview, options.allow_destructive, options.allow_additive),
        backfill=only,
        empty_backfill=options.empty_backfill,
        no_gaps=options.no_gaps,
        include_unmodified=options.include_unmodified,
        diff_rendered=options.diff_rendered,
        shapes=work.shapes,
        refuted=work.store.refuted_claims.all(),
        restated=copies,
        restate_warnings=warnings,
        as_of=work.now if options.execution_time else None,
        restated_at=datetime.fromisoformat(options.restated_at) if options.restated_at else None,
    )


def _build_window(work: Workspace, options: PlanOptions) -> Window:
    start, end = parse_moment(options.start, work.now), parse_moment(options.end, work.now)
    return Window(work.now, start, end, options.min_intervals, options.ignore_cron)


def save_plan(work: Workspace, plan: Plan, options: PlanOptions) -> None:
    work.store.plans.save(
        plan.id,
        plan.environment,
        tables=[change.new.table for change in plan.changes if change.new],
        options=encode_json(options),
        components=_list_components(work, plan),
    )


def load_request(work: Workspace, plan_id: str) -> PlanOptions:
    """Return the options of a saved plan; set the workspace to the moment that the plan was requested for, if any."""
    options = work.store.plans.get(plan_id).options
    if not options:
        raise RequestError(f"Plan {plan_id} was not kept.", hint="Plan again.")
    try:
        saved_options = decode_json(PlanOptions, options)
    except (TypeError, AttributeError, ValueError) as error:
        message = f"Plan {plan_id} was saved by another version of mergeplan."
        raise RequestError(message, hint="Plan again.") from error
    if saved_options.execution_time:
        work.turn_to(datetime.fromisoformat(saved_options.execution_time))
    return saved_options


def rebuild_saved_plan(work: Workspace, plan_id: str, options: PlanOptions) -> Plan:
    """Make the saved plan again; raise PlanMoved, with what moved, if the result differs."""
    new_plan = _remake_plan(work, options)
    if new_plan.id != plan_id:
        moved = _component_changes_text(work.store.plans.get(plan_id).components, _list_components(work, new_plan))
        hint = f"Plan again: `mergeplan plan {options.environment}` makes {new_plan.id} now."
        raise PlanMoved(f"Plan {plan_id} no longer holds: {moved} changed.", hint=hint)
    return new_plan


def confirm_plan(work: Workspace, plan: Plan, options: PlanOptions, lease: Lease) -> Plan:
    """Make the plan again now that the lease is held; raise PlanMoved unless it has the same id.

    The previous holder may have promoted, and a crash may have left a promotion half done. The same id means the same
    decisions.
    """
    work.settle(lease)
    new_plan = _remake_plan(work, options)
    if new_plan.id != plan.id:
        moved = _component_changes_text(_list_components(work, plan), _list_components(work, new_plan))
        message = f"This plan no longer holds: {moved} changed while it waited for `{options.environment}`."
        raise PlanMoved(message, hint=f"Plan `{options.environment}` again.")
    return new_plan


def _remake_plan(work: Workspace, options: PlanOptions) -> Plan:
    return make_plan(work, options, {} if options.restate else work.models)


def _list_components(work: Workspace, plan: Plan) -> dict[str, str]:
    """Return what a plan depends on, part by part, so that a moved plan can name which parts moved."""
    return {
        "the project's files": work.project.files,
        f"the models of `{plan.base}` that it replaces": repr(
            sorted((c.name, c.old.fingerprint.text, c.old.version) for c in plan.changes if c.old)
        ),
        "the time to compute": repr([str(i) for c in plan.changes for i in c.needed]),
        "somebody's category": repr(sorted((override.model, str(override.category)) for override in plan.overrides)),
    }


def _component_changes_text(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    moved = [name for name, value in now.items() if before.get(name) != value]
    return " and ".join(moved) or "its decisions"


def estimate_costs(work: Workspace, plan: Plan) -> Mapping[str, Estimate]:
    """Return the estimated cost of the plan's backfills; query Spark only if it runs already."""
    return forecast_costs(plan, work.store, work.engine if work.has_engine else None, work.now)


def find_late_schedules(plan: Plan) -> tuple[Blocker, ...]:
    """Return a warning for each model that a slower schedule, or a new or stricter `freshness`, makes late."""
    slower = [change for change in plan.changes if _runs_less_often(change)]
    promising = [change for change in plan.changes if _promises_more(change)]
    if not slower and not promising:
        return ()
    graph = graph_of({name: snapshot.model for name, snapshot in plan.new.snapshots.items()})
    pairs = {(change.name, reader) for change in slower for reader in (change.name, *graph.downstream([change.name]))}
    pairs |= {(read, change.name) for change in promising for read in (change.name, *graph.upstream([change.name]))}
    return tuple(warning for pair in sorted(pairs) for warning in _judge_pair(graph, *pair))


def _judge_pair(graph: Graph, name: str, reader_name: str) -> Iterator[Blocker]:
    model, reader = graph.models[name], graph.models[reader_name]
    freshness = reader.metadata.freshness
    if freshness is None or (age := _worst_age(model)) <= freshness.limit:
        return
    filled = f"`{name}` runs by cron `{model.cron.text}`: its rows get {age_text(age)} old"
    promise = f"`freshness` allows {age_text(freshness.limit)}"
    if name == reader_name:
        yield Blocker(f"{filled}, and its {promise}.", model.place)
    else:
        yield Blocker(f"{filled}. `{reader_name}` reads it, and its {promise}.", model.place)


def _worst_age(model: Model) -> float:
    # Its age in seconds just before its next run; 0 for a table that no run fills.
    is_filled = model.kind.is_stored and not model.kind.is_seed
    return model.cron.longest_age.total_seconds() if is_filled else 0.0


def _runs_less_often(change: Change) -> bool:
    if change.old is None or change.new is None or change.old.model.cron == change.new.model.cron:
        return False
    return _worst_age(change.new.model) > _worst_age(change.old.model)


def _promises_more(change: Change) -> bool:
    old, new = change.old.model if change.old else None, change.new.model if change.new else None
    if new is None or (promise := new.metadata.freshness) is None:
        return False
    if old is None or old.metadata.freshness is None or not set(new.depends_on) <= set(old.depends_on):
        return True
    return promise.limit < old.metadata.freshness.limit


def add_declaration_warnings(work: Workspace, plan: Plan) -> Plan:
    """Return the plan with warnings of declared tables that have other columns, which a query reads by `*`."""
    return replace(plan, warnings=(*plan.warnings, *_find_stale_declarations(work)))


def _find_stale_declarations(work: Workspace) -> Iterator[Blocker]:
    models = work.project.models
    graph = graph_of(models)
    for name, model in sorted(models.items()):
        if not (model.kind.is_external and model.columns) or model.open_columns:
            continue
        readers = (models[reader] for reader in graph.children.get(name, ()) if reader in models)
        if any(reader.sql and traits_of(reader.sql, work.shapes).unnamed for reader in readers):
            yield from _compare_columns(model, {column.name for column in work.find_columns(name)})


def _compare_columns(model: Model, columns: set[str]) -> Iterator[Blocker]:
    declared = {column.name for column in model.columns}
    if columns and (undeclared_columns := sorted(columns - declared)):
        hint = "A `*` over it means the declared columns: declare them, or set `partial_columns: true`."
        yield Blocker(
            f"`{model.name}` has {format_names(undeclared_columns)}, which {model.path} does not declare. {hint}",
            model.place,
        )
    if columns and (gone := sorted(declared - columns)):
        yield Blocker(f"{model.path} declares {format_names(gone)}, which `{model.name}` does not have.", model.place)
