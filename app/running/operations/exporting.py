"""Composes the commands `export` and `import`."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple
from uuid import UUID, uuid4

from app.base import faultpoints
from app.base.clock import Clock, InstallationClock
from app.db.installation import identity
from app.db.installation.timekeeper import Timekeeper
from app.db.postgres import schema_version
from app.db.postgres.engine import Database
from app.domain.exports.lines import ExportSelection
from app.exports.exporter import Exporter, ExportSummary
from app.exports.folders import open_folder
from app.exports.importer import Importer, ImportSummary
from app.running.connections import NotConfigured
from app.settings import ENV_PREFIX, Settings

_CONNECTIONS = 2  # one reads or writes, the other one has the lock


class _Opened(NamedTuple):
    db: Database
    installation: UUID
    clock: Clock


async def export_jobs(
    settings: Settings, place: str, selection: ExportSelection, report: Callable[[str], None]
) -> ExportSummary:
    """Export the ended jobs of a selection to a folder.

    Raises:
        NotConfigured, DomainError: what `Exporter` raises, or the database cannot be used.
    """
    folder = open_folder(place)
    async with _opened(settings) as (db, installation, clock):
        return await Exporter(db, folder, installation, export=uuid4(), now=clock.now).run(selection, report)


async def import_jobs(settings: Settings, place: str, report: Callable[[str], None]) -> ImportSummary:
    """Import the jobs of a folder with segments, or of one segment.

    Raises:
        NotConfigured, DomainError: what `Importer` raises, or the database cannot be used.
    """
    folder = open_folder(place, for_reading=True)
    async with _opened(settings) as (db, _, clock):
        importer = Importer(
            db,
            folder,
            served=settings.served_namespaces(),
            max_replicas=settings.limits().max_replicas,
            now=clock.now,
        )
        return await importer.run(report)


@asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[_Opened]:
    faultpoints.arm(os.environ)
    if settings.database_url is None:
        raise NotConfigured(f"no database: set {ENV_PREFIX}DATABASE_URL")
    clock = InstallationClock()
    db = await Database.open(settings.database_url, pool_size=_CONNECTIONS, timeouts=settings.database_timeouts())
    try:
        async with db.read() as connection:
            if unusable := await schema_version.check(connection):
                raise NotConfigured("; ".join(unusable))
        await Timekeeper(db, clock).start()
        installation = await identity.get_or_create(db, uuid4(), clock.now())
        yield _Opened(db, installation.id, clock)
    finally:
        await db.close()
