"""A project's packages are installed apart, from what the operator names, and read nothing of the service's."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mergeplan.bot.child.packages import packages_folder
from mergeplan.bot.child.requirements import requirements_of
from mergeplan.bot.child.wheels import BadWheel, unpack_wheels
from mergeplan.bot.settings import Settings
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.python.packages import versions_in

from .listener import BINARY, Answer, serve_answers

HTML = {"Content-Type": "text/html"}
SECRET = "planted-secret-77aa"  # noqa: S105  # of nobody
# The build backend of a source that looks for secrets while it is built, and brings what it found into its wheel.
HOSTILE = """
import os, pathlib, socket, zipfile

def look():
    found = [f"{key}={value}" for key, value in os.environ.items()]
    for place in [pathlib.Path(each) for each in KEYS] + list(pathlib.Path("/proc").glob("[0-9]*/environ")):
        try:
            found.append(place.read_bytes().decode(errors="replace"))
        except OSError as error:
            found.append(f"{type(error).__name__}")
    try:
        socket.create_connection(("127.0.0.1", PORT), 2)
        found.append("CONNECTED")
    except OSError:
        pass
    return repr(found)

def prepare_metadata_for_build_wheel(folder, config=None):
    info = pathlib.Path(folder) / "evil-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: evil\\nVersion: 1.0\\n")
    return info.name

def build_wheel(folder, config=None, metadata=None):
    with zipfile.ZipFile(pathlib.Path(folder) / "evil-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("evil.py", f"FOUND = {look()}")
        wheel.writestr("evil-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: evil\\nVersion: 1.0\\n")
        wheel.writestr("evil-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("evil-1.0.dist-info/RECORD", "")
    return "evil-1.0-py3-none-any.whl"
"""


def wheel(folder: Path, name: str, version: str, files: Mapping[str, str], requires: str = "") -> Path:
    """A wheel with these files."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in files.items():
            archive.writestr(member, text)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def install(
    tmp_path: Path, requirements: str, environ: Mapping[str, str] | None = None, **settings: Any
) -> Path | None:
    wanted = requirements_of({"requirements.txt": requirements}.get)
    bot_settings = Settings(home=tmp_path / "home", isolation="none" if cannot() else "required", **settings)
    environ = environ or {"PIP_FIND_LINKS": str(tmp_path / "links"), "PIP_NO_INDEX": "1", "SECRET": SECRET}
    return packages_folder(bot_settings, tmp_path / "home", wanted, environ, lambda: "")


def test_packages_are_installed_once_with_what_they_require(tmp_path: Path) -> None:
    wheel(tmp_path / "links", "acme", "1.0", {"acme/__init__.py": "RATE = 7", "acme.pth": "import os"}, "acme-core")
    wheel(tmp_path / "links", "acme_core", "2.0", {"acme_core.py": "X = 1"})
    first = install(tmp_path, "acme==1.0\npandas\n")
    again = install(tmp_path, "acme==1.0\npandas\n")

    assert first is not None
    assert first == again
    assert sorted(path.name for path in first.iterdir() if not path.name.endswith((".dist-info", ".json"))) == [
        "acme", "acme_core.py",
    ]  # fmt: skip
    assert [version.split()[0] for version in versions_in(first, "acme").split(" acme")] == ["acme", "-core"]


def test_what_is_not_there_or_is_no_wheel_is_a_sentence_at_the_file(tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    source(tmp_path, 1)
    for line in ("nowhere==1.0", "evil==1.0", "pandas==0.1"):
        with pytest.raises(ProjectError, match="packages cannot be installed") as refused:
            install(tmp_path, f"{line}\n")
        assert str(refused.value.place) == "requirements.txt"


@pytest.mark.skipif(bool(cannot()), reason="this machine cannot isolate")
def test_a_source_that_is_built_reads_no_secret_and_reaches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    monkeypatch.setenv("MERGEPLAN_WEBHOOK_SECRET", SECRET)
    with socket.create_server(("127.0.0.1", 0)) as server:
        source(tmp_path, server.getsockname()[1])
        folder = install(tmp_path, "evil==1.0\n", packages_builds="allow")

    assert folder is not None
    said = (folder / "evil.py").read_text()
    assert "FOUND" in said
    assert "PermissionError" in said
    assert SECRET not in said
    assert "CONNECTED" not in said


def source(tmp_path: Path, port: int) -> None:
    """A source distribution whose build looks for secrets."""
    (tmp_path / "key.pem").write_text(SECRET)
    own = f"KEYS = {[str(tmp_path / 'key.pem'), f'/proc/{os.getpid()}/environ']!r}\nPORT = {port}\n"
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "setup"\nbackend-path = ["."]\n'
        '[project]\nname = "evil"\nversion = "1.0"\n',
        "PKG-INFO": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
        "setup.py": own + HOSTILE,
    }
    (tmp_path / "links").mkdir(exist_ok=True)
    with tarfile.open(tmp_path / "links" / "evil-1.0.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"evil-1.0/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


@pytest.mark.parametrize("member", ["../up.py", "/etc/up.py", "a/../../up.py"])
def test_no_file_of_a_wheel_leaves_its_folder(tmp_path: Path, member: str) -> None:
    wheel(tmp_path / "wheels", "bad", "1.0", {member: "X = 1"})
    (tmp_path / "out").mkdir()

    with pytest.raises(BadWheel, match="no path in a wheel"):
        unpack_wheels(tmp_path / "wheels", tmp_path / "out")


def test_the_index_says_what_was_unpacked_and_not_what_a_wheel_says(tmp_path: Path) -> None:
    files = {"one.py": "", "two/x.py": "", "bad-1.0.data/purelib/three.py": "", "bad-1.0.data/scripts/run": "rm"}
    wheel(tmp_path / "wheels", "bad", "1.0", files)
    (tmp_path / "out").mkdir()
    unpack_wheels(tmp_path / "wheels", tmp_path / "out")

    index = json.loads((tmp_path / "out" / "mergeplan-packages.json").read_text())
    assert index["bad"]["modules"] == ["one", "three", "two"]


@pytest.mark.prove
def test_a_wheel_that_is_a_bomb_takes_no_memory_of_the_service(tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "bomb", "1.0", {"bomb.py": "X = 1"})
    path = tmp_path / "wheels/bomb-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("zeros.bin", "w") as member:
        for _ in range(1200):
            member.write(bytes(1 << 20))
    unpacking = (
        "import resource, sys; from pathlib import Path; from mergeplan.bot.child.wheels import unpack_wheels\n"
        "unpack_wheels(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)"
    )
    (tmp_path / "out").mkdir()
    command = [sys.executable, "-c", unpacking, str(tmp_path / "wheels"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    (tmp_path / "out/zeros.bin").unlink()

    assert int(done.stdout) < 400  # MiB


@pytest.mark.parametrize("content", [b"PK\5\6", b"x" * 100, b"PK\5\6" + bytes(8) + b"\xff\xff\xff\x7f" + bytes(6)])
def test_a_wheel_whose_list_of_files_is_too_large_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "wheels/bad-1.0-py3-none-any.whl").write_bytes(content)

    with pytest.raises(BadWheel, match=r"has no end|larger than 32 MiB"):
        unpack_wheels(tmp_path / "wheels", tmp_path / "out")


@pytest.mark.prove
@pytest.mark.skipif(bool(cannot()), reason="this machine cannot isolate")
def test_an_index_gets_the_operators_credential_and_a_wheel_chooses_no_address(tmp_path: Path) -> None:
    """What pip gets has none, and a requirement in a wheel's metadata is an address that a stranger chose."""
    with serve_answers(lambda path: Answer()) as other:
        requirement = f"other @ http://127.0.0.1:{other.port}/other-1.0-py3-none-any.whl"
        good = wheel(tmp_path, "acme", "1.0", {"acme.py": "RATE = 7"}).read_bytes()
        evil = wheel(tmp_path, "evil", "1.0", {"evil.py": ""}, requirement).read_bytes()
        wheels = {"acme-1.0-py3-none-any.whl": good, "evil-1.0-py3-none-any.whl": evil}

        def answer(path: str) -> Answer:
            name = path.rpartition("/")[2]
            links = "".join(f'<a href="../../{wheel}">{wheel}</a>' for wheel in wheels if wheel[:4] in path)
            return (
                Answer(wheels[name], BINARY)
                if name in wheels
                else Answer(links.encode(), {"Content-Type": "text/html"})
            )

        with serve_answers(answer) as index:
            url = f"http://bot:{SECRET}@127.0.0.1:{index.port}/simple"
            environ = {"PIP_INDEX_URL": url, "http_proxy": f"http://ann:{SECRET}@127.0.0.1:1", "no_proxy": "127.0.0.1"}
            folder = install(tmp_path, "acme==1.0\n", environ)
            with pytest.raises(ProjectError, match=f"packages may not come from `127.0.0.1:{other.port}`") as refused:
                install(tmp_path, "evil==1.0\n", environ)

    assert folder is not None
    assert (folder / "acme.py").read_text() == "RATE = 7"
    assert {headers["Authorization"] for _, headers in index.requests} == {
        f"Basic {b64encode(f'bot:{SECRET}'.encode()).decode()}"
    }
    assert SECRET not in str(refused.value)
    assert other.requests == []
