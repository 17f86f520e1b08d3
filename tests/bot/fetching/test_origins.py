"""The addresses that packages come from: what an installer knows of them, and what must never be shown."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from mergeplan.bot.fetching.origins import HUB, address_secrets, find_origin, hub_origins, index_origins, name_inside
from mergeplan.bot.settings import Settings
from mergeplan.planner.errors import RequestError


def test_the_hub_of_dbt_and_its_host_of_files_are_reached_by_default() -> None:
    origins = hub_origins({})

    places = [
        find_origin(origins, url)
        for url in (
            "http://hub.mergeplan/api/v1/a.json",
            "http://codeload.github.com/a/b/tar.gz/1",
            "http://github.com/",
        )
    ]
    assert [place and place[1] for place in places] == [
        "https://hub.getdbt.com/api/v1/a.json", "https://codeload.github.com/a/b/tar.gz/1", None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("environ", "hosts"),
    [
        ({}, ["pypi.org", "files.pythonhosted.org"]),
        ({"PIP_INDEX_URL": "https://u:p@one.corp/simple"}, ["one.corp"]),
        ({"PIP_EXTRA_INDEX_URL": "https://two.corp/a https://three.corp:8443/b"},
         ["pypi.org", "two.corp", "three.corp:8443", "files.pythonhosted.org"]),
        ({"PIP_NO_INDEX": "1", "PIP_INDEX_URL": "https://one.corp/"}, []),
        ({"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/srv/wheels http://four.corp/w.html"}, ["four.corp"]),
    ],
)  # fmt: skip
def test_an_index_is_reached_and_no_host_beside_it(environ: Mapping[str, str], hosts: list[str]) -> None:
    assert {origin.host for origin in index_origins(environ)} == set(hosts)


def test_two_indexes_of_one_host_have_their_own_credentials() -> None:
    environ = {"PIP_INDEX_URL": "https://a:1@one.corp/x/simple", "PIP_EXTRA_INDEX_URL": "https://b:2@one.corp/y/simple"}
    origins = index_origins(environ)

    places = [find_origin(origins, f"http://one.corp/{path}") for path in ("x/simple/a/", "y/simple/a/")]
    assert [place and place[0].authorization for place in places] == [
        f"Basic {b64encode(text).decode()}" for text in (b"a:1", b"b:2")
    ]
    assert not any("YTox" in repr(origin) for origin in origins)


def test_an_answer_names_addresses_as_the_installer_knows_them() -> None:
    origins = hub_origins({HUB: "https://u:p@hub.corp/t/"}, "files.corp:8443, http://plain.corp")
    content = rb'["https://hub.corp/t/a", "https:\/\/files.corp:8443\/b", "https://else.corp/c", "http://plain.corp/d"]'

    assert name_inside(origins, content) == (
        rb'["http://hub.mergeplan/a", "http:\/\/files.corp:8443\/b", "https://else.corp/c", "http://plain.corp/d"]'
    )


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "http_proxy", "DBT_PACKAGE_HUB_URL", "PIP_INDEX_URL"])
def test_credentials_in_addresses_are_hidden_in_every_form(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "https://ann:p%40ssw0rd@place.corp/d41d8cd98f00b204e980/x?key=0123456789abcdef")

    basic = b64encode(b"ann:p@ssw0rd").decode()
    secrets = {"p%40ssw0rd", "p@ssw0rd", "ann:p%40ssw0rd", basic, "d41d8cd98f00b204e980", "0123456789abcdef"}
    assert secrets <= set(Settings().secrets())


def test_an_address_without_a_credential_has_none() -> None:
    assert address_secrets({"HTTPS_PROXY": "http://proxy.corp:3128", HUB: "https://hub.corp/dbt/"}) == ()


@pytest.mark.parametrize("hosts", ["https://", "a b", "ftp://x", "host:port"])
def test_a_host_that_is_none_is_refused_at_the_start(hosts: str) -> None:
    with pytest.raises(ValidationError, match="MERGEPLAN_PACKAGES_HOSTS holds an address that is not usable"):
        Settings(packages_hosts=hosts)


def test_a_hub_that_is_no_address_is_a_sentence_without_its_text() -> None:
    with pytest.raises(RequestError, match="DBT_PACKAGE_HUB_URL holds an address") as refused:
        hub_origins({HUB: "hidden-7"})
    assert "hidden-7" not in f"{refused.value}{refused.value.hint}"
