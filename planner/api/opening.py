"""Opening a server's context: the reader, the jobs, and what there was of them before."""

from collections.abc import Mapping
from dataclasses import replace

from mergeplan.planner.api.access import Access
from mergeplan.planner.api.catalog_reader import CatalogReader
from mergeplan.planner.api.context import ApiContext
from mergeplan.planner.api.jobs.child import Launch
from mergeplan.planner.api.jobs.results import CheckHistory
from mergeplan.planner.api.jobs.store import JobLimits, JobStore
from mergeplan.planner.session.settings import SessionSettings, refuse_spark


def open_context(
    settings: SessionSettings,
    access: Access,
    environ: Mapping[str, str],
    *,
    edit: bool = False,
    passed: tuple[str, ...] = (),
    limits: JobLimits | None = None,
) -> ApiContext:
    """Open the context of a server over the project; its application closes it.

    Raise LeaseHeld if another server serves the project. The server itself starts no Spark: only jobs do. `passed` are
    names of environment variables that they see too.
    """
    reader = CatalogReader(replace(settings, open_engine=refuse_spark))
    launch = Launch(settings, environ, passed)
    limits = limits or JobLimits()
    jobs = JobStore(settings.folder / limits.folder, launch, limits, reader.expire)
    jobs.open()
    return ApiContext(settings, access, reader, jobs, CheckHistory(jobs), edit)
