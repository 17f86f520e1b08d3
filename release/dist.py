"""`make dist`: build all distributions once and prove that what is built is what is meant.

Of each the wheel is built twice, from the tree and from the sdist, and must be the same byte for byte. The wheel is
then installed into an empty environment from a folder of wheels, without an index; `mergeplan demo` runs from it.

    python -m release.dist            all of it
    python -m release.dist --build    build and check, without installing
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from release.tree import CLIENT, FULL, ROOT, SANDBOX, source_files, write_tree

DIST, WHEELS = ROOT / "dist", ROOT / "build" / "wheels"
TOP = "mergeplan"  # the one name that a wheel installs, beside that of the sandbox
BESIDE = ("LICENSE", "README.md", "pyproject.toml")
# What setuptools adds to a sdist; a file of `license-files` is also at the path that pyproject.toml names.
MADE = re.compile(r"(PKG-INFO|setup\.cfg|\w+\.egg-info/.*|planner/.*\.LICENSE)")


def build(distribution: str, into: Path) -> tuple[Path, Path]:
    """The sdist and the wheel of a distribution; the wheel is built from the sdist, and from the tree once more."""
    with tempfile.TemporaryDirectory(prefix="mergeplan-dist-") as scratch:
        tree, again = Path(scratch, "tree"), Path(scratch, "again")
        write_tree(distribution, tree)
        _run_python("build", "--quiet", "--outdir", str(into), str(tree))
        _run_python("build", "--quiet", "--wheel", "--outdir", str(again), str(tree))
        (rebuilt,) = again.glob("*.whl")
        wheel = into / rebuilt.name
        if _digest(wheel) != _digest(rebuilt):
            raise SystemExit(f"{wheel.name}: the sdist makes another wheel than the tree.")
    (sdist,) = into.glob(f"{distribution.replace('-', '_')}-[0-9]*.tar.gz")
    return sdist, wheel


def content_problems(distribution: str, sdist: Path, wheel: Path) -> list[str]:
    """What a sdist and its wheel hold beside the repository's files, and which of these they lack."""
    with zipfile.ZipFile(wheel) as archive:
        installed = set(archive.namelist())
    with tarfile.open(sdist) as archive:
        members = [member for member in archive.getmembers() if not member.isdir()]
    sources = {member.name.partition("/")[2] for member in members if member.isfile()}
    about = {name for name in installed if name.partition("/")[0].endswith(".dist-info")}
    meant = sandbox_files() if distribution == SANDBOX else package_files()
    licensed = any(name.endswith("/licenses/LICENSE") for name in about)
    return [
        *_difference(wheel.name, installed - about, meant),
        *([] if licensed else [f"{wheel.name} lacks the license"]),
        *_difference(sdist.name, {name for name in sources if not MADE.fullmatch(name)}, meant | set(BESIDE)),
        *(f"{sdist.name} holds {member.name}, which is a link" for member in members if not member.isfile()),
    ]


def package_files() -> set[str]:
    """The repository's files as they lie in the one package, of which two folders are links."""
    below = {path if path.startswith(f"{TOP}/") else f"{TOP}/{path}" for path in source_files((TOP, "planner", "bot"))}
    return {path for path in below if not (ROOT / path).is_symlink()}


def sandbox_files() -> set[str]:
    return {path.removeprefix("sandbox/") for path in source_files(("sandbox/mergeplan_sandbox",))}


def _difference(archive: str, names: set[str], meant: set[str]) -> list[str]:
    more = (f"{archive} holds {name}" for name in sorted(names - meant))
    return [*more, *(f"{archive} lacks {name}" for name in sorted(meant - names))]


def fetch_wheels(wheel: Path) -> None:
    """Fill the folder of wheels with all that a wheel needs, at the locked versions, as far as it is not there."""
    WHEELS.mkdir(parents=True, exist_ok=True)
    settings = WHEELS.parent / "build.cfg"
    settings.write_text("[bdist_wheel]\ncompression = stored\n", encoding="utf-8")  # pyspark comes as 450 MB of source
    places = ("--find-links", str(WHEELS), "--find-links", str(DIST), "--wheel-dir", str(WHEELS))
    arguments = ("wheel", "--quiet", "--constraint", str(ROOT / "requirements.lock"), *places, f"{wheel}[demo]")
    _run_python("pip", *arguments, environ={"DIST_EXTRA_CONFIG": str(settings)})
    for ours in WHEELS.glob(f"{TOP}*"):
        ours.unlink()  # those that are tried lie in `dist`


def install(wheel: Path, folder: Path, extra: str) -> Path:
    """The command of a wheel that is installed into an empty environment, from the folders of wheels alone."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    places = ("--find-links", str(WHEELS), "--find-links", str(DIST))
    offline = ("--no-index", *places, "--no-cache-dir", "--no-compile", "--quiet")
    alone = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", *offline, f"{wheel}{extra}"]
    subprocess.run(command, check=True, env={**os.environ, **alone})
    return folder / "bin" / TOP


def megabytes(folder: Path) -> int:
    """The size of a folder's files."""
    return round(sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir()) / 1e6)


def try_wheel(wheel: Path, *arguments: str, extra: str = "") -> None:
    """Install a wheel and run it in an empty folder, with nothing of this clone on its path."""
    with tempfile.TemporaryDirectory(prefix="mergeplan-try-") as scratch:
        environment, folder = Path(scratch, "environment"), Path(scratch, "folder")
        folder.mkdir()
        command = install(wheel, environment, extra)
        print(f"{wheel.name}: {megabytes(environment)} MB installed", flush=True)
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MERGEPLAN_"))}
        subprocess.run([str(command), *arguments], cwd=folder, env=environ, check=True)


def _run_python(module: str, *arguments: str, environ: dict[str, str] | None = None) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], env={**os.environ, **(environ or {})}, check=True)


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _commit_time() -> str:
    shown = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(shown, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: Sequence[str]) -> int:
    os.environ.setdefault("SOURCE_DATE_EPOCH", _commit_time())  # the times in the archives: a later build is the same
    shutil.rmtree(DIST, ignore_errors=True)
    built = {name: build(name, DIST) for name in (FULL, CLIENT, SANDBOX)}
    _run_python("twine", "check", "--strict", *(str(path) for pair in built.values() for path in pair))
    if wrong := [problem for name, pair in built.items() for problem in content_problems(name, *pair)]:
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    for path in (path for pair in built.values() for path in pair):
        print(f"{_digest(path)}  {path.name}", flush=True)
    if "--build" not in arguments:
        for name in (FULL, CLIENT):
            fetch_wheels(built[name][1])
        try_wheel(built[CLIENT][1], "--version")
        try_wheel(built[FULL][1], "demo", extra="[demo]")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
