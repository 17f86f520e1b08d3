"""format from outside: what is written, what is only told, and what is refused."""

from __future__ import annotations

import pytest

from mergeplan.planner.project.scaffold import Wishes, write_project
from tests.planner.cli.conftest import CommandLine

UGLY = "MODEL (name shop.ugly, kind FULL);\nselect 1 as one"
NEAT = "MODEL (\n  name shop.ugly,\n  kind FULL\n);\n\nSELECT\n  1 AS one\n"


@pytest.fixture
def shell(offline: CommandLine) -> CommandLine:
    """`mergeplan` in the example, its files in order, and one more that is not."""
    write_project(offline.root, Wishes())
    offline("format")
    offline.write("models/ugly.sql", UGLY)
    return offline


def test_files_are_rewritten_once_and_then_in_order(shell: CommandLine) -> None:
    first, second = shell("format"), shell("format")

    assert (first.code, first.err) == (0, "")
    assert first.out == "formatted: models/ugly.sql\n1 file formatted, 4 in order already, 0 left as they are.\n"
    assert (shell.root / "models/ugly.sql").read_text() == NEAT
    assert second.out == "0 files formatted, 5 in order already, 0 left as they are.\n"


def test_check_names_the_files_writes_nothing_and_is_exit_code_1(shell: CommandLine) -> None:
    ran, told = shell("format", "--check"), shell("format", "--check", "-o", "json")

    assert (ran.code, told.code) == (1, 1)
    assert ran.out.startswith("would be formatted: models/ugly.sql\n1 file would be formatted")
    assert told.result["format"] == {"changed": ["models/ugly.sql"], "left": [], "files": 5}
    assert (shell.root / "models/ugly.sql").read_text() == UGLY
    assert shell("format", "--check", "models/full_model.sql").code == 0


def test_diff_prints_what_would_change(shell: CommandLine) -> None:
    ran = shell("format", "--diff", "shop.ugly")

    assert ran.code == 0
    assert "--- a/models/ugly.sql\n+++ b/models/ugly.sql\n" in ran.out
    assert "+SELECT\n+  1 AS one\n" in ran.out
    assert (shell.root / "models/ugly.sql").read_text() == UGLY


def test_what_was_left_is_named_with_the_reason(shell: CommandLine) -> None:
    shell.write("models/ugly.sql", f"{UGLY}, {{{{ x }}}} as two")

    ran = shell("format", "--check")

    assert ran.code == 0
    assert ran.out.startswith("left as it is: models/ugly.sql: it holds Jinja\n")


def test_the_style_of_config_yaml_holds_and_an_option_comes_before_it(shell: CommandLine) -> None:
    config = (shell.root / "config.yaml").read_text()
    shell.write("config.yaml", f"{config}\nformat:\n  indent: 4\n  append_newline: false\n")

    shell("format", "--indent", "3")

    assert (shell.root / "models/ugly.sql").read_text() == NEAT.replace("  ", "   ").replace("   1", "  1").rstrip("\n")


def test_windows_ends_of_lines_stay(shell: CommandLine) -> None:
    (shell.root / "models/ugly.sql").write_bytes(UGLY.replace("\n", "\r\n").encode())

    shell("format")

    assert (shell.root / "models/ugly.sql").read_bytes() == NEAT.replace("\n", "\r\n").encode()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "Error: `nothing` is no model and no SQL file of the project."),
        ([], "Error: models/bad.sql:2: The query is not valid Spark SQL near `x`: expecting )."),
    ],
)
def test_nothing_is_written_when_something_is_wrong(arguments: list[str], told: str, shell: CommandLine) -> None:
    shell.write("models/bad.sql", "MODEL (name shop.bad, kind FULL);\nSELECT 1 WHERE (x")

    ran = shell("format", *arguments)

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(told)
    assert (shell.root / "models/ugly.sql").read_text() == UGLY
