"""Clients of gateway processes, and waits for what the processes report."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from tests.crash.stories import Client
from tests.support.clusters.kube import KubeClient
from tests.support.gateways.process import GatewayProcess
from tests.support.waiting import until

PATIENCE = 240.0
_LEASE = "SELECT epoch, holder FROM leases WHERE name = 'controller'"


@asynccontextmanager
async def client_of(gateway: GatewayProcess, api: KubeClient, namespace: str) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as http:
        yield Client(http=http, api=api, namespace=namespace)


async def until_ready(http: httpx2.AsyncClient, status: int = 200, word: str = "") -> str:
    """Wait until `/readyz?verbose` has this status and contains this word, and return its text."""

    async def readiness() -> tuple[int, str]:
        answer = await http.get("/readyz?verbose")
        return answer.status_code, answer.text

    _, text = await until(
        readiness,
        lambda found: found[0] == status and word in found[1],
        what=f"/readyz has {status} {word}",
        within=PATIENCE,
    )
    return text


async def until_held(db: Any, pid: int) -> int:
    """Wait until this process holds the lease, and return its epoch."""
    lease = await until(
        lambda: db.fetchrow(_LEASE),
        lambda lease: f"-{pid}-" in lease["holder"],
        what=f"{pid} has the lease",
        within=PATIENCE,
    )
    return int(lease["epoch"])
