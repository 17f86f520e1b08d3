"""What the endpoints and the pages work with, and how one of them says what it needs."""

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict

from mergeplan.planner.api.access import Access, Mode, Principal, Scope
from mergeplan.planner.api.catalog_reader import CatalogReader
from mergeplan.planner.api.events import Streams
from mergeplan.planner.api.jobs.job import JobRecord
from mergeplan.planner.api.jobs.results import CheckHistory
from mergeplan.planner.api.jobs.store import JobRequest, JobStore
from mergeplan.planner.api.problems import ApiError
from mergeplan.planner.session.settings import SessionSettings


@dataclass(frozen=True)
class ApiContext:
    """One server over one project."""

    settings: SessionSettings
    access: Access
    reader: CatalogReader
    jobs: JobStore
    checks: CheckHistory
    edit: bool = False  # files may be written
    streams: Streams = field(default_factory=Streams)

    def allows(self, principal: Principal | None, scope: Scope, mode: Mode | None = None) -> bool:
        """Return True if this server allows it to the principal; pages offer only that."""
        return self._refusal_text(principal, scope, mode) is None

    def check(self, principal: Principal | None, scope: Scope, mode: Mode | None = None) -> None:
        """Raise ApiError (403) if the mode of the server, or the scope of the token, does not allow it."""
        if refusal := self._refusal_text(principal, scope, mode):
            raise ApiError(HTTPStatus.FORBIDDEN, refusal)

    def submit(self, request: JobRequest) -> JobRecord:
        """Submit a job; raise ApiError if too many wait, or if another one applies its plan."""
        return self.jobs.submit(request)

    def _refusal_text(self, principal: Principal | None, scope: Scope, mode: Mode | None) -> str | None:
        server_mode, modes = self.access.mode, list(Mode)
        if not server_mode.scope.includes(scope) or (mode and modes.index(server_mode) < modes.index(mode)):
            return f"This server runs in the mode `{server_mode}`, which does not do that."
        if principal is None or not principal.scope.includes(scope):
            return f"The token does not allow it: it needs the scope `{scope}`."
        return None


def context_of(request: Request) -> ApiContext:
    context = request.app.state.context
    assert isinstance(context, ApiContext)
    return context


def principal_of(request: Request) -> Principal | None:
    principal = getattr(request.state, "principal", None)
    assert principal is None or isinstance(principal, Principal)
    return principal


def require_scope(scope: Scope, mode: Mode | None = None) -> Any:
    """Return the dependency of an endpoint that needs a scope, and a mode if that of the scope is not enough."""

    def check(request: Request) -> Principal:
        principal = principal_of(request)
        context_of(request).check(principal, scope, mode)
        assert principal is not None
        return principal

    return Depends(check)


Context = Annotated[ApiContext, Depends(context_of)]


class Closed(BaseModel):
    """A body or a query of which each key is known."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoQuery(Closed):
    """No parameter at all."""
