"""The opening of the tools and jobs of an agents' server."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mergeplan.planner.agents.audit_log import AuditLog
from mergeplan.planner.agents.calls import Toolbox
from mergeplan.planner.agents.job_tools import JobTools
from mergeplan.planner.agents.jobs import AgentJobs
from mergeplan.planner.agents.policy import read_policy
from mergeplan.planner.agents.tools import Tools
from mergeplan.planner.api.access import Access
from mergeplan.planner.session.settings import SessionSettings, refuse_spark


def open_toolbox(
    settings: SessionSettings,
    access: Access,
    environ: Mapping[str, str],
    *,
    policy: Path | None = None,
    passed: tuple[str, ...] = (),
) -> Toolbox:
    """Return the tools over a project, without a Spark in the server; `passed` are variables that jobs see too.

    Raise MergeplanError if the configuration of the project, or the file of the policy, cannot be read.
    """
    rules = read_policy(settings, policy)
    secrets = (*access.tokens.values(), settings.state_url, settings.openlineage_key)
    jobs = AgentJobs(settings, access, environ, passed)
    reading = Tools(replace(settings, open_engine=refuse_spark))
    return Toolbox(reading, JobTools(settings, jobs, rules), rules, AuditLog(settings.folder / "agents", secrets))
