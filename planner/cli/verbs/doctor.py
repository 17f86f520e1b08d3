"""doctor: whether this machine has what mergeplan needs, one line each."""

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from mergeplan.planner.apply.events import ignore_event
from mergeplan.planner.cli.workspace import open_workspace, workspace
from mergeplan.planner.session.use_cases.doctor import Finding, run_checks

MARKS = {True: "ok", False: "wrong", None: "-"}


def doctor_command(more: Callable[[], Iterable[Finding]] = tuple) -> click.Command:
    """Return the verb, with further findings at its end."""

    @click.command("doctor")
    @click.option("--skip-connection", is_flag=True, help="Do not start Spark, and do not ask the state database.")
    @workspace
    def doctor(root: Path, gateway: str | None, skip_connection: bool) -> int:
        """Check Java, Spark, jars, the catalog, the state, isolation and GitHub: one line each.

        The exit code is 1 if one of them is wrong. No secret is printed.

        \b
        mergeplan doctor
        mergeplan doctor --skip-connection
        """
        wrong = False
        with open_workspace(root, gateway, on_event=ignore_event, only_looks=True) as work:
            for finding in run_checks(work, connect=not skip_connection):
                wrong |= _print_finding(finding)
        for finding in more():
            wrong |= _print_finding(finding)
        return 1 if wrong else 0

    return doctor


def _print_finding(finding: Finding) -> bool:
    """Print the finding; return True if it is wrong."""
    click.echo(f"{finding.what:<10} {MARKS[finding.ok]:<6} {finding.text}")
    return finding.ok is False


doctor = doctor_command()
