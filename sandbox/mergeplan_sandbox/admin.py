"""The sandbox's own small JSON API under `/_sandbox`: look, act as a person, arm and clear faults."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.faults import Faults
from mergeplan_sandbox.stage import Stage

router = APIRouter(prefix="/_sandbox")

ACTS: dict[str, Callable[..., Any]] = {
    act.__name__: act
    for act in (
        Stage.add_user,
        Stage.delete_user,
        Stage.create_repository,
        Stage.fork,
        Stage.set_permission,
        Stage.require_checks,
        Stage.set_team,
        Stage.enqueue,
        Stage.advance_queue,
        Stage.dequeue,
        Stage.request_merge,
        Stage.run_merge,
        Stage.install_app,
        Stage.suspend_app,
        Stage.uninstall_app,
        Stage.remove_from_app,
        Stage.delete_repository,
        Stage.move_repository,
        Stage.installation_token,
        Stage.actions_token,
        Stage.commit,
        Stage.delete_branch,
        Stage.open_issue,
        Stage.open_pull_request,
        Stage.edit_pull_request,
        Stage.label,
        Stage.comment,
        Stage.edit_comment,
        Stage.delete_comment,
        Stage.react,
        Stage.review,
        Stage.dismiss_review,
        Stage.merge,
        Stage.close,
        Stage.reopen,
        Stage.rerequest,
        Stage.rerequest_suite,
        Stage.click,
        Stage.redeliver,
        Stage.wait_idle,
    )
}
FAULTS: dict[str, Callable[..., None]] = {
    arm.__name__: arm
    for arm in (
        Faults.drop,
        Faults.duplicate,
        Faults.reorder,
        Faults.delay,
        Faults.fail,
        Faults.slow,
        Faults.rate_limit,
        Faults.lose_answer,
        Faults.mergeability_unknown,
    )
}


def same_origin(request: Request) -> bool:
    """Return True if the request's form comes from a page of this server, by its `Origin` header."""
    origin = request.headers.get("origin")
    return origin is None or origin == f"{request.url.scheme}://{request.headers.get('host', '')}"


@router.get("")
def overview(request: Request) -> Any:
    """Return the repositories, users, calls, deliveries, and pending faults."""
    stage: Stage = request.app.state.stage
    with stage.state.lock:
        return {
            "repositories": sorted(stage.state.repositories),
            "users": sorted(stage.state.users),
            "app": {"id": stage.state.app.id, "slug": stage.state.app.slug},
            "calls": [dataclasses.asdict(call) for call in stage.state.calls],
            "deliveries": [
                {"id": item.id, "guid": item.guid, "event": item.event, "action": item.action, "status": item.status}
                for item in stage.state.deliveries
            ],
            "faults": [dataclasses.asdict(fault) for fault in stage.faults.pending_faults()],
        }


@router.get("/version")
def version(request: Request) -> Any:
    """Return a number that grows with every change; open pages poll it."""
    stage: Stage = request.app.state.stage
    with stage.state.lock:
        return {"version": stage.state.version}


@router.post("/faults/{name}")
async def arm(request: Request, name: str) -> Any:
    """Arm a fault; the body has the arguments of the method of that name in `faults.py`."""
    return await _call_method(request, FAULTS, name, request.app.state.stage.faults)


@router.delete("/faults")
def clear(request: Request) -> Any:
    stage: Stage = request.app.state.stage
    stage.faults.clear()
    return {"result": None}


@router.post("/{name}")
async def act(request: Request, name: str) -> Any:
    """Act as a person; the body has the arguments of the method of that name in `stage.py`."""
    return await _call_method(request, ACTS, name, request.app.state.stage)


async def _call_method(
    request: Request, allowed_calls: dict[str, Callable[..., Any]], name: str, target: object
) -> JSONResponse:
    # Only JSON: a form of another site cannot send that without asking first.
    if not same_origin(request) or not request.headers.get("content-type", "").startswith("application/json"):
        return JSONResponse({"message": "Send JSON, and not from another site."}, 403)
    if name not in allowed_calls:
        return JSONResponse({"message": f"There is no {name!r}; there are: {', '.join(allowed_calls)}"}, 404)
    try:
        arguments = json.loads(await request.body() or b"{}")
        result = await run_in_threadpool(lambda: allowed_calls[name](target, **arguments))
    except (TypeError, ValueError, KeyError) as error:
        return JSONResponse({"message": str(error)}, 422)
    except ApiError as error:
        return JSONResponse(error.body(str(request.base_url).rstrip("/")), error.status)
    return JSONResponse({"result": result})
