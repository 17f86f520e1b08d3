"""The call of a macro in a unit test: the text that it becomes, and the query with it as a model of the test alone."""

from dataclasses import replace
from functools import partial

from mergeplan.planner.errors import Place, ProjectError
from mergeplan.planner.limits import limit_resources
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.body import Around, expand_text, is_jinja
from mergeplan.planner.parsing.definitions.known_columns import KnownColumns
from mergeplan.planner.parsing.definitions.unit_tests import UnitTest
from mergeplan.planner.parsing.files.model_file import Defaults, parse_models
from mergeplan.planner.parsing.sql.tokens import SourceText, create_source, tokenize
from mergeplan.planner.project.loader import Project, override_variables

NAME = "mergeplan_unit_tests.called"
HEADER = f"MODEL (name {NAME}, kind FULL); "


def find_test_model(project: Project, test: UnitTest) -> Model:
    """Return the model of a test with the test's variables; for a macro's, one of the query that calls it."""
    if not test.call:
        model = project.models[test.model]
        is_rendered_again = test.variables and model.python is None
        return override_variables(project, model, dict(test.variables)) if is_rendered_again else model
    if test.error:
        raise _rendering_error(test)
    call = test.call if test.rendered is None else test.rendered_query or test.rendered
    text = "\n" * (test.line - 1) + HEADER + call
    with_header = replace(_call_defaults(project, test), around=Around(), properties=(), audits=())
    with limit_resources(partial(_too_much, test)):
        models, _ = parse_models(text, test.path, with_header)
    return models[0]


def expand_call(project: Project, test: UnitTest) -> str:
    """Return the text that the call of a test's macro becomes; raise ProjectError at the test or in the macro."""
    if test.error:
        raise _rendering_error(test)
    if test.rendered is not None:
        return test.rendered.strip()
    defaults = _call_defaults(project, test)
    text = "\n" * (test.line - 1) + test.call
    source = create_source(test.path, text, defaults.dialect, defaults.catalog, defaults.functions)
    with limit_resources(partial(_too_much, test)):
        return expand_text(source, defaults.scope, defaults.jinja)


def _too_much(test: UnitTest, why: str) -> ProjectError:
    return ProjectError(f"The call of the test `{test.name}` cannot be expanded: it {why}.", place=test.place)


def _rendering_error(test: UnitTest) -> ProjectError:
    return ProjectError(f"dbt cannot render the call: {test.error.rstrip('.')}.", place=test.place)


def check_call(test: UnitTest, dialect: str) -> None:
    tokens = tokenize(SourceText(test.path, "\n" * (test.line - 1) + test.call, dialect))
    macro = test.model.removeprefix("@")
    names = {token.text.lower().removeprefix("@") for token in tokens}
    if macro not in names or not ("@" in test.call or is_jinja(tokens)):
        hint = f'Write `call: "@{macro}(...)"`, or `call: "{{{{ {macro}(...) }}}}"` for a macro of Jinja.'
        place = Place(test.path, test.line)
        raise ProjectError(f"The `call` of the test `{test.name}` does not call `{macro}`.", place=place, hint=hint)


def compare_texts(expected: str, actual: str, test: UnitTest, dialect: str) -> bool:
    """Return True if two texts of SQL are the same words, however they are laid out."""
    first, second = (_list_words(text, test, dialect) for text in (expected, actual))
    return first == second


def _list_words(text: str, test: UnitTest, dialect: str) -> list[tuple[str, str]]:
    tokens = tokenize(SourceText(test.path, text, dialect)) if text.strip() else []
    kinds = [(token.token_type.name, token.text) for token in tokens]
    return [(kind, text if "STRING" in kind or kind == "IDENTIFIER" else text.upper()) for kind, text in kinds]


def _call_defaults(project: Project, test: UnitTest) -> Defaults:
    overrides = {name.lower(): value for name, value in test.variables}
    return replace(
        project.defaults,
        variables={**project.defaults.variables, **overrides},
        overrides=overrides,
        columns=KnownColumns(project.models, complete=True).find_columns,
    )
