"""Bounds how many logs are read from a node at once, over all jobs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

from app.k8s.errors import KubeError

AT_ONCE: Final = 10
LONGEST_WAIT: Final = 5.0  # seconds; the wait holds back the next decision on its job


class NoSlot(KubeError):  # noqa: N818 - a node that is busy, not a fault
    """Other logs of the node were read all the time. The next try may succeed."""


class NodeSlots:
    """Lets AT_ONCE blocks for a node run at once.

    A node that many jobs ask for logs at the same time otherwise answers none of them in time, and is asked again.
    """

    def __init__(self) -> None:
        # A semaphore lives as long as a block uses or awaits it, so past nodes take no memory.
        self._slots: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def slot(self, node: str) -> AsyncIterator[None]:
        """Run the block when fewer than AT_ONCE others run for this node.

        Raises:
            NoSlot: this took longer than LONGEST_WAIT.
        """
        slots = self._slots.setdefault(node, asyncio.Semaphore(AT_ONCE))
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                await slots.acquire()
        except TimeoutError:
            raise NoSlot(f"{AT_ONCE} other logs of node {node} were read for {LONGEST_WAIT:g} s") from None
        try:
            yield
        finally:
            slots.release()
