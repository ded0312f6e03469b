"""Copies jobs to segments before their records are deleted."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from app.base.faultpoints import FaultPoint, reach
from app.db.objects.resources import RowVersion
from app.db.postgres.engine import Database
from app.domain.exports.lines import ExportSelection, HeaderLine
from app.exports.exporter import write_jobs
from app.exports.folders import SUFFIX, ExportFolder, new_file
from app.exports.segment_files import SegmentFile

_DIGEST_BYTES: Final = 12


class Archive:
    """Writes each batch of jobs as an export of one segment, by installation and day.

    The name of a segment follows from its jobs and their versions. So a batch that is copied again, because the process
    ended before its jobs were deleted, replaces only its own copy.
    """

    def __init__(self, db: Database, folder: ExportFolder, installation: UUID, now: Callable[[], datetime]) -> None:
        self._db = db
        self._folder = folder
        self._installation = installation
        self._now = now

    async def copy(self, jobs: Sequence[RowVersion]) -> None:
        """Copy jobs, durably.

        Raises:
            FolderUnavailable: there may be no copy.
        """
        now = self._now()
        digest = hashlib.sha256(repr([(str(uid), version) for uid, version in jobs]).encode()).digest()[:_DIGEST_BYTES]
        header = HeaderLine(
            export=UUID(bytes=digest + bytes(16 - _DIGEST_BYTES)),
            installation=self._installation,
            segment=1,
            selection=ExportSelection(before=now),
            written_at=now,
        )
        with new_file() as file:
            segment = SegmentFile(file, header)
            async with self._db.snapshot() as connection:
                await write_jobs(segment, connection, [job.uid for job in jobs])
            segment.end(last=True)
            await self._folder.put(f"{self._installation}/{now:%Y-%m-%d}/{digest.hex()}{SUFFIX}", file)
        reach(FaultPoint.SEGMENT_STORED)
