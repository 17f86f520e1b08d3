"""table diff: two tables, or models in two environments, compared column by column and row by row."""

from collections.abc import Iterator
from dataclasses import replace

from sqlglot.tokenizer_core import TokenType

from mergeplan.planner.checks.diff.data_diff import mask_samples
from mergeplan.planner.checks.diff.diff_query import DiffOptions
from mergeplan.planner.checks.diff.table_diff import TableDiff, compare_tables, find_changed_models
from mergeplan.planner.errors import MergeplanError, Place, RequestError
from mergeplan.planner.naming import ColumnName
from mergeplan.planner.parsing.macros.expand import spark_tree
from mergeplan.planner.parsing.sql.names import model_name
from mergeplan.planner.parsing.sql.tokens import SourceText, did_you_mean, tokenize
from mergeplan.planner.session.options import TableDiffOptions
from mergeplan.planner.session.use_cases.git_changes import select_by_request
from mergeplan.planner.session.workspace import Workspace
from mergeplan.planner.snapshot.environment import Environment, parse_environment_name
from mergeplan.planner.state.physical_tables import are_ours

FORM = "Write `prod:dev`, or `schema.table:schema.table`."


def table_diffs(
    work: Workspace, first: str, second: str, model: str | None, diff_options: TableDiffOptions
) -> Iterator[TableDiff]:
    """Yield the difference of two tables, of a model in two environments, or of all models that differ there.

    Names with a dot are tables. Raise RequestError for a missing table and for a condition that cannot be parsed.
    """
    options = _parse_options(diff_options)
    tables = "." in first and "." in second
    if tables and (model or diff_options.select):
        raise RequestError("Two tables are no environments in which a model could be compared.", hint=FORM)
    work.look()
    diffs = (
        _diff_tables(work, (first, second), options)
        if tables
        else _diff_models(work, (first, second), model, diff_options.select, options)
    )
    for diff in diffs:
        work.cancellation.check()
        yield replace(diff, samples=mask_samples(diff.samples, diff.key, ())) if diff_options.masked else diff


def _parse_options(diff_options: TableDiffOptions) -> DiffOptions:
    for old, new in diff_options.rename.items():
        if not (old.strip() and new.strip()):
            raise RequestError(f"`{old}={new}` renames nothing.", hint="Write `--rename old=new`.")
    if diff_options.where:
        try:
            spark_tree(diff_options.where)
            if any(
                token.token_type is TokenType.SEMICOLON
                for token in tokenize(SourceText("", diff_options.where, "spark"))
            ):
                raise MergeplanError("it is one condition, without `;`.")
        except MergeplanError as error:
            raise RequestError(f"`--where`: {error.message}") from None
    return DiffOptions(
        on=tuple(map(_column_name, diff_options.on)),
        where=diff_options.where,
        skip=frozenset(map(_column_name, diff_options.skip)),
        decimals=diff_options.decimals,
        renamed=tuple((old.strip().lower(), new.strip().lower()) for old, new in diff_options.rename.items()),
        samples=diff_options.samples,
    )


def _column_name(text: str) -> str:
    return ColumnName.parse(text) or ColumnName(text)


def _diff_tables(work: Workspace, names: tuple[str, str], options: DiffOptions) -> Iterator[TableDiff]:
    catalog = work.project.defaults.catalog
    tables = (model_name(names[0], Place("A:B"), catalog), model_name(names[1], Place("A:B"), catalog))
    grains = [work.project.models[name].metadata.grain for name in tables if name in work.project.models]
    keyed = options if options.on or not any(grains) else replace(options, on=next(filter(None, grains)))
    by_files = are_ours(work.store.tables.all(), tables)
    yield compare_tables(work.engine, tables, tables, keyed, by_files=by_files)


def _diff_models(
    work: Workspace, names: tuple[str, str], model: str | None, selectors: tuple[str, ...], options: DiffOptions
) -> Iterator[TableDiff]:
    first_environment, second_environment = (work.environment(parse_environment_name(name)) for name in names)
    tables, stored_tables = (_list_tables(first_environment), _list_tables(second_environment)), work.store.tables.all()
    for name in _select_models(work, first_environment, second_environment, model, selectors):
        sides = (environment.snapshots[name].model for environment in (second_environment, first_environment))
        grain = next((side.metadata.grain for side in sides if side.metadata.grain), ())
        keyed = options if options.on else replace(options, on=grain)
        pair = (tables[0][name], tables[1][name])
        yield compare_tables(
            work.engine,
            (first_environment.name, second_environment.name),
            pair,
            keyed,
            name,
            are_ours(stored_tables, pair),
        )


def _select_models(
    work: Workspace, first: Environment, second: Environment, model: str | None, selectors: tuple[str, ...]
) -> tuple[str, ...]:
    first_tables, second_tables = _list_tables(first), _list_tables(second)
    if model is not None:
        for environment, tables in ((first, first_tables), (second, second_tables)):
            if model.lower() not in tables:
                hint = did_you_mean(model, tables, most=12)
                raise RequestError(f"`{environment.name}` has no table of `{model}`.", hint=hint)
        return (model.lower(),)
    changed = find_changed_models(first_tables, second_tables)
    if not selectors:
        return changed
    selected_names = select_by_request(work.project, selectors)
    return tuple(name for name in changed if name in selected_names)


def _list_tables(environment: Environment) -> dict[str, str]:
    """Return the table or view with each model's rows; embedded and external models have nothing to compare."""
    return {name: snapshot.table for name, snapshot in environment.snapshots.items() if snapshot.kind.has_view}
