"""The command line: verbs by name, each imported when called, and the one place that turns errors into exit codes."""

import errno
import gc
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NoReturn

import click

from mergeplan.planner.errors import Cancelled, MergeplanError

CLI = "mergeplan.planner.cli"
# verb -> (module:command, help). The help is here so that listing the verbs imports none of them.
VERBS = {
    "init": (f"{CLI}.start:init", "Create a new project."),
    "plan": (f"{CLI}.verbs.plan:plan", "Show what changed and what it costs, and apply it on request."),
    "apply": (f"{CLI}.verbs.apply:apply", "Apply a saved plan, if nothing has changed since."),
    "adopt": (f"{CLI}.verbs.adopt:adopt", "Use existing tables as the first versions of models."),
    "run": (f"{CLI}.verbs.run:run", "Run the models that are due."),
    "test": (f"{CLI}.checks.unit_tests:test", "Run the project's unit tests."),
    "create_test": (f"{CLI}.checks.create_test:create_test", "Generate a unit test from the rows of tables."),
    "format": (f"{CLI}.checks.formatting:format_files", "Format the SQL files."),
    "lint": (f"{CLI}.checks.linting:lint_models", "Check the models against the linter's rules."),
    "audit": (f"{CLI}.checks.audits:audit", "Run the audits on an environment's tables."),
    "freshness": (f"{CLI}.checks.freshness:freshness", "Show how old the tables are, and which are late."),
    "table_diff": (f"{CLI}.checks.table_diff:table_diff", "Compare tables, or models in two environments."),
    "data_diff": (
        f"{CLI}.checks.data_diff:data_diff",
        "Compare the rows of an environment's changed models with prod's.",
    ),
    "physical_plan": (
        f"{CLI}.checks.physical_plan:physical_plan",
        "Compare Spark's physical plans of an environment's edited queries with prod's.",
    ),
    "render": (f"{CLI}.texts.rendering:render", "Print a model's query as Spark runs it."),
    "dag": (f"{CLI}.verbs.dag:dag", "Show the graph of models."),
    "schedule": (f"{CLI}.verbs.schedule:schedule", "Print an environment's models for schedulers, as JSON."),
    "lineage": (f"{CLI}.verbs.lineage:lineage", "Show the lineage of a model or a column."),
    "docs": (f"{CLI}.verbs.docs:docs", "Write the catalog of the models: a static site, JSON, or dbt's files."),
    "fetchdf": (f"{CLI}.checks.data:fetchdf", "Run a query and print its rows."),
    "create_external_models": (
        f"{CLI}.verbs.external:create_external_models",
        "Write external_models.yaml from Spark's catalog.",
    ),
    "diff": (f"{CLI}.verbs.diff:diff", "Show how the project differs from an environment."),
    "environments": (f"{CLI}.verbs.environments:environments", "List the environments."),
    "history": (f"{CLI}.verbs.environments:history", "Show what an environment has shown so far."),
    "rollback": (f"{CLI}.verbs.environments:rollback", "Roll an environment back to an earlier promotion."),
    "invalidate": (f"{CLI}.verbs.environments:invalidate", "Drop an environment, and the tables that only it uses."),
    "janitor": (f"{CLI}.verbs.environments:janitor", "Drop expired environments and unused tables."),
    "state": (f"{CLI}.verbs.state:state", "Export or import the state."),
    "migrate": (f"{CLI}.verbs.environments:migrate", "Migrate the state database."),
    "doctor": (f"{CLI}.verbs.doctor:doctor", "Check Java, Spark, the catalog, the state and isolation."),
    "info": (f"{CLI}.verbs.upkeep:info", "Show the project, its Spark and its state."),
    "clean": (f"{CLI}.verbs.upkeep:clean", "Remove caches and logs."),
    "schema": (f"{CLI}.verbs.schema:schema", "Print the JSON Schema of plans, catalogs or YAML files."),
    "completion": (f"{CLI}.completion:completion", "Print the shell completion for bash, zsh or fish."),
    "ui": (f"{CLI}.verbs.ui:ui", "Serve the catalog, environments and plans over HTTP."),
    "mcp": (f"{CLI}.verbs.mcp:mcp", "Answer an agent's questions about the project."),
    "lsp": (f"{CLI}.verbs.lsp:lsp", "Serve an editor: errors, completion and the plan of an edit."),
    "warm": (f"{CLI}.checks.data:warm", "Keep a Spark running for the other commands."),
}
# The verbs by what a person wants to do, as the help lists them; `format_commands` puts any other last.
GROUPS = {
    "Start": "init demo sandbox doctor warm info schema completion",
    "Plan and apply": "plan apply run rollback diff adopt",
    "Check": "test create_test lint format audit freshness table_diff data_diff physical_plan",
    "Look": "render dag lineage docs fetchdf create_external_models",
    "Environments and state": "environments history invalidate janitor state migrate clean",
    "Editors, agents and schedulers": "ui lsp mcp schedule",
    "The bot": "serve action app_manifest replay",
}
# Names of verbs in other tools, and names that people try -> the verb here.
MEANT = {
    "backfill": "run",
    "build": "plan",
    "check": "lint",
    "compile": "render",
    "deploy": "plan",
    "destroy": "invalidate",
    "envs": "environments",
    "evaluate": "fetchdf",
    "log": "history",
    "promote": "plan",
    "query": "fetchdf",
    "restate": "plan --restate-model MODEL",
    "revert": "rollback",
    "revisions": "history",
    "show": "fetchdf",
    "status": "environments",
    "undo": "rollback",
    "validate": "lint",
}
OTHER_O = frozenset({"create_test", "state"})  # verbs whose `-o` is not `--output`
OBJECTS = 400_000  # between two collections of garbage: what a plan of 5,000 models reads
GONE = "The folder in which mergeplan was called is gone."
EXIT_DEFECT = 3
EXIT_INTERRUPTED = 130


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from mergeplan.planner.versions import mergeplan_version

        click.echo(f"mergeplan {mergeplan_version()}")
        ctx.exit()


VERSION = click.Option(
    ["-V", "--version"],
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version and exit.",
)


class Verbs(click.Group):
    """A group whose commands are imported when they are called."""

    def __init__(self, verbs: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(
            name="mergeplan",
            help="Plans for data transformations on Spark.",
            epilog="`mergeplan COMMAND --help` shows the options and examples of a command.",
            no_args_is_help=True,
            subcommand_metavar="COMMAND [ARGS]...",
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        self.verbs = verbs
        self.params.append(VERSION)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.verbs:
            return None
        module, _, attribute = self.verbs[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.verbs)) + 2
        groups = {title: [name for name in names.split() if name in self.verbs] for title, names in GROUPS.items()}
        grouped = {name for names in groups.values() for name in names}
        for title, names in (*groups.items(), ("Others", [name for name in self.verbs if name not in grouped])):
            if names:
                with formatter.section(title):
                    formatter.write_dl([(f"{name:<{width}}", self.verbs[name][1]) for name in names])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            hint = f"Write it after the command, as in `mergeplan plan {error.option_name} ...`."
            raise click.UsageError(f"{error.format_message()} {hint}", ctx) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from difflib import get_close_matches

        if args and (verb := args[0].replace("-", "_")) in self.verbs:
            args = [verb, *args[1:]]
        if args and args[0] not in self.verbs and not args[0].startswith("-"):
            near = [MEANT[args[0]]] if args[0] in MEANT else get_close_matches(args[0], self.verbs, n=1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            ctx.fail(f"There is no command `{args[0]}`.{hint}")
        return super().resolve_command(ctx, args)


def raise_gc_threshold() -> None:
    """Make Python collect garbage less often in a process of ours: else collections take a tenth of a plan's time."""
    gc.set_threshold(OBJECTS)


def run(
    verbs: Mapping[str, tuple[str, str]],
    arguments: Sequence[str] | None = None,
    open_engine: Callable[..., object] | None = None,
) -> int:
    """Run one verb and return its exit code.

    0: done; 1: the project or request is wrong; 2: usage; 3: our defect; 4: refused; 130: interrupted. Errors are
    written to stderr, or as JSON lines on stdout under `--output json`. `open_engine` opens Spark in place of
    `mergeplan.planner.engine.spark.engine.open_engine`, for callers that have one open.
    """
    command_line = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = Verbs(verbs).main(command_line, prog_name="mergeplan", standalone_mode=False, obj=open_engine)
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as exited:
        return exited.exit_code
    except click.UsageError as error:
        _print_error(command_line, error.format_message(), "", error.exit_code, "UsageError", usage=error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt, Cancelled):
        _print_error(command_line, "Interrupted.", "", EXIT_INTERRUPTED, "Cancelled")
        return EXIT_INTERRUPTED
    except MergeplanError as error:
        from mergeplan.planner.cli.failure import report_error

        report_error(error, as_json=_wants_json(command_line))
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_INTERRUPTED
    except OSError as error:
        if _is_gone():
            return _say_gone(command_line)
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        if error.filename is None and not full:
            return _report_defect(command_line, error)
        message = f"`{error.filename}` cannot be used: {error.strerror}." if error.filename else f"{error.strerror}."
        _print_error(command_line, message, "Make room there and run this again." if full else "", 1, "RequestError")
        return 1
    except Exception as error:  # there Python 3.13 fails to import with a SystemError
        return _say_gone(command_line) if _is_gone() else _report_defect(command_line, error)


def _say_gone(arguments: Sequence[str]) -> int:
    _print_error(arguments, GONE, "Go to another one.", 1, "RequestError")
    return 1


def _is_gone() -> bool:
    try:
        return not os.getcwd()
    except FileNotFoundError:
        return True


def _report_defect(arguments: Sequence[str], error: Exception) -> int:
    from mergeplan.planner.cli.failure import report_defect

    report_defect(error, as_json=_wants_json(arguments))
    return EXIT_DEFECT


def run_and_exit(verbs: Mapping[str, tuple[str, str]]) -> NoReturn:
    raise_gc_threshold()
    code = run(verbs)
    gc.freeze()  # else a last collection would scan all objects just before they are freed
    raise SystemExit(code)


def main() -> None:
    """Run the planner's verbs alone; `mergeplan` itself also has the bot's."""
    run_and_exit(VERBS)


def _wants_json(arguments: Sequence[str]) -> bool:
    verb = next((word.replace("-", "_") for word in arguments if not word.startswith("-")), "")
    spellings = ["--output json", "--output=json", *([] if verb in OTHER_O else ["-o json", "-ojson"])]
    return any(
        word in spellings or f"{word} {following}" in spellings for word, following in pairwise([*arguments, ""])
    )


def _print_error(
    arguments: Sequence[str], message: str, hint: str, exit_code: int, kind: str, usage: click.UsageError | None = None
) -> None:
    if _wants_json(arguments):
        from mergeplan.planner.cli.json_errors import error_lines

        error_lines(message, hint, exit_code, kind)
    elif usage is not None:
        usage.show()
    else:
        click.echo(" ".join(filter(None, (f"Error: {message}" if exit_code == 1 else message, hint))), err=True)


if __name__ == "__main__":
    main()
