"""Files: what may be read and written, and every way out of the project that was thought of."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.planner.api.serving import serve
from tests.planner.shop import write_shop

ESCAPES = [
    "config.yaml", ".env", "models/.hidden.sql", "../outside.sql", "models/../config.yaml", "models/../../outside.sql",
    "/etc/passwd", "//etc/passwd", "models//../../outside.sql", "models/link.sql", "models/folder/outside.sql",
    "seeds/secrets.csv", "models/private_key.sql", "models/pipe.sql", "models", "models/", "", "models/a\\b.sql",
    "models/a\0.sql", ".mergeplan/state.db", "models/config.ini", "tests/__pycache__/x.py",
]  # fmt: skip


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    write_shop(root)
    (tmp_path / "outside.sql").write_text("SECRET")
    for name in (".env", "models/.hidden.sql", "seeds/secrets.csv", "models/private_key.sql", "models/config.ini"):
        (root / name).write_text("SECRET")
    (root / "models/link.sql").symlink_to(tmp_path / "outside.sql")
    (root / "models/folder").symlink_to(tmp_path)
    os.mkfifo(root / "models/pipe.sql")
    return root


@pytest.mark.parametrize("path", ESCAPES)
def test_no_way_leads_out_of_the_projects_folders(project: Path, path: str) -> None:
    before = {file: file.read_bytes() for file in project.parent.rglob("*") if file.is_file() and not file.is_symlink()}
    place = f"/api/v1/files/{quote(path, safe='')}"
    with serve(project, edit=True) as (client, _):
        read = client.get(place)
        written = client.put(place, json={"content": "x", "expected": None})
        removed = client.delete(f"{place}?expected={'0' * 64}")

    assert "SECRET" not in read.text
    assert read.status_code == 404
    assert {written.status_code, removed.status_code} <= {404, 405, 409}
    assert all(file.read_bytes() == text for file, text in before.items() if ".mergeplan" not in file.parts)


def test_files_are_listed_and_read(project: Path) -> None:
    with serve(project) as (client, _):
        names = client.get("/api/v1/files").json()["files"]
        file = client.get("/api/v1/files/models/total.sql").json()

    assert names == [
        "models/apart.sql", "models/daily.sql", "models/items.sql", "models/shown.sql", "models/total.sql",
        "seeds/items.csv",
    ]  # fmt: skip
    assert file["content"] == (project / "models/total.sql").read_text()


def test_nothing_is_written_without_edit(project: Path) -> None:
    with serve(project) as (client, _):
        written = client.put("/api/v1/files/models/new.sql", json={"content": "x"})
        removed = client.delete(f"/api/v1/files/models/total.sql?expected={'0' * 64}")

    assert (written.status_code, removed.status_code) == (403, 403)
    assert not (project / "models/new.sql").exists() and (project / "models/total.sql").exists()


def test_a_file_is_written_if_it_is_still_as_it_was_read(project: Path) -> None:
    place, text = "/api/v1/files/models/apart.sql", "MODEL (name shop.apart, kind FULL);\nSELECT 8 AS eight"
    (project / "models/apart.sql").chmod(0o640)
    with serve(project, edit=True) as (client, _):
        old = client.get(place).json()["digest"]
        new = client.put(place, json={"content": text, "expected": old})
        late = client.put(place, json={"content": "lost", "expected": old})
        blind = client.put(place, json={"content": "lost"})
        column = client.get("/api/v1/models/shop.apart").json()["columns"][0]["name"]

    assert (new.status_code, late.status_code, blind.status_code, column) == (200, 409, 409, "eight")
    assert (project / "models/apart.sql").read_text() == text
    assert (project / "models/apart.sql").stat().st_mode & 0o777 == 0o640


def test_a_new_file_gets_its_folders_and_is_deleted_again(project: Path) -> None:
    place = "/api/v1/files/models/new/deep.sql"
    with serve(project, edit=True) as (client, _):
        made = client.put(place, json={"content": "MODEL (name shop.deep, kind VIEW);\nSELECT 1 AS one"}).json()
        new = client.get("/api/v1/models/shop.deep").status_code
        gone = client.delete(f"{place}?expected={made['digest']}").status_code
        after = client.get("/api/v1/models/shop.deep").status_code

    assert (new, gone, after) == (200, 204, 404)
    assert [path.name for path in (project / "models/new").iterdir()] == []


def test_a_file_too_large_to_be_shown_can_be_replaced(project: Path) -> None:
    place, text = "/api/v1/files/models/large.sql", "MODEL (name shop.large, kind VIEW);\nSELECT 1 AS one"
    (project / "models/large.sql").write_text(f"{text} --{'x' * (1 << 20)}")
    with serve(project, edit=True) as (client, _):
        shown = client.get(place).json()
        stale = client.put(place, json={"content": text, "expected": "0" * 64})
        new = client.put(place, json={"content": text, "expected": shown["digest"]})

    assert (shown["content"], stale.status_code, new.status_code) == (None, 409, 200)
    assert (project / "models/large.sql").read_text() == text
