"""The server starts, stops, and leaves behind what it should: git, or nothing."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from github import Auth, GithubIntegration

from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.server import KEY_FILE, Sandbox

from .conftest import SHOP

PROGRAM = """
import sys, pathlib
from mergeplan_sandbox.server import run_sandbox
folder = pathlib.Path(sys.argv[1])
run_sandbox("127.0.0.1", 0, folder, None, "secret", on_start=lambda sandbox: print(sandbox.url, flush=True))
"""


def test_a_temporary_folder_ends_with_the_sandbox() -> None:
    with Sandbox() as sandbox:
        sandbox.create_repository(SHOP, {"a": "1"})
        folder = sandbox.state.folder
        assert folder.exists()

    assert not folder.exists()
    with pytest.raises(httpx.ConnectError):
        httpx.get(sandbox.url)


def test_two_sandboxes_live_side_by_side() -> None:
    with Sandbox() as one, Sandbox() as other:
        one.create_repository(SHOP, {"a": "1"})

        assert one.url != other.url
        assert SHOP not in other.state.repositories


def test_a_folder_of_files_becomes_a_repository(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "orders.sql").write_text("SELECT 1\n")
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\0")

    with Sandbox() as sandbox:
        sandbox.create_repository(SHOP, tmp_path, default_branch="trunk")

        assert sandbox.read(SHOP, "models/orders.sql", "trunk") == "SELECT 1\n"


@pytest.mark.parametrize("name", ["shop", "ann/", "../../etc/shop", "ann/../x", "ann/a b", "ann/.git"])
def test_a_repository_s_name_is_owner_and_name(name: str) -> None:
    with Sandbox() as sandbox, pytest.raises(ApiError, match="is not owner/name"):
        sandbox.create_repository(name, {"a": "1"})


def test_the_command_serves_until_it_is_ended_and_keeps_git(tmp_path: Path) -> None:
    with Sandbox(tmp_path) as sandbox:
        sandbox.create_repository(SHOP, {"a": "1"})

    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        overview = httpx.get(f"{url}/_sandbox").json()
        key = (tmp_path / KEY_FILE).read_text()
        with GithubIntegration(auth=Auth.AppAuth(overview["app"]["id"], key), base_url=url, retry=None) as app:
            assert app.get_app().slug == "mergeplan"
        server.terminate()
        assert server.wait(120) == 0

    assert overview["repositories"] == [SHOP]
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o077 == 0
