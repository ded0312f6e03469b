"""Composes the process that keeps whole logs."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from app.log_store import open_store
from app.loops.logs.context import TRANSACTIONS_AT_ONCE
from app.loops.logs.keeper import LogKeeper
from app.running.connections import Connections, open_database
from app.settings import Settings

# To PostgreSQL. Three are left for the announcement of the process and for upkeep.
_CONNECTIONS: Final = TRANSACTIONS_AT_ONCE + 3


@asynccontextmanager
async def log_keeper(settings: Settings, opened: Connections) -> AsyncIterator[LogKeeper]:
    """Yield what keeps logs, which does not run yet. It has its own pool, so that it never delays requests."""
    assert opened.api is not None
    async with AsyncExitStack() as stack:
        db = await open_database(
            stack,
            opened.db.url,
            pool_size=_CONNECTIONS,
            min_size=0,
            timeouts=settings.database_timeouts(),
            name="logs",
        )
        yield LogKeeper(
            opened.api,
            db,
            open_store(settings.log_store),
            opened.clock,
            installation=str(opened.installation.id),
            namespaces=settings.namespaces,
            limits=settings.kept_logs(),
            retention=settings.keeping().logs,
        )
