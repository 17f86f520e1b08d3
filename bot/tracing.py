"""OpenTelemetry traces, from a delivery to its batches; off by default, and then nothing is imported.

The standard variables turn it on and configure it: OTEL_EXPORTER_OTLP_ENDPOINT and those beside it.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import structlog

from mergeplan.planner.contract.lines import BatchLine, StageLine
from mergeplan.planner.contract.result import ResultLine
from mergeplan.planner.contract.wire import Line
from mergeplan.planner.errors import RequestError

log = structlog.get_logger(__name__)
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
SPOKEN = "http/protobuf"
CLOSE_MILLISECONDS = 5_000


class Tracing:
    """No traces: every verb does nothing."""

    @contextmanager
    def span(self, name: str, parent: str = "", **attributes: object) -> Iterator[str]:
        """Open a span and yield its W3C traceparent, '' without traces."""
        del name, parent, attributes
        yield ""

    def record_span(self, name: str, seconds: float, **attributes: object) -> None:
        """Record a finished step of the current one that took so long."""

    def note(self, **attributes: object) -> None:
        """Add attributes to the current step."""

    def close(self) -> None:
        """Send the waiting spans, for a few seconds."""


class OtlpTracing(Tracing):
    """Traces that are sent by OTLP over HTTP, in the background; what cannot be sent is logged and lost."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        resource_attributes = {} if "OTEL_SERVICE_NAME" in environ else {"service.name": "mergeplan"}
        self._provider = TracerProvider(resource=Resource.create(resource_attributes))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("mergeplan")
        self._trace, self._texts = trace, TraceContextTextMapPropagator()
        library = logging.getLogger("opentelemetry")
        library.addHandler(_ToLog(logging.WARNING))
        library.propagate = False

    @contextmanager
    def span(self, name: str, parent: str = "", **attributes: object) -> Iterator[str]:
        above = self._texts.extract({"traceparent": parent}) if parent else None
        carried: dict[str, str] = {}
        # What an error says is for our log, where secrets are taken out of it: a trace names its type.
        with self._tracer.start_as_current_span(
            name,
            context=above,
            attributes=_span_attributes(attributes),
            record_exception=False,
            set_status_on_exception=False,
        ) as step:
            self._texts.inject(carried)
            try:
                yield carried.get("traceparent", "")
            except BaseException as error:
                step.set_status(self._trace.StatusCode.ERROR, type(error).__name__)
                raise

    def record_span(self, name: str, seconds: float, **attributes: object) -> None:
        end_time = time.time_ns()
        begun = self._tracer.start_span(
            name, start_time=end_time - int(seconds * 1e9), attributes=_span_attributes(attributes)
        )
        begun.end(end_time)

    def note(self, **attributes: object) -> None:
        self._trace.get_current_span().set_attributes(_span_attributes(attributes))

    def close(self) -> None:
        self._provider.force_flush(CLOSE_MILLISECONDS)
        self._provider.shutdown()


class RunTrace:
    """The stages and batches of one run of the planner, as steps of the current one."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._stage, self._since = "", 0.0

    def trace_line(self, line: Line) -> None:
        if isinstance(line, StageLine | ResultLine):
            if self._stage:
                self._tracing.record_span(f"stage {self._stage}", time.monotonic() - self._since)
            self._stage, self._since = line.name if isinstance(line, StageLine) else "", time.monotonic()
        elif isinstance(line, BatchLine):
            about = {"model": line.model, "batch": line.index, "batches": line.of, "rows": line.rows}
            self._tracing.record_span(
                "batch", line.seconds, **about, interval=" ".join(line.interval), copied=line.copied
            )


def open_tracing(environ: Mapping[str, str]) -> Tracing:
    """Open the tracing of the standard variables; raise RequestError if it is not available."""
    off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none"
    endpoint = next((name for name in ENDPOINTS if environ.get(name)), "")
    if off or not endpoint:
        return Tracing()
    protocol = next((environ[name] for name in PROTOCOLS if environ.get(name)), SPOKEN)
    if protocol != SPOKEN:
        raise RequestError(f"Traces are sent by `{SPOKEN}` only.", hint=f"Unset {PROTOCOLS[1]}, or say {SPOKEN}.")
    try:
        return OtlpTracing(environ)
    except ImportError:
        hint = "Install `mergeplan[tracing]`, or unset it."
        raise RequestError(
            f"{endpoint} is set, and the packages that send traces are not installed.", hint=hint
        ) from None


def _span_attributes(attributes: Mapping[str, object]) -> dict[str, Any]:
    """Return attributes under mergeplan's names, with types that every backend accepts."""
    return {
        f"mergeplan.{name}": value if isinstance(value, (bool, int, float)) else str(value)
        for name, value in attributes.items()
        if value not in ("", None)
    }


class _ToLog(logging.Handler):
    """What the library complains of, as an event of our log, where secrets are taken out."""

    def emit(self, record: logging.LogRecord) -> None:
        log.warning("traces_not_sent", why=record.getMessage()[:500])
