"""Composes the controller, and what removes an installation in its place."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from app.db.postgres.engine import Database
from app.domain.planning import Planner
from app.k8s.api import KubeApi
from app.loops.cache.runtime_servers import PodAccess, PodAddressAccess, PodProxyAccess, RuntimeServers
from app.loops.context import ControllerContext
from app.loops.controller import Controller
from app.loops.leadership.lease import Leadership, lease_timeouts
from app.loops.maintenance.uninstall import uninstall as remove_everything
from app.running.archiving import open_archive
from app.running.connections import Connections, NotConfigured, connections, open_database
from app.settings import ENV_PREFIX, Settings


@asynccontextmanager
async def controller(settings: Settings, opened: Connections, planner: Planner) -> AsyncIterator[Controller]:
    """Yield the controller, which does not run yet. It has its own pools, so that it never waits for requests.

    Raises:
        NotConfigured: a setting is forbidden.
    """
    assert opened.api is not None
    if settings.request_timeout > settings.lease_seconds / 2:
        raise NotConfigured(
            f"{ENV_PREFIX}REQUEST_TIMEOUT ({settings.request_timeout:g} s) may be at most half of "
            f"{ENV_PREFIX}LEASE_SECONDS ({settings.lease_seconds:g} s): no request starts that could outlive the lease"
        )
    async with AsyncExitStack() as stack:
        db = await open_database(
            stack,
            opened.db.url,
            pool_size=settings.controller_pool_size,
            min_size=0,  # it connects when it is first used
            timeouts=settings.controller_database_timeouts(),
            name="controller",
        )
        lease_db = await lease_database(stack, settings, opened)
        access = _pod_access(settings, opened.api)
        stack.push_async_callback(access.close)
        yield Controller(
            ControllerContext(
                api=opened.api,
                db=db,
                lease_db=lease_db,
                listener=opened.listener,
                publisher=opened.publisher,
                clock=opened.clock,
                timekeeper=opened.timekeeper,
                installation_id=opened.installation.id,
                installation_key=opened.installation.key,
                settings=settings.controller(),
                timing=settings.timing(),
                evidence=settings.evidence(),
                planner=planner,
                samples=settings.samples(),
                runtimes=RuntimeServers(access, timeout=settings.request_timeout),
                archive=open_archive(settings, db, opened.installation.id, opened.clock.now),
            )
        )


async def lease_database(stack: AsyncExitStack, settings: Settings, opened: Connections) -> Database:
    """Open the pool on which the lease is acquired and renewed."""
    timeouts = lease_timeouts(settings.lease_seconds)
    return await open_database(stack, opened.db.url, pool_size=1, min_size=0, timeouts=timeouts, name="lease")


def _pod_access(settings: Settings, api: KubeApi) -> PodAccess:
    return PodAddressAccess() if settings.runtime_access == "pod-address" else PodProxyAccess(api)


async def uninstall(settings: Settings) -> Mapping[str, int]:
    """Remove all objects of this installation from the cluster, and count them by kind.

    Raises:
        NotConfigured: a setting is missing, or a controller is running.
        KubeError: the cluster did not answer.
    """
    async with connections(settings) as opened, AsyncExitStack() as stack:
        assert opened.api is not None
        lease_db = await lease_database(stack, settings, opened)
        leadership = Leadership(lease_db, opened.clock, ttl=settings.lease_seconds, renew_every=1.0)
        try:
            async with asyncio.timeout(settings.lease_seconds + 1.0):
                await leadership.acquire()
        except TimeoutError:
            raise NotConfigured("a controller of this installation is running: stop it first") from None
        try:
            async with asyncio.TaskGroup() as group:
                keeper = group.create_task(leadership.keep())
                deleted = await remove_everything(
                    opened.api,
                    leadership,
                    str(opened.installation.id),
                    namespaces=settings.namespaces,
                    system_namespace=settings.system_namespace,
                    request_seconds=settings.request_timeout,
                )
                keeper.cancel()
        finally:
            await leadership.release()
        return deleted
