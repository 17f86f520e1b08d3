"""What takes seconds before there is anything to show, in a line on standard error as it begins."""

from __future__ import annotations

import click

from mergeplan.planner.session.events import Event, SparkStarted, SparkStarting, TestsStarted
from mergeplan.planner.wording import count_noun


def show_progress(event: Event) -> None:
    """A line for what begins, or has begun; also where the output is piped."""
    match event:
        case SparkStarting(again=True):
            click.echo("The warm Spark lacks a table format: it starts again when no other run uses it...", err=True)
        case SparkStarting():
            click.echo("Starting Spark...", err=True)
        case SparkStarted(seconds):
            click.echo(f"Spark started in {seconds:.1f} s.", err=True)
        case TestsStarted(total):
            click.echo(f"Running {count_noun(total, 'unit test')}...", err=True)
