"""A raw Kubernetes HTTP client for tests: no library between the test and the wire."""

import asyncio
import json
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from yarl import URL

from tests.support.waiting import until

DEADLINE = 90.0  # seconds; generous, because the machine may be busy
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The address of a control plane. `real` is False for the embedded one."""

    kubeconfig: Path
    url: str
    token: str
    tls: ssl.SSLContext | None = field(compare=False)
    real: bool

    @classmethod
    def read(cls, kubeconfig: Path, *, real: bool) -> "Cluster":
        document = yaml.safe_load(kubeconfig.read_text())
        context = next(c["context"] for c in document["contexts"] if c["name"] == document["current-context"])
        cluster = next(c["cluster"] for c in document["clusters"] if c["name"] == context["cluster"])
        user = next(u["user"] for u in document["users"] if u["name"] == context["user"])
        return cls(kubeconfig=kubeconfig, url=cluster["server"], token=user["token"], tls=_tls(cluster), real=real)


def _tls(cluster: dict[str, Any]) -> ssl.SSLContext | None:
    if not cluster["server"].startswith("https"):
        return None
    if "certificate-authority-data" in cluster:
        return ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    return ssl.create_default_context(cafile=cluster.get("certificate-authority"))


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    def ok(self) -> Any:
        assert self.status < 300, f"{self.status}: {self.body}"
        return self.body

    def refused(self, status: int, reason: str) -> str:
        """Check that the answer is a Status with that code and reason, and return its message."""
        assert (self.status, self.body.get("reason")) == (status, reason), f"{self.status}: {self.body}"
        assert self.body["kind"] == "Status"
        assert self.body["status"] == "Failure"
        assert self.body["code"] == status
        return str(self.body["message"])


class Watch:
    """An open watch; `next()` gives one event or fails at its deadline."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self, timeout: float = DEADLINE) -> dict[str, Any]:
        line = await asyncio.wait_for(self.response.content.readline(), timeout)
        assert line, "the watch ended"
        assert line.endswith(b"\n"), f"the watch was cut inside a line: {line!r}"
        event: dict[str, Any] = json.loads(line)
        return event

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async with asyncio.timeout(DEADLINE):
            while not wanted(event := await self.next()):
                pass
        return event

    async def rest(self) -> list[dict[str, Any]]:
        async with asyncio.timeout(DEADLINE):
            return [json.loads(line) async for line in self.response.content]


class KubeClient:
    def __init__(self, cluster: Cluster, session: aiohttp.ClientSession) -> None:
        self.cluster = cluster
        self._session = session

    async def call(
        self, method: str, path: str, body: Any = None, *, content_type: str = "application/json", **params: str
    ) -> Answer:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": content_type} if data is not None else {}
        return await self.request(method, path, data, headers, params)

    async def request(
        self, method: str, path: str, data: bytes | None, headers: Mapping[str, str], params: Mapping[str, str]
    ) -> Answer:
        """Send a request. The path is sent unchanged."""
        url = URL(self.cluster.url + path, encoded=True)
        async with self._session.request(method, url, data=data, headers=headers, params=params) as response:
            raw = await response.read()
            decoded = json.loads(raw) if raw and "json" in response.content_type else raw.decode()
            return Answer(response.status, decoded, dict(response.headers))

    async def get(self, path: str, **params: str) -> Answer:
        return await self.call("GET", path, **params)

    async def post(self, path: str, body: Any, **params: str) -> Answer:
        return await self.call("POST", path, body, **params)

    async def put(self, path: str, body: Any, **params: str) -> Answer:
        return await self.call("PUT", path, body, **params)

    async def patch(self, path: str, body: Any, content_type: str = MERGE, **params: str) -> Answer:
        return await self.call("PATCH", path, body, content_type=content_type, **params)

    async def delete(self, path: str, body: Any = None, **params: str) -> Answer:
        return await self.call("DELETE", path, body, **params)

    @asynccontextmanager
    async def watch(self, path: str, *, accept: str = "application/json", **params: str) -> AsyncIterator[Watch]:
        query = {"watch": "true", "timeoutSeconds": "60", **params}
        headers = {"Accept": accept}
        async with self._session.get(self.cluster.url + path, params=query, headers=headers) as response:
            assert response.status == 200, await response.text()
            try:
                yield Watch(response)
            finally:  # without a TLS goodbye: a busy server answers it after this event loop has been closed
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()

    async def eventually(self, path: str, wanted: Callable[[Any], object], *, within: float = DEADLINE) -> Any:
        """Read until `wanted` accepts the body. A failure contains the last body."""
        answer = await until(
            lambda: self.get(path),
            lambda answer: answer.status == 200 and wanted(answer.body),
            what=f"{path} is as wanted",
            within=within,
        )
        return answer.body

    async def gone(self, path: str, *, within: float = DEADLINE) -> None:
        await until(
            lambda: self.get(path),
            lambda answer: answer.status == 404,
            what=f"{path} is gone",
            within=within,
        )


@asynccontextmanager
async def connect(cluster: Cluster) -> AsyncIterator[KubeClient]:
    connector = aiohttp.TCPConnector(ssl=cluster.tls or True)
    async with aiohttp.ClientSession(
        connector=connector,
        headers={"Authorization": f"Bearer {cluster.token}"},
        timeout=aiohttp.ClientTimeout(total=120, sock_connect=30),
        read_bufsize=2**21,
    ) as session:
        yield KubeClient(cluster, session)
