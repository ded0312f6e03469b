"""Opens the connections that every role needs: to the database, and to the cluster if one is configured."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import structlog

from app.base.clock import InstallationClock
from app.db.feed.publisher import Publisher
from app.db.installation import identity as installation
from app.db.installation.timekeeper import Timekeeper
from app.db.postgres import schema_version
from app.db.postgres.engine import Database
from app.db.postgres.notifications import Listener, Notifier
from app.k8s.api import KubeApi
from app.k8s.connection import connect
from app.k8s.errors import ClusterNotConfigured
from app.settings import ENV_PREFIX, Settings

log = structlog.get_logger(__name__)


class NotPossible(Exception):  # noqa: N818 - a message for the operator
    """The program cannot run. The message is for the operator."""


class NotConfigured(NotPossible):
    """A setting is missing or forbidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The open connections of a process. `api` is None in an API process without a configured cluster."""

    clock: InstallationClock
    timekeeper: Timekeeper
    db: Database
    api: KubeApi | None
    listener: Listener
    notifier: Notifier
    publisher: Publisher
    installation: installation.Installation


@asynccontextmanager
async def connections(settings: Settings) -> AsyncIterator[Connections]:
    """Open all connections, and close them in reverse order.

    Raises:
        NotConfigured: a setting is missing, or the database has another schema than this version.
    """
    clock = InstallationClock()
    async with AsyncExitStack() as stack:
        url, api = await _require_connections(settings, stack)
        db = await open_database(
            stack,
            url,
            pool_size=settings.database_pool_size,
            timeouts=settings.database_timeouts(),
            max_kept_jobs=settings.max_kept_jobs,
        )
        async with db.read() as connection:
            if pending := await schema_version.check(connection):
                raise NotConfigured("; ".join(pending))
        timekeeper = Timekeeper(db, clock)
        await timekeeper.start()
        notifier = Notifier(db)
        yield Connections(
            clock=clock,
            timekeeper=timekeeper,
            db=db,
            api=api,
            listener=Listener(url, settings.database_timeouts()),
            notifier=notifier,
            publisher=Publisher(db, notifier),
            installation=await installation.get_or_create(db, uuid4(), clock.now()),
        )


async def open_database(stack: AsyncExitStack, url: str, **options: Any) -> Database:
    """Open a pool of connections, which the stack closes."""
    db = await Database.open(url, **options)
    stack.push_async_callback(db.close)
    return db


async def _require_connections(settings: Settings, stack: AsyncExitStack) -> tuple[str, KubeApi | None]:
    """Return the URL of the database and the cluster. The error names everything that is missing."""
    missing: list[str] = []
    if settings.database_url is None:
        missing.append(f"no database: set {ENV_PREFIX}DATABASE_URL to postgresql://user:password@host/database")
    api: KubeApi | None = None
    try:
        api = await connect_cluster(settings)
    except NotConfigured as error:
        missing.append(str(error))
    if api is not None:
        stack.push_async_callback(api.close)
    if settings.database_url is None or missing:
        raise NotConfigured("; ".join(missing))
    return settings.database_url, api


async def connect_cluster(settings: Settings) -> KubeApi | None:
    """Return the cluster. Without one an API process serves only stored logs; other roles do not start."""
    try:
        limits = settings.cluster_limits()
        return await connect(kubeconfig=settings.kubeconfig, context=settings.kube_context, limits=limits)
    except ClusterNotConfigured as error:
        if settings.role == "api":
            log.warning("cluster.not_configured", error=str(error))
            return None
        raise NotConfigured(f"{error}; {ENV_PREFIX}KUBECONFIG names a kubeconfig") from error
