"""A collector of OpenTelemetry on loopback: it receives spans over OTLP (HTTP, protobuf), and keeps them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from typing_extensions import override


@dataclass(frozen=True, kw_only=True)
class ReceivedSpan:
    """A span with its ids in hexadecimal. `kind` is the number of the protocol; `links` are trace and span ids."""

    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    state: str
    links: list[tuple[str, str]]
    attributes: dict[str, Any]
    resource: dict[str, Any]
    failed: bool
    began: int
    ended: int

    @property
    def process(self) -> str:
        return str(self.resource["jobgate.process"])


@dataclass
class Collector:
    """The received spans."""

    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)

    def named(self, name: str, trace_id: str) -> list[ReceivedSpan]:
        return [span for span in self.spans if (span.name, span.trace_id) == (name, trace_id)]

    def receive(self, body: bytes) -> None:
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            resource = _values(group.resource.attributes)
            for scope in group.scope_spans:
                self.spans += [_span(span, resource) for span in scope.spans]


def _span(span: Any, resource: dict[str, Any]) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        kind=span.kind,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        state=span.trace_state,
        links=[(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        attributes=_values(span.attributes),
        resource=resource,
        failed=span.status.code == span.status.STATUS_CODE_ERROR,
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in attributes}


@contextmanager
def running_collector() -> Iterator[Collector]:
    """Run a collector during the block."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.receive(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        @override
        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    collector.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield collector
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
