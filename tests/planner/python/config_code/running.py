"""A config.py that is run in this process, where a test wrote it: as its child runs it, and quicker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mergeplan.planner.parsing.files.configuration import CodeConfiguration
from mergeplan.planner.python.config_code.child import ConfigCode, project_imports
from mergeplan.planner.python.config_code.reading import configuration_of, failure_of, known_values
from mergeplan.planner.python.config_code.references import References
from mergeplan.planner.python.messages import Wrong
from mergeplan.planner.python.serving import error_data


def run_here(text: str, environment: Mapping[str, str], root: str = "/shop") -> CodeConfiguration:
    """What a config.py came to; ProjectError."""
    known = known_values(environment)
    code = ConfigCode(root, References(frozenset(known["filled"]), known["values"]))
    try:
        with project_imports(code):
            answer = json.loads(json.dumps(code.run(text)))
    except BaseException as error:
        raise failure_of(Wrong.model_validate(error_data(error, code.locate)), "config.py", text) from error
    return configuration_of(answer, Path(root))
