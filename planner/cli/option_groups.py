"""A command whose help shows its options in groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click


class GroupedCommand(click.Command):
    """A command with titles over its options; `groups` gives the parameters of each title, in the order of the help."""

    def __init__(self, *args: Any, groups: Mapping[str, str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.groups = {title: names.split() for title, names in groups.items()}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = {str(option.name): option.get_help_record(ctx) for option in self.get_params(ctx)}
        grouped = {name for names in self.groups.values() for name in names}
        others = [name for name in records if name not in grouped]
        for title, names in {**self.groups, "Other options": others}.items():
            lines = [line for name in names if (line := records[name])]
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)
