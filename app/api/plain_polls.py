"""Answers plain polls without the application. Its layers, and the classes of requests and responses, cost more.

    plain poll ─▶ caller ─▶ access ─▶ current representation ─▶ 200 or 304, with request id, metrics and access log
    any other request ─▶ the application, which gives the same answers

A plain poll is a GET of a job or of its status by name, without a query, a body or a preference.
"""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Final, NamedTuple

import structlog
from starlette.responses import Response

from app.api.bodies import JSON
from app.api.compression import Compressor, accepts_gzip, joined, knows_coded
from app.api.conditional import coded_tag, unchanged
from app.api.dependencies import Api, require_in_namespace
from app.api.errors import internal_problem, problem_of, shutdown_problem
from app.api.fast_path import JOB_PATH, JOB_ROUTE, STATUS_ROUTE
from app.api.job_views import Representation
from app.api.metrics import HttpMetrics
from app.api.middleware import identifying, request_id_of
from app.api.request_telemetry import note_request, write_line
from app.api.responses import polled_headers
from app.domain.errors import DomainError
from app.fairness.share import identify
from app.http_server.forwarding import NO_PROXIES, TrustedProxies
from app.http_server.shortcuts import Field, Handler, Respond, ShortAnswer, field_lines
from app.services.access import Verb
from app.services.freshness import Freshness
from app.services.reading import Address
from app.telemetry.log_fields import RequestFields, note_actor

# Fields of requests that wait, that have a body, or that need the answer of another layer.
_NOT_PLAIN: Final = frozenset({b"prefer", b"content-length", b"transfer-encoding", b"expect"})
_TARGET: Final = re.compile(JOB_PATH.pattern.encode())
# Bytes. The path of a job is shorter.
_MAX_TARGET: Final = 512
# The targets of recent polls. Clients repeat theirs.
_MAX_TARGETS: Final = 4096
_CONTENT_TYPE: Final = field_lines([(b"content-type", JSON.encode())])
_GZIP: Final = field_lines([(b"content-encoding", b"gzip")])
# `request_id_of` returns only ids without control characters.
_LAST_LINES: Final = field_lines(identifying(b"%b"))
_OK: Final = int(HTTPStatus.OK)
_NOT_MODIFIED: Final = int(HTTPStatus.NOT_MODIFIED)
_FAILED: Final = int(HTTPStatus.INTERNAL_SERVER_ERROR)

log = structlog.get_logger(__name__)


class _Target(NamedTuple):
    """What the target of a plain poll names. `route` is the template of its path."""

    address: Address
    representation: Representation
    route: str


class _PlainPoll(NamedTuple):
    """A plain poll. Of a repeated field, `headers` has the first value, as the layers use it."""

    path: bytes
    target: _Target
    fields: Sequence[Field]
    headers: Mapping[bytes, bytes]
    client: str

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


@lru_cache(_MAX_TARGETS)
def _target(target: bytes) -> _Target | None:
    """Return what the target names if it is the path of a job or of its status."""
    match = _TARGET.fullmatch(target)
    if match is None or match["name"] is None:
        return None
    address = Address(namespace=match["namespace"].decode(), name=match["name"].decode())
    if match["status"]:
        return _Target(address, Representation.STATUS, STATUS_ROUTE.path)
    return _Target(address, Representation.WHOLE, JOB_ROUTE.path)


# All answers between two heartbeats of the controller have the same headers.
@lru_cache(maxsize=4)
def _shared_lines(freshness: Freshness) -> bytes:
    return field_lines(polled_headers(freshness))


class PlainPolls:
    """A shortcut of the HTTP server for plain polls.

    It replaces all layers of middleware and the fast path. It must not be used if one of them checks the origin of
    requests or records spans. `compressor` is given if answers are compressed.
    """

    def __init__(
        self,
        api: Api,
        metrics: HttpMetrics,
        *,
        compressor: Compressor | None = None,
        access_log: bool = False,
        proxies: TrustedProxies = NO_PROXIES,
    ) -> None:
        self._api = api
        self._metrics = metrics
        self._compressor = compressor
        self._access_log = access_log
        self._proxies = proxies

    def __call__(self, method: bytes, target: bytes, fields: Sequence[Field], address: str) -> Handler | None:
        """Return the handler of the request if it is a plain poll."""
        if method != b"GET" or len(target) > _MAX_TARGET:
            return None
        named = _target(target)
        if named is None:
            return None
        headers = dict(reversed(fields))
        if not _NOT_PLAIN.isdisjoint(headers):
            return None
        return partial(self._handle, _PlainPoll(target, named, fields, headers, address))

    async def _handle(self, poll: _PlainPoll, respond: Respond) -> None:
        began = time.perf_counter()
        request_id = request_id_of(poll.fields)
        if self._access_log:
            note_request(RequestFields(request_id.decode()), poll.fields)
        status, size = _FAILED, 0  # of a request that raises before its answer starts
        try:
            answer = await self._answer(poll, request_id)
            status, size = answer.status, len(answer.body)
            await respond(answer)
        finally:
            seconds = time.perf_counter() - began
            self._metrics.observe("GET", poll.target.route, status, seconds)
            if self._access_log:
                write_line(
                    method="GET",
                    route=poll.target.route,
                    path=poll.path.decode(),
                    status=status,
                    seconds=seconds,
                    size=size,
                    client=self._proxies.client_of(poll.client, poll.fields),
                )

    async def _answer(self, poll: _PlainPoll, request_id: bytes) -> ShortAnswer:
        try:
            answer = await self._read(poll, _LAST_LINES % request_id)
        except DomainError as error:
            response = problem_of(error)
        except asyncio.CancelledError:  # as in the layers
            response = shutdown_problem()
        except Exception:
            if not self._access_log:
                note_request(RequestFields(request_id.decode()), poll.fields)
            log.exception("request.failed", method="GET", path=poll.path.decode())
            response = internal_problem()
        else:
            return answer
        return _answer_of(response, request_id)

    async def _read(self, poll: _PlainPoll, last_lines: bytes) -> ShortAnswer:
        services, address = self._api.services, poll.target.address
        principal = await services.access.authenticate(poll.header(b"authorization"))
        note_actor(principal.actor.name, principal.actor.id)
        identify(principal.id)
        require_in_namespace(services.namespaces, principal, Verb.READ, address.namespace)
        rendered = await self._api.job_views.read(address, poll.target.representation)
        is_known = unchanged(poll.header(b"if-none-match"), rendered.tag)
        shared = _shared_lines(await services.freshness.read())
        tag, lines, body = rendered.tag, b"", b""
        if not is_known:
            lines, body = _CONTENT_TYPE, rendered.body
        if self._compressor is not None and b"accept-encoding" in poll.headers:
            tag, coding, body = await self._compressed(self._compressor, poll, tag, body, is_known=is_known)
            lines += coding
        tag_line = b"etag: %b\r\n" % tag.encode("latin-1")
        status = _NOT_MODIFIED if is_known else _OK
        return ShortAnswer(status, b"".join((shared, tag_line, lines, last_lines)), body)

    async def _compressed(
        self, compressor: Compressor, poll: _PlainPoll, tag: str, body: bytes, *, is_known: bool
    ) -> tuple[str, bytes, bytes]:
        """Return the tag, the line of Content-Encoding and the body in the form that the client gets."""
        if is_known:
            needs_coded = knows_coded(tag, joined(poll.fields, b"if-none-match"))
        else:
            needs_coded = len(body) >= compressor.min_bytes
        if not needs_coded or not accepts_gzip(joined(poll.fields, b"accept-encoding")):
            return tag, b"", body
        if is_known:
            return coded_tag(tag), b"", body
        return coded_tag(tag), _GZIP, await compressor.coded(body, keeps=True)


def _answer_of(response: Response, request_id: bytes) -> ShortAnswer:
    """Return the same answer as the response, which is a problem."""
    closes = False
    fields = []
    for name, value in response.raw_headers:
        if name == b"connection":
            closes = True
        elif name != b"content-length":
            fields.append((name, value))
    lines = field_lines([*fields, *identifying(request_id)])
    return ShortAnswer(response.status_code, lines, bytes(response.body), closes)
