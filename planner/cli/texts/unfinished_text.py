"""Sentences about promotions that a crash interrupted."""

import click

from mergeplan.planner.apply.events import Event, PromotionPending, PromotionRecovered, Recovery
from mergeplan.planner.session.events import SparkStarted, SparkStarting, StateUnknown, TestsStarted
from mergeplan.planner.wording import count_noun


def pending_text(event: PromotionPending) -> str:
    promotion = f"The promotion of `{event.environment}` to revision {event.revision}"
    if event.holder:
        return f"{promotion} is under way, by {event.holder}: its views may be of two revisions until it ends."
    remedy = f"`mergeplan plan {event.environment}` or `mergeplan run {event.environment}` finishes it."
    return f"{promotion} was interrupted: its views may be of two revisions. {remedy}"


def recovery_text(event: PromotionRecovered) -> str:
    """Return the sentence for a resumed promotion; '' if another event reports it."""
    if event.ended is Recovery.FINISHED:
        moved = f"{len(event.views)} view{'' if len(event.views) == 1 else 's'}"
        return f"The interrupted promotion of `{event.environment}` to revision {event.revision} is finished: {moved}."
    return ""


def print_to_stderr(event: Event) -> None:
    """Print an event to standard error, for verbs whose standard output is an answer and nothing else."""
    if isinstance(event, PromotionPending):
        click.echo(f"Warning: {pending_text(event)}", err=True)
    elif isinstance(event, PromotionRecovered) and (text := recovery_text(event)):
        click.echo(text, err=True)
    elif isinstance(event, StateUnknown):
        click.echo(f"Warning: whether a promotion is unfinished is not known: {event.reason}", err=True)
    else:
        show_progress(event)


def show_progress(event: Event) -> None:
    match event:
        case SparkStarting(again=True):
            click.echo("The warm Spark lacks a table format: it starts again when no other run uses it...", err=True)
        case SparkStarting():
            click.echo("Starting Spark...", err=True)
        case SparkStarted(seconds):
            click.echo(f"Spark started in {seconds:.1f} s.", err=True)
        case TestsStarted(total):
            click.echo(f"Running {count_noun(total, 'unit test')}...", err=True)
