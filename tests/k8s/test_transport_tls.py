"""Leaving a TLS stream whose server does not answer, over a real socket."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from app.k8s.errors import KubeServerError
from app.k8s.session.limits import TransportLimits
from app.k8s.session.transport import MAX_ERROR, ClusterEndpoint, Transport
from devcluster import clock
from devcluster.certificates import Certificates
from tests.support.clusters.kube import Cluster, connect

DEADLINE = 20.0  # seconds; less than the 30 s for which asyncio waits for a TLS goodbye
ENDLESS_ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 10000000\r\n\r\n" + b"x" * MAX_ERROR
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}\n\r\n"

Leave = Callable[[str, ssl.SSLContext], Awaitable[None]]


@asynccontextmanager
async def transport_to(url: str, trust: ssl.SSLContext) -> AsyncIterator[Transport]:
    transport = Transport(ClusterEndpoint(url=url, tls=trust), TransportLimits())
    try:
        yield transport
    finally:
        await transport.close()


async def leave_stream(url: str, trust: ssl.SSLContext) -> None:
    async with (
        transport_to(url, trust) as transport,
        transport.stream("/watch", verb="watch", idle=DEADLINE) as pieces,
    ):
        assert await anext(pieces) == b"{}\n"


async def leave_error(url: str, trust: ssl.SSLContext) -> None:
    async with transport_to(url, trust) as transport:
        with pytest.raises(KubeServerError):
            await transport.request("GET", "/error")


async def leave_watch_of_tests(url: str, trust: ssl.SSLContext) -> None:
    cluster = Cluster(kubeconfig=Path("unused"), url=url, token="token", tls=trust, real=False)
    async with connect(cluster) as api, api.watch("/watch") as watch:
        assert await watch.next() == {}


@asynccontextmanager
async def silent_server(certificates: Certificates, answer: bytes) -> AsyncIterator[tuple[str, asyncio.Task[None]]]:
    """A server that answers one request and then does nothing but see its client hang up."""

    def serve() -> None:
        accepted, _ = listener.accept()
        with certificates.server_context().wrap_socket(accepted, server_side=True) as stream:
            stream.settimeout(DEADLINE)
            stream.recv(65536)
            stream.sendall(answer)
            with socket.socket(fileno=socket.dup(stream.fileno())) as raw:
                raw.settimeout(DEADLINE)
                with suppress(ConnectionResetError):
                    while raw.recv(65536):  # reads TLS records, a goodbye among them, without answering
                        pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.TaskGroup() as group:
            hung_up = group.create_task(asyncio.to_thread(serve))
            yield f"https://127.0.0.1:{listener.getsockname()[1]}", hung_up


@pytest.mark.parametrize(
    ("leave", "answer"), [(leave_stream, ANSWER), (leave_error, ENDLESS_ERROR), (leave_watch_of_tests, ANSWER)]
)
async def test_leaving_an_answer_aborts_the_connection_without_waiting_for_the_server(
    leave: Leave, answer: bytes, tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path, "127.0.0.1")
    certificates.renew(clock.now())
    trust = ssl.create_default_context(cadata=certificates.authority_pem().decode())
    async with silent_server(certificates, answer) as (url, hung_up):
        await leave(url, trust)
        await hung_up
