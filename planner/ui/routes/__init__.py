"""The pages by address: they read as the endpoints of the API do, and act through its jobs."""

from fastapi import APIRouter, Depends, Request

from mergeplan.planner.ui.routes import checks, entry, plans, reading
from mergeplan.planner.ui.routes.answers import PageRoute
from mergeplan.planner.ui.state import UiState


def make_pages() -> APIRouter:
    state = UiState()

    async def add_state(request: Request) -> None:
        request.state.ui = state

    router = APIRouter(route_class=PageRoute, dependencies=[Depends(add_state)])
    for module in (entry, reading, plans, checks):
        router.include_router(module.router)
    router.include_router(entry.last)
    return router
