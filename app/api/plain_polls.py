"""Answers plain polls in one step. The layers of middleware and the classes of requests and responses cost more.

    plain poll ─▶ caller ─▶ access ─▶ current representation ─▶ 200 or 304, with request id and metrics
    any other request ─▶ the layers of middleware, which give the same answers

A plain poll is a GET of a job or of its status by name, without a query, a body or a preference.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeAlias

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.bodies import JSON
from app.api.conditional import unchanged
from app.api.dependencies import Api, require_in_namespace
from app.api.errors import internal_problem, problem_of, shutdown_problem
from app.api.fast_path import JOB_PATH, JOB_ROUTE, STATUS_ROUTE
from app.api.job_views import Representation
from app.api.metrics import HttpMetrics
from app.api.middleware import identifying, request_id_of
from app.api.request_telemetry import begin_request
from app.api.responses import polled_headers
from app.domain.errors import DomainError
from app.services.access import Verb
from app.services.reading import Address
from app.telemetry.log_fields import note_actor

# Fields of requests that wait, that have a body, or that need the answer of another layer.
_NOT_PLAIN: Final = frozenset({b"prefer", b"content-length", b"transfer-encoding", b"expect"})
_CONTENT_TYPE: Final = (b"content-type", JSON.encode())

_Answer: TypeAlias = tuple[int, list[tuple[bytes, bytes]], bytes]

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _PlainPoll:
    """What a plain poll asks for. Of a repeated field, `headers` has the first value, as the layers use it."""

    address: Address
    representation: Representation
    headers: Mapping[bytes, bytes]

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


def _plain_poll(scope: Scope) -> _PlainPoll | None:
    """Return what the request asks for if it is a plain poll."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"]:
        return None
    match = JOB_PATH.fullmatch(scope["path"])
    if match is None or match["name"] is None:
        return None
    headers = dict(reversed(scope["headers"]))
    if not _NOT_PLAIN.isdisjoint(headers):
        return None
    representation = Representation.STATUS if match["status"] else Representation.WHOLE
    return _PlainPoll(Address(namespace=match["namespace"], name=match["name"]), representation, headers)


class PlainPolls:
    """Middleware that answers plain polls and passes all other requests to the layers.

    It replaces those between compression and the fast path. It must not be installed if one of them checks the origin
    of requests.
    """

    def __init__(self, app: ASGIApp, api: Api, metrics: HttpMetrics) -> None:
        self._app = app
        self._api = api
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        poll = _plain_poll(scope)
        if poll is None:
            await self._app(scope, receive, send)
            return
        route = STATUS_ROUTE if poll.representation is Representation.STATUS else JOB_ROUTE
        scope["route"] = route
        request_id = request_id_of(scope)
        status: int = HTTPStatus.INTERNAL_SERVER_ERROR  # of a request that raises before its answer starts
        began = time.perf_counter()
        try:
            try:
                status, headers, body = await self._answer(poll)
            except DomainError as error:
                problem = problem_of(error)
                status, headers, body = problem.status_code, problem.raw_headers, bytes(problem.body)
            except asyncio.CancelledError:  # as in the layers
                problem = shutdown_problem()
                status, headers, body = problem.status_code, problem.raw_headers, bytes(problem.body)
            except Exception:
                begin_request(scope).request_id = request_id.decode()
                log.exception("request.failed", method="GET", path=scope["path"])
                problem = internal_problem()
                headers, body = problem.raw_headers, bytes(problem.body)
            headers = [*headers, *identifying(request_id)]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        finally:
            self._metrics.observe("GET", route.path, status, time.perf_counter() - began)

    async def _answer(self, poll: _PlainPoll) -> _Answer:
        services = self._api.services
        principal = await services.access.authenticate(poll.header(b"authorization"))
        note_actor(principal.name)
        require_in_namespace(services.namespaces, principal, Verb.READ, poll.address.namespace)
        rendered = await self._api.job_views.read(poll.address, poll.representation)
        is_known = unchanged(poll.header(b"if-none-match"), rendered.tag)
        shared = polled_headers(await services.freshness.read())
        headers = [*shared, (b"etag", rendered.tag.encode("latin-1"))]
        if is_known:
            return HTTPStatus.NOT_MODIFIED, headers, b""
        body = rendered.body
        headers += ((b"content-length", b"%d" % len(body)), _CONTENT_TYPE)
        return HTTPStatus.OK, headers, body
