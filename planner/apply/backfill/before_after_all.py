"""`before_all` and `after_all` of config.yaml: statements that run around the application of a plan."""

import re
from dataclasses import replace

from mergeplan.planner.engine.protocol import Engine
from mergeplan.planner.errors import ProjectError, QueryError
from mergeplan.planner.parsing.definitions.body import StatementTokens
from mergeplan.planner.parsing.definitions.statements import is_needless
from mergeplan.planner.parsing.macros.expand import expander
from mergeplan.planner.parsing.macros.expander import Expander
from mergeplan.planner.parsing.sql.token_lists import text_of
from mergeplan.planner.parsing.sql.user_macros import Variable
from mergeplan.planner.plan.stages import Statements
from mergeplan.planner.project.loader import Project
from mergeplan.planner.snapshot.environment import Environment

BEFORE, AFTER = "before_all", "after_all"
_TABLE = r"(?P<table>['`\w.]+)"
_FORMS = tuple(
    re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"ALTER VIEW {_TABLE} (?:SET|UNSET) TBLPROPERTIES\s*.*",
        rf"COMMENT ON (?:TABLE|VIEW|SCHEMA|DATABASE) {_TABLE} IS .*",
        rf"GRANT (?:[\w,]+ )+ON (?:TABLE |VIEW |SCHEMA |DATABASE )?{_TABLE} TO .*",
        rf"REVOKE (?:[\w,]+ )+ON (?:TABLE |VIEW |SCHEMA |DATABASE )?{_TABLE} FROM .*",
        rf"ALTER (?:SCHEMA|DATABASE|NAMESPACE) {_TABLE} SET (?:DBPROPERTIES|PROPERTIES)\s*.*",
    )
)
_HINT = (
    "Allowed are GRANT, REVOKE, COMMENT ON, ALTER VIEW ... SET TBLPROPERTIES and ALTER SCHEMA ... SET DBPROPERTIES, "
    "of the environment's own views and schemas: `@views`, `@schemas`."
)


def statements_around(project: Project, environment: Environment) -> tuple[Statements, Statements]:
    return statements_of(project, environment, BEFORE), statements_of(project, environment, AFTER)


def statements_of(project: Project, environment: Environment, key: str) -> Statements:
    """Return the statements of `before_all` or `after_all` in Spark SQL for the environment as it will be.

    Raise ProjectError at config.yaml for a statement that is not allowed, so that only the environment's own objects
    change.
    """
    views = sorted(environment.views_by_name)
    schemas = sorted({view.rpartition(".")[0] for view in views})
    facts: dict[str, Variable] = {"this_env": environment.name, "views": tuple(views), "schemas": tuple(schemas)}
    scope = project.defaults.scope
    scope = replace(scope, variables={**scope.variables, **facts}, stage=key)
    room: Expander | None = None
    statements: list[tuple[StatementTokens, str]] = []
    for part in project.defaults.before_all if key == BEFORE else project.defaults.after_all:
        part_expander = expander(part.source, scope)
        room = part_expander if room is None else replace(room, source=part.source)
        for tokens in room.statements(part.tokens):
            if is_needless(part.source, tokens):
                continue
            statements.append((part, _check_statement(part, key, text_of(part.source, tokens), {*views, *schemas})))
    return tuple(statements)


def _check_statement(part: StatementTokens, key: str, text: str, own: set[str]) -> str:
    """Return the statement with the name of its object unquoted; raise ProjectError if it is not allowed."""
    match = next((full_match for form in _FORMS if (full_match := form.fullmatch(text))), None)
    if match is None:
        words = " ".join(text.split()[:2])
        message = f"`{words}` in `{key}` is not supported."
        raise ProjectError(message, place=part.source.place(part.tokens[0]), hint=_HINT)
    name = re.sub("['`]", "", match["table"])
    if name.lower() not in own:
        message = f"`{key}` may not change `{name}`, which is no view or schema of this environment."
        raise ProjectError(message, place=part.source.place(part.tokens[0]), hint=_HINT)
    return text[: match.start("table")] + name + text[match.end("table") :]


def run_statements(engine: Engine, statements: Statements) -> None:
    """Run the statements one after another; raise QueryError at config.yaml if Spark refuses one."""
    for part, text in statements:
        try:
            with engine.separate_session((text,), ()):
                pass
        except QueryError as error:
            error.located = part.source.place(part.tokens[0])
            raise
