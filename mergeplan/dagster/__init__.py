"""Dagster runs an environment as it was promoted: assets, checks, one run; see docs/guides/dagster.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

# Each name is imported when it is first asked for: what needs no Dagster can be used without it.
HOMES = {
    "mergeplan.dagster.component": ("MergeplanProjectComponent",),
    "mergeplan.dagster.definitions": ("MergeplanOptions", "build_definitions"),
    "mergeplan.dagster.deployment": ("Deployment", "read_deployment"),
    "mergeplan.dagster.resource": ("MergeplanResource",),
    "mergeplan.dagster.translator": ("MergeplanTranslator",),
}

if TYPE_CHECKING:
    from mergeplan.dagster.component import MergeplanProjectComponent as MergeplanProjectComponent
    from mergeplan.dagster.definitions import MergeplanOptions as MergeplanOptions
    from mergeplan.dagster.definitions import build_definitions as build_definitions
    from mergeplan.dagster.deployment import Deployment as Deployment
    from mergeplan.dagster.deployment import read_deployment as read_deployment
    from mergeplan.dagster.resource import MergeplanResource as MergeplanResource
    from mergeplan.dagster.translator import MergeplanTranslator as MergeplanTranslator
else:
    __all__ = sorted(name for names in HOMES.values() for name in names)

    def __getattr__(name: str) -> object:
        """Import a name from the module that defines it; raise ImportError if Dagster is not installed."""
        from mergeplan.lazy_names import import_name

        try:
            return import_name(__name__, HOMES, name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "dagster":
                raise
            message = f"`mergeplan.dagster.{name}` needs Dagster: pip install 'mergeplan[dagster]'"
            raise ImportError(message) from error

    def __dir__() -> list[str]:
        return __all__
