"""The planner's child: what it is started with, and what it does not read."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from mergeplan.bot.child.planner_process import (
    NO_PLAN,
    SHUTDOWN,
    Finished,
    Task,
    child_environment,
    planner_argv,
    run_planner,
)
from mergeplan.bot.settings import Settings
from mergeplan.planner.plan.witness.check import COMPARING
from tests.bot.conftest import SHOP

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
ASK = (
    "import sys; print('usercustomize' in sys.modules, 'json' in sys.modules and hasattr(sys.modules['json'], 'evil'))"
)


def plant_files(folder: Path) -> None:
    """What a model's code can leave where it may write: modules that Python itself looks for."""
    for place in (folder, folder / ".local" / SITE):
        place.mkdir(parents=True, exist_ok=True)
        for name in ("usercustomize", "sitecustomize", "json"):
            (place / f"{name}.py").write_text("evil = True\n")


@pytest.mark.parametrize("home", [False, True], ids=["its own home", "a home that was planted"])
def test_no_module_that_project_code_could_leave_runs_in_the_planner(tmp_path: Path, home: bool) -> None:
    """Outside of a virtual environment, where Python looks below HOME; the state's address comes on standard input."""
    settings = Settings(home=tmp_path)
    plant_files(tmp_path / SHOP)
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path / SHOP), "PYTHONUSERBASE": str(tmp_path / SHOP)}
    variables = child_environment(settings, SHOP, environ)
    variables |= {"HOME": str(tmp_path / SHOP), "PYTHONPATH": str(tmp_path / SHOP)} if home else {}
    argv = planner_argv(settings)
    flags = argv[1 : argv.index("-m")]
    python = str(getattr(sys, "_base_executable", sys.executable))
    asked = [python, *flags, "-c", ASK]
    told = subprocess.run(asked, cwd=tmp_path / SHOP, env=variables, capture_output=True, text=True, check=True)

    assert told.stdout.split() == ["False", "False"]


def test_the_planner_is_handed_no_variable_of_pythons_and_no_home_that_code_may_write(tmp_path: Path) -> None:
    """A library reads passwords and settings from below HOME: there is nothing."""
    environ = {"PYTHONPATH": "/evil", "PYTHONSTARTUP": "/evil", "JAVA_TOOL_OPTIONS": "-evil", "PGPASSFILE": "/evil"}
    variables = child_environment(Settings(home=tmp_path), SHOP, {**environ, "HOME": "/root"})

    assert not environ.keys() & variables.keys()
    assert not Path(variables["HOME"]).exists()
    assert (variables["PYTHONNOUSERSITE"], variables["PYTHONSAFEPATH"]) == ("1", "1")


def test_the_planner_is_handed_what_the_operator_says_of_spark(tmp_path: Path) -> None:
    environ = {"MERGEPLAN_SPARK_PROFILE": "metadata", "MERGEPLAN_SPARK_ARCHIVE": "off", "JAVA_HOME": "/java"}

    assert environ.items() <= child_environment(Settings(home=tmp_path), SHOP, environ).items()


def child_that_prints(tmp_path: Path, *lines: dict[str, object]) -> Finished:
    """A planner of the operator's own, at its end."""
    script = "\n".join(f"print({json.dumps(line)!r})" for line in lines)
    settings = Settings(home=tmp_path, planner_command=(sys.executable, "-c", script))
    task = Task((), tmp_path, SHOP, "run-1")
    return run_planner(
        settings, task, on_start=lambda pid, born: None, on_event=lambda line: None, should_stop=lambda: ""
    )


COMPARED = {"name": "s.t", "change": "direct", "checked": {"state": "unchecked", "detail": COMPARING}}


@pytest.mark.parametrize(
    ("models", "stopped"),
    [(None, NO_PLAN), ([COMPARED], NO_PLAN), ([], "")],
    ids=["no plan", "Spark compares", "it builds"],
)
def test_a_planner_without_a_checked_plan_is_ended_and_one_that_builds_goes_on(
    tmp_path: Path, models: list[object] | None, stopped: str
) -> None:
    plan = {"event": "plan", "plan": {"id": "p1", "environment": "dev", "models": models}}
    text = "" if models is None else json.dumps(plan)
    script = f"import time; print({text!r}, flush=True); time.sleep({60 if stopped else 2.5})"
    command = (sys.executable, "-c", script)
    settings = Settings(home=tmp_path, planner_command=command, plan_timeout_seconds=2, grace_seconds=0)
    task, lines = Task(("plan",), tmp_path, SHOP, "run-1"), list[object]()

    ended = run_planner(settings, task, on_start=lambda *_: None, on_event=lines.append, should_stop=lambda: "")

    assert (ended.stopped, len(lines)) == (stopped, 0 if models is None else 1)


@pytest.mark.parametrize("is_fork", [False, True])
def test_templates_of_a_fork_are_given_no_rows(tmp_path: Path, is_fork: bool) -> None:
    script = "import json, os; print(json.dumps({'event': 'warning', 'message': os.environ.get('MERGEPLAN_DBT_ROWS')}))"
    settings, heard = Settings(home=tmp_path, planner_command=(sys.executable, "-c", script)), list[object]()
    task = Task((), tmp_path, SHOP, "run-1", is_fork=is_fork)

    run_planner(settings, task, on_start=lambda pid, born: None, on_event=heard.append, should_stop=lambda: "")

    assert ("off" in str(heard)) is is_fork


def test_a_planner_of_another_version_is_refused_in_a_sentence_and_not_misread(tmp_path: Path) -> None:
    plan = {"event": "plan", "version": 2, "plan": {"id": "p1", "environment": "pr_7", "models": []}}
    result = {**plan, "event": "result", "ok": True, "applied": True}
    outcome = child_that_prints(tmp_path, plan, result).outcome

    assert (outcome.ok, outcome.applied, outcome.plan, outcome.is_defect) == (False, False, None, False)
    assert [(problem.kind, problem.hint) for problem in outcome.problems] == [
        ("OtherVersion", "Install the same mergeplan on both sides.")
    ]
    assert "version 2 of its JSON" in outcome.problems[0].message


def test_a_result_that_cannot_be_read_is_no_success(tmp_path: Path) -> None:
    """Doubt is not ok: what is merged is never promoted on a line that nobody understood."""
    outcome = child_that_prints(tmp_path, {"event": "later"}, {"event": "result", "ok": "perhaps"}).outcome

    assert (outcome.ok, outcome.is_defect) == (False, True)


def test_no_spelling_of_the_services_home_leaves_it(tmp_path: Path) -> None:
    home = tmp_path / "m\u00fcller & co" / "home"
    home.mkdir(parents=True)
    said = f"There is no file {home}/a.csv, file:{quote(str(home))}/b.parquet or {tmp_path}."

    problem = child_that_prints(home, {"event": "error", "message": said}).outcome.problems[0]

    assert problem.message == (f"There is no file MERGEPLAN_HOME/a.csv, file:MERGEPLAN_HOME/b.parquet or {tmp_path}.")


def test_of_many_lines_those_that_a_report_needs_are_kept(tmp_path: Path) -> None:
    batch = {"event": "batch", "model": "a.b", "index": 1, "of": 1, "interval": ["a", "b"], "rows": 1, "seconds": 1}
    passed, failed = ({"event": "test", "name": name, "ok": name == "good"} for name in ("good", "bad"))
    plan = {"event": "plan", "plan": {"id": "p1", "environment": "dev"}}
    kept = child_that_prints(tmp_path, batch, passed, failed, plan, {**plan, "event": "result", "ok": False}).lines

    assert [line.event for line in kept] == ["test", "result"]


@pytest.mark.parametrize(
    ("why", "number"), [(SHUTDOWN, signal.SIGUSR1), ("A newer commit was pushed.", signal.SIGTERM)]
)
def test_a_service_that_ends_lets_the_planner_leave_what_spark_goes_on_with(
    tmp_path: Path, why: str, number: signal.Signals
) -> None:
    script = (
        "import signal, sys, time\n"
        "def told(number, frame):\n    open('told', 'w').write(str(number))\n    sys.exit(1)\n"
        "for number in (signal.SIGUSR1, signal.SIGTERM):\n    signal.signal(number, told)\n"
        "open('ready', 'w').close()\ntime.sleep(60)\n"
    )
    ended = run_planner(
        Settings(home=tmp_path, planner_command=(sys.executable, "-c", script)),
        Task((), tmp_path, SHOP, "run-1"),
        on_start=lambda pid, born: None,
        on_event=lambda line: None,
        should_stop=lambda: why if (tmp_path / "ready").exists() else "",
    )
    assert (ended.stopped, (tmp_path / "told").read_text()) == (why, str(int(number)))
