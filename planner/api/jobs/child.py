"""The process of a job: `mergeplan` with arguments, without a shell, in a session of its own."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from mergeplan.planner.isolation.processes import CANCEL, birth, signal_group
from mergeplan.planner.session.settings import OPENLINEAGE_KEY, STATE_URL, SessionSettings

# What a program may need to start and to find Spark with; the project's own variables are named to the server.
ALLOWED = """
    PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TZ TMPDIR VIRTUAL_ENV LD_LIBRARY_PATH SSL_CERT_FILE
    JAVA_HOME SPARK_HOME SPARK_CONF_DIR HADOOP_CONF_DIR PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON
""".split()
# The planner's own; those of the bot hold its secrets.
OWN = tuple(
    f"MERGEPLAN_{name}"
    for name in ("HOME", "CACHE", "PROJECT", "GATEWAYS_FROM", "ISOLATION", "PACKAGES", "SPARK", "DBT")
)
# -I: nothing is imported from the project's folder, or from where a variable says; -u: lines come as they are printed.
PYTHON = (sys.executable, "-I", "-u", "-m", "mergeplan.planner.cli.main")


@dataclass(frozen=True)
class Launch:
    """How the processes of jobs are started."""

    settings: SessionSettings
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    passed: tuple[str, ...] = ()  # names of further variables
    command: tuple[str, ...] = PYTHON

    def environment(self) -> dict[str, str]:
        """Return the environment of a job: no token of this server; passwords come on standard input."""
        server_names = [name for name in self.environ if name.startswith(OWN)]
        names = [name for name in (*ALLOWED, *server_names, *self.passed) if name in self.environ]
        variables = {name: self.environ[name] for name in names}
        secrets = {name: "-" for name, value in self._stdin_secrets().items() if value}
        return {**variables, **secrets, "PYTHONUNBUFFERED": "1", "PYTHONNOUSERSITE": "1", "PYTHONSAFEPATH": "1"}

    def start(self, arguments: Sequence[str], lines: Path, log: Path) -> subprocess.Popen[bytes]:
        """Start a process that writes its lines to a file; it goes on when this server ends."""
        with _open_private(lines) as out, _open_private(log) as errors:
            fcntl.flock(out, fcntl.LOCK_EX)  # the child has it from then on: see `is_written`
            child = subprocess.Popen(
                [*self.command, *arguments],
                cwd=self.settings.root,
                env=self.environment(),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=errors,
                start_new_session=True,
            )
        assert child.stdin is not None
        with suppress(BrokenPipeError), child.stdin as pipe:
            pipe.writelines(f"{secret}\n".encode() for secret in self._stdin_secrets().values() if secret)
        return child

    def _stdin_secrets(self) -> dict[str, str]:
        """Return the secrets that a job reads from standard input, in the order in which it reads."""
        return {STATE_URL: self.settings.state_url, OPENLINEAGE_KEY: self.settings.openlineage_key}


def is_running(pid: int, began: str) -> bool:
    """Return True while the process exists and is the one that was started."""
    return bool(began) and birth(pid) == began


def is_written(lines: Path) -> bool:
    """Return True while a process of unknown id has these lines open: its server was killed before it wrote the id."""
    try:
        with lines.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def ask_to_end(pid: int, began: str) -> None:
    """Send the group what the command line takes as a wish to end: a promotion that has begun comes to its end."""
    if is_running(pid, began):
        signal_group(pid, CANCEL)


def kill_group(pid: int, began: str) -> None:
    if is_running(pid, began):
        signal_group(pid, signal.SIGKILL)


def _open_private(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
