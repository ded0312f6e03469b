"""A load balancer inside a test: round robin over the processes that were ready at their last health check."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count

import httpx2

from tests.support.waiting import until

# A process that does not answer in this time is not ready. With a short one, a busy machine has no ready process.
CHECK_SECONDS = 10.0


@dataclass(slots=True, eq=False)
class Endpoint:
    """A process behind the balancer, with the connections to it. No request delays a check, which has its own."""

    url: str
    client: httpx2.AsyncClient
    checks: httpx2.AsyncClient
    is_ready: bool = False

    async def check(self) -> None:
        try:
            self.is_ready = (await self.checks.get("/readyz")).status_code == 200
        except httpx2.TransportError:
            self.is_ready = False


class Balancer:
    """Chooses a process for each request. It repeats no request, so each one that a process loses is seen."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._endpoints = endpoints
        self._turns = count()

    def choose(self) -> httpx2.AsyncClient:
        """Return the client of the next ready process; of the next process if none is ready, as balancers do."""
        among = [endpoint for endpoint in self._endpoints if endpoint.is_ready] or self._endpoints
        return among[next(self._turns) % len(among)].client

    async def until_ready(self, *urls: str) -> None:
        """Wait until exactly these processes are chosen."""
        await until(
            lambda: {endpoint.url for endpoint in self._endpoints if endpoint.is_ready},
            lambda ready: ready == set(urls),
            what=f"ready are {urls}",
            within=120,
        )


@asynccontextmanager
async def balancer(urls: Sequence[str], *, check_every: float) -> AsyncIterator[Balancer]:
    """Check the readiness of the processes at these URLs during the block, with this many seconds between checks."""
    async with AsyncExitStack() as stack:

        async def connect(url: str, timeout: float) -> httpx2.AsyncClient:
            # A request that is chosen for a process is sent at once: it waits for no connection.
            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
            return await stack.enter_async_context(httpx2.AsyncClient(base_url=url, timeout=timeout, limits=limits))

        endpoints = [Endpoint(url, await connect(url, 60), await connect(url, CHECK_SECONDS)) for url in urls]

        async def check(endpoint: Endpoint) -> None:
            while True:
                await endpoint.check()
                await asyncio.sleep(check_every)

        async with asyncio.TaskGroup() as group:
            checks = [group.create_task(check(endpoint)) for endpoint in endpoints]
            found = Balancer(endpoints)
            await found.until_ready(*urls)
            yield found
            for task in checks:
                task.cancel()
