"""Traces: one from a delivery to the planner's steps, sent to whatever takes OTLP; nothing at all unless asked for."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mergeplan.bot.tracing import Tracing, open_tracing
from mergeplan.planner.errors import RequestError
from tests.bot.conftest import COLUMN, Bench, until


class Collector:
    """What takes traces, and keeps them."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        kept = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                read = ExportTraceServiceRequest.FromString(body)
                kept.extend(
                    span for resource in read.resource_spans for scope in resource.scope_spans for span in scope.spans
                )
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def by_name(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]

    def above(self, span: Any) -> Any:
        """The span whose child this is; None for a root."""
        return next((parent for parent in self.spans if parent.span_id == span.parent_span_id), None)


@pytest.fixture(name="collector")
def _collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    made = Collector()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    yield made
    made.server.shutdown()
    made.server.server_close()


def attributes(span: Any) -> dict[str, str]:
    """A span's attributes as texts."""
    return {
        attribute.key: str(attribute.value.string_value or attribute.value.int_value) for attribute in span.attributes
    }


def test_one_trace_leads_from_the_delivery_to_the_planners_batches(
    collector: Collector, make_bench: Callable[..., Bench]
) -> None:
    bench = make_bench()
    bench.knobs(hang="pr")
    bench.open(COLUMN)
    until(lambda: collector.by_name("batch"), what="a batch")
    bench.knobs()
    bench.idle()
    bench.context.tracing.close()

    batch = collector.by_name("batch")[0]
    planner = collector.above(batch)
    job = collector.above(planner)
    delivery = collector.above(job)
    assert [span.name for span in (planner, job, delivery)] == ["planner plan", "job", "delivery"]
    assert {span.trace_id for span in (batch, planner, job)} == {delivery.trace_id}
    assert (attributes(batch)["mergeplan.model"], attributes(delivery)["mergeplan.kind"]) == (
        "shop.orders",
        "pull_request.opened",
    )
    assert attributes(job)["mergeplan.result"] == "done"
    environ = bench.calls("plan", "pr_1")[0]["environ"]
    assert environ["TRACEPARENT"].split("-")[1] == delivery.trace_id.hex()
    assert not [name for name in environ if name.startswith("OTEL_")]


def test_an_error_is_named_and_not_quoted(collector: Collector) -> None:
    """Behaviour 8: what an error says may hold a secret or a path."""
    tracing = open_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
    with pytest.raises(ValueError, match="secret"), tracing.span("step"):
        raise ValueError("a secret")
    tracing.close()

    (span,) = collector.by_name("step")
    assert (span.status.message, list(span.events)) == ("ValueError", [])
    assert b"secret" not in span.SerializeToString()


def test_without_an_endpoint_nothing_is_imported_and_no_variable_reaches_a_child() -> None:
    code = "import sys, mergeplan.bot.cli; sys.exit('opentelemetry.sdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert type(open_tracing({})) is Tracing
    assert type(open_tracing({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_SDK_DISABLED": "true"})) is Tracing


def test_what_cannot_be_is_told_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317"}
    with pytest.raises(RequestError, match="http/protobuf"):
        open_tracing({**asked, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    with pytest.raises(RequestError, match="not installed"):
        open_tracing(asked)
