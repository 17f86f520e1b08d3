"""A project's own packages, installed once per lock into a folder that project code alone imports from.

pip runs as a process of its own, isolated, with none of our secrets. It takes wheels, which run nothing when they are
installed; with the operator's permission it also builds sources, and then without a network: what they run reaches
nothing. What it brings is unpacked by us, after it has ended. No process that has a secret imports from that folder.

`uv pip install --target` would save about 50 of the 350 lines of this and of wheels.py, since what it writes must be
checked and indexed too. It installs mergeplan's own libraries a second time, and `.pth` files and programs; where a
path of a wheel leaves the folder, it leaves the file out and reports nothing.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import distributions
from pathlib import Path
from urllib.parse import urlsplit

import structlog

from mergeplan.bot.child.installing import ABOUT, CREDENTIALS, Installer, InstallFailed, make_home, prune_folders
from mergeplan.bot.child.requirements import Requirements
from mergeplan.bot.child.wheels import BadWheel, unpack_wheels
from mergeplan.bot.fetching.origins import PLACES, PYPI, index_origins, inside_url
from mergeplan.bot.settings import Settings
from mergeplan.planner.errors import Place, ProjectError, Refused
from mergeplan.planner.isolation.interpreter import libraries
from mergeplan.planner.isolation.mode import NONE
from mergeplan.planner.isolation.scratch import remove_scratch
from mergeplan.planner.python.packages import INDEX, normalize_name

log = structlog.get_logger(__name__)
FILES_MAX, BYTES_MAX = 300_000, 4 << 30  # of what pip writes
PIP = ("-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "--no-color", "--no-cache-dir", "--quiet")
SAID = re.compile(r"^ERROR: (.*)", re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """Where packages come from and how they may be made, by the operator's settings."""

    environment: Mapping[str, str]  # as pip gets it: no address in it has a user or a password
    folders: tuple[str, ...]  # the local ones, which pip must read
    installer: Installer
    builds: bool

    @classmethod
    def build_source(cls, settings: Settings, environ: Mapping[str, str], should_stop: Callable[[], str]) -> Source:
        builds = settings.packages_builds == "allow"
        places = {name: environ.get(name, "").split() for name in (PLACES[2:] if builds else PLACES)}
        pip_variables = {name: " ".join(map(inside_url, urls)) for name, urls in places.items() if urls}
        local = [location for urls in places.values() for location in urls if urlsplit(location).scheme in ("", "file")]
        folders = tuple(str(Path(location.removeprefix("file://")).resolve()) for location in local)
        origins = () if builds else index_origins(environ, settings.packages_hosts)
        if builds or environ.get("PIP_NO_INDEX"):
            pip_variables["PIP_NO_INDEX"] = "1"
        elif PLACES[0] not in pip_variables:
            pip_variables[PLACES[0]] = inside_url(PYPI)
        pip_variables["PIP_TRUSTED_HOST"] = " ".join(
            dict.fromkeys(urlsplit(origin.inside).netloc for origin in origins)
        )
        installer = Installer(settings, origins, environ, should_stop, FILES_MAX, BYTES_MAX)
        return cls(pip_variables, folders, installer, builds)


def packages_folder(
    settings: Settings,
    home: Path,
    requirements: Requirements | None,
    environ: Mapping[str, str],
    should_stop: Callable[[], str],
) -> Path | None:
    """Return the folder with the packages that a project requires; None if it requires none.

    Install them if the folder does not exist yet. Raise ProjectError with pip's message, Refused if nothing can be
    built in isolation, and Cancelled if the run is stopped.
    """
    if requirements is None:
        return None
    source, constraints = Source.build_source(settings, environ, should_stop), _library_constraints()
    parts = [requirements.text, constraints, str(source.builds), *map(repr, sorted(source.environment.items()))]
    lock = sha256("\0".join([*parts, sys.version, sys.platform]).encode()).hexdigest()[:24]
    folder = home / "packages" / lock
    if (folder / INDEX).is_file():
        os.utime(folder)
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    log.info("packages_installing", file=requirements.path, lock=lock)
    _Installing(source, requirements, constraints).install_into(folder)
    prune_folders(folder.parent)
    return folder


@dataclass(frozen=True)
class _Installing:
    source: Source
    wanted: Requirements
    constraints: str

    def install_into(self, folder: Path) -> None:
        """Install everything, and put the folder in its place when all is there."""
        scratch = tempfile.TemporaryDirectory(prefix="mergeplan-packages-")
        draft = Path(tempfile.mkdtemp(prefix=".part-", dir=folder.parent))
        try:
            work = Path(scratch.name)
            wheels = self._fetch_wheels(work)
            try:
                unpack_wheels(wheels, draft)
            except (BadWheel, OSError) as error:
                raise self._package_error(str(error)) from None
            draft.chmod(0o755)
            if not (folder / INDEX).is_file():  # another process may have been faster
                shutil.rmtree(folder, ignore_errors=True)
                draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
            remove_scratch(scratch)

    def _fetch_wheels(self, work: Path) -> Path:
        """Return a folder with wheels of the requirements that mergeplan's own libraries do not satisfy."""
        home, wheel_folder = make_home(work, "wheels"), work / "given"
        wheel_folder.mkdir()
        (wheel_folder / "requirements.txt").write_text(self.wanted.text, encoding="utf-8")
        (wheel_folder / "constraints.txt").write_text(self.constraints, encoding="utf-8")
        report = home / "report.json"
        kinds = () if self.source.builds else ("--only-binary", ":all:")
        requirement_options = (
            "-r",
            str(wheel_folder / "requirements.txt"),
            "-c",
            str(wheel_folder / "constraints.txt"),
        )
        self._run_pip(work, "install", "--dry-run", "--report", str(report), *kinds, *requirement_options)
        missing = self._read_missing_pins(report)
        (wheel_folder / "missing.txt").write_text(
            "".join(f"{requirement}\n" for requirement in missing), encoding="utf-8"
        )
        if missing:
            verb = "wheel" if self.source.builds else "download"
            place = ("--wheel-dir" if self.source.builds else "--dest", str(home / "wheels"))
            self._run_pip(work, verb, "--no-deps", *place, *kinds, "-r", str(wheel_folder / "missing.txt"))
        return home / "wheels"

    def _read_missing_pins(self, report: Path) -> list[str]:
        """Return the pins of pip's report, only names and versions of it: a package's code may have written it."""
        try:
            descriptor = os.open(report, os.O_RDONLY | os.O_NOFOLLOW)
            with os.fdopen(descriptor, encoding="utf-8") as file:
                items = json.loads(file.read(64 << 20))["install"]
            pins = [f"{package['metadata']['name']}=={package['metadata']['version']}" for package in items]
        except (OSError, ValueError, KeyError, TypeError):
            raise self._package_error("pip gave no report") from None
        if odd := [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.!+-]+", pin)]:
            raise self._package_error(f"`{odd[0][:80]}` is no package")
        return sorted(pins)

    def _run_pip(self, work: Path, *arguments: str) -> None:
        installer = self.source.installer
        if self.source.builds and installer.settings.isolation != NONE and (obstacle := installer.why_not_isolated):
            hint = "Use Linux 6.2 or newer with Landlock, or take MERGEPLAN_PACKAGES_BUILDS away."
            raise Refused(
                f"The packages of {self.wanted.path} cannot be built in isolation here: {obstacle}.", hint=hint
            )
        read = (
            *libraries(sys.executable, os.environ, "-I"),
            *map(str, ABOUT),
            str(work / "given"),
            *self.source.folders,
        )
        variables = {**self.source.environment, "PIP_CONFIG_FILE": os.devnull}
        try:  # who takes wheels runs no code of theirs, isolated or not
            exit_code, output = installer.run([sys.executable, *PIP, *arguments], work, read, variables)
        except InstallFailed as failed:
            raise self._package_error(str(failed)) from None
        if exit_code:
            raise self._package_error(_extract_error(output))

    def _package_error(self, why: str) -> ProjectError:
        hint = "Name a version that has a wheel; `pip wheel` builds one from a source, for the operator's index."
        message = f"The project's packages cannot be installed: {why.rstrip('.')}."
        return ProjectError(message, place=Place(self.wanted.path), hint=hint)


def _extract_error(output: str) -> str:
    """Return pip's error message in one line, without passwords."""
    messages = (
        [message for message in SAID.findall(output) if message.strip() != "Exception:"]
        or output.strip().splitlines()[-1:]
        or ["pip failed"]
    )
    return CREDENTIALS.sub("//", " ".join(messages[0].split()))[:400]


def _library_constraints() -> str:
    versions = {
        normalize_name(distribution.name): distribution.version
        for distribution in distributions()
        if distribution.name and distribution.version
    }
    return "".join(f"{name}=={version}\n" for name, version in sorted(versions.items()))


def read_file(path: Path, most: int) -> str | None:
    """Return a file's text, cut after `most` + 1 characters; None if missing, or a link, which may lead anywhere."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        return file.read(most + 1)
