"""Exports spans with the SDK of OpenTelemetry, which the extra `otel` installs.

The SDK reads its variables: endpoint, headers and certificates of OTEL_EXPORTER_OTLP_…, OTEL_TRACES_SAMPLER,
OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_… and the limits of spans. A thread exports in batches. If the
collector does not answer, its queue fills, and further spans are dropped.
"""

import logging
import threading
from typing import Final

from opentelemetry import trace as otel
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.span import TraceState
from typing_extensions import override

from app.base.version import VERSION
from app.telemetry.trace_context import TraceContext
from app.telemetry.tracing import Attributes, SpanKind, SpanStart

_SERVICE: Final = "jobgate"
# Seconds for the last batch at the end of the process. A dead collector must not delay a shutdown.
_LAST_BATCH: Final = 3.0
_SILENCE: Final = 60.0  # seconds between two lines about a collector that does not answer
_KINDS: Final = {
    SpanKind.INTERNAL: otel.SpanKind.INTERNAL,
    SpanKind.SERVER: otel.SpanKind.SERVER,
    SpanKind.CLIENT: otel.SpanKind.CLIENT,
}


class OccasionalLines(logging.Filter):
    """Passes one record in a minute: an exporter without a collector logs every try of every batch."""

    def __init__(self) -> None:
        super().__init__()
        self._next = 0.0

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        if record.created < self._next:
            return False
        self._next = record.created + _SILENCE
        return True


class OtlpSpan:
    """A span of the SDK."""

    def __init__(self, span: otel.Span) -> None:
        self._span = span
        self.trace: TraceContext | None = _trace_of(span.get_span_context())

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def note(self, attributes: Attributes) -> None:
        self._span.set_attributes(dict(attributes))

    def fail(self, error: str) -> None:
        self._span.set_attribute("error.type", error)
        self._span.set_status(otel.StatusCode.ERROR)

    def end(self) -> None:
        self._span.end()


class OtlpTracer:
    """Starts spans that are exported over OTLP. `process` is the name of this process."""

    def __init__(self, process: str) -> None:
        # Not at the exit of the interpreter: it would wait for a collector that does not answer.
        self._provider = TracerProvider(resource=_resource(process), shutdown_on_exit=False)
        logging.getLogger(OTLPSpanExporter.__module__).addFilter(OccasionalLines())
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(_SERVICE, VERSION)

    def start(self, wanted: SpanStart) -> OtlpSpan:
        # An empty context, because the SDK would otherwise use a context variable of its own.
        context = Context()
        if wanted.parent is not None:
            context = otel.set_span_in_context(_remote(wanted.parent), context)
        span = self._tracer.start_span(
            wanted.name,
            context=context,
            kind=_KINDS[wanted.kind],
            attributes=dict(wanted.attributes),
            links=[otel.Link(_span_context(link)) for link in wanted.links],
            start_time=None if wanted.began_at is None else int(wanted.began_at.timestamp() * 1e9),
        )
        return OtlpSpan(span)

    def stop(self) -> None:
        last = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        last.start()
        last.join(_LAST_BATCH)


def _resource(process: str) -> Resource:
    name = OTELResourceDetector().detect().attributes.get(SERVICE_NAME, _SERVICE)
    return Resource.create(
        {SERVICE_NAME: name, "service.version": VERSION, "jobgate.process": process},
    )


def _remote(trace: TraceContext) -> otel.Span:
    return otel.NonRecordingSpan(_span_context(trace))


def _span_context(trace: TraceContext) -> otel.SpanContext:
    return otel.SpanContext(
        int(trace.trace_id, 16),
        int(trace.span_id, 16),
        is_remote=trace.is_remote,
        trace_flags=otel.TraceFlags(trace.flags),
        trace_state=TraceState.from_header([trace.state]) if trace.state else None,
    )


def _trace_of(found: otel.SpanContext) -> TraceContext:
    return TraceContext(
        otel.format_trace_id(found.trace_id),
        otel.format_span_id(found.span_id),
        int(found.trace_flags),
        found.trace_state.to_header(),
        is_remote=False,
    )
