"""A hub of packages that lies, and a dbt that looks around: neither reaches an address, a secret or a file of ours."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mergeplan.bot.child import dbt_packages
from mergeplan.bot.child.dbt_packages import lay_dbt_packages, read_dbt_requirements
from mergeplan.bot.child.reader import RepositoryReader
from mergeplan.bot.fetching.origins import HUB
from mergeplan.bot.settings import Settings
from mergeplan.planner.errors import ProjectError
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.project.dbt.inputs import PYTHON

from .dbt_hub import tarball
from .listener import BINARY, Answer, Listener, serve_answers

DBT = Path(__file__).parents[3] / ".venv-dbt/bin/python"
SECRET = "planted-secret-77aa"  # noqa: S105  # of nobody
pytestmark = [
    pytest.mark.prove,
    pytest.mark.skipif(not DBT.exists(), reason="no dbt: `make .venv-dbt/.ready` installs it"),
    pytest.mark.skipif(bool(cannot()), reason="this machine cannot isolate"),
]
Hub = Callable[[str], Answer]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A dbt project that asks for a package of the hub."""
    folder = tmp_path / "shop"
    folder.mkdir()
    tmp_path.chmod(0o755)
    (folder / "dbt_project.yml").write_text("name: shop\nversion: '1.0'\n")
    (folder / "packages.yml").write_text("packages: [{package: acme/rates, version: 1.0.0}]\n")
    return folder


def lay(project: Path, hub: Hub, python: Path = DBT) -> tuple[str, list[str]]:
    """What was said, and the files that were laid."""
    home = project.parent / "home"
    with serve_answers(hub) as listener:
        environ = {
            PYTHON: str(python), HUB: f"http://bot:{SECRET}-hub@127.0.0.1:{listener.port}/", "OWN": SECRET,
            "http_proxy": f"http://ann:{SECRET}-proxy@127.0.0.1:1", "no_proxy": "127.0.0.1",
        }  # fmt: skip
        said = ""
        try:
            wanted = read_dbt_requirements(RepositoryReader(), project)
            lay_dbt_packages(Settings(home=home), home, wanted, project, environ, lambda: "")
        except ProjectError as error:
            said = error.message
    packages = project / "dbt_packages"
    assert SECRET not in said
    return said, sorted(path.relative_to(packages).as_posix() for path in packages.rglob("*") if path.is_file())


def hub_of(content: bytes | Answer, **version: Any) -> Hub:
    """A hub with one package, whose archive and version are these."""

    def answer(path: str) -> Answer:
        if path.endswith("index.json"):
            return Answer(b'["acme/rates"]')
        if path.endswith(".json"):
            entry = {
                "name": "rates", "version": "1.0.0", "packages": [], "require_dbt_version": [],
                "downloads": {"tarball": "http://hub.mergeplan/rates.tgz"}, **version,
            }  # fmt: skip
            return Answer(json.dumps({"name": "rates", "namespace": "acme", "versions": {"1.0.0": entry}}).encode())
        return content if isinstance(content, Answer) else Answer(content, BINARY)

    return answer


def archive(*members: tuple[str, bytes | str], name: str = "rates-1.0") -> bytes:
    """An archive: a text is a link to there, with `=` before it a hard one."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as tar:
        for path, data in ((f"{name}/dbt_project.yml", b"name: rates\nversion: '1.0'\n"), *members):
            member = tarfile.TarInfo(path)
            if isinstance(data, str):
                member.type = tarfile.LNKTYPE if data.startswith("=") else tarfile.SYMTYPE
                member.linkname = data.removeprefix("=")
            else:
                member.size = len(data)
            tar.addfile(member, io.BytesIO(data) if isinstance(data, bytes) else None)
    return content.getvalue()


GOOD = tarball("rates", "1.0.0", {"macros/r.sql": "{% macro rate() %}7{% endmacro %}"})


def test_an_honest_hub_is_asked_with_the_operators_credential(project: Path) -> None:
    assert lay(project, hub_of(GOOD)) == ("", ["rates/dbt_project.yml", "rates/macros/r.sql"])


@pytest.mark.parametrize("way", ["archive", "redirect", "dependency", "tls"])
def test_a_hubs_answers_lead_to_no_other_address(project: Path, way: str) -> None:
    with serve_answers(lambda path: Answer(GOOD, BINARY)) as other:
        place = f"127.0.0.1:{other.port}"
        moved = Answer(headers={"Location": f"http://{place}/x"}, status=302)
        hubs: Mapping[str, Hub] = {
            "archive": hub_of(GOOD, downloads={"tarball": f"http://{place}/x.tgz"}),
            "tls": hub_of(GOOD, downloads={"tarball": f"https://{place}/x.tgz"}),
            "redirect": lambda path: moved,
            "dependency": hub_of(GOOD, packages=[{"tarball": f"http://{place}/x.tgz", "name": "x"}]),
        }
        said, files = lay(project, hubs[way])

    assert f"packages may not come from `{place}` (its operator may add it to MERGEPLAN_PACKAGES_HOSTS)" in said
    assert (files, other.requests) == ([], [])


@pytest.mark.parametrize(
    "dependency",
    [
        {"git": "file:///etc", "revision": "x"},
        {"local": "/etc"},
        {"local": "../../../.."},
        {"package": "acme/rates", "version": "{{ env_var('OWN') }}{{ env_var('DBT_PACKAGE_HUB_URL') }}"},
        {"package": "../../x", "version": "1.0.0"},
    ],
)
def test_a_dependency_that_a_hub_names_is_no_way_out(project: Path, dependency: dict[str, str]) -> None:
    said, files = lay(project, hub_of(GOOD, packages=[dependency]))

    assert said.startswith("The project's dbt packages cannot be installed")
    assert files == []


@pytest.mark.parametrize("name", ["../../../escaped", "/tmp/escaped", "..", ""])  # noqa: S108
def test_the_name_of_a_package_is_no_path(project: Path, name: str) -> None:
    _, files = lay(project, hub_of(GOOD, name=name))

    assert not [path for path in files if "rates" not in path and not path.startswith(("macros", "dbt_project"))]
    assert not list(project.parent.rglob("escaped*"))
    assert not Path("/tmp/escaped").exists()  # noqa: S108


@pytest.mark.parametrize(
    ("content", "limits"),
    [
        (gzip.compress(bytes(200 << 20)), (50_000, 5 << 20)),
        (archive(*((f"rates-1.0/{number}", bytes(1 << 20)) for number in range(60))), (50_000, 5 << 20)),
        (archive(*((f"rates-1.0/{number}", b"") for number in range(2000))), (100, 500 << 20)),
        (Answer(bytes(1 << 20), BINARY, times=300), (50_000, 5 << 20)),
    ],
    ids=["zeros", "large files", "many files", "without end"],
)
def test_a_bomb_is_defused(
    project: Path, content: bytes | Answer, limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dbt_packages, "FILES_MAX", limits[0])
    monkeypatch.setattr(dbt_packages, "BYTES_MAX", limits[1])
    said, files = lay(project, hub_of(content))

    assert said.startswith("The project's dbt packages cannot be installed"), said
    assert files == []
    assert sum(path.stat().st_size for path in (project.parent / "home").rglob("*")) < 1 << 20


@pytest.mark.parametrize(
    "members",
    [
        [("rates-1.0/macros/a.sql", "KEY")],
        [("rates-1.0/macros/b.sql", "=KEY")],
        [("rates-1.0/out", "FOLDER"), ("rates-1.0/out/planted", b"x")],
        [("FOLDER/planted", b"x")],
        [("rates-1.0/../../../../../planted", b"x")],
        [("rates-1.0/passwd", "/etc/passwd"), ("rates-1.0/self", "self"), ("rates-1.0/up", "../../../project")],
    ],
    ids=["link", "hard link", "through a link", "absolute", "above", "others"],
)
def test_links_in_an_archive_lead_nowhere(
    project: Path, tmp_path: Path, members: list[tuple[str, bytes | str]]
) -> None:
    (tmp_path / "key.pem").write_text(SECRET)
    places = {"KEY": str(tmp_path / "key.pem"), "=KEY": f"={tmp_path}/key.pem", "FOLDER": str(tmp_path)}
    there = [
        (path.replace("FOLDER", str(tmp_path)), places.get(data, data) if isinstance(data, str) else data)
        for path, data in members
    ]
    lay(project, hub_of(archive(*there)))

    laid = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "key.pem"]
    assert not [path for path in laid if SECRET.encode() in path.read_bytes() or path.name == "planted"]
    assert not [path for path in (project / "dbt_packages").rglob("*") if path.is_symlink()]
    assert not [path for path in laid if b"root:x" in path.read_bytes()]


LOOKS = """#!{python} -I
import os, socket, sys
if "json.dumps" in sys.argv[3]:
    exec(sys.argv[3])
    sys.exit()
seen = []
for path in ("{key}", f"/proc/{{os.getppid()}}/environ"):
    try:
        seen.append(open(path).read())
    except OSError as error:
        seen.append(type(error).__name__)
for place in (("127.0.0.1", {port}), ("::1", {port})):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            with socket.socket(socket.AF_INET6 if ":" in place[0] else socket.AF_INET, kind) as line:
                line.settimeout(5)
                line.connect(place)
                line.sendall(b"GET http://{host}/x HTTP/1.1\\r\\n\\r\\n")
                seen.append(line.recv(12).decode())
        except OSError as error:
            seen.append(type(error).__name__)
seen += [f"{{key}}={{value}}" for key, value in os.environ.items() if key not in ("PATH", "HOME", "TMPDIR")]
sys.exit(" ".join(" ".join(seen).split()))
"""


def look_around(tmp_path: Path, listener: Listener, host: str) -> Path:
    """A dbt that looks for all that it might find, and asks who answers for a host."""
    (tmp_path / "key.pem").write_text(SECRET)
    program = tmp_path / "bin" / "python"
    program.parent.mkdir()
    program.write_text(LOOKS.format(python=sys.executable, port=listener.port, key=tmp_path / "key.pem", host=host))
    program.chmod(0o755)
    return program


def test_the_process_that_fetches_has_no_secret_and_reaches_the_forwarder_alone(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://ann:{SECRET}@127.0.0.1:1")
    with serve_answers(lambda path: Answer(SECRET.encode())) as other:
        said, _ = lay(project, hub_of(GOOD), look_around(tmp_path, other, f"127.0.0.1:{other.port}"))

    assert other.requests == []
    assert f"packages may not come from `127.0.0.1:{other.port}`" in said


def test_what_that_process_sees_is_no_secret(project: Path, tmp_path: Path) -> None:
    with serve_answers(lambda path: Answer(SECRET.encode())) as other:
        said, _ = lay(project, hub_of(GOOD), look_around(tmp_path, other, "hub.mergeplan"))

    assert other.requests == []
    denied, forwarded = "PermissionError", "HTTP/1.1 200"
    assert " ".join([denied, denied, forwarded, denied, forwarded, denied]) in said
    assert "DBT_PACKAGE_HUB_URL=http://hub.mergeplan/" in said
