"""Requests and streams over one aiohttp session, with explicit timeouts, as KubeErrors when they fail."""

import io
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Protocol, Self

import aiohttp
import yarl

from app.cancellation import cancellation_first
from app.k8s.answers import error_from_answer
from app.k8s.errors import AmbiguousResult, KubeUnauthorized, SilentStream, Unreachable

READ_BUFFER = 2**21  # etcd holds objects up to 1.5 MiB; aiohttp's own buffer would cut their lines
KEEPALIVE = 90.0  # longer than the pauses of a quiet controller; the API server keeps idle connections for 3 min
LARGE_BODY = 2**20  # bytes; more than this aiohttp wants to send in pieces
MAX_ERROR = 2**20  # bytes read of an answer that is an error
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

Params = Mapping[str, str]


class ClusterCredentials(Protocol):
    """Who we are, asked before every request."""

    async def authorization(self) -> str | None:
        """The Authorization header, refreshed when it is due."""
        ...

    async def renew(self) -> bool:
        """Fetches new credentials because the present ones were refused; whether there are any."""
        ...


class Anonymous:
    """No credentials, or a client certificate, which the TLS context carries."""

    async def authorization(self) -> str | None:
        return None

    async def renew(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEndpoint:
    """Where a cluster is and how to speak with it."""

    url: str
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: str | None = None
    credentials: ClusterCredentials = field(default_factory=Anonymous)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportLimits:
    """Timeouts in seconds, and how many connections may be open at once."""

    connect: float = 5.0
    request: float = 30.0
    listing: float = 60.0
    connections: int = 100


class Transport:
    """One session to one cluster."""

    def __init__(self, endpoint: ClusterEndpoint, limits: TransportLimits) -> None:
        self._endpoint = endpoint
        self.limits = limits
        self._base = endpoint.url.rstrip("/")
        self.connections = 0  # opened so far: each may have led to another server than the one before
        host = yarl.URL(self._base).host
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=limits.connections,
                ssl=endpoint.tls if endpoint.tls is not None else True,
                keepalive_timeout=KEEPALIVE,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
            # As in Go, a proxy named by the environment is not asked the way to this machine itself.
            trust_env=host not in LOOPBACK,
            trace_configs=[self._counting()],
        )

    def _counting(self) -> aiohttp.TraceConfig:
        tracing = aiohttp.TraceConfig()

        async def count(*_: object) -> None:
            self.connections += 1

        tracing.on_connection_create_end.append(count)
        return tracing

    async def close(self) -> None:
        await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def request(
        self,
        method: str,
        path: str,
        params: Params | None = None,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout: float | None = None,  # noqa: ASYNC109 - aiohttp's timeout tells a refused connection from a lost answer
        headers: Mapping[str, str] | None = None,
        most: int | None = None,
    ) -> bytes:
        """Return the body, or its first `most` bytes. A status of 300 or more raises KubeStatusError."""
        limit = aiohttp.ClientTimeout(total=timeout or self.limits.request, sock_connect=self.limits.connect)
        async with self._answer(method, path, params, limit, body, content_type, headers) as response:
            return await response.read() if most is None else await read_beginning(response, most)

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        params: Params | None = None,
        *,
        idle: float,
        total: float | None = None,
        buffer: int = READ_BUFFER,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The answer in pieces as they come; SilentStream after `idle` seconds without any.

        Reading from the cluster pauses while twice `buffer` bytes wait for the caller.
        """
        limit = aiohttp.ClientTimeout(total=total, sock_connect=self.limits.connect, sock_read=idle)
        async with self._answer("GET", path, params, limit, buffer=buffer) as response:
            yield response.content.iter_any()

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        params: Params | None,
        limit: aiohttp.ClientTimeout,
        body: bytes | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        buffer: int = READ_BUFFER,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        what = f"{method} {self._base}{path}"
        try:
            send = partial(
                self._send_once,
                method,
                path,
                params,
                limit,
                body,
                {"Content-Type": content_type, **(headers or {})},
                buffer,
            )
            with cancellation_first():
                async with await self._send(send) as response:
                    try:
                        yield response
                    finally:
                        _abort_unless_read(response)
        except aiohttp.SocketTimeoutError as error:
            raise SilentStream(f"{what}: nothing came for {limit.sock_read} s") from error
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            raise Unreachable(f"{what}: {_words(error)}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            lost = Unreachable if method == "GET" else AmbiguousResult
            raise lost(f"{what}: {_words(error)}") from error

    async def _send(self, send: Callable[[], Awaitable[aiohttp.ClientResponse]]) -> aiohttp.ClientResponse:
        """The answer, asked for a second time with new credentials when the first ones were refused."""
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
        body: bytes | None,
        own: Mapping[str, str],
        buffer: int,
    ) -> aiohttp.ClientResponse:
        # Compression would cost the API server more processor time than it saves a cluster's own network.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "jobgate", **own}
        authorization = await self._endpoint.credentials.authorization()
        if authorization:
            headers["Authorization"] = authorization
        if body is None:
            del headers["Content-Type"]
        url = yarl.URL(self._base + path, encoded=True)
        response = await self._session.request(
            method,
            url.update_query(params) if params else url,
            data=io.BytesIO(body) if body is not None and len(body) > LARGE_BODY else body,
            headers=headers,
            timeout=limit,
            proxy=self._endpoint.proxy,
            server_hostname=self._endpoint.server_name,
            allow_redirects=False,
            read_bufsize=buffer,
        )
        if response.status < 300:
            return response
        async with response:
            beginning = await read_beginning(response, MAX_ERROR)
            _abort_unless_read(response)
            raise error_from_answer(response.status, beginning, response.headers)


async def read_beginning(response: aiohttp.ClientResponse, most: int) -> bytes:
    """The first `most` bytes of an answer, or all of a shorter one."""
    found = bytearray()
    while len(found) < most and (piece := await response.content.read(most - len(found))):
        found += piece
    return bytes(found)


def _abort_unless_read(response: aiohttp.ClientResponse) -> None:
    """Close the connection of an answer that has not been read to its end, such as a watch, at once.

    A TLS connection otherwise waits up to 30 s for the server to say goodbye. A frozen server never does, and the
    socket outlives its event loop.
    """
    if (connection := response.connection) is not None and connection.transport is not None:
        connection.transport.abort()


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
