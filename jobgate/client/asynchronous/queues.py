"""Reads the queues of Kueue."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from jobgate.client.asynchronous.pages import rows_of
from jobgate.client.calls import QueueCalls
from jobgate.client.types import JobQueue, Kueue

if TYPE_CHECKING:
    from jobgate.client.asynchronous.client import AsyncClient


class AsyncQueues:
    """The queues that the user may see: their quota, and the jobs that wait in them."""

    def __init__(self, client: "AsyncClient", namespace: str) -> None:
        self._client = client
        self._calls = QueueCalls(namespace=namespace)

    async def get(self, name: str, *, namespace: str | None = None) -> JobQueue:
        """Return a queue with the first 100 jobs that wait in it."""
        return await self._client.send(self._calls.get(name, namespace))

    async def list(self, *, namespace: str | None = None) -> AsyncIterator[JobQueue]:
        """Yield the queues of a namespace by name, or of all namespaces for the namespace `*`."""
        async for queue in rows_of(self._client, self._calls.page(namespace)):
            yield queue

    async def kueue(self) -> Kueue:
        """Return what the gateway knows of Kueue: whether it can list queues, and otherwise why not."""
        return (await self._client.send(self._calls.page(None, page_size=1))).kueue
