"""`freshness` of MODEL blocks and of external_models.yaml."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.kind import Kind
from mergeplan.planner.model.metadata import Freshness
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.audits.freshness import parse_age
from mergeplan.planner.parsing.definitions.project_defaults import Defaults
from mergeplan.planner.parsing.files.external_models import external_models
from mergeplan.planner.parsing.sql.yaml_documents import read_document
from tests.planner import test_every_property as properties

DEFAULTS = Defaults(now=datetime(2026, 1, 10, tzinfo=UTC))


def parse_model(text: str, kind: Kind = Kind.FULL) -> Freshness | None:
    return properties.read(properties.KIND[kind], freshness=text).metadata.freshness


def parse_table(text: str) -> Freshness | None:
    document = read_document("external_models.yaml", f"- name: raw.items\n  freshness: {text}\n")
    (model,) = external_models(document, "", DEFAULTS)
    assert isinstance(model, Model)
    return model.metadata.freshness


@pytest.mark.parametrize(
    ("text", "freshness"),
    [
        ("(warn_after '6 hours', error_after '1 day')", Freshness(21_600, 86_400)),
        ("(error_after '90 minutes', loaded_at ts)", Freshness(0, 5_400, "ts")),
        ("(warn_after '1 WEEK', loaded_at `a-b`)", Freshness(604_800, 0, "`a-b`")),
        (
            "(warn_after '1 day', loaded_at 'greatest(a, b)', filter 'x > 1')",
            Freshness(86_400, 0, "GREATEST(a, b)", "x > 1"),
        ),
        ("(warn_after '1 day', loaded_at timestamp)", Freshness(86_400, 0, "timestamp")),
    ],
)
def test_ages_are_seconds_and_times_are_columns_or_expressions(text: str, freshness: Freshness) -> None:
    assert parse_model(text) == freshness


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(loaded_at ts)", "has neither `warn_after` nor `error_after`"),
        ("(warn_after '2 days', error_after '1 day')", "longer than `error_after`"),
        ("(warn_after '6 parsecs')", "must be a number of minutes, hours, days or weeks, not `6 parsecs`"),
        ("(warn_after '0 days')", "not `0 days`"),
        ("(warn_after 6)", "not `6`"),
        ("(warn_after '1 day', filter 'x')", "`filter` needs `loaded_at`"),
        ("(warn_after '1 day', loaded_at 'a +')", "not valid Spark SQL"),
        ("(warn_after '1 day', loaded_at 'a; DROP TABLE b')", "must be a column or an expression"),
        ("(warn_after '1 day', loaded_at 'SELECT 1')", "must be a column or an expression"),
        ("(warn_after '1 day', loaded_at ts, filter 'x IN (SELECT * FROM csv.`/etc/passwd`)')", "read other tables"),
        ("(after '1 day')", "`after` is not a key of freshness"),
    ],
)
def test_a_wrong_freshness_is_an_error_at_its_line(text: str, message: str) -> None:
    with pytest.raises(ProjectError, match=message.replace("(", r"\(")) as raised:
        parse_model(text)

    assert raised.value.place


def test_what_no_run_fills_has_no_last_write() -> None:
    for kind in (Kind.SEED, Kind.EMBEDDED, Kind.VIEW):
        with pytest.raises(ProjectError, match=r"cannot have `freshness`|has no last write"):
            parse_model("(warn_after '1 day')", kind)
    assert parse_model("(warn_after '1 day', loaded_at d)", Kind.VIEW) == Freshness(86_400, 0, "d")


def test_a_table_of_others_has_the_same_keys_and_a_query() -> None:
    assert parse_table("{warn_after: 6 hours, loaded_at: ts}") == Freshness(21_600, 0, "ts")
    assert parse_table("{error_after: 1 day, query: select max(ts) from raw.log}") == Freshness(
        0, 86_400, query="SELECT MAX(ts) FROM raw.log"
    )
    for text, message in {
        "1 day": "must be a mapping",
        "{warn: 1 day}": "Known: error_after",
        "{warn_after: 1 day, query: ts}": "must be a query",
        "{warn_after: 1 day, query: 'select max(a) from csv.`/etc/passwd`'}": "files by their path",
        "{warn_after: 1 day, query: select 1, loaded_at: ts}": "do not go together",
    }.items():
        with pytest.raises(ProjectError) as raised:
            parse_table(text)
        assert message in f"{raised.value.message} {raised.value.hint}"
        assert raised.value.place


@pytest.mark.parametrize(
    "text",
    [
        "{warn_after: 1 day, loaded_at: \"java_method('java.lang.System', 'getenv', 'X')\"}",
        "{warn_after: 1 day, query: \"select reflect('java.lang.System', 'getenv', 'X')\"}",
        "{warn_after: 1 day, query: \"select max(a) from read_files('/etc')\"}",
        "{warn_after: 1 day, loaded_at: ts, filter: my_udf(a)}",
    ],
)
def test_its_sql_calls_no_function_that_no_model_may_call(text: str) -> None:
    """It runs on the operator's Spark: code of a pull request must reach nothing there."""
    with pytest.raises(ProjectError, match=r"java_method|reflect|read_files|my_udf"):
        parse_table(text)


def test_an_age_is_a_minute_at_least_and_ten_years_at_most() -> None:
    assert [parse_age(text) for text in ("1 minute", "60hours", "521 weeks", "9 years", "99999 weeks", "-1 day")] == [
        60, 216_000, 315_100_800, None, None, None,
    ]  # fmt: skip
