"""Bad input: a sentence with file and line on standard error, exit code 1, nothing written, Spark not even started."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mergeplan.planner.cli.main import VERBS
from mergeplan.planner.project.scaffold import Wishes, write_project
from tests.planner.cli.conftest import CommandLine
from tests.planner.project.test_loader import BAD, CONFIG, project_of

FULL = "MODEL (name shop.{name}, kind FULL);\n{sql}\n"
SECRET = "hunter2"  # noqa: S105  # no secret of anybody


def folder(root: Path) -> set[str]:
    """Every file in a project, but for a state database that holds nothing."""
    return {
        name for path in root.rglob("*") if not (name := path.relative_to(root).as_posix()).startswith(".mergeplan")
    }


@pytest.mark.parametrize("case", BAD, ids=lambda path: path.stem)
def test_a_wrong_project_is_told_before_spark_is_started(case: Path, offline: CommandLine) -> None:
    expected, *sections = case.read_text().split("=== ")
    project_of(offline.root, dict(section.split("\n", 1) for section in sections))
    before = sorted(offline.root.rglob("*"))

    ran = offline("plan", "--auto-apply")

    errors = expected.removeprefix("expect:").strip().splitlines()
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines() == [f"Error: {error}" for error in errors]
    assert sorted(offline.root.rglob("*")) == before


@pytest.mark.parametrize(
    ("sqls", "told"),
    [
        (
            {"a": "SELECT x FROM shop.b", "b": "SELECT x FROM shop.c", "c": "SELECT x FROM shop.a"},
            "models/a.sql:1: Models depend on each other in a cycle: shop.a -> shop.b -> shop.c -> shop.a.",
        ),
        (
            {"a": "SELECT 1 AS x", "b": "SELECT x,\n  y FROM shop.a"},
            "models/b.sql:3: `shop.b` reads the column `y`, which is not in `shop.a`.",
        ),
    ],
    ids=["cycle", "unknown column in a child"],
)
def test_models_that_do_not_fit_together_are_told_before_spark_is_started(
    sqls: dict[str, str], told: str, offline: CommandLine
) -> None:
    project_of(offline.root, {f"models/{name}.sql": FULL.format(name=name, sql=sql) for name, sql in sqls.items()})
    test = "test_t:\n  model: shop.a\n  outputs:\n    query: [{x: 1}]\n"
    offline.write("tests/t.yaml", test)
    before = folder(offline.root)

    ran = offline("plan", "--auto-apply")

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"Error: {told}")
    assert ran.err.count("\n") == 1
    assert folder(offline.root) == before
    assert offline.state.environments.history() == ()


@pytest.mark.parametrize("verb", ["plan", "run", "audit", "rollback", "invalidate", "environments"])
@pytest.mark.parametrize(
    "name",
    ["dev;drop", "../x", "$(id)", "a\nb", "x" * 65, "", "  ", "dev prod", "d\u00e9v", "a.b", "dev\x1b[31m", "-- "],
)
def test_an_environment_of_an_odd_name_is_refused(name: str, verb: str, offline: CommandLine) -> None:
    write_project(offline.root, Wishes())
    before = sorted(offline.root.rglob("*"))

    ran = offline(verb, "--", name)

    assert (ran.code, ran.out) == (1, "")
    assert re.fullmatch(r"Error: `.*` cannot name an environment\. .*\n", ran.err)
    assert "\x1b" not in ran.err
    assert sorted(offline.root.rglob("*")) == before


def test_prod_is_prod_in_capitals_too(offline: CommandLine) -> None:
    write_project(offline.root, Wishes("empty"))

    assert offline("plan", "PROD", "--no-prompts").out == offline("plan", "--no-prompts").out


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems have no such names")
@pytest.mark.parametrize("verb", ["plan", "lint"])
def test_a_file_whose_name_is_no_text_is_named_as_well_as_it_can_be(verb: str, offline: CommandLine) -> None:
    project_of(offline.root, {"models/a.sql": FULL.format(name="a", sql="SELECT 1 AS x")})
    os.rename(os.fsencode(offline.root / "models/a.sql"), os.fsencode(offline.root / "models") + b"/b\xff.sql")

    ran = offline(verb)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Error: The name of the file is not UTF-8: `models/b\\udcff.sql`. Rename the file.\n"


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems have no such names")
def test_a_file_that_is_ignored_may_have_any_name(offline: CommandLine) -> None:
    config = CONFIG + "ignore_patterns: ['models/old/*']\n"
    text = FULL.format(name="a", sql="SELECT 1 AS x")
    project_of(offline.root, {"config.yaml": config, "models/a.sql": text, "models/old/b.sql": text})
    old = os.fsencode(offline.root / "models/old")
    os.rename(old + b"/b.sql", old + b"/b\xff.sql")

    assert offline("lint").code == 0


def test_a_folder_that_was_removed_under_the_command_is_told(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    program = "import os, sys; os.rmdir(os.getcwd()); from mergeplan.planner.cli.main import main; main()"
    call = [sys.executable, "-c", program, "plan"]
    ran = subprocess.run(call, cwd=gone, capture_output=True, text=True, timeout=60, check=False)

    assert ran.returncode == 1
    assert ran.stderr == "Error: The folder in which mergeplan was called is gone. Go to another one.\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("plan --start 2026-13-01", "`2026-13-01` is not a date."),
        ("plan --end soon", "`soon` is not a date."),
        ("plan --execution-time never", "`never` is not a date."),
        ("run --execution-time never", "`never` is not a date."),
        ("plan --start 2026-01-05 --end 2026-01-01", "The end `2026-01-01` does not come after the start"),
        (
            "plan --categorize shop.a",
            "`shop.a` gives no category. Write MODEL=breaking, MODEL=non-breaking, MODEL=forward-only, or MODEL=reset",
        ),
        ("plan --categorize shop.a=harmless", "`shop.a=harmless` gives no category."),
        ("plan --categorize shop.a=breaking", "`shop.a` is not directly changed here."),
        ("plan --gateway sparc", "There is no gateway `sparc`. Did you mean `spark`?"),
        ("plan --project nowhere", "There is no folder `nowhere`."),
        ("plan --overrides-from ../x", "`../x` cannot name an environment."),
        ("apply 123456789abc", "There is no plan `123456789abc`."),
        ("run", "There is no environment `prod`."),
        ("audit dev", "There is no environment `dev`."),
        ("environments dev", "There is no environment `dev`."),
        ("invalidate dev", "There is no environment `dev`."),
        ("invalidate prod", "`prod` cannot be dropped."),
        ("rollback prod", "There is no environment `prod`."),
        ("render sqlmesh_example.ful_model", "Did you mean `sqlmesh_example.full_model`?"),
        ("render sqlmesh_example.seed_model", "has no query: its kind is SEED."),
        ("dag --select nothing", "`nothing` selects no model."),
        ("test nothing", "`nothing` is no test."),
        ("test -k nothing", "`nothing` is no test."),
        ("init duckdb", "mergeplan runs on Spark, not on `duckdb`."),
        ("init", "exists already: nothing was written."),
    ],
)
def test_a_wrong_request_is_told_before_spark_is_started(arguments: str, told: str, offline: CommandLine) -> None:
    write_project(offline.root, Wishes())
    before = folder(offline.root)

    ran = offline(*arguments.split())

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Error: ")
    assert told in ran.err
    assert ran.err.count("\n") == 1
    assert folder(offline.root) == before


def test_a_folder_that_is_no_project_is_told_to_init(offline: CommandLine) -> None:
    for verb in ("plan", "run", "test", "audit", "dag", "info", "environments", "janitor", "migrate"):
        ran = offline(verb)

        assert (ran.code, ran.out) == (1, "")
        assert re.fullmatch(r"Error: There is no config\.yaml in .*\. Run `mergeplan init` to create .*\n", ran.err)
    assert list(offline.root.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("paln", "There is no command `paln`. Did you mean `plan`?"),
        ("nonsense", "There is no command `nonsense`."),
        ("status", "There is no command `status`. Did you mean `environments`?"),
        ("restate", "There is no command `restate`. Did you mean `plan --restate-model MODEL`?"),
        ("plan --explian", "No such option '--explian'. Did you mean '--explain'?"),
        ("plan dev extra", "Got unexpected extra argument (extra)"),
        ("fetchdf", "Missing argument 'SQL'."),
        ("plan --output xml", "'xml' is not one of 'text', 'json'."),
        ("janitor --days -1", "-1 is not in the range x>=0."),
        ("-p shop plan", "No such option '-p'. Write it after the command, as in `mergeplan plan -p ...`."),
        ("plan -p a -p b", "one project is planned at a time"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_says_what_was_meant(arguments: str, told: str, offline: CommandLine) -> None:
    ran = offline(*arguments.split())

    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_no_verb_at_all_shows_the_verbs(offline: CommandLine) -> None:
    ran = offline()

    assert ran.code == 2
    assert all(f"  {verb} " in ran.err for verb in VERBS)


@pytest.mark.parametrize("arguments", ["plan", "plan --bad", "apply x", "test x", "audit x", "rollback x", "nonsense"])
def test_with_json_an_error_is_a_line_and_the_result_the_last(arguments: str, offline: CommandLine) -> None:
    project_of(offline.root, {"models/a.sql": "MODEL (name shop.a, knid FULL);\nSELECT 1 AS x\n"})

    ran = offline(*arguments.split(), "--output", "json")

    error = ran.lines[-2]
    assert ran.err == ""
    assert error["event"] == "error"
    assert error["exit_code"] == ran.code > 0
    assert error["message"]
    assert ran.result == {"event": "result", "version": 1, "ok": False, "applied": False}


def test_with_json_each_wrong_file_is_a_line_with_its_place(offline: CommandLine) -> None:
    bad = "MODEL (\n  name shop.{name},\n  knid FULL\n);\nSELECT 1 AS x\n"
    project_of(offline.root, {f"models/{name}.sql": bad.format(name=name) for name in "ab"})

    errors = offline("plan", "--output", "json").lines[:-1]

    assert [(error["path"], error["line"], error["kind"]) for error in errors] == [
        ("models/a.sql", 3, "ProjectError"),
        ("models/b.sql", 3, "ProjectError"),
    ]


@pytest.mark.parametrize(
    "url",
    [f"postgresql://ann:{SECRET}@127.0.0.1:1/plans", f"mysql://ann:{SECRET}@127.0.0.1/plans", f"ann:{SECRET}@host"],
)
def test_a_state_database_that_does_not_answer_is_told_without_its_password(
    url: str, offline: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(offline.root, Wishes())
    monkeypatch.setenv("MERGEPLAN_STATE_URL", url)

    ran = offline("plan", "--auto-apply")

    assert ran.code == 1
    assert ran.err.startswith("Error: ")
    assert ran.err.count("\n") == 1
    assert SECRET not in ran.out + ran.err


def test_a_home_that_is_a_file_is_told(offline: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    write_project(offline.root, Wishes())
    monkeypatch.setenv("MERGEPLAN_HOME", str(offline.root / "config.yaml"))

    ran = offline("plan", "--auto-apply")

    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert str(offline.root / "config.yaml") in ran.err


def test_a_defect_of_ours_is_a_sentence_and_its_trace_is_kept(offline: CommandLine) -> None:
    write_project(offline.root, Wishes())

    ran = offline("test")  # it wants a Spark, and here that is an error nobody foresaw

    log = re.search(r"see (\S+)\.\n$", ran.err)
    assert ran.code == 3
    assert ran.err.startswith("Error: mergeplan failed: AssertionError: Spark was started")
    assert ran.err.count("\n") == 1
    assert log is not None
    assert "Traceback" in Path(log[1]).read_text()
    Path(log[1]).unlink()


def test_a_full_disk_is_no_defect_of_ours(offline: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_project(offline.root, Wishes())
    monkeypatch.setattr("mergeplan.planner.session.workspace.load_project", full)

    ran, as_json = offline("plan"), offline("plan", "-o", "json")

    assert (ran.code, ran.err) == (1, "Error: No space left on device. Make room there and run this again.\n")
    assert as_json.lines[-2]["message"] == "No space left on device."


def test_what_spark_cannot_parse_is_told_at_its_line_and_nothing_is_computed(shop: Callable[..., CommandLine]) -> None:
    run = shop()
    run.write("models/odd.sql", "MODEL (name shop.odd, kind FULL);\n-- odd\nSELECT\n  CAST(1 AS TEXT) AS x\n")
    assert run("plan", "dev", "--no-prompts", "--skip-tests").code == 0  # no Spark was needed

    answers = [run("plan", "--auto-apply"), run("plan", "dev", "--skip-tests", answer="y\n")]

    for ran in answers:
        assert ran.code == 1
        assert 'Error: models/odd.sql:4: shop.odd: Unsupported data type "TEXT".' in ran.err
    assert run.engine is not None
    assert run.engine.fetch("SHOW SCHEMAS LIKE '*shop*'").rows == ()


def test_a_file_that_is_called_json_does_not_ask_for_json(offline: CommandLine) -> None:
    """`state export -o` names a file."""
    ran = offline("state", "export", "-o", "json", "--environment", "no such")

    assert ran.err.startswith("Error: ")
