"""What GitHub's deployments say of a pull request: its environment, and prod once it is merged. Pure."""

from dataclasses import dataclass

from mergeplan.bot.records import PullRecord, PullState
from mergeplan.bot.report.states import state_row
from mergeplan.bot.report.words import work_words
from mergeplan.bot.results import has_effect
from mergeplan.planner.snapshot.environment import PROD

DESCRIPTION = 140  # characters, GitHub's limit


@dataclass(frozen=True)
class DeploymentView:
    environment: str
    sha: str
    state: str  # GitHub's word
    description: str
    url: str = ""

    @property
    def is_prod(self) -> bool:
        return self.environment == PROD


def list_deployments(record: PullRecord) -> tuple[DeploymentView, ...]:
    """Return the deployments that are due; an environment that was never built has none."""
    if not record.rules.shows_deployments:
        return ()
    deployment = state_row(record).deployment(record)
    views = (
        _environment_view(record),
        _build_deployment(record, PROD, record.promotion.merge_sha, *deployment) if deployment else None,
    )
    return tuple(view for view in views if view is not None)


def _environment_view(record: PullRecord) -> DeploymentView | None:
    outcome, deployment = record.outcome, record.deployment(record.environment.name)
    if not record.environment.exists:
        return (
            _build_deployment(record, record.environment.name, deployment.sha, "inactive", "It is dropped.")
            if deployment
            else None
        )
    if record.state is not PullState.PLANNED or outcome is None or not outcome.is_built or not has_effect(outcome.plan):
        return None
    assert outcome.plan is not None
    return _build_deployment(
        record, record.environment.name, record.head, "success", f"Built: {work_words(outcome.plan)}."
    )


def _build_deployment(record: PullRecord, environment: str, sha: str, state: str, text: str) -> DeploymentView:
    comment = f"#issuecomment-{record.comment.id}" if record.comment.id else ""
    url = f"{record.place.site}/pull/{record.number}{comment}" if record.place.site else ""
    return DeploymentView(environment, sha, state, text.replace("`", "")[:DESCRIPTION], url)
