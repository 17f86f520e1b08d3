"""The options that limit how many rows a comparison reads and prints."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from mergeplan.planner.cli.click_options import options_from
from mergeplan.planner.session.options import DataDiffOptions, parse_details

C = TypeVar("C", bound=Callable[..., object])
DEFAULT = DataDiffOptions()


def data_diff_options(prefix: str = "") -> Callable[[C], C]:
    """Return the options that limit what is compared and reported; those of `plan` begin with `--data-diff`."""
    options = (
        click.option(
            f"--{prefix or 'detail'}",
            "detail",
            multiple=True,
            metavar="DETAIL|SELECTOR=DETAIL",
            callback=lambda _context, _option, value: parse_details(value) if value else (),
            help="off, counts or sample: for all models, or for a name, a glob or tag:x. The last match applies.",
        ),
        click.option(
            f"--{prefix and prefix + '-'}unmasked",
            "unmasked",
            multiple=True,
            metavar="COLUMN",
            help="A column whose values are not masked in samples.",
        ),
        click.option(
            f"--{prefix and prefix + '-'}seconds",
            "seconds",
            type=click.FloatRange(min=0),
            default=DEFAULT.seconds,
            help="How long all comparisons may take together.",
        ),
        click.option(
            f"--{prefix and prefix + '-'}rows",
            "rows",
            type=click.IntRange(min=0),
            default=DEFAULT.rows,
            help="How many rows the tables of a model may have together.",
        ),
    )

    def add(command: C) -> C:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def options_of(option_values: dict[str, Any]) -> DataDiffOptions:
    return options_from(
        DataDiffOptions, {name: value for name, value in option_values.items() if name != "detail" or value}
    )
