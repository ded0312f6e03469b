"""Composes the commands `export` and `import`."""

import asyncio
from collections.abc import Callable
from uuid import uuid4

from app.domain.exports.lines import ExportSelection
from app.exports.exporter import Exporter, ExportSummary
from app.exports.folders import open_folder
from app.exports.importer import Importer, ImportSummary
from app.running.operations.interruptions import finish_or_abandon
from app.running.operations.opening import opened_database
from app.settings import Settings


async def export_jobs(
    settings: Settings, address: str, selection: ExportSelection, report: Callable[[str], None], stop: asyncio.Event
) -> ExportSummary:
    """Export the ended jobs of a selection to a folder, until all are in it or `stop` is set.

    Raises:
        NotConfigured, DomainError: what `Exporter` raises, or the database cannot be used.
    """
    folder = open_folder(address)
    async with opened_database(settings, "export") as (db, installation, clock):
        exporter = Exporter(db, folder, installation, export=uuid4(), now=clock.now)
        await finish_or_abandon(exporter.run(selection, report, stop), stop)
    return exporter.summary


async def import_jobs(
    settings: Settings, address: str, report: Callable[[str], None], stop: asyncio.Event
) -> ImportSummary:
    """Import the jobs of a folder with segments, or of one segment, until all are stored or `stop` is set.

    Raises:
        NotConfigured, DomainError: what `Importer` raises, or the database cannot be used.
    """
    folder = open_folder(address, for_reading=True)
    async with opened_database(settings, "import") as (db, _, clock):
        importer = Importer(
            db,
            folder,
            served=settings.served_namespaces(),
            max_replicas=settings.limits().max_replicas,
            now=clock.now,
        )
        await finish_or_abandon(importer.run(report, stop), stop)
    return importer.summary
