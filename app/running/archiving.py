"""Opens the folder to which jobs are exported before their records are deleted."""

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from app.db.postgres.engine import Database
from app.exports.archive import Archive
from app.exports.folders import open_folder
from app.settings import Settings


def open_archive(settings: Settings, db: Database, installation: UUID, now: Callable[[], datetime]) -> Archive | None:
    """Return the archive of the settings; None if jobs are deleted without an export.

    Raises:
        FolderUnavailable: the setting is no folder and no URL of a store.
    """
    return Archive(db, open_folder(settings.export_to), installation, now) if settings.export_to else None
