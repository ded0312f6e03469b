"""What is done for every request: its share, id, client, metrics, log lines and span, and the answer if it fails."""

import asyncio
import random
import re
import time
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Final

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.answers.errors import internal_problem, shutdown_problem
from app.api.layers import request_log
from app.api.layers.answer import OutgoingAnswer
from app.api.layers.envelope import EnvelopeOfErrors
from app.api.layers.representation import treat_as_get
from app.api.metrics import HttpMetrics
from app.fairness.share import begin, release
from app.http_server.forwarding import TrustedProxies
from app.telemetry import log_fields, trace_context, tracing
from app.telemetry.log_fields import RequestFields

REQUEST_ID: Final = b"x-request-id"
# Request ids appear in logs, so ids with other characters are replaced.
_SAFE_ID: Final = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")
# Browsers must not guess the content type of an answer.
_NO_SNIFF: Final = (b"x-content-type-options", b"nosniff")

_NO_SPAN: Final = nullcontext()

log = structlog.get_logger(__name__)


class RequestLayer:
    """The outermost layer. It does what every request needs, and answers one that fails.

    Args:
        access_log: whether each request is written to the log when it ends.
        proxies: whose X-Forwarded-For is believed.
        enveloped: the beginning of the paths whose errors have the envelope of DI-orchestrator.
    """

    def __init__(
        self, app: ASGIApp, *, metrics: HttpMetrics, access_log: bool, proxies: TrustedProxies, enveloped: str
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._access_log = access_log
        self._proxies = proxies
        self._enveloped = enveloped

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        await begin(scope)
        try:
            await self._serve(scope, receive, send)
        finally:
            release()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        method: str = scope["method"]
        scope = treat_as_get(self._with_client(scope))
        request_id = _request_id(scope["headers"])
        log_fields.set_request(RequestFields(request_id.decode()))
        trace_context.set_current(trace_context.from_headers(scope["headers"]))
        answer = OutgoingAnswer(receive, send, ((REQUEST_ID, request_id), _NO_SNIFF))
        error: Exception | None = None
        with request_log.server_span(scope, method) if tracing.is_on() else _NO_SPAN as span:
            try:
                await self._run(scope, answer)
            except Exception as raised:
                error = raised
                raise
            finally:
                status, seconds = answer.status(error), time.perf_counter() - began
                self._metrics.observe(scope["method"], request_log.route_of(scope), status, seconds)
                if span is not None:
                    request_log.complete(span, scope, method, status)
                if self._access_log:
                    request_log.write_line(scope, method, answer, status, seconds)

    async def _run(self, scope: Scope, answer: OutgoingAnswer) -> None:
        """Run the application. Answer a request that fails, and one that is cancelled, unless its answer has begun."""
        send: Send = answer.send
        if scope["path"].startswith(self._enveloped):
            send = EnvelopeOfErrors(send, scope["method"])
        try:
            await self._app(scope, answer.receive, send)
        except asyncio.CancelledError:
            # Only the server cancels a request, when it ends and has waited long enough for open requests.
            if answer.is_started:
                raise
            await shutdown_problem()(scope, answer.receive, send)
        except ClientDisconnect:
            log.debug("request.disconnected", method=scope["method"], path=scope["path"])
        except Exception:
            log.exception("request.failed", method=scope["method"], path=scope["path"])
            if answer.is_started:
                raise  # the server then closes the connection, so that the client sees an incomplete answer
            await internal_problem()(scope, answer.receive, send)

    def _with_client(self, scope: Scope) -> Scope:
        """Return the scope with the client of a trusted proxy in place of the proxy."""
        if not self._proxies.networks or not scope.get("client"):
            return scope
        peer: str = scope["client"][0]
        address = self._proxies.client_of(peer, scope["headers"])
        return scope if address == peer else {**scope, "client": (address, 0)}


def _request_id(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the X-Request-Id of a request, or a generated one if it has none that a log can contain."""
    for name, value in headers:
        if name == REQUEST_ID and _SAFE_ID.fullmatch(value):
            return bytes(value)
    # Not from `secrets`, which asks the system each time: an id only identifies log lines. Forked workers have
    # different ids, because Python seeds the generator again after a fork.
    return b"%016x" % random.getrandbits(64)
