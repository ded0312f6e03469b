"""Reads the queues of Kueue.

`make openapi` generates this module from its asynchronous counterpart.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgate.client.calls import QueueCalls
from jobgate.client.synchronous.pages import rows_of
from jobgate.client.types import JobQueue, Kueue

if TYPE_CHECKING:
    from jobgate.client.synchronous.client import Client


class Queues:
    """The queues that the user may see: their quota, and the jobs that wait in them."""

    def __init__(self, client: "Client", namespace: str) -> None:
        self._client = client
        self._calls = QueueCalls(namespace=namespace)

    def get(self, name: str, *, namespace: str | None = None) -> JobQueue:
        """Return a queue with the first 100 jobs that wait in it."""
        return self._client.send(self._calls.get(name, namespace))

    def list(self, *, namespace: str | None = None) -> Iterator[JobQueue]:
        """Yield the queues of a namespace by name, or of all namespaces for the namespace `*`."""
        for queue in rows_of(self._client, self._calls.page(namespace)):
            yield queue

    def kueue(self) -> Kueue:
        """Return what the gateway knows of Kueue: whether it can list queues, and otherwise why not."""
        return (self._client.send(self._calls.page(None, page_size=1))).kueue
