"""What a project asks for is read as names and versions: nothing in its files says where packages come from."""

from __future__ import annotations

import pytest

from bot.child.requirements import requirements_of
from planner.errors import ProjectError


def asked(**files: str) -> tuple[str, ...] | None:
    names = {"lock": "requirements.lock", "txt": "requirements.txt", "toml": "pyproject.toml"}
    given = {names[key]: text for key, text in files.items()}
    found = requirements_of(given.get)
    return None if found is None else found.lines


def test_a_lock_comes_before_requirements_and_a_pyproject() -> None:
    toml = '[project]\ndependencies = ["acme>=1,<2", "other[x]; python_version > \'3.9\'"]\n'

    assert asked(lock="acme==1.0 --hash=sha256:ab12\n", txt="acme\n") == ("acme==1.0 --hash=sha256:ab12",)
    assert asked(toml=toml) == ("acme>=1,<2", "other[x]; python_version > '3.9'")
    assert asked(txt="# nothing\n\nsqlmesh[spark]==0.200\nmergeplan\n") is None
    assert asked(txt="acme==1.0 \\\n  --hash=sha256:ab\nb # why\n") == ("acme==1.0   --hash=sha256:ab", "b")


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://evil.example/simple",
        "-e .",
        "-r /etc/passwd",
        "acme @ http://169.254.169.254/latest",
        "./wheels/acme.whl",
        "https://evil.example/acme.whl",
        "git+https://evil.example/acme",
        "acme==1.0 --config-settings=x=y",
    ],
)
def test_whatever_says_where_a_package_comes_from_is_refused_at_its_line(line: str) -> None:
    with pytest.raises(ProjectError) as refused:
        asked(txt=f"good==1\n{line}\n")

    assert str(refused.value.place) == "requirements.txt:2"
