from __future__ import annotations

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.parsing.sql.yaml_documents import read_document

FILLED = [  # as SQLMesh accepts them: it renders the text before it reads the YAML
    ("port: {{ env_var('P', 1) }}", {"port": "1"}),
    ('port: {{ env_var("P", "1") | int }}', {"port": "1"}),
    ("port: {{- env_var('P', default=1) -}}", {"port": "1"}),
    ("port: '{{ env_var('P', '1') | int }}'", {"port": "1"}),
    ("host: {{ env_var('HOST') | lower }}", {"host": "db.example"}),
    ("flag: {{ env_var('FLAG', True) }}  # {{ anything }}", {"flag": "True"}),
    ("title: {{ env_var('T', 'a: b #c') }}", {"title": "a: b #c"}),
    ("password: {{ env_var('ZEROS') }}", {"password": "007"}),
    ("variables: {n: {{ env_var('N', 7) }}, on: {{ env_var('F', true) }}}", {"variables": {"n": 7, True: True}}),
    ("variables: {n: '{{ env_var('N', 7) }}'}", {"variables": {"n": "7"}}),
    ("variables: {n: {{ env_var('MERGE') }}}", {"variables": {"n": "<<"}}),
]
ENVIRONMENT = {"HOST": "DB.example", "ZEROS": "007", "MERGE": "<<"}
REFUSED = [
    ("port: {{ env_var('P') }}", "`P` is not set. Set it, or give a default"),
    ("port: {{ env_var('HOST') | int }}", "`HOST` is not a whole number. Set it to one."),
    ("port: {{ env_var('HOST') | upcase }}", "The filter `upcase` is not supported here."),
    ("port: {{ port }}", "Of Jinja, only `{{ env_var('NAME') }}` is supported here."),
    ("port: {{ env_var('P', 1) + 1 }}", "Of Jinja, only"),
    ("port: {% if x %}1{% endif %}", "Of Jinja, only"),
]
BROKEN = [
    ("a:\n\tb: 1\n", "config.yaml:2: This line is indented with a tab. Indent it with spaces"),
    ("a:\n  b: 1\n  \tc: 2\n", "config.yaml:3: This line is indented with a tab."),
    ("b: {c: 1 d: 2}\n", "config.yaml:1: The mapping lacks a comma or its `}` before the end of this line: `b: {c: 1"),
    ("a: [\n  x,\n  y\n  z: 3\n]\n", "config.yaml:4: The list lacks a comma or its `]`"),
    ("a: [1\n", "config.yaml:1: The list that begins in this line is not closed. Add its `]`."),
    ("a: [1}\n", "config.yaml:1: `}` closes nothing here."),
    ("a:\n  b: [\n", "config.yaml:2: The list that begins in this line is not closed. Add its `]`."),
    ("a: [1,, 2]\n", "config.yaml:1: A value is missing before `,`."),
    ("gateways:\n  spark\n    connection: 1\n", "config.yaml:2: This line lacks its `:`: `spark`."),
    ("a:\n  b:1\n  c: 2\n", "config.yaml:2: This line lacks a space after its `:`: `b:1`."),
    ("a: b: c\n", "config.yaml:1: A value with `: ` in it needs quotes."),
    ("a:\n  b: 1\n   c: 2\n", "config.yaml:3: This line is indented further than the one above"),
    ("a:\n  b: 1\n c: 2\n", "config.yaml:3: The indentation of this line fits no line above."),
    ("a: 'x\nb: 2\n", "config.yaml:1: The quote that opens in this line is not closed."),
    ("a: 'x' y\n", "config.yaml:1: Text follows a value that has ended: `y`."),
    ("a: @daily\n", "config.yaml:1: A value cannot begin with `@`. Put the value in quotes."),
    ('a: "\\d"\n', "config.yaml:1: A backslash in double quotes begins an escape"),
    ("a: *x\n", "config.yaml:1: A value that begins with `*` refers to an anchor"),
    ("a: 1\n---\nb: 2\n", "config.yaml:2: A second document begins here"),
    ("a: 1\n<<<<<<< HEAD\nb: 2\n", "config.yaml:2: A merge conflict is left here: `<<<<<<<`."),
    ("a: 1\nb: 2026-02-30\n", "config.yaml:2: `2026-02-30` is not a valid value"),
    ("? {a: 1}\n: 2\n", "config.yaml:1: A key must be a string. Put it in quotes"),
]


def _read(text: str) -> object:
    return read_document("config.yaml", text, lambda variable, place: variable.value(ENVIRONMENT, place)).value


@pytest.mark.parametrize(("text", "value"), FILLED)
def test_an_environment_variable_needs_no_quotes_and_may_have_a_default_and_filters(text: str, value: object) -> None:
    assert _read(text) == value


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_other_jinja_is_refused_by_its_line(text: str, message: str) -> None:
    with pytest.raises(ProjectError) as refused:
        _read(f"a: 1\n{text}\n")

    assert str(refused.value).startswith("config.yaml:2: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_broken_yaml_is_explained_at_the_line_to_edit(text: str, message: str) -> None:
    with pytest.raises(ProjectError) as refused:
        _read(text)

    assert str(refused.value).startswith(message)


def test_the_value_of_a_variable_is_not_quoted_by_an_error() -> None:
    text = "variables: {day: {{ env_var('PASSWORD') }}}\n"
    value = read_document("config.yaml", text, lambda variable, place: "2026-02-30").value

    assert value == {"variables": {"day": "2026-02-30"}}


def test_a_long_line_of_variables_is_read_in_linear_time() -> None:
    text = "a: '" + "{{ env_var('HOST', " * 50_000 + "'\n"

    with pytest.raises(ProjectError, match="Of Jinja, only"):
        _read(text)


def test_the_last_of_equal_keys_holds_where_that_is_allowed() -> None:
    text = "a: 1\nb: {c: 1, c: 2}\nd: [{e: 1, e: 3}]\n<<: {f: 1}\n<<: {g: 2}\na: &x 4\nh: *x\n"

    value = read_document("dbt_project.yml", text, last_wins=True).value
    assert value == {"a": 4, "b": {"c": 2}, "d": [{"e": 3}], "f": 1, "g": 2, "h": 4}
