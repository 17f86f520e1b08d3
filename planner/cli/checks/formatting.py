"""format: the SQL files of a project in one layout; nothing is written unless every file can be read."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click

from mergeplan.planner.cli.json_lines import JsonLines
from mergeplan.planner.cli.terminal import Terminal
from mergeplan.planner.cli.workspace import workspace
from mergeplan.planner.contract.result import FormatResult, LeftFile, ResultLine
from mergeplan.planner.errors import ProjectError, ProjectErrors, RequestError
from mergeplan.planner.isolation.mode import isolation_of
from mergeplan.planner.parsing.definitions.block_format import COMMENT
from mergeplan.planner.parsing.definitions.formatting import Formatted, Style, format_file
from mergeplan.planner.parsing.sql.tokens import did_you_mean, parse_dialect
from mergeplan.planner.project.loader import SqlFile, sql_files
from mergeplan.planner.wording import count_noun

_NAME = re.compile(r"\bMODEL\s*\(.*?\bname\s+['\"`]?([\w.]+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Result:
    """A file, and what became of its text."""

    file: SqlFile
    now: Formatted

    @property
    def is_changed(self) -> bool:
        return self.now.text != self.file.text


@click.command("format")
@click.argument("names", nargs=-1, metavar="[MODELS_OR_PATHS]...")
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 when a file is laid out otherwise.")
@click.option("--diff", is_flag=True, help="Write nothing; print what would change.")
@click.option("--normalize/--no-normalize", default=None, help="Write names in lower case.")
@click.option("--pad", type=click.IntRange(0), help="Blanks before what follows a comma or a keyword (2).")
@click.option("--indent", type=click.IntRange(0), help="Blanks of a level (2).")
@click.option("--normalize-functions", type=click.Choice(["upper", "lower"]), help="The case of function names.")
@click.option("--leading-comma/--no-leading-comma", default=None, help="Commas at the begin of lines.")
@click.option("--max-text-width", type=click.IntRange(1), help="How long a line may become (80).")
@click.option("--append-newline/--no-append-newline", default=None, help="End each file with a newline.")
@click.option("--rewrite-casts/--no-rewrite-casts", default=None, help="Write `x::INT` for `CAST(x AS INT)`.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For a person or a program.")
@workspace
def format_files(names: tuple[str, ...], check: bool, diff: bool, root: Path, output: str, **style: Any) -> int:
    """Lay out the SQL files of models/ and audits/, or only those of the given models, files or folders.

    What a file means never changes. How it is laid out stands under `format` in config.yaml.

    \b
    mergeplan format
    mergeplan format shop.orders models/raw
    mergeplan format --check
    """
    if not root.is_dir():
        raise RequestError(f"There is no folder `{root}`.")
    config, document, files = sql_files(root, isolation_of(os.environ))
    wanted = _style(Style(**config.format.model_dump()), style)
    dialect = parse_dialect(config.model_defaults.dialect, document.place(("model_defaults", "dialect")))
    results = _format_all(_select_files(root.resolve(), files, names), dialect, wanted)
    changed = [result for result in results if result.is_changed]
    if not check and not diff:
        for result in changed:
            _write(root / result.file.name, result.now.text.replace("\n", result.file.newline))
    _report(results, check=check, diff=diff, as_json=output == "json")
    return 1 if check and changed else 0


def _style(config: Style, option_values: dict[str, Any]) -> Style:
    option_values.pop("gateway")  # every verb takes it; here there is nothing to run
    rewrite = option_values.pop("rewrite_casts")
    if rewrite is not None:
        option_values["no_rewrite_casts"] = not rewrite
    return replace(config, **{key: value for key, value in option_values.items() if value is not None})


def _format_all(files: Iterable[SqlFile], dialect: str, style: Style) -> list[Result]:
    """Every file in its layout; ProjectErrors tell of all that cannot be read."""
    results: list[Result] = []
    errors: list[ProjectError] = []
    for file in files:
        try:
            results.append(Result(file, format_file(file.name, file.text, dialect, style)))
        except ProjectError as error:
            errors.append(error)
    if errors:
        raise ProjectErrors(tuple(errors))
    return results


def _select_files(root: Path, files: Sequence[SqlFile], names: Sequence[str]) -> list[SqlFile]:
    """The files of these names: models, or paths from here or from the project's folder; all without names."""
    if not names:
        return list(files)
    models = {match[1].lower(): file for file in files if (match := _NAME.search(COMMENT.sub(_blank, file.text)))}
    chosen: dict[str, SqlFile] = {}
    for name in names:
        paths = {(base / name).resolve() for base in (Path(), root)}
        here = [file for file in files if any((root / file.name).is_relative_to(path) for path in paths)]
        here += [models[name.lower()]] if name.lower() in models else []
        if not here:
            raise RequestError(f"`{name}` is no model and no SQL file of the project.", hint=did_you_mean(name, models))
        chosen |= {file.name: file for file in here}
    return list(chosen.values())


def _blank(match: re.Match[str]) -> str:
    return " " if match["comment"] else match[0]


def _write(path: Path, text: str) -> None:
    """The whole file or nothing of it."""
    handle, aside = tempfile.mkstemp(prefix=".mergeplan-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        shutil.copymode(path, aside)
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _report(results: Sequence[Result], *, check: bool, diff: bool, as_json: bool) -> None:
    changed = [result for result in results if result.is_changed]
    left = [result for result in results if result.now.left]
    if as_json:
        counts = FormatResult(
            changed=tuple(result.file.name for result in changed),
            left=tuple(LeftFile(path=result.file.name, reason=result.now.left) for result in left),
            files=len(results),
        )
        JsonLines().result(ResultLine(ok=not (check and changed), format=counts))
        return
    out = Terminal()
    dry = check or diff
    for result in changed:
        if diff:
            click.echo("".join(_diff(result)), nl=False)
        else:
            out.say(f"{'would be formatted' if dry else 'formatted'}: {result.file.name}")
    for result in left:
        out.say(f"left as it is: {result.file.name}: {result.now.left}")
    verb = "would be formatted" if dry else "formatted"
    rest = len(results) - len(changed) - len(left)
    out.say(f"{count_noun(len(changed), 'file')} {verb}, {rest} in order already, {len(left)} left as they are.")


def _diff(result: Result) -> Iterable[str]:
    before, after = (text.splitlines(keepends=True) for text in (result.file.text, result.now.text))
    for line in unified_diff(before, after, f"a/{result.file.name}", f"b/{result.file.name}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
