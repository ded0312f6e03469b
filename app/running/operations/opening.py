"""Opens the database for a command that runs beside the gateway."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple
from uuid import UUID, uuid4

from app.base import faultpoints
from app.base.clock import Clock, InstallationClock
from app.db.installation import identity
from app.db.installation.timekeeper import Timekeeper
from app.db.postgres import schema_version
from app.db.postgres.engine import Database
from app.running.connections import NotConfigured
from app.settings import ENV_PREFIX, Settings

_CONNECTIONS = 2  # one reads or writes, the other one has the lock of an export


class OpenedDatabase(NamedTuple):
    """The database, the id of its installation, and the time of that."""

    db: Database
    installation: UUID
    clock: Clock


@asynccontextmanager
async def opened_database(settings: Settings, name: str) -> AsyncIterator[OpenedDatabase]:
    """Open the database of the settings. `name` is that of the command.

    Raises:
        NotConfigured: no database is set, or this version cannot use it.
    """
    faultpoints.arm(os.environ)
    if settings.database_url is None:
        raise NotConfigured(f"no database: set {ENV_PREFIX}DATABASE_URL")
    clock = InstallationClock()
    timeouts = settings.database_timeouts()
    db = await Database.open(settings.database_url, pool_size=_CONNECTIONS, timeouts=timeouts, name=name)
    try:
        async with db.read() as connection:
            if unusable := await schema_version.check(connection):
                raise NotConfigured("; ".join(unusable))
        await Timekeeper(db, clock).start()
        installation = await identity.get_or_create(db, uuid4(), clock.now())
        yield OpenedDatabase(db, installation.id, clock)
    finally:
        await db.close()
