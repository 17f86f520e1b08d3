"""A program that installs what a project asks for: a process of its own, isolated, with none of our secrets.

It reaches a forwarder of ours and nothing else, and what it writes is limited while it writes.
"""

import mimetypes
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mergeplan.bot.child.forwarder import Forwarder, private_socket, serve_forwarder
from mergeplan.bot.fetching.origins import PROXIES, Origin
from mergeplan.bot.settings import Settings
from mergeplan.planner.errors import Cancelled
from mergeplan.planner.isolation.connecting import ConnectionProxy
from mergeplan.planner.isolation.mode import NONE
from mergeplan.planner.isolation.probe import cannot
from mergeplan.planner.isolation.profile import IsolationProfile
from mergeplan.planner.isolation.seccomp import Network
from mergeplan.planner.isolation.user import OWN_USER

PLAIN = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")
SYSTEM = ("debian_version", "os-release", "lsb-release", "redhat-release", "system-release", "alpine-release")
ABOUT = (*(f"/etc/{name}" for name in SYSTEM), *mimetypes.knownfiles)  # what installers look at, and must be able to
CREDENTIALS = re.compile(r"//[^/\s@]*@")
KEPT = 20  # folders of packages; the oldest ones go
POLL = 0.2
OUTPUT_MAX = 1 << 20  # characters that are read of what a program prints


class InstallFailed(Exception):
    """The program was stopped, or could not fetch what it needs; the text is half a sentence."""


@dataclass(frozen=True)
class Installer:
    """The settings of installers: their limits, the addresses to fetch from, and the operator's variables for these."""

    settings: Settings
    origins: tuple[Origin, ...]  # without one there is no network
    environ: Mapping[str, str]
    should_stop: Callable[[], str]
    files_max: int
    bytes_max: int

    @property
    def why_not_isolated(self) -> str:
        """Why an installer runs like any program of this user, '' when it is isolated."""
        return "nothing is isolated here" if self.settings.isolation == NONE else cannot()

    def run(
        self, command: Sequence[str], work: Path, read: Sequence[str], variables: Mapping[str, str]
    ) -> tuple[int, str]:
        """Return the exit code and the output; raise Cancelled or InstallFailed."""
        environment = {**plain_environment(work / "home"), **variables}
        if not self.origins:
            return self._wait_for_end(self._start_command(command, work, read, environment), work)
        forwarder = Forwarder(self.origins, self.environ, bytes_max=self.bytes_max)
        with private_socket() as path, serve_forwarder(forwarder, None if self.why_not_isolated else path) as url:
            environment |= dict.fromkeys(PROXIES, url)
            exit_code, output = self._wait_for_end(self._start_command(command, work, read, environment, path), work)
        if forwarder.problem and exit_code:
            raise InstallFailed(forwarder.problem)
        return exit_code, output

    def _start_command(
        self,
        command: Sequence[str],
        work: Path,
        read: Sequence[str],
        environment: Mapping[str, str],
        forwarder: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        if self.why_not_isolated:
            return _open_process(command, work, environment)
        network = Network.FORWARDED if forwarder else Network.NONE
        memory, seconds = self.settings.isolation_memory, int(self.settings.packages_seconds)
        profile = IsolationProfile(tuple(read), (str(work / "home"),), network, memory, seconds, modes=True)
        if forwarder is None:
            return _open_process(profile.launch_command(command), work, environment)
        proxy = ConnectionProxy(forwarder)
        try:
            isolated = profile.listening(proxy.descriptor).launch_command(command)
            return _open_process(isolated, work, environment, proxy.descriptor)
        finally:
            proxy.start()

    def _wait_for_end(self, process: subprocess.Popen[bytes], work: Path) -> tuple[int, str]:
        """Wait for the end of the process, and end all that it started."""
        deadline = time.monotonic() + self.settings.packages_seconds
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL)
                    break
                if stop_reason := self.should_stop():
                    raise Cancelled(stop_reason)
                if time.monotonic() > deadline:
                    raise InstallFailed(f"it took longer than {self.settings.packages_seconds:.0f} seconds")
                self._check_size(work / "home")
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._check_size(work / "home")
        with (work / "said").open(encoding="utf-8", errors="replace") as file:
            return process.returncode, file.read(OUTPUT_MAX)

    def _check_size(self, folder: Path) -> None:
        """Raise InstallFailed when there is more below a folder than packages may have."""
        files, size = measure_folder(folder, self.files_max)
        if files > self.files_max or size > self.bytes_max:
            raise InstallFailed(f"they have more than {self.files_max:,} files, or {self.bytes_max >> 20:,} MiB")


def make_home(work: Path, *folders: str) -> Path:
    """Create `work`/home, the one folder that the program may write to, with the given folders in it."""
    home = work / "home"
    for folder in (home, *(home / name for name in folders)):
        folder.mkdir(parents=True)
        if os.getuid() == 0:
            os.chown(folder, OWN_USER, OWN_USER)
    work.chmod(0o711)
    return home


def plain_environment(home: Path) -> dict[str, str]:
    """Return the variables that any program needs, with `home` as HOME and as the folder for temporary files."""
    variables = {name: os.environ[name] for name in PLAIN if name in os.environ}
    return {**variables, "HOME": str(home), "TMPDIR": str(home), "PYTHONNOUSERSITE": "1"}


def measure_folder(folder: Path, files_max: int) -> tuple[int, int]:
    """Return how many entries are below a folder, counted to a maximum, and their size as a copy would have it."""
    waiting, files, size = [str(folder)], 0, 0
    while waiting and files <= files_max:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:  # it may go away meanwhile
            for entry in entries:
                files += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    size += entry.stat(follow_symlinks=False).st_size
    return files, size


def _open_process(
    command: Sequence[str], work: Path, environment: Mapping[str, str], descriptor: int = -1
) -> subprocess.Popen[bytes]:
    with (work / "said").open("wb") as output_file:
        return subprocess.Popen(
            command, cwd=work / "home", env=dict(environment), stdin=subprocess.DEVNULL, stdout=output_file,
            stderr=output_file, start_new_session=True, pass_fds=(descriptor,) if descriptor >= 0 else (),
        )  # fmt: skip


def prune_folders(folder: Path) -> None:
    """Remove the folders that were not used for longest."""
    folders = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: -path.stat().st_mtime)
    for path in [path for path in folders if not path.name.startswith(".")][KEPT:]:
        shutil.rmtree(path, ignore_errors=True)
