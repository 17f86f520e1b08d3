"""Settings of dbt_project.yml that depend on the connection or the time of the run.

dbt renders them while it reads that file, with whatever values it has, so they are detected before.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from mergeplan.planner.python.dbt_code.compile_error import CompileError

CONNECTION = ("host", "port", "cluster", "endpoint", "organization", "threads", "user", "token", "http_path")
SECTIONS = ("models", "seeds", "snapshots", "tests", "data_tests", "sources")  # of which dbt renders the settings
FILE = "dbt_project.yml"
_READ = re.compile(rf"\btarget\s*(?:\.\s*|\[\s*['\"]|\.get\(\s*['\"])({'|'.join(CONNECTION)})\b")
_TIME = re.compile(r"\b(run_started_at|invocation_id|modules\s*\.\s*datetime)\b")


def unknown_target_message(name: str) -> str:
    instead = ". Set `dbt: {target_http_path: ...}` in config.yaml" if name == "http_path" else ""
    return f"It reads `target.{name}`, which mergeplan does not know{instead}"


def refuse_settings(root: Path, known: Collection[str]) -> None:
    """Raise CompileError for a setting that depends on the time of the run or on an unknown part of the connection.

    Settings are those of the project and of its packages; `known` are the known parts of the connection. Hooks are
    rendered later.
    """
    import yaml  # of dbt

    for path in (root / FILE, *sorted(root.glob(f"dbt_packages/*/{FILE}"))):
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        try:
            settings = yaml.safe_load(text)
        except yaml.YAMLError:
            continue  # which dbt reports
        sections = settings if isinstance(settings, dict) else {}
        for value in _find_templates({name: sections.get(name) for name in SECTIONS}):
            read, timed = _READ.search(value), _TIME.search(value)
            wrong = unknown_target_message(read[1]) if read and read[1] not in known else ""
            wrong = wrong or (f"It decides a setting by the time of the run: `{timed[1]}`" if timed else "")
            if wrong:
                line = text[: max(0, text.find(value.splitlines()[0]))].count("\n") + 1
                raise CompileError(wrong, (str(path.relative_to(root)), line))


def _find_templates(value: Any) -> Iterator[str]:
    """Yield the templates in a part of YAML, without those of hooks."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if "hook" not in str(name):
                yield from _find_templates(part)
    elif isinstance(value, list):
        for part in value:
            yield from _find_templates(part)
    elif isinstance(value, str) and ("{{" in value or "{%" in value):
        yield value
