"""Stacks of pull requests: each goes into the branch of the one below it, the lowest into the prod branch. Pure."""

from collections.abc import Callable, Sequence

from mergeplan.bot.pull_parts import NO_LAYERS, Layer, StackBase
from mergeplan.bot.records import Pull, PullRecord, PullState
from mergeplan.bot.results import changes_nothing
from mergeplan.planner.snapshot.environment import PROD

LAYERS_MAX = 20  # of one stack: a pull request on more of them is not planned
TO_COME = frozenset({PullState.NEW, PullState.WAITING, PullState.PLANNING, PullState.CLOSED})


def find_layers(pull: Pull, open_pulls: Sequence[Pull], prod_branch: str) -> tuple[Layer, ...]:
    """Return the layers below a pull request, the lowest first; () unless they lead to the prod branch."""
    layers, base = list[Pull](), pull.base_ref
    while base != prod_branch:
        own_numbers = {pull.number, *(layer.number for layer in layers)}
        candidates = [
            other
            for other in open_pulls
            if other.head_ref == base and other.number not in own_numbers and not other.is_fork
        ]
        if not candidates or len(layers) == LAYERS_MAX:
            return ()
        # A branch may have several pull requests: the one into prod counts.
        layers.append(min(candidates, key=lambda other: (other.base_ref != prod_branch, other.number)))
        base = layers[-1].base_ref
    return tuple(Layer(layer.number, layer.head) for layer in reversed(layers))


def find_pulls_above(pull: Pull, open_pulls: Sequence[Pull]) -> tuple[int, ...]:
    if pull.is_fork:
        return ()
    return tuple(other.number for other in open_pulls if other.base_ref == pull.head_ref)


def build_stack_base(layers: Sequence[Layer], read_record: Callable[[int], PullRecord], revision: int) -> StackBase:
    """Return the layers with the plan of the one below; `waits_for` is set while that plan is still to come."""
    if not layers:
        return NO_LAYERS
    below = read_record(layers[-1].number)
    to_come = below.head != layers[-1].head or below.state in TO_COME or _is_stale(below, layers[:-1], revision)
    plan = below.outcome.plan if below.state is PullState.PLANNED and below.outcome else None
    return StackBase(
        tuple(layers),
        plan.id if plan else "",
        _shown_environment([read_record(layer.number) for layer in reversed(layers)]),
        below.number if to_come else 0,
    )


def _is_stale(below: PullRecord, layers: Sequence[Layer], prod_revision: int) -> bool:
    planned = below.state in (PullState.PLANNED, PullState.FAILED)
    return planned and (below.stack.planned_on.layers, below.base.prod_revision) != (tuple(layers), prod_revision)


def _shown_environment(records: Sequence[PullRecord]) -> str:
    for record in records:
        if record.state is not PullState.PLANNED:
            return ""
        if record.outcome and record.outcome.is_built and record.environment.exists:
            return record.environment.name
        if not changes_nothing(record.outcome):
            return ""
    return PROD


def line_up(number: int, layers: Sequence[Layer], read_record: Callable[[int], PullRecord]) -> tuple[int, ...]:
    """Return the numbers of a stack, the lowest first: those below, the pull request, and those above it."""
    line = [*(layer.number for layer in layers), number]
    pending = [*read_record(number).stack.above]
    while pending and len(line) <= LAYERS_MAX:
        above = pending.pop(0)
        if above not in line:
            line.append(above)
            pending += read_record(above).stack.above
    return tuple(line) if len(line) > 1 else ()


def is_planned_on(record: PullRecord, layers: Sequence[Layer], plan: str) -> bool:
    """Return True when a pull request was planned on these layers, the highest of which has that plan."""
    return (record.stack.planned_on.layers, record.stack.planned_on.plan) == (tuple(layers), plan)
