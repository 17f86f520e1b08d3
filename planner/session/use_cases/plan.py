"""plan: what an environment would become, checked before anything is done."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from mergeplan.planner.apply.events import Promoted
from mergeplan.planner.checks.unit_test_result import TestResult
from mergeplan.planner.errors import MergeplanError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.sql.tokens import did_you_mean
from mergeplan.planner.plan.build import Plan
from mergeplan.planner.plan.change import Blocker, ChangeKind
from mergeplan.planner.session.events import Tested, TestsStarted
from mergeplan.planner.session.options import PlanOptions, category_resets
from mergeplan.planner.session.restated_copies import find_taken_back
from mergeplan.planner.session.unopened import plan_refusals
from mergeplan.planner.session.use_cases.git_changes import git_change_finder
from mergeplan.planner.session.use_cases.lint import check_rules
from mergeplan.planner.session.use_cases.planning import check_request, load_request, make_plan, rebuild_saved_plan
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import PROD, view_changes
from mergeplan.planner.state.environments import HistoryAction
from mergeplan.planner.wording import join_names


def check_options(work: Workspace, options: PlanOptions) -> PlanOptions:
    """Return the options with names, dates and the project's settings filled in; raise RequestError if one is wrong."""
    checked_options = check_request(work, options)
    work.about = frozenset({checked_options.environment, PROD})
    return checked_options


def prepare_plan(work: Workspace, options: PlanOptions) -> Plan:
    """Make the plan if the linter's rules hold and the unit tests pass; raise ProjectErrors or MergeplanError.

    A wrong project or request is reported before Spark is started. What the plan keeps is not yet checked by Spark.
    """
    if options.strict:
        work.project.refused.check()
    # of a restatement by what the environment shows: no file is looked at
    plan_files = cache(lambda: make_plan(work, options, {} if options.restate else work.project.models))
    if not options.skip_linter:
        refusals = () if options.restate else plan_refusals(work, options.must_open)
        check_rules(work, refusals, lambda: plan_files().changes)
    planned = plan_files()
    if options.restate:
        return planned
    if not options.skip_tests:
        _run_tests(work, again=options.rerun_tests)
    # Only Spark's catalog knows the columns of tables that nobody defines, or not in whole; it is asked when all else
    # is right.
    if work.external_tables or work.undescribed_tables or work.incomplete_tables:
        planned = make_plan(work, options, work.models)
        planned = replace(planned, warnings=(*planned.warnings, *_find_missing_tables(work, planned)))
    return planned


def _find_missing_tables(work: Workspace, plan: Plan) -> Iterator[Blocker]:
    """Yield a warning for each table that an added or edited model reads, and that Spark's catalog does not have."""
    readers: dict[str, list[Model]] = {}
    for change in plan.changes:
        if change.new and change.change in (ChangeKind.ADDED, ChangeKind.DIRECT):
            for name in work.external_tables.difference(work.models).intersection(change.new.model.depends_on):
                readers.setdefault(name, []).append(change.new.model)
    for name, models in sorted(readers.items()):
        names = join_names([f"`{model.name}`" for model in models])
        message = f"Spark's catalog has no table `{name}`, which {names} {'reads' if len(models) == 1 else 'read'}."
        yield Blocker(f"{message} {did_you_mean(name, work.models, most=0)}".strip(), models[0].locate(name))


def rebuild_plan(work: Workspace, plan_id: str) -> tuple[Plan, PlanOptions]:
    """Make a stored plan again and return it with its options; raise PlanMoved if the result differs."""
    work.about = frozenset({PROD})
    options = load_request(work, plan_id)
    return rebuild_saved_plan(work, plan_id, options), options


def keep_categories(work: Workspace, plan: Plan, options: PlanOptions) -> None:
    """Keep each category that was chosen for a change of the plan, and forget those that are taken back."""
    for model in category_resets(options):
        work.store.overrides.forget(plan.environment, model)
    if options.restate_copy:
        models = {name: snapshot.model for name, snapshot in plan.new.snapshots.items()} | dict(work.models)
        for model in find_taken_back(options, models, git_change_finder(work.project)):
            work.store.overrides.forget_restatement(plan.environment, model)
    for override in plan.overrides:
        work.store.overrides.record(plan.environment, replace(override, at=override.at or work.now))


def renew_expiry(work: Workspace, plan: Plan) -> None:
    """Reset the expiry of the environment after an applied plan, also after one with nothing to do."""
    work.store.environments.expire(plan.environment, plan.new.expires_at)


def find_earlier_promotion(work: Workspace, name: str, note: str) -> Promoted | None:
    """Return the promotion that an earlier, interrupted call made under the same note, or None."""
    history = [row for row in work.store.environments.history(name) if row.action is not HistoryAction.UNDONE]
    if not note or not history or (history[0].note, history[0].action) != (note, HistoryAction.PROMOTED):
        return None
    latest, previous_revision = history[0].revision, history[1].revision if len(history) > 1 else 0
    new = work.store.environments.get_revision(name, latest)
    moved = view_changes(work.store.environments.get_revision(name, previous_revision), new)
    added, swapped, dropped = len(moved.added), len(moved.swapped), len(moved.dropped)
    return Promoted(name, latest, added, swapped, dropped, len(new.views_by_name) - added - swapped)


def _run_tests(work: Workspace, *, again: bool) -> None:
    tests = work.project.tests
    if not tests:
        return
    from mergeplan.planner.checks.remembered_tests import TestDigests

    started = time.monotonic()
    digests = TestDigests(work.project, work.connection)
    digests_by_test = {test.name: test_digest for test in tests if (test_digest := digests.compute(test))}
    work.project.code.close()  # a call of a macro in Python starts it
    passed = frozenset() if again else work.store.passed_tests.filter_passed(list(digests_by_test.values()))
    changed = [test for test in tests if digests_by_test.get(test.name) not in passed]
    ran: dict[str, TestResult] = {}
    if changed:
        from mergeplan.planner.apply.unit_tests import (
            run_unit_tests,  # with all that runs on Spark: mostly no test has changed
        )

        engine = work.engine
        work.on_event(TestsStarted(len(changed)))
        ran = {result.test.name: result for result in run_unit_tests(engine, work.project, changed)}
    good = [
        test for test in changed if test.name in digests_by_test and ran[test.name].ok and digests.is_repeatable(test)
    ]
    if good:
        work.store.passed_tests.record([digests_by_test[test.name] for test in good])
    results = tuple(ran.get(test.name) or TestResult(test, unchanged=True) for test in tests)
    work.on_event(Tested(results, time.monotonic() - started))
    failed = [result for result in results if not result.ok]
    if failed:
        names = ", ".join(f"`{result.test.name}`" for result in failed)
        raise MergeplanError(f"Unit tests failed: {names}.", place=failed[0].test.place, hint="Nothing was planned.")
