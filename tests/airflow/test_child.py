"""mergeplan as a child process: lines in, a result or an error out, and an end with all that it started."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mergeplan.airflow import child
from mergeplan.airflow.child import Command, CommandFailed, describe_line, run_in_turn
from mergeplan.airflow.place import Place


def command(code: str, said: list[str] | None = None) -> Command:
    return Command([sys.executable, "-c", code], dict(os.environ), (said if said is not None else []).append)


def suppress_failure(running: Command) -> None:
    with suppress(CommandFailed):
        running.run_lines()


def test_lines_become_a_log_and_the_last_one_the_result() -> None:
    said: list[str] = []
    batch = '{"event": "batch", "model": "s.a", "interval": ["2026-01-01", "2026-01-02"], "rows": 7, "seconds": 1}'
    failed = '{"event": "failed", "model": "s.b", "message": "no"}'
    lines = [batch, "WARN jvm", failed, '{"event": "result", "ok": false}']
    code = "".join(f"print({line!r})\n" for line in lines) + "exit(1)"

    assert command(code, said).run_lines() == {"event": "result", "ok": False, "failed": ["s.b"]}
    assert said == ["s.a [2026-01-01 - 2026-01-02]: 7 rows in 1.0 s", "WARN jvm", "s.b failed: no"]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ('print(\'{"event": "error", "message": "no Spark"}\\n{"event": "result", "ok": false}\')', "no Spark"),
        ("import os; os.kill(os.getpid(), 9)", "ended with exit code -9 and no result"),
    ],
)
def test_an_end_without_a_result_is_an_error(code: str, says: str) -> None:
    with pytest.raises(CommandFailed, match=says):
        command(code).run_lines()


def test_a_text_command_fails_with_its_exit_code() -> None:
    assert command("print('fine')").run_text() == "fine"
    with pytest.raises(CommandFailed, match="exit code 4"):
        command("exit(4)").run_text()


def test_a_run_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "POLL_SECONDS", 0.01)
    lines = iter(['{"event": "result", "ok": true, "skipped": "`prod` is being run already"}', '{"event": "result"}'])
    result = run_in_turn(lambda: command(f"print('''{next(lines)}''')"))

    assert result == {"event": "result", "failed": []}
    assert run_in_turn(lambda: command("exit(9)"), lambda: False) == {}


def test_stopping_ends_what_the_command_started(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time, pathlib\n"
        f"inner = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(inner.pid))\n"
        "time.sleep(60)"
    )
    running = command(code)
    thread = threading.Thread(target=lambda: suppress_failure(running))
    thread.start()
    deadline = time.monotonic() + 30
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.stop()
    thread.join(30)

    while is_alive((tmp_path / "pid").read_text()):  # a signal takes a moment
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_line_without_news_is_not_logged() -> None:
    assert describe_line({"event": "stage"}) == ""
    assert describe_line({"event": "result", "ok": True}) == ""


def test_a_place_is_json_and_back() -> None:
    place = Place("/srv/shop", command=("uv", "run", "mergeplan"), project="", env=(("A", "b"),), gateway="big")

    assert Place.deserialize(place.serialize()) == place
    assert place.argv("run", "prod") == [
        "uv",
        "run",
        "mergeplan",
        "run",
        "prod",
        "--project",
        "/srv/shop",
        "--gateway",
        "big",
    ]
    own = place.environ("sqlite:///x.db")
    assert (own["MERGEPLAN_STATE_URL"], own["MERGEPLAN_PROJECT"], own["A"]) == ("sqlite:///x.db", "", "b")


def test_a_command_that_is_not_there_names_the_argument_that_names_it() -> None:
    with pytest.raises(CommandFailed, match=r"`/no/mergeplan` cannot be started: No such file or directory\. Install"):
        Command(["/no/mergeplan", "run"], dict(os.environ), print).run_lines()


def test_the_first_error_is_said_with_its_place_and_what_to_do() -> None:
    error = '{"event": "error", "message": "A list is open.", "hint": "Close it.", "path": "config.yaml", "line": 2}'
    lines = [error, '{"event": "error", "message": "And another."}', '{"event": "result"}']
    with pytest.raises(CommandFailed, match=r"^config\.yaml:2: A list is open\. Close it\.$"):
        command("".join(f"print({line!r})\n" for line in lines)).run_lines()
