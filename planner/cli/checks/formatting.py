"""format: the SQL files of a project in one layout; nothing is written unless every file can be read."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click

from mergeplan.planner.cache.place import cache_of
from mergeplan.planner.cache.store import Cache
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.workspace import workspace
from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.mode import isolation_of
from mergeplan.planner.parsing.definitions.formatting import Formatted
from mergeplan.planner.parsing.sql.tokens import did_you_mean, parse_dialect
from mergeplan.planner.project.sql_files import SqlFile, SqlFiles, open_sql_files, style_of
from mergeplan.planner.replace_file import replace_file
from mergeplan.planner.wording import count_noun


@dataclass(frozen=True)
class Result:
    file: SqlFile
    now: Formatted

    @property
    def is_changed(self) -> bool:
        return self.now.text != self.file.text


@click.command("format")
@click.argument("names", nargs=-1, metavar="[MODELS_OR_PATHS]...")
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 if a file is not formatted.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@click.option("--normalize/--no-normalize", default=None, help="Write names in lower case.")
@click.option("--pad", type=click.IntRange(0), help="Spaces before the text after a comma or a keyword (2).")
@click.option("--indent", type=click.IntRange(0), help="Spaces of an indentation level (2).")
@click.option("--normalize-functions", type=click.Choice(["upper", "lower"]), help="The case of function names.")
@click.option("--leading-comma/--no-leading-comma", default=None, help="Put commas at the beginning of lines.")
@click.option("--max-text-width", type=click.IntRange(1), help="The maximum length of a line (80).")
@click.option("--append-newline/--no-append-newline", default=None, help="End each file with a newline.")
@click.option("--rewrite-casts/--no-rewrite-casts", default=None, help="Write `x::INT` for `CAST(x AS INT)`.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For a person or a program.")
@workspace
def format_files(names: tuple[str, ...], check: bool, diff: bool, root: Path, output: str, **style: Any) -> int:
    """Lay out the SQL files of models/ and audits/, or only those of the given models, files or folders.

    The meaning of a file never changes. `format` in config.yaml sets the layout.

    \b
    mergeplan format
    mergeplan format shop.orders models/raw
    mergeplan format --check
    """
    if not root.is_dir():
        raise RequestError(f"There is no folder `{root}`.")
    config, document, files = open_sql_files(root, isolation_of(os.environ), Cache(cache_of(os.environ)))
    style.pop("gateway")  # every verb has it, but formatting runs nothing
    rewrite = style.pop("rewrite_casts")
    if rewrite is not None:
        style["no_rewrite_casts"] = not rewrite
    format_style = replace(style_of(config), **{key: value for key, value in style.items() if value is not None})
    dialect = parse_dialect(config.model_defaults.dialect, document.place(("model_defaults", "dialect")))
    chosen = _select_files(root.resolve(), files, names)
    results = [Result(file, formatted) for file, formatted in files.format(chosen, dialect, format_style)]
    changed = [result for result in results if result.is_changed]
    if not check and not diff:
        for result in changed:
            replace_file(root / result.file.name, result.now.text.replace("\n", result.file.newline))
    _report_results(results, check=check, diff=diff, as_json=output == "json")
    return 1 if check and changed else 0


def _select_files(root: Path, files: SqlFiles, names: Sequence[str]) -> Sequence[str]:
    """Return the files of these names: models, or paths from here or from the project's folder; all without names."""
    if not names:
        return files.names
    models = files.find_models()
    chosen: dict[str, None] = {}
    for name in names:
        paths = {(base / name).resolve() for base in (Path(), root)}
        inside = [path.relative_to(root).parts for path in paths if path.is_relative_to(root)]
        matches = [
            file for file in files.names if any(tuple(file.split("/")[: len(parts)]) == parts for parts in inside)
        ]
        matches += [models[name.lower()]] if name.lower() in models else []
        if not matches:
            raise RequestError(f"`{name}` is no model and no SQL file of the project.", hint=did_you_mean(name, models))
        chosen |= dict.fromkeys(matches)
    return list(chosen)


def _report_results(results: Sequence[Result], *, check: bool, diff: bool, as_json: bool) -> None:
    changed = [result for result in results if result.is_changed]
    unformatted = [result for result in results if result.now.left]
    if as_json:
        from mergeplan.planner.cli.json_lines import JsonLines  # with the whole contract, which no person reads
        from mergeplan.planner.contract.result import FormatResult, LeftFile, ResultLine

        counts = FormatResult(
            changed=tuple(result.file.name for result in changed),
            left=tuple(LeftFile(path=result.file.name, reason=result.now.left) for result in unformatted),
            files=len(results),
        )
        JsonLines().result(ResultLine(ok=not (check and changed), format=counts))
        return
    out = Terminal()
    dry = check or diff
    for result in changed:
        if diff:
            click.echo("".join(_diff_lines(result)), nl=False)
        else:
            out.say(f"{'would be formatted' if dry else 'formatted'}: {result.file.name}")
    for result in unformatted:
        out.say(f"left as it is: {result.file.name}: {result.now.left}")
    verb = "would be formatted" if dry else "formatted"
    unchanged_count = len(results) - len(changed) - len(unformatted)
    out.say(
        f"{count_noun(len(changed), 'file')} {verb}, {unchanged_count} in order already, "
        f"{len(unformatted)} left as they are."
    )


def _diff_lines(result: Result) -> Iterable[str]:
    old_lines, new_lines = (text.splitlines(keepends=True) for text in (result.file.text, result.now.text))
    for line in unified_diff(old_lines, new_lines, f"a/{result.file.name}", f"b/{result.file.name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
