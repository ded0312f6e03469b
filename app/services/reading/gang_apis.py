"""Which APIs of PodGroups the cluster serves, for what a process shows of jobs. The controller finds out by itself."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final, TypeAlias

from app.k8s.resources import POD_GROUPS, Discovery

GangApis: TypeAlias = Callable[[], Awaitable[Collection[str] | None]]
"""Returns the versions that the cluster serves; None if they are not known."""

_WAIT: Final = 1.0  # seconds; an answer that shows no PodGroup is better than one that waits for a cluster that is down


async def unknown() -> None:
    """Return that the versions are not known, in a process that does not use the cluster."""


def discover(discovery: Discovery) -> GangApis:
    async def find_served() -> Collection[str] | None:
        try:
            async with asyncio.timeout(_WAIT):
                return await discovery.find_served(POD_GROUPS)
        except TimeoutError:
            return None

    return find_served
