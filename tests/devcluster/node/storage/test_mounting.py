"""The refresh of the volumes of a pod."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from devcluster.errors import StatusError
from devcluster.node.context import PodContext
from devcluster.node.storage.mounting import refresh_volumes

TOKEN = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
POD = {
    "metadata": {"name": "a", "namespace": "going", "uid": "1"},
    "spec": {"serviceAccountName": "default", "volumes": [{"name": "access", "projected": {"sources": [TOKEN]}}]},
}
ENOUGH = 3


class Refusing:
    """An API server whose namespace is going: it gives no more tokens."""

    def __init__(self) -> None:
        self.asked = 0
        self.often = asyncio.Event()

    async def post(self, _: str, __: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        if self.asked == ENOUGH:
            self.often.set()
        raise StatusError(403, "Forbidden", "the namespace is being terminated")


async def test_refresh_continues_after_a_refused_token() -> None:
    client = Refusing()
    node = SimpleNamespace(client=client, settings=SimpleNamespace(configmap_refresh=0.001))
    context = cast(PodContext, SimpleNamespace(node=node, pod=POD))
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        refreshing = group.create_task(refresh_volumes(context))
        await client.often.wait()
        refreshing.cancel()
    assert refreshing.cancelled()
