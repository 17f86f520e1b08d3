"""Who may do what: tokens by scope, modes, hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.planner.api.access import Access, Mode, Scope, host_name, is_loopback, read_tokens
from mergeplan.planner.errors import RequestError

READ, PLAN = "r" * 32, "p" * 32


def test_a_host_that_others_reach_needs_a_token() -> None:
    with pytest.raises(RequestError, match="there is no token"):
        Access(host="0.0.0.0")  # noqa: S104 - refused
    with pytest.raises(RequestError, match="there is no token"):
        Access(host="build.internal")

    assert Access(host="::1").tokens == {}
    assert Access(host="0.0.0.0", tokens={Scope.READ: READ}).host  # noqa: S104


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_loopback_is_this_machine_alone(host: str) -> None:
    assert is_loopback(host)
    assert not is_loopback("localhost.example.com")


def test_a_token_gives_its_scope_and_nothing_else_does() -> None:
    access = Access(tokens={Scope.READ: READ, Scope.PLAN: PLAN})
    reader, planner = access.principal(READ), access.principal(PLAN)

    assert reader and planner
    assert (reader.scope, planner.scope) == (Scope.READ, Scope.PLAN)
    assert [access.principal(token) for token in (None, "", READ[1:], READ + "x", "é")] == [None] * 5


def test_each_scope_includes_those_before_it() -> None:
    assert [[a.includes(b) for b in Scope] for a in Scope] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert [mode.scope for mode in Mode] == list(Scope)


def test_tokens_come_from_variables_or_files(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text(f"{PLAN}\n")
    environ = {"MERGEPLAN_API_READ_TOKEN": READ, "MERGEPLAN_API_PLAN_TOKEN_PATH": str(tmp_path / "plan")}

    assert read_tokens(environ) == {Scope.READ: READ, Scope.PLAN: PLAN}
    assert read_tokens({}) == {}


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"MERGEPLAN_API_READ_TOKEN": ""}, "is no token"),
        ({"MERGEPLAN_API_READ_TOKEN": "short"}, "is no token"),
        ({"MERGEPLAN_API_READ_TOKEN": "two words of some length"}, "is no token"),
        ({"MERGEPLAN_API_READ_TOKEN": READ, "MERGEPLAN_API_APPLY_TOKEN": READ}, "another scope"),
        ({"MERGEPLAN_API_READ_TOKEN_PATH": "/nowhere/token"}, "cannot be read"),
        ({"MERGEPLAN_API_READ_TOKEN": READ, "MERGEPLAN_API_READ_TOKEN_PATH": "/x"}, "both set"),
    ],
)
def test_a_token_that_cannot_be_used_is_refused_and_not_shown(environ: dict[str, str], message: str) -> None:
    with pytest.raises(RequestError, match=message) as raised:
        read_tokens(environ)

    assert not any(len(value) > 20 and value in str(raised.value) for value in environ.values())


def test_a_host_header_is_read_with_and_without_port() -> None:
    headers = ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:8080", "::1", "evil.com:8080", "localhost.evil.com"]

    assert [host_name(header) for header in headers] == [
        "localhost", "localhost", "127.0.0.1", "[::1]", "[::1]", "evil.com", "localhost.evil.com",
    ]  # fmt: skip
