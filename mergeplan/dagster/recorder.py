"""What happened to a model as an event of Dagster, with all by which Dagster decides what is stale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from mergeplan.dagster.deployment import Deployment, is_by_time
from mergeplan.dagster.grid import Grid
from mergeplan.dagster.translator import COMPUTED, MergeplanTranslator, get_check_name
from mergeplan.dagster.versions import DATA_VERSION, UNSEEN, Input, provenance, table_data_version, view_version
from mergeplan.markdown import code_block
from mergeplan.planner.contract.base import Span
from mergeplan.planner.contract.lines import AuditLine, BatchLine
from mergeplan.planner.contract.schedule import ScheduledModel

TABLE = "mergeplan/table"  # metadata: the physical table
HELD = "mergeplan/held"  # metadata: up to when the table was filled
SHOWN_ROWS = 5


@dataclass
class Recorder:
    """A maker of events for one run or one look at the state; each must be stored before the next is made."""

    instance: dg.DagsterInstance
    translator: MergeplanTranslator
    deployment: Deployment
    writer: str  # names the run: rows that it writes are another version than those of any other run
    latest: dict[str, dg.AssetMaterialization | None] = field(default_factory=dict)  # by model or table
    inputs: dict[str, Input] = field(default_factory=dict)  # likewise; forgotten when there is a newer event
    touched: set[str] = field(default_factory=set)  # models that got an event

    def load(self) -> None:
        """Read the newest event of every model and table, in one query."""
        names = {
            self.translator.get_asset_key(name): name for name in (*self.deployment.models, *self.deployment.outside)
        }
        self.latest |= dict.fromkeys(names.values())
        self.inputs |= {name: Input() for name in names.values()}
        for record in self.instance.get_asset_records([*names]):
            if entry := record.asset_entry.last_materialization_record:
                self._remember(names[record.asset_entry.asset_key], entry.asset_materialization, entry.storage_id)

    def batch_events(self, batch: BatchLine) -> Iterable[dg.AssetMaterialization]:
        """Yield an event for each partition that a batch filled, or one for the whole table."""
        model = self.deployment.models.get(batch.model)
        metadata = _batch_metadata(batch)
        if model is None:  # a merge brought it since the definitions were loaded, and the state was read
            yield dg.AssetMaterialization(self.translator.get_asset_key(batch.model), metadata=metadata)
            return
        keys = self.partitions_of(model, batch.interval)
        if len(keys) == 1 and not batch.unchanged:
            metadata["dagster/partition_row_count"] = batch.rows
        versions = self.versions(model) if batch.unchanged else {}
        for key in keys:
            version = versions.get(key) or table_data_version(model.table, key, self.writer)
            yield self.event(model, key, version, metadata)

    def partitions_of(self, model: ScheduledModel, span: Span) -> tuple[str | None, ...]:
        """Return the partitions that a span covers; (None,) for a model without partitions."""
        if not is_by_time(model):
            return (None,)
        return Grid(model.interval_unit).keys(span)

    def versions(self, model: ScheduledModel) -> Mapping[str | None, str]:
        """Return the data version of each partition's newest event; {None: ...} for a model without partitions."""
        if not is_by_time(model):
            return {None: version} if (version := self._read(model.name).version) != UNSEEN else {}
        tags = self.instance.event_log_storage.get_latest_tags_by_partition(
            self.translator.get_asset_key(model.name), dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION]
        )
        return {key: labels[DATA_VERSION] for key, labels in tags.items() if DATA_VERSION in labels}

    def event(
        self, model: ScheduledModel, partition: str | None, version: str, metadata: Mapping[str, Any]
    ) -> dg.AssetMaterialization:
        """Return a materialization of a model by the present state."""
        inputs = {
            self.translator.get_asset_key(name).to_user_string(): self._read(name)
            for name in self.deployment.parents[model.name]
        }
        self.touched.add(model.name)
        self.inputs.pop(model.name, None)
        loaded_spans = self.deployment.held.get(model.name, ())
        return dg.AssetMaterialization(
            self.translator.get_asset_key(model.name),
            partition=partition,
            metadata={
                TABLE: model.table,
                "mergeplan/revision": self.deployment.schedule.revision,
                **({HELD: loaded_spans[-1][1]} if loaded_spans else {}),
                **metadata,
            },
            tags=provenance(model.fingerprint, version, inputs),
        )

    def view(self, model: ScheduledModel) -> dg.AssetMaterialization | None:
        """Return an event for a view whose query or inputs differ from those of its newest event; None otherwise."""
        inputs = {name: self._read(name) for name in self.deployment.parents[model.name]}
        version, old_version = view_version(model.fingerprint, inputs), self._read(model.name).version
        return None if version == old_version else self.event(model, None, version, {})

    def audit_events(self, audit: AuditLine) -> Iterable[dg.AssetCheckEvaluation]:
        """Yield the result of an audit for each partition that it examined."""
        model = self.deployment.models.get(audit.model)
        partitions = self.partitions_of(model, audit.interval) if model and audit.interval else (None,)
        yield from self._evaluations(audit, partitions)

    def table_audit_events(self, audit: AuditLine, limit: int) -> Iterable[dg.AssetCheckEvaluation]:
        """Yield the result of an audit of the whole table for the `limit` newest partitions."""
        model = self.deployment.models.get(audit.model)
        partitions: Sequence[str | None] = (None,)
        if model and is_by_time(model):
            loaded_spans = self.deployment.held.get(model.name, ())
            partitions = [key for span in loaded_spans for key in self.partitions_of(model, span)][-limit:]
        yield from self._evaluations(audit, partitions)

    def _evaluations(self, audit: AuditLine, partitions: Sequence[str | None]) -> Iterable[dg.AssetCheckEvaluation]:
        metadata: dict[str, Any] = {"mergeplan/rows_found": audit.count}
        if audit.interval:
            metadata["mergeplan/interval"] = " - ".join(audit.interval)
        if not audit.ok:
            metadata["mergeplan/query"] = dg.MetadataValue.md(code_block(audit.query, "sql"))
            metadata["mergeplan/sample"] = dg.MetadataValue.json(
                {"columns": list(audit.sample.columns), "rows": [list(row) for row in audit.sample.rows[:SHOWN_ROWS]]}
            )
        for partition in partitions:
            yield dg.AssetCheckEvaluation(
                asset_key=self.translator.get_asset_key(audit.model),
                check_name=get_check_name(audit.name),
                passed=audit.ok,
                metadata=metadata,
                severity=dg.AssetCheckSeverity.ERROR if audit.blocking else dg.AssetCheckSeverity.WARN,
                blocking=audit.blocking,
                partition=partition,
            )

    def outcome(self, name: str, message: str = "", *, skipped: bool = False) -> dg.AssetCheckEvaluation:
        """Return the check `computed`, which says whether a model could be computed."""
        return dg.AssetCheckEvaluation(
            asset_key=self.translator.get_asset_key(name),
            check_name=COMPUTED,
            passed=not message,
            description=message or None,
            metadata={"mergeplan/run": dg.MetadataValue.text(self.writer)},
            severity=dg.AssetCheckSeverity.WARN if skipped else dg.AssetCheckSeverity.ERROR,
            blocking=False,
        )

    def table_before(self, model: ScheduledModel) -> str:
        """Return the physical table of the newest event, '' if there is none."""
        event = self.latest.get(model.name)
        return str(event.metadata[TABLE].value) if event and TABLE in event.metadata else ""

    def _read(self, name: str) -> Input:
        if name not in self.inputs:  # it got an event since
            (record,) = self.instance.get_asset_records([self.translator.get_asset_key(name)]) or (None,)
            entry = record.asset_entry.last_materialization_record if record else None
            if entry:
                self._remember(name, entry.asset_materialization, entry.storage_id)
        return self.inputs.setdefault(name, Input())

    def _remember(self, name: str, event: dg.AssetMaterialization | None, storage_id: int) -> None:
        self.latest[name] = event
        self.inputs[name] = Input((event.tags or {}).get(DATA_VERSION, UNSEEN) if event else UNSEEN, storage_id)


def _batch_metadata(batch: BatchLine) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "mergeplan/interval": " - ".join(batch.interval),
        "mergeplan/rows": batch.rows,
        "mergeplan/seconds": batch.seconds,
        HELD: batch.interval[1],
    }
    if batch.of > 1:
        metadata["mergeplan/batch"] = f"{batch.index} of {batch.of}"
    if batch.unchanged:
        metadata["mergeplan/unchanged"] = True
    if batch.copied:
        metadata["mergeplan/copied"] = True
    return metadata
