"""The operator's file of other services' catalogs: what it may say, and what is wrong with it by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergeplan.bot.prod.other_catalogs import load_other_catalogs
from mergeplan.bot.readers.other_services import find_gone, read_other_catalogs
from mergeplan.bot.settings import Settings
from mergeplan.planner.errors import ProjectError, RequestError

FINANCE = "- project: Acme/finance\n  address: https://c.example/f.json?token=s3cret\n"


def test_a_catalog_has_a_key_that_no_repository_has() -> None:
    (catalog,) = read_other_catalogs("catalogs.yaml", FINANCE + "  show_reads_to: [acme/Core]\n")
    assert (catalog.key, catalog.show_reads_to) == ("=acme/finance", ("acme/core",))
    assert "s3cret" not in repr(catalog)
    assert find_gone(["acme/core", "=acme/finance", "=acme/hr"], [catalog]) == ("=acme/hr",)
    assert read_other_catalogs("catalogs.yaml", "") == ()


@pytest.mark.parametrize(
    "address",
    ["http://c.example/f.json", "ftp://c.example/f", "file:///etc/passwd", "f.json", "//c.example/f", "https:///f"],
)
def test_an_address_is_https_or_an_absolute_path(address: str) -> None:
    with pytest.raises(ProjectError, match="address") as caught:
        read_other_catalogs("catalogs.yaml", f"- project: acme/finance\n  address: {address}\n")
    assert caught.value.place is not None
    assert caught.value.place.line == 2


@pytest.mark.parametrize("text", [FINANCE + FINANCE, FINANCE + "  token: x\n", "- project: finance\n", "a: b\n"])
def test_what_is_wrong_is_named_and_an_address_is_not(text: str) -> None:
    with pytest.raises(ProjectError) as caught:
        read_other_catalogs("catalogs.yaml", text)
    assert "s3cret" not in caught.value.message


def test_a_wrong_file_stops_the_start_and_project_code_may_not_read_it(tmp_path: Path) -> None:
    file = tmp_path / "catalogs.yaml"
    file.write_text(FINANCE.replace("https", "http"))
    with pytest.raises(RequestError, match="MERGEPLAN_OTHER_CATALOGS is not usable: line 2"):
        load_other_catalogs(file)
    with pytest.raises(RequestError, match="MERGEPLAN_OTHER_CATALOGS cannot be read: No such file"):
        load_other_catalogs(tmp_path / "nothing.yaml")
    assert file.resolve() in Settings(other_catalogs=file).secret_paths()
