"""How a model appears in Dagster. Subclass it to name, group, tag or schedule assets otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from mergeplan.dagster import names
from mergeplan.dagster.deployment import Deployment, ModelLineage, is_by_time
from mergeplan.dagster.grid import Grid, instant
from mergeplan.planner.contract.schedule import ScheduledModel
from mergeplan.planner.intervals import Cron
from mergeplan.planner.model.kind import Kind

GRACE = timedelta(hours=2)  # that a run may take

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMPUTED = "computed"  # the check that every filled model has


class MergeplanTranslator:
    """From a model to its asset; each method may be overridden by itself.

    `grace` is the time that a run may take before a table is late; None: tables have no freshness policy.
    """

    grace: timedelta | None = GRACE

    def get_asset_key(self, name: str) -> dg.AssetKey:
        """Return the key of a model or of another table, by its name."""
        return dg.AssetKey(name.split("."))

    def get_group_name(self, model: ScheduledModel) -> str | None:
        return names.group(model.name)

    def get_kinds(self, model: ScheduledModel) -> set[str]:
        """Return the kinds: Spark, and how the table is filled; Dagster shows at most three."""
        return {"spark", model.kind.lower()}

    def get_owners(self, model: ScheduledModel) -> Sequence[str]:
        """Return the owner as an e-mail address or a team."""
        return names.owners(model.owner)

    def get_tags(self, model: ScheduledModel) -> Mapping[str, str]:
        return names.tags(model.tags)

    def get_description(self, model: ScheduledModel) -> str | None:
        return model.description or None

    def get_code_version(self, model: ScheduledModel) -> str | None:
        """Return the model's fingerprint, which includes those of all that it reads."""
        return model.fingerprint

    def get_metadata(self, model: ScheduledModel, deployment: Deployment) -> Mapping[str, Any]:
        """Return the columns, their lineage, and what decides the rows; the view, the file, the schedule."""
        metadata: dict[str, Any] = {
            "mergeplan/kind": model.kind,
            "mergeplan/file": model.path,
            "mergeplan/cron": f"{model.cron} {model.time_zone}".strip(),
            "mergeplan/owner": model.owner,
            "dagster/table_name": model.view,
        }
        metadata = {key: value for key, value in metadata.items() if value}
        if model.columns is not None:
            metadata["dagster/column_schema"] = dg.TableSchema(
                columns=[dg.TableColumn(c.name, c.type or "unknown", c.description or None) for c in model.columns]
            )
        if lineage := deployment.lineage.get(model.name):
            metadata |= self._lineage(lineage)
        return metadata

    def get_partitions_def(self, model: ScheduledModel, deployment: Deployment) -> dg.PartitionsDefinition[str] | None:
        """Return one partition for each interval of a model that is filled by time; None for any other model."""
        if not is_by_time(model) or not model.interval_unit:
            return None
        grid = Grid(model.interval_unit)
        loaded_spans = deployment.held.get(model.name, ())
        start = instant(
            model.start
            or (loaded_spans[0][0] if loaded_spans else deployment.schedule.promoted_at or EPOCH.isoformat())
        )
        return dg.TimeWindowPartitionsDefinition(
            start=grid.floor(start), fmt=grid.form, cron_schedule=grid.cron, timezone="UTC"
        )

    def get_freshness_policy(self, model: ScheduledModel) -> dg.FreshnessPolicy | None:
        """Return the policy of the model's own `freshness`, counted from the last run that filled it.

        Without one, a model is late after the longest time between two ticks of its cron and `grace`.
        """
        if not (model.computed and model.cron and self.grace):
            return None
        if limits := model.freshness:
            warn, error = limits.warn_after_seconds, limits.error_after_seconds
            warn_window = timedelta(seconds=warn) if warn and error and warn < error else None
            return dg.FreshnessPolicy.time_window(timedelta(seconds=error or warn or 0), warn_window)
        return dg.FreshnessPolicy.time_window(Cron(model.cron, model.time_zone).longest_gap + self.grace)

    def get_automation_condition(self, model: ScheduledModel) -> dg.AutomationCondition[dg.AssetKey] | None:
        """Return None, because a schedule calls `mergeplan run`, which computes what is due."""
        return None

    def get_asset_spec(self, model: ScheduledModel, deployment: Deployment) -> dg.AssetSpec:
        return dg.AssetSpec(
            self.get_asset_key(model.name),
            deps=[self.get_asset_key(name) for name in deployment.parents[model.name]],
            description=self.get_description(model),
            metadata=self.get_metadata(model, deployment),
            group_name=self.get_group_name(model),
            code_version=self.get_code_version(model),
            owners=self.get_owners(model),
            tags=self.get_tags(model),
            kinds=self.get_kinds(model),
            partitions_def=self.get_partitions_def(model, deployment),
            automation_condition=self.get_automation_condition(model),
            freshness_policy=self.get_freshness_policy(model),
            skippable=True,
        )

    def get_check_specs(self, model: ScheduledModel, deployment: Deployment) -> Sequence[dg.AssetCheckSpec]:
        """Return a check for each audit, and `computed`, which fails if the model cannot be computed."""
        if not model.computed:
            return ()
        key, partitions = self.get_asset_key(model.name), self.get_partitions_def(model, deployment)
        audits = {get_check_name(audit.name): audit for audit in model.audits}
        return (
            dg.AssetCheckSpec(COMPUTED, asset=key, description="The last run that came to this model computed it."),
            *(
                dg.AssetCheckSpec(
                    name, asset=key, blocking=audit.blocking is not False, partitions_def=partitions,
                    description=f"The audit {audit.name} finds no rows.",
                )
                for name, audit in audits.items()
            ),
        )  # fmt: skip

    def _lineage(self, lineage: ModelLineage) -> Mapping[str, Any]:
        deps = {
            column: [
                dg.TableColumnDep(self.get_asset_key(end.model), end.column)
                for end in ends
                if end.column is not None and end.column != "*"
            ]
            for column, ends in lineage.columns.items()
        }
        metadata: dict[str, Any] = {"dagster/column_lineage": dg.TableColumnLineage(deps_by_column=deps)}
        deciders = [f"{end.model}.{end.column}" if end.column else end.model for end in lineage.row_deciders]
        if deciders:
            metadata["mergeplan/rows_decided_by"] = deciders
        if lineage.unfollowed:
            metadata["mergeplan/lineage_unknown"] = lineage.unfollowed
        return metadata


def get_check_name(audit: str) -> str:
    """Return the name of an audit's check; an audit named like the check of every model gets a prefix."""
    name = names.word(audit)
    return f"audit_{name}" if name == COMPUTED else name


def asset_models(deployment: Deployment) -> tuple[ScheduledModel, ...]:
    return tuple(model for model in deployment.schedule.models if Kind(model.kind).has_view)


def is_view(model: ScheduledModel) -> bool:
    """Return True if its rows are always those of its query."""
    return Kind(model.kind).is_view
