"""The neighbours of a pull request in its stack: each knows the one below and those above, and wakes them by need."""

from dataclasses import replace

from mergeplan.bot.pull_parts import Layer
from mergeplan.bot.pulls.pull_pass import PullPass
from mergeplan.bot.pulls.stacks import find_pulls_above, is_planned_on, line_up
from mergeplan.bot.records import PullState
from mergeplan.bot.transitions.stacks import add_above, remove_above


def join_stack(current: PullPass) -> None:
    """Store the place in the stack as it is now; the neighbours that it changes for look at theirs."""
    record, layers = current.record, current.pull.stack.layers
    below = layers[-1].number if layers else 0
    if not (below or record.stack.below or record.stack.above or record.stack.line):
        return
    if below != record.stack.below:
        _move(current, record.stack.below, below)
    line = line_up(current.pull.number, layers, current.record_of) if current.pull.is_open else ()
    if (below, line) != (record.stack.below, record.stack.line):
        current.update(lambda record: replace(record, stack=replace(record.stack, below=below, line=line)))
        _wake(current, below, record.stack.below, *record.stack.above)


def _move(current: PullPass, old: int, new: int) -> None:
    pulls, repository, number = current.inbox.pulls, current.job.repository, current.pull.number
    if old:
        pulls.update(repository, old, remove_above, number)
    if new:
        pulls.update(repository, new, add_above, number)


def tell_layers(current: PullPass) -> None:
    """Wake the pull requests above that were planned on this one as it was, or wait for it."""
    record, pull = current.record, current.pull
    layers = (*pull.stack.layers, Layer(pull.number, pull.head))
    plan = record.outcome.plan if record.state is PullState.PLANNED and record.outcome else None
    for number in record.stack.above:
        above = current.record_of(number)
        waits = above.state is PullState.WAITING
        if waits or not (pull.is_open and is_planned_on(above, layers, plan.id if plan else "")):
            _wake(current, number)


def wake_pulls_above(current: PullPass) -> None:
    if current.pull.is_open:
        _wake(current, *find_pulls_above(current.pull, current.gateway.open_pulls()))


def _wake(current: PullPass, *numbers: int) -> None:
    for number in dict.fromkeys(numbers):
        if number:
            current.inbox.queue.wake(current.job.repository, number)
