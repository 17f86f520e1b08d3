"""The actions of a layer of a stack: it waits for the one below, says what it changes itself, and leaves the stack."""

import time
from dataclasses import replace
from functools import partial

import structlog

from mergeplan.bot.budgets import DiffRules, diff_arguments
from mergeplan.bot.context import PlannerCall
from mergeplan.bot.pull_parts import LayerChange
from mergeplan.bot.pulls.publish import publish_record
from mergeplan.bot.pulls.pull_pass import PullPass
from mergeplan.bot.records import PullRecord
from mergeplan.bot.results import pack_outcome
from mergeplan.bot.transitions.planning import wait_for_layer
from mergeplan.bot.transitions.stacks import leave_stack
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.snapshot.environment import PROD

log = structlog.get_logger(__name__)
KEEP_SECONDS = 86_400.0  # of the environment of a layer that has left its stack: mostly it gets another base
CHANGES_MAX = 50
DIFF_MAX = 4_000  # characters of one diff


def await_layer(current: PullPass) -> None:
    current.update(partial(wait_for_layer, pull=current.pull, environment=current.environment, now=time.time()))


def read_layer_changes(current: PullPass, call: PlannerCall, rules: DiffRules) -> None:
    """Store what the layer changes against the environment that shows the layers below it, models and rows."""
    environment = current.record.stack.planned_on.environment
    if not environment:
        return
    compared = current.context.plan(replace(call, arguments=("diff", environment)))
    results = [line for line in compared.lines if isinstance(line, ResultLine)]
    if results and results[-1].ok:
        changes = [
            LayerChange(row.name, row.category or row.change, row.reason, row.diff[:DIFF_MAX])
            for row in (results[-1].changes or ())[:CHANGES_MAX]
        ]
        current.update(lambda record: replace(record, stack=replace(record.stack, changes=tuple(changes))))
        if changes and not rules.is_off and environment != PROD:
            _compare_rows(current, call, environment, rules)
    else:
        log.warning("layer_not_compared", key=current.job.key, environment=environment)


def _compare_rows(current: PullPass, call: PlannerCall, environment: str, rules: DiffRules) -> None:
    own_environment = current.record.environment.name
    arguments = ("data_diff", own_environment, f"--against={environment}", *diff_arguments(rules))
    compared = current.context.plan(replace(call, arguments=arguments))
    if compared.outcome.ok:
        rows = pack_outcome(compared.lines, compared.exit_code)
        current.update(lambda record: replace(record, stack=replace(record.stack, rows=rows)))


def leave_layers(current: PullPass, record: PullRecord) -> None:
    """End the work of a layer whose base leads to the prod branch no more, and say what became of the one below."""
    reason, keep_until = _leave_reason(current, record), time.time() + KEEP_SECONDS
    base_ref = current.pull.base_ref
    updated = current.update(partial(leave_stack, base_ref=base_ref, reason=reason, keep_until=keep_until))
    log.info("stack_left", key=current.job.key, why=reason)
    publish_record(current.inbox, current.gateway, updated)


def _leave_reason(current: PullPass, record: PullRecord) -> str:
    pull, branch = current.pull, current.config.prod_branch
    number = record.stack.planned_on.layers[-1].number
    if pull.merged:
        return f"It is merged into `{pull.base_ref}`, the branch of #{number}, and reaches prod with that one."
    below = next((other for other in current.gateway.list_closed_pulls() if other.number == number), None)
    if below and below.head_ref == pull.base_ref:
        end = "merged" if below.merged else "closed"
        return (
            f"#{number}, the layer below, is {end}, and this one still merges into its branch `{pull.base_ref}`. "
            f"Make `{branch}` its base, and it is planned again."
        )
    return f"It merges into `{pull.base_ref}` now, which does not lead to `{branch}`."
