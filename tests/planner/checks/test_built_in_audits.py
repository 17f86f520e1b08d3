"""Each built-in audit, on rows that are right and on rows that are wrong: both counted by one Spark query."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mergeplan.planner.checks.audits import audit_query, is_blocking
from mergeplan.planner.checks.diff.masking import mask_rows, mask_value
from mergeplan.planner.engine.protocol import Engine, Rows
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.model.model import Model
from mergeplan.planner.parsing.definitions.audits.builtin_audits import BUILT_IN
from mergeplan.planner.parsing.files.model_file import Defaults, parse_model

NOW = datetime(2024, 5, 6, tzinfo=UTC)
CASES = r"""
forall(criteria := (a > 0, b > a))
  good: (1, 2), (NULL, 1)
  bad 2: (0, 1), (3, 2), (1, 2)
number_of_rows(threshold := 1)
  good: (1, 1), (2, 2)
  bad 1: (1, 1)
not_null(columns := (a, b))
  good: (1, 1)
  bad 2: (1, NULL), (NULL, 1), (1, 1)
at_least_one(column := a)
  good: (1, 1), (NULL, 1)
  bad 1: (NULL, 1), (NULL, 2)
not_null_proportion(column := a, threshold := 0.6)
  good: (1, 1), (2, 1), (NULL, 1)
  bad 1: (1, 1), (NULL, 1)
not_constant(column := a)
  good: (1, 1), (2, 1)
  bad 1: (1, 1), (1, 2), (NULL, 3)
unique_values(columns := (a, b))
  good: (1, 1), (2, 2)
  bad 2: (1, 1), (1, 2), (3, 2), (1, 3)
unique_combination_of_columns(columns := (a, b))
  good: (1, 1), (1, 2)
  bad 2: (1, 1), (1, 1), (NULL, 2), (NULL, 2)
accepted_values(column := a, is_in := (1, 2))
  good: (1, 0), (NULL, 0)
  bad 1: (1, 0), (3, 0)
not_accepted_values(column := a, is_in := (1, 2))
  good: (3, 0), (NULL, 0)
  bad 2: (1, 0), (2, 0), (3, 0)
sequential_values(column := a)
  good: (3, 0), (1, 0), (2, 0)
  bad 1: (1, 0), (2, 0), (4, 0)
sequential_values(column := a, interval := 5)
  good: (5, 0), (10, 0)
  bad 1: (5, 0), (6, 0)
accepted_range(column := a, min_v := 1, max_v := 3)
  good: (1, 0), (3, 0), (NULL, 0)
  bad 2: (0, 0), (4, 0), (2, 0)
accepted_range(column := a, min_v := 1, inclusive := false)
  good: (2, 0)
  bad 1: (1, 0)
mutually_exclusive_ranges(lower_bound_column := a, upper_bound_column := b)
  good: (1, 2), (2, 4)
  bad 1: (1, 3), (2, 4)
mutually_exclusive_ranges(lower_bound_column := a, upper_bound_column := b)
  good: (5, 6), (1, 1)
  bad 2: (3, 1), (NULL, 1)
mutually_exclusive_ranges(lower_bound_column := b + 0, upper_bound_column := 20 + b, partition_clause := a)
  good: (1, 2), (2, 3)
  bad 1: (1, 2), (1, 3)
not_empty_string(column := a)
  good: ('x', 0), (NULL, 0)
  bad 1: ('', 0), ('x', 0)
string_length_equal(column := a, v := 2)
  good: ('ab', 0), (NULL, 0)
  bad 2: ('a', 0), ('abc', 0)
string_length_equal_audit(column := a, v := 2)
  good: ('ab', 0)
  bad 1: ('a', 0)
string_length_between(column := a, min_v := 1, max_v := 2)
  good: ('a', 0), ('ab', 0)
  bad 2: ('', 0), ('abc', 0)
string_length_between(column := a, max_v := 2, inclusive := false)
  good: ('a', 0)
  bad 1: ('ab', 0)
valid_uuid(column := a)
  good: ('0e37df36-f698-41e6-8c7d-2ee4a5f5bd5d', 0), (UPPER('0e37df36-f698-41e6-8c7d-2ee4a5f5bd5d'), 0), (NULL, 0)
  bad 1: ('0e37df36', 0)
valid_email(column := a)
  good: ('ann.b+c@example.co.uk', 0)
  bad 2: ('ann', 0), ('ann@example', 0)
valid_url(column := a)
  good: ('https://example.org/a?b', 0)
  bad 2: ('example.org', 0), ('http://ab c', 0)
valid_http_method(column := a)
  good: ('GET', 0), ('CONNECT', 0)
  bad 2: ('get', 0), ('FETCH', 0)
match_regex_pattern_list(column := a, patterns := ('^\\d.*', '.*!$'))
  good: ('1a', 0), ('a!', 0)
  bad 1: ('a', 0)
not_match_regex_pattern_list(column := a, patterns := ('^!.*', '.*\\d$'))
  good: ('a', 0)
  bad 2: ('!a', 0), ('a1', 0)
match_like_pattern_list(column := a, patterns := ('jim%', 'pam%'))
  good: ('jimmy', 0), ('pam', 0)
  bad 1: ('tim', 0)
not_match_like_pattern_list(column := a, patterns := ('%doe', '%smith'))
  good: ('jim', 0)
  bad 1: ('j doe', 0)
mean_in_range(column := a, min_v := 2, max_v := 3)
  good: (1, 0), (3, 0)
  bad 1: (1, 0), (2, 0)
mean_in_range(column := a, min_v := 2, inclusive := false)
  good: (2, 0), (3, 0)
  bad 1: (2, 0)
stddev_in_range(column := a, min_v := 1, max_v := 5)
  good: (1, 0), (5, 0)
  bad 1: (1, 0), (1, 0)
z_score(column := a, threshold := 1)
  good: (1, 0), (1, 0)
  bad 1: (1, 0), (1, 0), (1, 0), (9, 0)
kl_divergence(column := a, target_column := b, threshold := 0.1)
  good: (1, 2), (2, 1), (1, 1)
  bad 1: (1, 1), (2, 1), (2, 2), (2, 1)
kl_divergence(source_column := a, target_column := b, threshold := 9)
  good: (1, 1)
  bad 1: (1, 2)
chi_square(column := a, target_column := b, critical_value := 3.84)
  good: (1, 1), (1, 2), (2, 1), (2, 2)
  bad 1: (1, 1), (1, 1), (2, 2), (2, 2)
chi_square(column_a := a, column_b := b, critical_value := 3.84)
  good: (1, 1), (1, 1), (2, 2), (2, 2)
  bad 1: (1, 1), (1, 2), (2, 1), (2, 2)
"""  # each audit, rows of (a, b) that pass, and rows of which so many do not
FORM = re.compile(r"^(?P<audit>\w.*)\n  good: (?P<good>.*)\n  bad (?P<count>\d+): (?P<bad>.*)$", re.MULTILINE)
TRIED = [(match["audit"], match["good"], match["bad"], int(match["count"])) for match in FORM.finditer(CASES)]


def model_of(audits: str) -> Model:
    text = f"MODEL (name shop.a, kind FULL, audits ({audits}));\nSELECT 1 AS id"
    model, _ = parse_model(text, "a.sql", Defaults(NOW))
    assert model is not None
    return model


@pytest.mark.parametrize(("audit", "good", "bad", "count"), TRIED, ids=[case[0] for case in TRIED])
def test_a_built_in_audit_passes_right_rows_and_counts_wrong_ones(
    shared_engine: Engine, audit: str, good: str, bad: str, count: int
) -> None:
    model = model_of(audit)
    queries = [audit_query(model, model.checks.audits[0], f"(VALUES {rows}) AS t(a, b)", None) for rows in (good, bad)]

    counts = shared_engine.fetch(f"SELECT {', '.join(f'(SELECT COUNT(*) FROM ({query}))' for query in queries)}")

    assert counts.rows == ((0, count),)


def test_every_built_in_audit_is_tried_and_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "audits.md").read_text()
    tried = {case[0].partition("(")[0] for case in TRIED}

    assert set(BUILT_IN) <= tried
    assert {name for name in BUILT_IN if f"| `{name}` |" not in page} == set()


def test_conditions_and_warnings_are_for_every_audit(engine: Engine) -> None:
    rows = "(VALUES (1, 'x'), (1, 'y'), (NULL, 'z')) AS t(a, b)"
    soft = "not_constant_non_blocking(column := b, condition := b <> 'x')"
    model = model_of(f"{soft}, mean_in_range(column := a, max_v := 1, condition := b = 'x')")
    queries = [audit_query(model, call, rows, None) for call in model.checks.audits]

    assert [is_blocking(call, {}) for call in model.checks.audits] == [False, True]
    assert engine.fetch(" UNION ALL ".join(f"SELECT COUNT(*) FROM ({query})" for query in queries)).rows == ((0,), (0,))


@pytest.mark.parametrize(
    ("audit", "message"),
    [
        ("z_score(column := 1, threshold := 3)", "`column` must be one column, like `id`."),
        ("z_score(column := x, threshold := 'a')", "`threshold` must be a number, not `'a'`."),
        ("mean_in_range(column := x)", "`min_v` or `max_v` is needed."),
        ("mean_in_range(column := x, min_v := 1, inclusive := 2)", "`inclusive` must be true or false, not `2`."),
        ("match_like_pattern_list(column := x, patterns := 1)", "`patterns` must be strings, like `('a%', 'b%')`."),
        ("kl_divergence(target_column := x, threshold := 1)", "`column` is needed."),
        ("chi_square(column := x, critical_value := 1)", "`column` and `target_column` are needed."),
        ("chi_square(critical_value := 1)", "`column_a` and `column_b` are needed."),
    ],
)  # fmt: skip
def test_arguments_of_a_wrong_form_are_told_at_the_model(audit: str, message: str) -> None:
    model = model_of(audit)

    with pytest.raises(ProjectError) as error:
        audit_query(model, model.checks.audits[0], "a.b", None)

    assert str(error.value) == f"a.sql:1: The audit `{model.checks.audits[0].name}`: {message}"


def test_a_masked_sample_tells_shapes_and_no_values() -> None:
    row = (None, "", "ann", "annette", -12.5, datetime(2024, 5, 6, tzinfo=UTC).date(), True, [1, 2], b"abc", 7)
    rows = Rows((*"abcdefghi", "num_rows"), (row,))

    texts = "*** (3)", "a*** (7)", "-##.#", "####-##-##", "true or false", "*** (2 of them)", "*** (3 bytes)"
    assert mask_rows(rows, "masked", ("num_rows",)).rows == ((None, "", *texts, 7),)
    assert mask_rows(rows, "full") == rows
    assert mask_rows(rows, "none").rows == ()
    assert mask_value(object()) == "***"
