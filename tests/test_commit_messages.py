"""The hook that `make` installs refuses commit messages that CONTRIBUTING.md does not allow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[1] / ".githooks" / "commit-msg"
BODY = "\n\nA reviewer reads why here.\n"


def run_hook(argument: str, folder: Path) -> tuple[int, str]:
    """The exit code of the hook, and what it says."""
    done = subprocess.run(
        [sys.executable, HOOK, argument], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stderr


def message(text: str, folder: Path) -> tuple[int, str]:
    """The same for one message."""
    (folder / "COMMIT_EDITMSG").write_text(text)
    return run_hook("COMMIT_EDITMSG", folder)


@pytest.mark.parametrize("subject", ["Show the plan", "Pass `--start` on", "Embed the seed", "Need no Java for a plan"])
def test_a_subject_in_the_imperative_with_a_body_passes(subject: str, tmp_path: Path) -> None:
    assert message(subject + BODY, tmp_path) == (0, "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The plan is shown" + BODY, "begins with `the`"),
        ("Added a plan" + BODY, "begins with `added`"),
        ("Shows a plan" + BODY, "begins with `shows`"),
        ("Showing a plan" + BODY, "begins with `showing`"),
        ("show a plan" + BODY, "capital letter"),
        ("Show a plan." + BODY, "period"),
        (f"Show {'a' * 70}" + BODY, "75 characters"),
        ("Show a plan\nwith it", "not empty"),
        ("Show a plan\n# a comment of git", "no body"),
    ],
)
def test_any_other_message_is_refused_with_what_is_wrong(text: str, reason: str, tmp_path: Path) -> None:
    code, said = message(text, tmp_path)

    assert code == 1
    assert reason in said


def test_the_commits_of_a_range_are_checked_and_merges_are_not(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        author = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *author, *arguments], cwd=tmp_path, check=True, capture_output=True, timeout=60)

    git("init", "--initial-branch=main")
    for subject in ("Start", "Show it", "It is shown", "Merge branch 'x'"):
        git("commit", "--allow-empty", "-m", subject + BODY)

    assert run_hook("HEAD~3..HEAD~2", tmp_path) == (0, "")
    code, said = run_hook("HEAD~3..HEAD", tmp_path)
    assert (code, said.count("Commit ")) == (1, 1)
