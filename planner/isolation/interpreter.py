"""The paths that a Python needs to read: itself, its libraries, and those of the system."""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mergeplan.planner.errors import RequestError
from mergeplan.planner.isolation.profile import PACKAGE, SYSTEM

ASK = "import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix, *sys.path]))"


def libraries(python: str, environ: Mapping[str, str], *options: str) -> tuple[str, ...]:
    """Return the paths that a Python with these options reads; raise RequestError if it does not run.

    A folder of PYTHONPATH around the home folder, the temporary files or this process's folder is none of them: it
    holds more than libraries.
    """
    try:
        python_path = os.pathsep.join(_library_folders(environ.get("PYTHONPATH", "")))
    except FileNotFoundError:  # this process's folder was removed
        python_path = ""
    return _find_libraries(python, python_path, environ.get("PATH", ""), options)


def _library_folders(python_path: str) -> list[str]:
    folders = [Path(folder).resolve() for folder in (os.path.expanduser("~"), tempfile.gettempdir(), os.getcwd())]
    private = {place for folder in folders for place in (folder, *folder.parents)}
    return [entry for entry in python_path.split(os.pathsep) if entry and Path(entry).resolve() not in private]


@cache
def _find_libraries(python: str, python_path: str, path: str, options: tuple[str, ...]) -> tuple[str, ...]:
    environment = {"PATH": path, **({"PYTHONPATH": python_path} if python_path else {})}
    command = [python, *options, "-c", ASK]
    try:
        process = subprocess.run(command, env=environment, cwd="/", capture_output=True, timeout=60, check=True)
        executable, prefix, base, *places = json.loads(process.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        raise RequestError(f"{python} does not run as a Python.", hint="Look at PYSPARK_PYTHON.") from None
    itself = [Path(python), Path(executable), Path(executable).resolve()]
    around = [Path(prefix) / "pyvenv.cfg", Path(base) / "lib", PACKAGE]
    readable = [
        *map(str, itself + around),
        *(place for place in places if os.path.isabs(place) and place != "/"),
        *SYSTEM,
    ]
    return tuple(dict.fromkeys(readable))
