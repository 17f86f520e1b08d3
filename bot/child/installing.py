"""A program that installs what a project asks for: a process of its own, isolated, with none of our secrets."""

from __future__ import annotations

import mimetypes
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mergeplan.planner.errors import Cancelled
from mergeplan.planner.isolation.user import OWN_USER

NETWORK = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "SSL_CERT_FILE")
PLAIN = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")
NAMES = (  # what a name of the network is looked up in, and who is believed there
    "/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/ssl", "/etc/pki",
    "/usr/share/ca-certificates", "/run/systemd/resolve",
)  # fmt: skip
SYSTEM = ("debian_version", "os-release", "lsb-release", "redhat-release", "system-release", "alpine-release")
ABOUT = (*(f"/etc/{name}" for name in SYSTEM), *mimetypes.knownfiles)  # what installers look at, and must be able to
CREDENTIALS = re.compile(r"//[^/\s@]*@")
KEPT = 20  # folders of packages; the oldest ones go
POLL = 0.2


class TookTooLong(Exception):
    """The program's time was up."""


def make_home(work: Path, *folders: str) -> Path:
    """The one folder that the program may write to, below `work`, with folders in it."""
    home = work / "home"
    for folder in (home, *(home / name for name in folders)):
        folder.mkdir(parents=True)
        if os.getuid() == 0:
            os.chown(folder, OWN_USER, OWN_USER)
    work.chmod(0o711)
    return home


def plain_environment(home: Path) -> dict[str, str]:
    """What any program needs, with `home` as its HOME and its place for temporary files."""
    kept = {name: os.environ[name] for name in PLAIN if name in os.environ}
    return {**kept, "HOME": str(home), "TMPDIR": str(home), "PYTHONNOUSERSITE": "1"}


def run_installer(
    command: Sequence[str],
    work: Path,
    environment: Mapping[str, str],
    seconds: float,
    should_stop: Callable[[], str],
) -> tuple[int, str]:
    """The exit code of the program, and what it printed; Cancelled, TookTooLong."""
    log_file = work / "said"
    with log_file.open("wb") as said:
        process = subprocess.Popen(
            command, cwd=work / "home", env=dict(environment), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            start_new_session=True,
        )  # fmt: skip
    _wait_for(process, seconds, should_stop)
    return process.returncode, log_file.read_text(encoding="utf-8", errors="replace")


def _wait_for(process: subprocess.Popen[bytes], seconds: float, should_stop: Callable[[], str]) -> None:
    """Wait for the end of it and of all that it started."""
    left = seconds
    try:
        while True:
            try:
                process.wait(POLL)
                return
            except subprocess.TimeoutExpired:
                left -= POLL
            if why := should_stop():
                raise Cancelled(why)
            if left <= 0:
                raise TookTooLong
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def prune(folder: Path) -> None:
    """Remove the folders that were not used for longest."""
    folders = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: -path.stat().st_mtime)
    for path in [path for path in folders if not path.name.startswith(".")][KEPT:]:
        shutil.rmtree(path, ignore_errors=True)
