"""What the tests of the cluster's edge share."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from app.k8s.api import KubeApi
from app.k8s.session.limits import TransportLimits
from app.k8s.session.transport import ClusterEndpoint

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
LIMITS = TransportLimits(connect=60.0, request=60.0, listing=60.0)


class ManualClock:
    """A clock that moves when it is told to, or slept on."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds
        await asyncio.sleep(0)


def pod_manifest(name: str, namespace: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "nowhere/none",
                    "resources": {"requests": {"cpu": "1m"}, "limits": {"cpu": "1"}},
                }
            ],
        },
    }


@asynccontextmanager
async def serve(handler: Handler) -> AsyncIterator[str]:
    """The URL of a server whose every path is this handler."""
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def api_of(handler: Handler, limits: TransportLimits = LIMITS) -> AsyncIterator[KubeApi]:
    async with serve(handler) as url, KubeApi(ClusterEndpoint(url=url), limits) as api:
        yield api
