"""One run underneath: mergeplan is called once, and what its lines say becomes events as they arrive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import dagster as dg

from mergeplan.dagster.child import ChildEnded
from mergeplan.dagster.progress import Cleared, Progress, Remark, Report, describe_error
from mergeplan.dagster.recorder import Recorder
from mergeplan.dagster.request import DONE, RESTATING, Request, Verb
from mergeplan.dagster.resource import MergeplanResource
from mergeplan.dagster.sync import PARTITIONS, materialize_views, missing_events
from mergeplan.dagster.translator import MergeplanTranslator
from mergeplan.planner.contract import lines
from mergeplan.planner.errors import MergeplanError

Event: TypeAlias = dg.AssetMaterialization | dg.AssetCheckEvaluation
POLL = 15.0  # seconds between two tries while another run of the environment is under way


@dataclass
class ReportedRun:
    """A run of an environment, reported to Dagster as it goes."""

    context: dg.OpExecutionContext
    mergeplan: MergeplanResource
    translator: MergeplanTranslator
    partitions: int = PARTITIONS
    sleep: Callable[[float], None] = time.sleep
    progress: Progress = field(default_factory=Progress)
    recorder: Recorder = field(init=False)

    def events(self, request: Request) -> Iterator[Event]:
        """Yield the events of a request, each to be stored before the next; raise dg.Failure if a model failed.

        Tables that others promoted or filled since the last look at the state are reported first.
        """
        yield from self.look()
        yield from self._computing(request)
        yield from materialize_views(self.recorder)
        self._conclude()

    def look(self) -> Iterator[Event]:
        """Read the state, and report what is new in it."""
        try:
            deployment = self.mergeplan.read_deployment()
        except (ChildEnded, TimeoutError, MergeplanError) as error:  # one sentence, and no trace of ours
            raise dg.Failure(str(error), allow_retries=not isinstance(error, MergeplanError)) from None
        self.recorder = Recorder(self.context.instance, self.translator, deployment, self.context.run.run_id)
        self.recorder.load()
        yield from missing_events(self.recorder, self.partitions)

    def verb_events(self, *arguments: str) -> Iterator[Event]:
        """Yield the events of a verb that computes no model, such as `audit`; raise dg.Failure if it fails."""
        yield from self._calling(Verb(arguments))
        self._conclude()

    def _computing(self, request: Request) -> Iterator[Event]:
        """Yield the events of one call; repeat the call while another run of the environment is active."""
        deadline = time.monotonic() + self.mergeplan.wait_seconds
        while True:
            self.progress = Progress()
            yield from self._calling(request)
            if not self.progress.is_taken:
                return
            if time.monotonic() > deadline:
                raise dg.Failure(f"Another run of `{request.environment}` did not end in time.")
            self.sleep(POLL)
            yield from self.look()

    def _calling(self, request: Request | Verb) -> Iterator[Event]:
        log = self.context.log
        log.info(f"mergeplan {' '.join(request.arguments)}")
        try:
            for line in self.mergeplan.stream(request, log.debug):
                report = self.progress.read(line)
                if self.progress.recovered or (line.event == "plan" and self._is_outdated()):
                    self.progress.recovered = False
                    yield from self.look()
                if report:
                    yield from self._events_of(report, request)
        except ChildEnded as error:
            if self.progress.result is None:  # it said nothing of how it ended: it was killed, or did not start
                message = f"{error} Recorded intervals stay; a retry continues from there."
                raise dg.Failure(message, allow_retries=True) from None
        except TimeoutError as error:
            raise dg.Failure(f"{error} A retry continues from there.", allow_retries=True) from None

    def _is_outdated(self) -> bool:
        """Return True if a merge came between the look at the state and the run, which now holds the environment."""
        models = self.recorder.deployment.models
        return any(name not in models or models[name].table != table for name, table in self.progress.tables.items())

    def _events_of(self, report: Report, request: Request | Verb) -> Iterator[Event]:
        recorder, log = self.recorder, self.context.log
        match report:
            case lines.BatchLine():
                yield from recorder.batch_events(report)
                if report.index == report.of:
                    yield recorder.outcome(report.model)
            case lines.AuditLine() if isinstance(request, Verb):
                yield from recorder.table_audit_events(report, self.partitions)
            case lines.AuditLine():
                yield from recorder.audit_events(report)
            case lines.FailedLine(model=model, message=message):
                log.error(f"{model}: {message}")
                yield recorder.outcome(model, message)
            case lines.SkippedLine(model=model, because=because):
                yield recorder.outcome(model, f"It reads {because}, which failed.", skipped=True)
            case Cleared(plan_id):
                if isinstance(request, Request) and request.restates:
                    remember_restatement(self.context, plan_id)
            case Remark(message, is_problem):
                (log.warning if is_problem else log.info)(message)

    def _conclude(self) -> None:
        progress = self.progress
        if progress.result is not None and progress.result.ok:
            if run_tags(self.context).get(RESTATING, DONE) != DONE:
                remember_restatement(self.context, DONE)
            return
        failed = {name: dg.MetadataValue.text(message) for name, message in progress.failed.items()}
        sentences = [f"{len(failed)} model{'s' * (len(failed) != 1)} failed: {', '.join(failed)}."] if failed else []
        if progress.skipped:
            sentences.append(f"Not computed, because they read them: {', '.join(progress.skipped)}.")
        for check_kind, names in (("audit", progress.failed_audits), ("unit test", progress.failed_tests)):
            if names and not failed:
                sentences.append(f"{len(names)} {check_kind}{'s' * (len(names) != 1)} failed: {', '.join(names)}.")
        if not sentences:
            sentences += [describe_error(error) for error in progress.errors[:3]]
        raise dg.Failure(
            " ".join(sentences) or "mergeplan failed.", metadata=failed, allow_retries=progress.may_succeed_later
        )


def run_tags(context: dg.OpExecutionContext) -> Mapping[str, str]:
    """Return the run's present tags: an earlier try may have added some."""
    run = context.instance.get_run_by_id(context.run.run_id)
    tags: Mapping[str, str] = run.tags if run else context.run.tags
    return tags


def remember_restatement(context: dg.OpExecutionContext, plan_id: str) -> None:
    """Record in the run's tags that a restatement has cleared its intervals, or is DONE.

    A retry, and a run that executes this one again, then compute what is missing and do not clear it again.
    """
    context.instance.add_run_tags(context.run.run_id, {RESTATING: plan_id})
