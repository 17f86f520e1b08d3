"""Requests made of the OpenAPI document, right and wrong ones: no answer is a defect, and each is documented."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from mergeplan.planner.api.app import make_api
from mergeplan.planner.api.jobs.store import JobLimits
from tests.planner.api.serving import LOCAL, fake_job, serve
from tests.planner.shop import write_shop

pytestmark = pytest.mark.sampled

DOCUMENT = make_api().openapi()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [f"{method.upper()} {path}" for path, methods in DOCUMENT["paths"].items() for method in methods]
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = min(int(os.environ.get("MERGEPLAN_CASES", "2")), 50)  # of each operation
LINE = '{"event":"result","version":1,"ok":true}'


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server whose jobs do nothing, and that writes files."""
    root = tmp_path_factory.mktemp("shop")
    write_shop(root)
    with serve(root, edit=True, command=fake_job(LINE), limits=JobLimits(waiting=5, kept=20)) as (client, _):
        yield client


@pytest.mark.parametrize("mode", list(GenerationMode), ids=str)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_is_documented_and_none_is_a_defect(
    client: TestClient, operation: str, mode: GenerationMode
) -> None:
    method, _, path = operation.partition(" ")

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(SCHEMA[path][method].as_strategy(mode))
    def send(case: schemathesis.Case) -> None:
        request = case.as_transport_kwargs(base_url=LOCAL)
        request = {
            name: request[name] for name in ("method", "url", "headers", "params", "json", "data") if name in request
        }
        if isinstance(data := request.pop("data", None), (bytes, str)):
            request["content"] = data
        case.validate_response(client.request(**request), checks=CHECKS)

    try:
        send()
    except Unsatisfiable:
        pytest.skip("nothing of this sort can be made: it takes no input")
