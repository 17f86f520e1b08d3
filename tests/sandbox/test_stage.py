"""A repository or an installation that does not exist is refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mergeplan_sandbox.api.limits import ApiError
from mergeplan_sandbox.server import Sandbox

SET_UP: dict[str, Callable[[Sandbox], object]] = {
    "set_permission": lambda stage: stage.set_permission("ann/gone", "ann", "read"),
    "require_checks": lambda stage: stage.require_checks("ann/gone", "main", ["test"]),
    "install_app": lambda stage: stage.install_app("ann/gone"),
    "installation_token": lambda stage: stage.installation_token("ann/gone"),
    "remove_from_app": lambda stage: stage.remove_from_app("ann/gone"),
    "delete_repository": lambda stage: stage.delete_repository("ann/gone"),
}


@pytest.mark.parametrize("name", SET_UP)
def test_a_repository_that_is_not_there_is_named(sandbox: Sandbox, name: str) -> None:
    sandbox.add_user("ann")

    with pytest.raises(ApiError, match="There is no repository 'ann/gone': create_repository first"):
        SET_UP[name](sandbox)


def test_an_app_that_is_installed_nowhere_is_named(sandbox: Sandbox) -> None:
    with pytest.raises(ApiError, match="The App is not installed for 'nobody': install_app first"):
        sandbox.suspend_app("nobody")
