"""What a project asks for is read as names and versions: nothing in its files says where packages come from."""

from __future__ import annotations

import pytest

from mergeplan.bot.child.requirements import requirements_of
from mergeplan.planner.errors import ProjectError


def lines_required(**files: str) -> tuple[str, ...] | None:
    names = {"lock": "requirements.lock", "txt": "requirements.txt", "toml": "pyproject.toml"}
    contents = {names[key]: text for key, text in files.items()}
    requirements = requirements_of(contents.get)
    return None if requirements is None else requirements.lines


def test_a_lock_comes_before_requirements_and_a_pyproject() -> None:
    toml = '[project]\ndependencies = ["acme>=1,<2", "other[x]; python_version > \'3.9\'"]\n'

    assert lines_required(lock="acme==1.0 --hash=sha256:ab12\n", txt="acme\n") == ("acme==1.0 --hash=sha256:ab12",)
    assert lines_required(toml=toml) == ("acme>=1,<2", "other[x]; python_version > '3.9'")
    assert lines_required(txt="# nothing\n\nsqlmesh[spark]==0.200\nmergeplan\n") is None
    assert lines_required(txt="acme==1.0 \\\n  --hash=sha256:ab\nb # why\n") == ("acme==1.0   --hash=sha256:ab", "b")


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
        "--extra-index-url=https://evil.example/simple",
        "--find-links https://evil.example",
        "-f ./wheels",
        "-c constraints.txt",
        "--editable git+ssh://git@evil.example/acme",
        "acme -r /etc/passwd",
        "acme ; python_version > '3' -i https://evil.example/simple",
        "acme; python_version > '3'\t--index-url https://evil.example",
        "acme==1.0; python_version < '${PIP_INDEX_URL}'",
        "acme; extra == '${HTTPS_PROXY}'",
        "${PIP_EXTRA_INDEX_URL}",
        "acme==${PIP_TRUSTED_HOST}",
        "acme[${SECRET}]",
        "file:///etc/passwd#egg=acme",
        "acme@file:///etc/passwd",
        "hg+https://evil.example/acme",
        "../wheels/acme-1.0-py3-none-any.whl",
        "acme.whl @ ./acme.whl",
    ],
)
def test_whatever_says_where_a_package_comes_from_is_refused_at_its_line(line: str) -> None:
    with pytest.raises(ProjectError) as refused:
        lines_required(txt=f"good==1\n{line}\n")

    assert str(refused.value.place) == "requirements.txt:2"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("txt", "acme" + " " * 50_000 + "!\n"),
        ("txt", "a" * 500_000 + "!\n"),
        ("txt", "acme" + ">=1," * 100_000 + "!\n"),
        ("toml", "[project]\n" + ".".join("a" * 30_000) + "=1\n"),
        ("toml", "[" + " . ".join(["'a'"] * 20_000) + "]\n"),
        ("toml", "a = " + "[" * 60_000 + "\n"),
        ("toml", "a = " + "9" * 5_000 + "\n"),
        ("toml", "a" * (200 << 10)),
        ("lock", "a\n" * (3 << 20)),
    ],
)
def test_a_file_that_would_take_long_to_read_is_refused_at_once(file: str, text: str) -> None:
    with pytest.raises(ProjectError):
        lines_required(**{file: text})


def test_a_marker_of_a_system_is_taken() -> None:
    lines = (
        "acme>=1.0 ; python_version >= '3.8' and (sys_platform == \"linux\" or platform_machine != 'x86-64')",
        "other ~= 2.1 , != 2.3; extra == 'a-b'",
        "third===1.0+cpu.1; implementation_name in 'cpython, pypy'",
    )

    assert lines_required(txt="\n".join(lines)) == lines


def test_a_dependency_is_refused_at_its_own_line_of_a_pyproject() -> None:
    text = "[project]\ndependencies = [\n  'acme',\n  'acme',\n  'acme @ https://evil.example',\n]\n"

    with pytest.raises(ProjectError) as refused:
        lines_required(toml=text)

    assert str(refused.value.place) == "pyproject.toml:5"
