"""A database of the bot's that cannot be used: `mergeplan serve` ends with a sentence, and a running one says so."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mergeplan.bot.inbox.inbox import Inbox
from mergeplan.planner.errors import RequestError

NOISE = random.Random(5).randbytes(60_000)  # noqa: S311  # not for secrets


def garble(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(NOISE)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "random bytes": lambda file: file.write_bytes(NOISE),
    "random bytes after the header": garble,
    "cut": lambda file: os.truncate(file, 5000),
    "nothing": lambda file: os.truncate(file, 0),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_inbox_is_told(damage: str, tmp_path: Path) -> None:
    file = tmp_path / "bot.db"
    Inbox(f"sqlite:///{file}").close()
    DAMAGES[damage](file)

    with pytest.raises(RequestError, match="is damaged"), closing(Inbox(f"sqlite:///{file}")) as inbox:
        inbox.queue.depth()
        inbox.queue.repositories()


def start_service(home: Path, port: int = 0) -> subprocess.CompletedProcess[str]:
    variables = {"MERGEPLAN_HOME": str(home), "MERGEPLAN_WEBHOOK_SECRET": "s" * 32, "MERGEPLAN_GITHUB_TOKEN": "t"}
    return subprocess.run(
        [sys.executable, "-m", "mergeplan.bot.main", "serve", "--port", str(port)],
        env={"PATH": os.environ["PATH"], **variables}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_the_service_does_not_start_on_a_damaged_inbox_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "bot.db").write_bytes(NOISE)

    ran = start_service(tmp_path)

    assert ran.returncode == 1, ran
    assert ran.stderr.splitlines()[-1].startswith("Error: The state database ")
    assert "Traceback" not in ran.stderr


def test_a_second_service_on_a_port_does_no_work_and_says_why(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = start_service(tmp_path, taken.getsockname()[1])

    assert ran.returncode == 1, ran
    assert ran.stderr.startswith("Error: The service cannot listen on 127.0.0.1, port ")
    assert ": address already in use. Set another" in ran.stderr
    assert not (tmp_path / "bot.db").exists()
