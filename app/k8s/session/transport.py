"""Requests and streams over one aiohttp session. Each has a timeout, and each failure becomes a KubeError."""

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from math import inf
from types import SimpleNamespace
from typing import Protocol

import aiohttp
import yarl

from app.base.cancellation import CancellationFirst
from app.k8s.errors import AmbiguousResult, KubeUnauthorized, SilentStream, Unreachable
from app.k8s.session.answers import error_from_answer, warning_text
from app.k8s.session.latency import CallTimes
from app.k8s.session.limits import TransportLimits
from app.k8s.session.spans import request_span
from app.telemetry import trace_context
from app.telemetry.tracing import Span

READ_BUFFER = 2**21  # bytes; etcd stores objects up to 1.5 MiB, and aiohttp's default buffer is smaller
KEEPALIVE = 90.0  # seconds; longer than a quiet controller pauses, shorter than the API server's 3 min
LARGE_BODY = 2**20  # bytes; aiohttp warns if it gets a larger body in one piece
MAX_ERROR = 2**20  # bytes read of an error answer
# The verbs of Kubernetes, as audit logs and RBAC name them. Lists, watches and logs are GET requests too: callers name
# their verb.
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

Params = Mapping[str, str]


class ClusterCredentials(Protocol):
    """The credentials of the client, which every request reads."""

    async def authorization(self) -> str | None:
        """Return the Authorization header, refreshed if it is about to expire."""
        ...

    async def renew(self) -> bool:
        """Fetch new credentials after a 401 of the API server. Return whether they differ from the refused ones."""
        ...


class Anonymous:
    """Credentials without an Authorization header: the client is anonymous, or its TLS certificate identifies it."""

    async def authorization(self) -> str | None:
        return None

    async def renew(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEndpoint:
    """The address of a cluster, and how to connect to it."""

    url: str
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    credentials: ClusterCredentials = field(default_factory=Anonymous)


class Transport:
    """A session with one cluster."""

    def __init__(self, endpoint: ClusterEndpoint, limits: TransportLimits) -> None:
        self._endpoint = endpoint
        self.limits = limits
        self._base = endpoint.url.rstrip("/")
        self.connections = 0  # opened so far; each may reach another server
        self.call_times = CallTimes()
        host = yarl.URL(self._base).host
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=limits.connections,
                ssl=endpoint.tls if endpoint.tls is not None else True,
                keepalive_timeout=KEEPALIVE,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
            # As in Go, a proxy of the environment is not used for loopback addresses.
            trust_env=host not in LOOPBACK,
            trace_configs=[self._tracing()],
        )

    def _tracing(self) -> aiohttp.TraceConfig:
        tracing = aiohttp.TraceConfig()

        async def count(*_: object) -> None:
            self.connections += 1

        tracing.on_connection_create_end.append(count)
        # aiohttp calls these before it writes the headers and each part of the body.
        tracing.on_request_headers_sent.append(_check_deadline)
        tracing.on_request_chunk_sent.append(_check_deadline)
        return tracing

    async def close(self) -> None:
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        params: Params | None = None,
        *,
        body: bytes | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - aiohttp's timeout distinguishes a refused connection from a lost answer
        headers: Mapping[str, str] | None = None,
        most: int | None = None,
        verb: str | None = None,
    ) -> bytes:
        """Return the body, or its first `most` bytes. A status of 300 or more raises KubeStatusError.

        `verb` is that of the metrics; without it, it follows from the method.
        """
        found, _ = await self._call(method, path, params, body, timeout=timeout, headers=headers, most=most, verb=verb)
        return found

    async def post(
        self,
        path: str,
        params: Params,
        body: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - as in `request`
    ) -> tuple[bytes, list[str]]:
        """Send a POST. Return the body of the answer and the warnings of the server; raise errors as `request` does."""
        return await self._call("POST", path, params, body, timeout=timeout)

    async def _call(
        self,
        method: str,
        path: str,
        params: Params | None,
        body: bytes | None,
        *,
        timeout: float | None,  # noqa: ASYNC109 - as in `request`
        headers: Mapping[str, str] | None = None,
        most: int | None = None,
        verb: str | None = None,
    ) -> tuple[bytes, list[str]]:
        """Return the body of the answer, or its first `most` bytes, and the warnings of the server."""
        limit = aiohttp.ClientTimeout(total=timeout or self.limits.request, sock_connect=self.limits.connect)
        with self.call_times.measure(verb or VERBS[method]) as call:
            async with self._answer(method, path, params, limit, body, headers) as response:
                found = await response.read() if most is None else await read_beginning(response, most)
                call.status = response.status
                return found, [warning_text(header) for header in response.headers.getall("Warning", ())]

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        params: Params | None = None,
        *,
        verb: str,
        idle: float,
        total: float | None = None,
        buffer: int = READ_BUFFER,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read an answer in pieces as they arrive. Raises SilentStream after `idle` seconds without one.

        Reading pauses while twice `buffer` bytes wait for the caller.
        """
        limit = aiohttp.ClientTimeout(total=total, sock_connect=self.limits.connect, sock_read=idle)
        async with AsyncExitStack() as stack:
            # Only until the answer begins: a watch lasts minutes on purpose.
            with self.call_times.measure(verb, is_stream=True) as call:
                answer = self._answer("GET", path, params, limit, buffer=buffer)
                response = await stack.enter_async_context(answer)
                call.status = response.status
            yield response.content.iter_any()

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        params: Params | None,
        limit: aiohttp.ClientTimeout,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        buffer: int = READ_BUFFER,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        what = f"{method} {self._base}{path}"
        deadline = inf if limit.total is None else asyncio.get_running_loop().time() + limit.total
        try:
            send = partial(
                self._send_once,
                method,
                path,
                params,
                limit,
                deadline,
                body,
                {"Content-Type": "application/json", **(headers or {})},
                buffer,
            )
            with CancellationFirst():
                async with await self._send(send) as response:
                    try:
                        yield response
                    finally:
                        _abort_unless_read(response)
        # From special to general: all of these are a ClientError.
        except aiohttp.SocketTimeoutError as error:
            raise SilentStream(f"{what}: nothing came for {limit.sock_read} s") from error
        # Without a connection nothing was sent, so not even a write is ambiguous.
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            raise Unreachable(f"{what}: {_words(error)}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            lost = Unreachable if method == "GET" else AmbiguousResult
            raise lost(f"{what}: {_words(error)}") from error

    async def _send(self, send: Callable[[], Awaitable[aiohttp.ClientResponse]]) -> aiohttp.ClientResponse:
        """Send a request, and repeat it once with new credentials if the first ones were refused."""
        try:
            return await send()
        except KubeUnauthorized:
            if not await self._endpoint.credentials.renew():
                raise
        return await send()

    async def _send_once(
        self,
        method: str,
        path: str,
        params: Params | None,
        limit: aiohttp.ClientTimeout,
        deadline: float,
        body: bytes | None,
        own: Mapping[str, str],
        buffer: int,
    ) -> aiohttp.ClientResponse:
        # Compression costs the API server more processor time than it saves on the network of a cluster.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "jobgate", **own}
        authorization = await self._endpoint.credentials.authorization()
        if authorization:
            headers["Authorization"] = authorization
        if body is None:
            del headers["Content-Type"]
        # `KubeResource.path` has escaped the names.
        url = yarl.URL(self._base + path, encoded=True)
        with self._span_of(method, path) as span:
            response = await self._session.request(
                method,
                url.update_query(params) if params else url,
                data=io.BytesIO(body) if body is not None and len(body) > LARGE_BODY else body,
                headers=headers if span is None else headers | _trace_headers(span),
                timeout=limit,
                trace_request_ctx=deadline,
                proxy=self._endpoint.proxy,
                server_hostname=self._endpoint.server_name,
                # A redirect would send the token to another server.
                allow_redirects=False,
                read_bufsize=buffer,
            )
            if span is not None:
                span.note({"http.response.status_code": response.status})
                if response.status >= 400:
                    span.fail(str(response.status))
        if response.status < 300:
            return response
        async with response:
            beginning = await read_beginning(response, MAX_ERROR)
            _abort_unless_read(response)
            raise error_from_answer(response.status, beginning, response.headers)

    def _span_of(self, method: str, path: str) -> AbstractContextManager[Span | None]:
        """Return the span of a request until its answer begins. Lists and watches of the mirror belong to no trace."""
        return nullcontext() if trace_context.current() is None else request_span(method, self._base, path)


async def _check_deadline(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
    """Check that no part of a request is written after its deadline.

    A process that was frozen runs its callbacks before its timers: it would send a write that waited for credentials or
    for a connection, although another controller has acted meanwhile. aiohttp's timeout also begins anew with each
    attempt.

    Raises:
        TimeoutError: the deadline has passed.
    """
    if asyncio.get_running_loop().time() >= context.trace_request_ctx:
        raise TimeoutError("the request was not sent within its timeout")


def _trace_headers(span: Span) -> dict[str, str]:
    return {} if span.trace is None else span.trace.headers()


async def read_beginning(response: aiohttp.ClientResponse, most: int) -> bytes:
    """Read the first `most` bytes of an answer."""
    found = bytearray()
    while len(found) < most and (piece := await response.content.read(most - len(found))):
        found += piece
    return bytes(found)


def _abort_unless_read(response: aiohttp.ClientResponse) -> None:
    """Close the connection of an answer that has not been read to its end, such as a watch, at once.

    A TLS connection otherwise waits up to 30 s for the close_notify of the server. A frozen server never does, and the
    socket outlives its event loop.
    """
    if (connection := response.connection) is not None and connection.transport is not None:
        connection.transport.abort()


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
