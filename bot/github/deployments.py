"""The deployments that the bot writes on commits, where it may."""

import structlog
from github.Deployment import Deployment

from mergeplan.bot.forge.failures import ForgeFailed
from mergeplan.bot.github.calls import Calls
from mergeplan.bot.projects import add_label
from mergeplan.bot.report.deployments import DeploymentView

log = structlog.get_logger(__name__)
TASK = "mergeplan"  # tells ours from others'
REFUSED = (403, 404, 409, 422)


class Deployments:
    """The deployments of one repository; `label` names the project, where it is not the first."""

    def __init__(self, calls: Calls, label: str = "") -> None:
        self._calls, self._label = calls, label

    def write(self, view: DeploymentView, known_id: int = 0) -> int:
        try:
            deployment_id = known_id or self._create_deployment(view).id
            self._calls.write(lambda: self._add_status(deployment_id, view))
        except ForgeFailed as error:
            if error.status not in REFUSED:
                raise
            log.warning("deployment_not_written", repository=self._calls.name, why=str(error))
            return 0
        return deployment_id

    def _create_deployment(self, view: DeploymentView) -> Deployment:
        name = add_label(view.environment, self._label)

        def look() -> Deployment | None:
            deployments = self._calls.repo.get_deployments(sha=view.sha, environment=name, task=TASK)
            return next(iter(deployments), None)

        def post() -> Deployment:
            return self._calls.repo.create_deployment(
                view.sha,
                task=TASK,
                auto_merge=False,
                required_contexts=[],  # the checks are ours: they do not wait for themselves
                environment=name,
                description=f"mergeplan: {name}",
                transient_environment=not view.is_prod,
                production_environment=view.is_prod,
            )

        return self._calls.write_once(look, post, look_first=False)

    def _add_status(self, deployment_id: int, view: DeploymentView) -> None:
        """Add a status; the last one counts, so it may be repeated."""
        deployment = self._calls.repo.get_deployment(deployment_id)
        deployment.create_status(
            view.state,
            target_url=view.url,
            description=view.description,
            environment=add_label(view.environment, self._label),
            environment_url=view.url,
        )
