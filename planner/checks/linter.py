"""The linter's rules and the places of violations, without Spark; in doubt a rule is silent: it may stop a plan."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from mergeplan.planner.checks.names import ambiguous_column
from mergeplan.planner.errors import Located, Place, ProjectError, RuleBroken
from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.graph import graph_of, reach_names
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.files.lint_config import ALWAYS, Chosen, applicable_rules
from mergeplan.planner.parsing.named_columns import find_unknown_column
from mergeplan.planner.parsing.sql.tokens import (
    CLOSE,
    OPEN,
    QUERY_BEGINS,
    SourceText,
    Tokens,
    did_you_mean,
    statements,
    tokenize,
)
from mergeplan.planner.project.lineage import UNKNOWN, Followed, FollowedModels
from mergeplan.planner.project.loader import Project
from mergeplan.planner.python.linting import RuleRequest, run_rules
from mergeplan.planner.semantics.columns import shape_of
from mergeplan.planner.semantics.parent import Parent
from mergeplan.planner.semantics.shape_memory import NO_MEMORY, ShapeMemory

UNNAMED = "_col_"  # sqlglot's alias of an output without a name
SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)
DIGITS = re.compile(r"\d+")
NEAR = 0.75  # of two names that are one, misspelt
MISSING_MOST = 10  # columns of a query that no table has
TICKS = 10  # of a cron, enough to see how often it is due
OUTPUT_ENDS = ("FROM", "UNION", "INTERSECT", "EXCEPT", "MINUS", "WHERE", "GROUP", "ORDER", "LIMIT", "HAVING", "LATERAL")
QUANTIFIERS = ("DISTINCT", "ALL")


@dataclass(frozen=True)
class Violation:
    """A violation of a rule by a model, and its place; a blocking one stops a plan."""

    rule: str
    model: str
    message: str
    place: Place
    blocking: bool = True
    cause: ProjectError | None = None  # why a model cannot be opened

    @property
    def error(self) -> ProjectError:
        """The violation as an error that ends a command; for a model that cannot be opened, its cause and hint."""
        if self.cause is not None:
            return ProjectError(self.cause.message, place=self.place, hint=self.cause.hint)
        return RuleBroken(f"{self.rule}: {self.message}", place=self.place)


Found = Iterator[tuple[str, Located]]


@dataclass(frozen=True)
class LintedProject:
    project: Project
    memory: ShapeMemory = NO_MEMORY
    lineage: Mapping[str, Followed] | None = None  # where it is known already
    _trees: dict[str, exp.Query | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def models(self) -> Mapping[str, Model]:
        return self.project.models

    @cached_property
    def models_with_tests(self) -> frozenset[str]:
        return frozenset(test.model for test in self.project.tests)

    @cached_property
    def ends(self) -> Mapping[str, datetime]:
        """The `end` of each table that has one."""
        tables = (model for model in self.models.values() if model.kind.is_stored and not model.kind.is_seed)
        return {table.name: table.schedule.end for table in tables if table.schedule.end}

    @cached_property
    def view_parents(self) -> Mapping[str, tuple[str, ...]]:
        """The models that each model without a table reads."""
        return {model.name: model.depends_on for model in self.models.values() if not model.kind.is_stored}

    @cached_property
    def column_lineage(self) -> Mapping[str, Followed]:
        """The known column lineage of each model, computed when a rule asks for it."""
        return FollowedModels(graph_of(self.models), self.memory) if self.lineage is None else self.lineage

    def has_definition(self, name: str) -> bool:
        """Return whether a file defines this table, or one that cannot be opened may define it."""
        refused = self.project.refused
        return name in self.models or name in self.project.dbt_sources or name in refused.names or not refused.clear

    def tree(self, model: Model) -> exp.Query | None:
        """Return the model's query, None if it has none; no rule may change it."""
        if model.name not in self._trees:
            tree = sqlglot.parse_one(model.sql, dialect="spark") if model.sql else None
            self._trees.clear()  # the rules ask for one model after the other
            self._trees[model.name] = tree if isinstance(tree, exp.Query) else None
        return self._trees[model.name]


def lint(
    project: Project, only: AbstractSet[str] | None = None, memory: ShapeMemory = NO_MEMORY
) -> tuple[Violation, ...]:
    """Return the violations of the project's rules, in all models or in those of these names, by file and line.

    Raise ProjectError at the line of a custom rule that fails. `memory` recalls analysed queries.
    """
    return lint_models(LintedProject(project, memory), only)


def lint_models(linted: LintedProject, only: AbstractSet[str] | None = None) -> tuple[Violation, ...]:
    """Return the violations as `lint` does, of a project with known facts."""
    project = linted.project
    violations: list[Violation] = []
    own_names = {custom_rule.name for custom_rule in project.rules.own}
    chosen_by_ignored: dict[tuple[str, ...], tuple[Chosen, list[str]]] = {}  # most models ignore no rule
    for name in project.models if only is None else sorted(only & project.models.keys()):
        model = project.models[name]
        if (ignored := model.checks.ignored_rules) not in chosen_by_ignored:
            rules = applicable_rules(project.rules, model)
            selected_rules = (rules.every | (ALWAYS.keys() - rules.ignored)) & CHECKS.keys() - own_names
            chosen_by_ignored[ignored] = rules, sorted(selected_rules)
        rules, selected = chosen_by_ignored[ignored]
        for rule in selected:
            violations += (
                Violation(rule, name, message, place.place, rule in rules.errors)
                for message, place in CHECKS[rule](linted, model)
            )
    violations += _run_custom_rules(linted, only)
    return sort_violations(violations)


def sort_violations(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    return tuple(sorted(violations, key=attrgetter("place.path", "place.line", "place.column", "rule")))


def _run_custom_rules(linted_project: LintedProject, only: Collection[str] | None) -> Iterator[Violation]:
    project = linted_project.project
    model_names = [name for name in project.models if only is None or name in only]
    requests = [
        RuleRequest(
            custom_rule.name,
            custom_rule.class_name,
            custom_rule.place,
            tuple(name for name in model_names if _is_applicable(linted_project, custom_rule.name, name)),
        )
        for custom_rule in project.rules.own
        if not custom_rule.is_query
    ]
    if not any(request.models for request in requests):
        return
    columns = {name: _column_types(linted_project, name) for name in project.models}
    violations = run_rules(project.root, project.rule_files, requests, project.models, columns, project.code.isolation)
    for violation in violations:
        model = project.models[violation.model]
        place = Place(model.path, violation.line, violation.column) if violation.line else block_place(model).place
        yield Violation(
            violation.rule, violation.model, violation.message, place, violation.rule in project.rules.errors
        )


def _is_applicable(linted_project: LintedProject, rule: str, name: str) -> bool:
    return rule in applicable_rules(linted_project.project.rules, linted_project.models[name]).every


def _column_types(linted_project: LintedProject, name: str) -> list[tuple[str, str]] | None:
    """Return a model's columns with their types, '' for an unknown type; None if the columns are unknown."""
    table = linted_project.column_lineage[name].table
    types = table.certain_types | {column.name: column.type for column in linted_project.models[name].columns}
    return (
        None if table.columns is None else [(column_name, types.get(column_name, "")) for column_name in table.columns]
    )


def _no_select_star(linted_project: LintedProject, model: Model) -> Found:
    for number in _find_stars(linted_project, model):
        yield "the outermost SELECT uses `*`: name its columns.", _output_place(model, number)


def _invalid_star(linted_project: LintedProject, model: Model) -> Found:
    stars = _find_stars(linted_project, model)
    unknown = [
        f"`{name}`"
        for name in model.depends_on
        if linted_project.column_lineage.get(name, Followed(UNKNOWN)).columns is None
    ]
    if stars and unknown:
        message = f"`*` cannot be expanded: the columns of {', '.join(unknown)} are not known."
        yield message, _output_place(model, stars[0])


def _column_names(linted_project: LintedProject, model: Model) -> Found:
    tree = linted_project.tree(model)
    parents = {
        name: linted_project.column_lineage[name].table
        for name in model.depends_on
        if name in linted_project.column_lineage
    }
    columns_by_table = {
        name: frozenset(parent.columns) for name, parent in parents.items() if parent.columns is not None
    }
    if tree is None:
        return
    missing = _missing_columns(linted_project, model, parents) if len(columns_by_table) == len(model.depends_on) else []
    columns = {column for table in columns_by_table.values() for column in table}
    for name in missing:
        hint = did_you_mean(name, columns, most=12)
        yield f"no table that `{model.name}` reads has a column `{name}`. {hint}".rstrip(), model.locate(name)
    if not missing and (ambiguity := ambiguous_column(tree, columns_by_table)):
        column, sources = ambiguity
        tables = " and ".join(f"`{source}`" for source in sources)
        yield f"`{column}` is ambiguous: {tables} have it. Qualify it with the table.", model.locate(column)
    columns_of_query = linted_project.column_lineage[model.name].columns
    if model.kind.is_stored and columns_of_query and (error := find_unknown_column(model, columns_of_query)):
        yield f"{error.message} {error.hint}", error.place or model.place


def _missing_columns(linted_project: LintedProject, model: Model, parents: Mapping[str, Parent]) -> list[str]:
    """Return the columns that the query reads and no table has; each is added to a table, so that the next shows."""
    missing: list[str] = []
    while len(missing) < MISSING_MOST:
        column = shape_of(model.sql, parents, model.by_time.time_column, linted_project.memory).unresolved
        if column is None or column in missing:
            break
        missing.append(column)
        if not parents:
            break  # there is no table that could have it
        name, parent = next(iter(parents.items()))
        parents = {**parents, name: replace(parent, columns=(*(parent.columns or ()), column.lower()))}
    return missing


def _check_projections(linted_project: LintedProject, model: Model) -> Found:
    tree = linted_project.tree(model)
    names: set[str] = set()
    for number, output in enumerate(tree.selects if tree is not None else ()):
        name = output.alias_or_name.lower()
        if output.is_star or isinstance(output, exp.Aliases) or not name:
            continue
        if name == f"{UNNAMED}{number}":
            yield (
                f"the output `{output.unalias().sql('spark')}` has no name: add `AS ...`.",
                _output_place(model, number),
            )
        elif name in names:
            yield f"two output columns are named `{name}`.", _output_place(model, number)
        names.add(name)


def _check_audits(_: LintedProject, model: Model) -> Found:
    if not model.checks.audits and not model.kind.is_external and not model.kind.is_embedded:
        yield f"`{model.name}` has no audits.", block_place(model)


def _unit_tests(linted_project: LintedProject, model: Model) -> Found:
    if model.name not in linted_project.models_with_tests and model.kind.has_query:
        yield f"`{model.name}` has no unit test in tests/.", block_place(model)


def _external_models(linted_project: LintedProject, model: Model) -> Found:
    for name in model.depends_on:
        if not linted_project.has_definition(name):
            yield f"{_describe_undefined(linted_project, name)}.", model.locate(name)


def _describe_undefined(linted_project: LintedProject, name: str) -> str:
    declaration = "a source of dbt" if linted_project.project.is_dbt else "declared in external_models.yaml"
    return f"`{name}` is neither a model nor {declaration}"


def _table_misspelling(linted_project: LintedProject, model: Model) -> Found:
    """Yield each table that no file defines, if a model's name differs from it by a letter or two."""
    for name in model.depends_on:
        if linted_project.has_definition(name):
            continue
        candidates = [other for other in linted_project.models if other != model.name and _is_near(name, other)]
        if near := get_close_matches(name, candidates, n=1, cutoff=0):
            yield f"{_describe_undefined(linted_project, name)}. Did you mean `{near[0]}`?", model.locate(name)


def _is_near(name: str, other: str) -> bool:
    parts, other_parts = name.split("."), other.split(".")
    pairs = [pair for pair in zip(parts, other_parts, strict=False) if pair[0] != pair[1]]
    if (
        len(parts) != len(other_parts)
        or len(pairs) != 1
        or min(map(len, pairs[0])) < 4
        or len({DIGITS.sub("", part) for part in pairs[0]}) == 1
    ):
        return False  # `src_1` and `src_2` are two on purpose
    return bool(get_close_matches(pairs[0][0], [pairs[0][1]], n=1, cutoff=NEAR))


def _check_crons(linted_project: LintedProject, model: Model) -> Found:
    for name in model.depends_on:
        parent = linted_project.models.get(name)
        if parent is None or not parent.kind.has_query or not model.kind.has_query:
            continue
        if _longest_pause(parent.cron) > _longest_pause(model.cron):
            often = f"less often (`{parent.cron.text}`) than it (`{model.cron.text}`)"
            message = f"`{name}`, which it reads, is due {often}."
            yield message, model.locate("cron", in_block=True)


def _check_ends(linted_project: LintedProject, model: Model) -> Found:
    ends = linted_project.ends
    for name in model.depends_on if ends and model.kind.is_stored else ():
        reached = reach_names([name], linted_project.view_parents)
        end, ended = min(((ends[table], table) for table in reached if table in ends), default=(None, ""))
        if end is not None and (model.schedule.end is None or model.schedule.end > end):
            message = f"`{ended}`, which it reads, has an `end`, and no row past it comes into `{model.name}`."
            yield f"{message} Give this model the same `end`, or remove that one.", model.locate(name)


def _check_joins(linted_project: LintedProject, model: Model) -> Found:
    tree = linted_project.tree(model)
    for join in tree.find_all(exp.Join) if tree is not None else ():
        on = join.args.get("on")
        if isinstance(on, exp.Boolean) and on.this and isinstance(join.this, (exp.Table, exp.Subquery)):
            message = f"the join with `{join.alias_or_name}` has no condition: add ON or USING, or write CROSS JOIN."
            yield message, model.locate(join.alias_or_name)


def _check_description(_: LintedProject, model: Model) -> Found:
    if not model.metadata.description:
        yield f"`{model.name}` has no description.", block_place(model)


def _check_owner(_: LintedProject, model: Model) -> Found:
    if not model.metadata.owner:
        yield f"`{model.name}` has no owner.", block_place(model)


def _find_stars(linted_project: LintedProject, model: Model) -> list[int]:
    """Return the numbers of the outermost outputs that are `*` or `t.*`."""
    tree = linted_project.tree(model)
    return [number for number, output in enumerate(tree.selects if tree is not None else ()) if output.is_star]


def _output_place(model: Model, number: int) -> Place:
    places = output_places(model)
    return places[number] if number < len(places) else model.place


def block_place(model: Model) -> Located:
    return model.place if model.kind.is_external else model.locate(model.name, in_block=True)


def _longest_pause(cron: Cron) -> float:
    """Return the longest time between two ticks, in seconds."""
    ticks = [SOME_DAY]
    for _ in range(TICKS):
        ticks.append(cron.next_tick(ticks[-1]))
    return max((next_tick - tick).total_seconds() for tick, next_tick in pairwise(ticks[1:]))


CHECKS: Mapping[str, Callable[[LintedProject, Model], Found]] = {
    "ambiguousorinvalidcolumn": _column_names,
    "cronintervalalignment": _check_crons,
    "invalidselectstarexpansion": _invalid_star,
    "misspelledtable": _table_misspelling,
    "noambiguousprojections": _check_projections,
    "nojoinwithoutcondition": _check_joins,
    "nomissingaudits": _check_audits,
    "nomissingdescription": _check_description,
    "nomissingexternalmodels": _external_models,
    "nomissingowner": _check_owner,
    "nomissingunittest": _unit_tests,
    "noselectstar": _no_select_star,
    "readsendedmodel": _check_ends,
}


def output_places(model: Model) -> tuple[Place, ...]:
    """Return the place where each output of the outermost SELECT begins; () if it is unknown."""
    source = SourceText(model.path, model.source, model.dialect)
    tokens = _query_tokens(source)
    start = next((i for i, depth in _bracket_depths(tokens) if depth == 0 and tokens[i].text.upper() == "SELECT"), None)
    if start is None:
        return ()
    outputs: list[Token] = []
    begins = True
    for index, depth in _bracket_depths(tokens[start + 1 :]):
        token = tokens[start + 1 + index]
        if depth == 0 and token.text.upper() in OUTPUT_ENDS and token.token_type is not TokenType.STRING:
            break
        if depth == 0 and token.token_type is TokenType.COMMA:
            begins = True
        elif begins and token.text.upper() not in QUANTIFIERS and token.token_type is not TokenType.HINT:
            outputs.append(token)
            begins = False
    return tuple(source.place(token) for token in outputs)


def _query_tokens(source: SourceText) -> Tokens:
    try:
        all_statements = statements(tokenize(source))
    except ProjectError:
        return ()
    return next((statement for statement in all_statements[1:] if statement[0].text.upper() in QUERY_BEGINS), ())


def _bracket_depths(tokens: Tokens) -> Iterator[tuple[int, int]]:
    """Yield each token's index and its depth in brackets; a bracket itself has the depth outside of it."""
    depth = 0
    for index, token in enumerate(tokens):
        depth -= token.token_type in CLOSE
        yield index, depth
        depth += token.token_type in OPEN
