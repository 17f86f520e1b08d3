"""A component for `dg`: a project's environment as definitions, kept as state that is refreshed and then only read."""

import os
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
from dagster.components import DefsStateConfig, DefsStateConfigArgs, ResolvedDefsStateConfig

from mergeplan.dagster.definitions import MergeplanOptions, build_definitions
from mergeplan.dagster.deployment import read_deployment
from mergeplan.dagster.maintenance import CRONS
from mergeplan.dagster.request import environment_of
from mergeplan.dagster.resource import MergeplanResource
from mergeplan.dagster.sync import PARTITIONS
from mergeplan.dagster.translator import GRACE, MergeplanTranslator


class ModelOptions(dg.Model, dg.Resolvable):
    """What is other for the models of a selector."""

    pool: str | None = None
    retries: int | None = None
    retry_delay_seconds: float | None = None
    op_tags: dict[str, Any] | None = None

    def arguments(self, component: "MergeplanProjectComponent") -> dict[str, Any]:
        """Return the options that are set, as the operations of assets take them."""
        asset_options: dict[str, Any] = {}
        if self.pool is not None:
            asset_options["pool"] = self.pool
        if self.op_tags is not None:
            asset_options["op_tags"] = self.op_tags
        if self.retries is not None or self.retry_delay_seconds is not None:
            retries = component.retries if self.retries is None else self.retries
            delay = component.retry_delay_seconds if self.retry_delay_seconds is None else self.retry_delay_seconds
            asset_options["retry_policy"] = dg.RetryPolicy(max_retries=retries, delay=delay)
        return asset_options


@dataclass
class MergeplanProjectComponent(dg.StateBackedComponent, dg.Resolvable):
    """The models of an environment as assets, with the job, the schedules and the sensor that run it.

    `dg utils refresh-defs-state` reads the environment from mergeplan's state; loading then reads one JSON file.
    Subclass it and override `translator` to name, group or tag assets otherwise.
    """

    project: str
    environment: str = "prod"
    pull_request_environment: str = "pr_{number}"
    gateway: str | None = None
    python: str | None = None
    name: str = "mergeplan"
    lineage: bool = True
    retries: int = 2
    retry_delay_seconds: float = 60.0
    pool: str | None = None
    options: dict[str, ModelOptions] = field(default_factory=dict)
    maintenance: dict[str, str] = field(default_factory=lambda: {**CRONS})
    freshness_grace_minutes: float | None = GRACE.total_seconds() / 60
    running: bool = False
    external: bool = True
    partitions: int = PARTITIONS
    variables: dict[str, str] = field(default_factory=dict)
    defs_state: ResolvedDefsStateConfig = field(default_factory=DefsStateConfigArgs.local_filesystem)

    @property
    def translator(self) -> MergeplanTranslator:
        """How models appear as assets."""
        translator, minutes = MergeplanTranslator(), self.freshness_grace_minutes
        translator.grace = None if minutes is None else timedelta(minutes=minutes)
        return translator

    @property
    def defs_state_config(self) -> DefsStateConfig:
        """Where the state is kept: apart for each environment."""
        shown = environment_of(os.environ, self.environment, self.pull_request_environment)
        return DefsStateConfig.from_args(self.defs_state, default_key=f"Mergeplan[{self.name},{shown}]")

    def mergeplan(self, root: Path) -> MergeplanResource:
        """Return the resource; the project's folder is relative to the root of Dagster's project."""
        python = {"python": self.python} if self.python else {}
        return MergeplanResource(
            project=str((root / self.project).resolve()),
            environment=self.environment,
            pull_request_environment=self.pull_request_environment,
            gateway=self.gateway,
            variables=self.variables,
            **python,
        )

    def write_state_to_path(self, state_path: Path) -> None:
        """Read the environment from mergeplan's state."""
        deployment = self.mergeplan(self._root).read_deployment(lineage=self.lineage)
        state_path.write_text(deployment.model_dump_json(), encoding="utf-8")

    async def refresh_state(self, project_root: Path) -> str:
        """Read the environment again; `dagster dev` and `dg utils refresh-defs-state` call it."""
        self._root = project_root
        return str(await super().refresh_state(project_root))

    def build_defs_from_state(self, context: dg.ComponentLoadContext, state_path: Path | None) -> dg.Definitions:
        """Return the definitions, or none before the state was refreshed for the first time."""
        if state_path is None:
            return dg.Definitions()
        options = MergeplanOptions(
            translator=self.translator,
            name=self.name,
            retry_policy=dg.RetryPolicy(max_retries=self.retries, delay=self.retry_delay_seconds),
            pool=self.pool,
            options={selector: selector_options.arguments(self) for selector, selector_options in self.options.items()},
            maintenance=self.maintenance,
            running=self.running,
            external=self.external,
            partitions=self.partitions,
        )
        return build_definitions(read_deployment(state_path), self.mergeplan(context.project_root), options)
