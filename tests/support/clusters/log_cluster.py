"""An API server that has nothing but long logs, in a process of its own: each pod's has the same number of lines.

    python -m tests.support.clusters.log_cluster BYTES

It prints its port, and ends with its standard input.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import JobPhase, ReplicaPhase
from tests.support.gateways.gateway import Gateway

_BLOCK: Final = 64 * 1024
_BEGIN: Final = datetime(2026, 1, 2, tzinfo=UTC)
_NOT_FOUND: Final = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_KUBECONFIG: Final = """
apiVersion: v1
kind: Config
current-context: logs
contexts: [{{name: logs, context: {{cluster: logs, user: logs}}}}]
clusters: [{{name: logs, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: logs, user: {{token: any}}}}]
"""


def _block(number: int) -> bytes:
    """Return a part of a log: lines with times, later than those of the parts before."""
    at = (_BEGIN + timedelta(seconds=number)).strftime("%Y-%m-%dT%H:%M:%S")
    return b"".join(f"{at}.{line:09}Z {'x' * 90}\n".encode() for line in range(_BLOCK // 122))


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, size: int) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            if b"/log?" not in head.split(b"\r\n", 1)[0]:
                writer.write(_NOT_FOUND)
                continue
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
            for number in range(size // _BLOCK):
                block = _block(number)
                writer.write(b"%x\r\n%b\r\n" % (len(block), block))
                await writer.drain()
            writer.write(b"0\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _serve(size: int) -> None:
    server = await asyncio.start_server(lambda reader, writer: _answer(reader, writer, size), "127.0.0.1", 0)
    async with server:
        sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


@asynccontextmanager
async def log_cluster(directory: Path, size: int) -> AsyncIterator[Path]:
    """Run it with logs of this number of bytes, and yield the path of its kubeconfig."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.clusters.log_cluster", str(size)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        kubeconfig = directory / "log-cluster.yaml"
        kubeconfig.write_text(_KUBECONFIG.format(port=int(await process.stdout.readline())))
        yield kubeconfig
    finally:
        process.stdin.close()
        await process.wait()


async def store_running_job(gateway: Gateway, name: str, *, replicas: int) -> None:
    """Store a job whose replicas run, as a controller does."""
    container = ObservedContainer(name="main", state="running", default=True)
    running = [
        Replica(
            key=Rank("worker", rank),
            attempt=Attempt(number=1, pod_uid=str(UUID(int=rank)), phase=ReplicaPhase.RUNNING, containers=(container,)),
        )
        for rank in range(replicas)
    ]
    aggregate = dict.fromkeys(ReplicaPhase, 0) | {ReplicaPhase.RUNNING: replicas}
    uid = (await gateway.submit(name, replicas=replicas))["uid"]
    await gateway.conclude(uid, {"phase": JobPhase.RUNNING, "aggregate": aggregate}, replicas=running)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
