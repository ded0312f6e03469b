"""Spans of the work of this process. They are exported if the extra `otel` is installed and an endpoint is set.

Without an exporter, a span is only the trace context that it continues: the one that a client sent, or that is stored
with a job. Log lines and requests to the cluster contain it, and nothing new is created.
"""

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, unique
from typing import Final, Protocol, TypeAlias

import structlog

from app.telemetry.log_fields import process_name
from app.telemetry.trace_context import TraceContext, continue_trace

Attributes: TypeAlias = Mapping[str, str | int | float]

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL: Final = "http/protobuf"
_EXPORTER: Final = "otlp"
_PACKAGES: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")

log = structlog.get_logger(__name__)


@unique
class SpanKind(Enum):
    """The role of a span, as OpenTelemetry defines it."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"


class Span(Protocol):
    """A span that has begun. `trace` is the trace context of the work within it; None if that belongs to no trace."""

    trace: TraceContext | None

    def rename(self, name: str) -> None: ...
    def note(self, attributes: Attributes) -> None: ...
    def fail(self, error: str) -> None:
        """Mark the span as failed. `error` is a class of errors, such as a status code, and contains no data."""
        ...

    def end(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanStart:
    """What a span has from its beginning. Without a `parent` it is a root; without `began_at` it begins now."""

    name: str
    kind: SpanKind
    parent: TraceContext | None
    links: Sequence[TraceContext]
    attributes: Attributes
    began_at: datetime | None


class Tracer(Protocol):
    """Starts spans, and exports them when they end."""

    def start(self, wanted: SpanStart) -> Span: ...

    def stop(self) -> None:
        """Export the spans that have ended, within a few seconds, and stop."""
        ...


class _NoSpan:
    """A span that is not recorded."""

    def __init__(self, trace: TraceContext | None) -> None:
        self.trace = trace

    def rename(self, name: str) -> None:
        pass

    def note(self, attributes: Attributes) -> None:
        pass

    def fail(self, error: str) -> None:
        pass

    def end(self) -> None:
        pass


class _Process:
    """The tracer of this process; None while no spans are exported."""

    tracer: Tracer | None = None


def is_on() -> bool:
    """Return whether spans are exported."""
    return _Process.tracer is not None


@contextmanager
def span(
    name: str,
    kind: SpanKind = SpanKind.INTERNAL,
    *,
    parent: TraceContext | None,
    links: Sequence[TraceContext] = (),
    attributes: Attributes | None = None,
    began_at: datetime | None = None,
) -> Iterator[Span]:
    """Record the block as a child span of `parent`, or as a root span without one, and as the current trace context.

    `began_at` is given if the work began before the block.
    """
    tracer = _Process.tracer
    if tracer is None:
        with continue_trace(parent):
            yield _NoSpan(parent)
        return
    begun = tracer.start(
        SpanStart(name=name, kind=kind, parent=parent, links=links, attributes=attributes or {}, began_at=began_at)
    )
    try:
        with continue_trace(begun.trace):
            yield begun
    except BaseException as error:
        begun.fail(type(error).__qualname__)
        raise
    finally:
        begun.end()


@contextmanager
def shared_span(name: str, traces: Sequence[TraceContext | None], attributes: Attributes) -> Iterator[None]:
    """Record the block, which works for several traces, as a child span in one of them with links to the others."""
    found = list(dict.fromkeys(trace for trace in traces if trace is not None))
    if not is_on() or not found:
        yield
        return
    # A parent that is not sampled would hide the work from the traces that are.
    parent = next((trace for trace in found if trace.is_sampled), found[0])
    links = [trace for trace in found if trace != parent]
    with span(name, parent=parent, links=links, attributes=attributes):
        yield


@asynccontextmanager
async def export(environment: Mapping[str, str]) -> AsyncIterator[None]:
    """Export the spans of the block as the variables OTEL_… require.

    Begin it after a fork: the exporter has a thread, which a fork would not copy.
    """
    tracer = _tracer(environment)
    _Process.tracer = tracer
    try:
        yield
    finally:
        _Process.tracer = None
        if tracer is not None:
            await asyncio.to_thread(tracer.stop)


def _tracer(environment: Mapping[str, str]) -> Tracer | None:
    if not is_configured(environment):
        return None
    if hindrance := hindrance_of(environment) or _missing():
        log.warning("tracing.not_exported", reason=hindrance)
        return None
    from app.telemetry.otlp import OtlpTracer  # noqa: PLC0415 - the extra `otel` may not be installed

    try:
        tracer = OtlpTracer(process_name())
    except Exception:  # the SDK raises various errors for variables that are not valid
        log.exception("tracing.not_exported", reason="the variables OTEL_… are not valid")
        return None
    log.info("tracing.exported", sampler=environment.get("OTEL_TRACES_SAMPLER", "parentbased_always_on"))
    return tracer


def is_configured(environment: Mapping[str, str]) -> bool:
    """Return whether the variables of OpenTelemetry request the export of spans."""
    is_disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    has_exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip() != "none"
    return not is_disabled and has_exporter and any(environment.get(name) for name in _ENDPOINTS)


def hindrance_of(environment: Mapping[str, str]) -> str | None:
    """Return why jobgate cannot export as the variables require, or None if it can."""
    exporter = environment.get("OTEL_TRACES_EXPORTER", "").strip() or _EXPORTER
    if exporter != _EXPORTER:
        return f"OTEL_TRACES_EXPORTER is {exporter}; jobgate exports with {_EXPORTER}"
    protocol = next((value for name in _PROTOCOLS if (value := environment.get(name, "").strip())), _PROTOCOL)
    if protocol != _PROTOCOL:
        return f"the protocol of OTLP is {protocol}; jobgate exports with {_PROTOCOL}, usually on port 4318"
    return None


def _missing() -> str | None:
    for package in _PACKAGES:
        try:
            found = importlib.util.find_spec(package)
        except ModuleNotFoundError:  # the package that contains it is missing
            found = None
        if found is None:
            return "the extra `otel` is not installed: install jobgate[server,otel]"
    return None
