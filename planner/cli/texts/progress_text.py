"""Lines on standard error about work that takes seconds before there is a result to show."""

import click

from mergeplan.planner.apply.events import Event
from mergeplan.planner.session.events import SparkStarted, SparkStarting, TestsStarted
from mergeplan.planner.wording import count_noun


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
