"""What a repository holds is parsed in a child: however it ends, the end is an error at the file."""

from __future__ import annotations

import sys

import pytest

from mergeplan.bot.child.reader import RepositoryReader
from mergeplan.planner.errors import ProjectError

RULES = "cicd_bot:\n  pr_environment_name: ci\n  rules: [{models: shop.*, approvals: 1}]\n"


def test_a_section_comes_back_as_it_is_written_with_its_lines() -> None:
    section = RepositoryReader().section("etl/config.yaml", RULES)

    assert section.value == {"pr_environment_name": "ci", "rules": [{"models": "shop.*", "approvals": 1}]}
    assert str(section.place("rules.0.approvals")) == "etl/config.yaml:3"
    assert str(section.place("rules.0.nothing")) == "etl/config.yaml:3"


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("model_defaults:\n  start: 2026-02-30\n", "`2026-02-30` is not a valid value", 2),
        ("x: " + "[" * 50_000, "nested more than 100 deep", 1),
        ("cicd_bot:\n  budget: {seconds: .inf}\n", "`cicd_bot.budget.seconds` must be a finite number.", 2),
        ("cicd_bot:\n  skip_label: {{ env_var('LABEL') }}\n", "`cicd_bot` cannot use environment variables.", 2),
        ("x" * 5_000_000, "more than 4000000 characters", 0),
    ],
)
def test_a_wrong_file_is_an_error_at_its_line(text: str, said: str, line: int) -> None:
    with pytest.raises(ProjectError) as caught:
        RepositoryReader().section("config.yaml", text)

    assert said in caught.value.message
    assert caught.value.place is not None
    assert (caught.value.place.path, caught.value.place.line) == ("config.yaml", line)


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("os.kill(os.getpid(), 11)", "ended its process (SIGSEGV)"),
        ("os.kill(os.getpid(), 24)", "more than 5 seconds of the processor's time"),
        ("os._exit(9)", "more than 1024 MiB of memory"),
        ("os._exit(1)", "ended its process (exit code 1)"),
        ("print('x' * 5_000_000)", "more than 4000000 characters"),
    ],
)
def test_any_end_of_the_child_is_an_error_at_the_file_and_is_not_tried_again(
    end: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = RepositoryReader()
    for command in ((sys.executable, "-c", f"import os, sys; sys.stdin.read(); {end}"), ("/nonexistent",)):
        monkeypatch.setattr("mergeplan.bot.child.reader.CHILD", command)
        with pytest.raises(ProjectError) as caught:
            reader.section("config.yaml", RULES)

        assert said in caught.value.message
        assert str(caught.value.place) == "config.yaml"


def test_requirements_and_owners_are_read_there_too() -> None:
    reader = RepositoryReader()
    asked = reader.requirements({"requirements.txt": "acme==1.0\n"})
    owners = reader.owners("CODEOWNERS", "* @ann\n/models/ @acme/data\n", ["models/a.sql", "README.md"])

    assert asked is not None
    assert (asked.path, asked.lines) == ("requirements.txt", ("acme==1.0",))
    assert owners == {"models/a.sql": ("acme/data",), "README.md": ("ann",)}
    with pytest.raises(ProjectError, match="This is not TOML"):
        reader.requirements({"pyproject.toml": f"x = {'9' * 5000}\n"})


@pytest.mark.prove
def test_a_pattern_of_owners_that_takes_for_ever_is_ended() -> None:
    """Every `*` may be of any length: the time is a power of the path's."""
    with pytest.raises(ProjectError, match="Reading the file took"):
        RepositoryReader().owners("CODEOWNERS", "/" + "a**" * 30 + "b @ann\n", ["a" * 2_000])
