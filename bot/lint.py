"""lint, which also finds what the bot would refuse in `cicd_bot`."""

import os
from copy import copy
from pathlib import Path
from typing import Any

from mergeplan.bot.cicd_section import section_of
from mergeplan.bot.rules import config_of
from mergeplan.planner.cache.store import NO_CACHE
from mergeplan.planner.cli.checks.linting import lint_models
from mergeplan.planner.isolation.mode import isolation_of
from mergeplan.planner.parsing.files.configuration import mark_variables
from mergeplan.planner.project.configuration_files import read_configuration
from mergeplan.planner.project.folder import Folder


def lint_with_rules(root: Path, **options: Any) -> Any:
    """Lint the models; raise ProjectError for rules of the bot that it could not read."""
    if root.is_dir():
        configuration = read_configuration(Folder(root.resolve(), NO_CACHE), isolation_of(os.environ))
        config_of(section_of(mark_variables(configuration)), "")
    assert lint_models.callback
    return lint_models.callback(root=root, **options)


lint = copy(lint_models)
lint.callback = lint_with_rules
