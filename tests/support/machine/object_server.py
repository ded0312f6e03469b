"""A server with as much of the protocol of S3 as a log store needs, on loopback: it can freeze, and be full."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Literal

from aiohttp import web

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
_LARGEST = 64 * 1024 * 1024  # bytes of an object

Fault = Literal["frozen", "full"]


@dataclass(slots=True, kw_only=True)
class ObjectServer:
    """Objects in memory. While it is frozen it answers nothing, and while it is full it refuses every write."""

    endpoint: str
    objects: dict[str, bytes] = field(default_factory=dict)
    refused: int = 0
    _fault: Fault | None = None
    _thawed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return "s3://bucket/jobgate"

    @property
    def environment(self) -> dict[str, str]:
        return CREDENTIALS | {"AWS_ENDPOINT": self.endpoint, "AWS_ALLOW_HTTP": "true"}

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        """Have the fault during the block. What a frozen server has received takes effect when the block ends."""
        self._fault = fault
        self._thawed.clear()
        try:
            yield
        finally:
            self._fault = None
            self._thawed.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body, name = await request.read(), request.match_info["name"]
        if self._fault is not None:
            self.refused += 1
        if self._fault == "frozen":
            await self._thawed.wait()
        if request.method == "PUT":
            return self._put(name, body)
        if request.method == "POST" and "delete" in request.query:
            return self._delete(re.findall(r"<Key>([^<]*)</Key>", body.decode()))
        if name not in self.objects:
            return web.Response(status=404)
        return _object(self.objects[name])

    def _put(self, name: str, body: bytes) -> web.Response:
        if self._fault == "full":
            return web.Response(status=507, text="<Error><Code>StorageFull</Code></Error>")
        self.objects[name] = body
        return web.Response(headers={"ETag": _tag(body)})

    def _delete(self, names: Sequence[str]) -> web.Response:
        for name in names:
            self.objects.pop(name, None)
        deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
        return web.Response(text=f"<DeleteResult>{deleted}</DeleteResult>", content_type="application/xml")


def _object(data: bytes) -> web.Response:
    headers = {"ETag": _tag(data), "Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT"}
    return web.Response(body=data, headers=headers, content_type="application/octet-stream")


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


@asynccontextmanager
async def object_server() -> AsyncIterator[ObjectServer]:
    server = ObjectServer(endpoint="")
    application = web.Application(client_max_size=_LARGEST)
    application.router.add_route("*", "/bucket{slash:/?}{name:.*}", server.answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.endpoint = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        await runner.cleanup()
