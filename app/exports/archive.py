"""Copies jobs to segments before their records are deleted."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from app.base.faultpoints import FaultPoint, reach
from app.db.exports.reading import versions
from app.db.objects.resources import RowVersion
from app.db.postgres.engine import Database
from app.domain.exports.lines import ExportSelection, HeaderLine
from app.exports.exporter import write_jobs
from app.exports.folders import SUFFIX, ExportFolder, new_file
from app.exports.segment_files import SegmentFile

_DIGEST_BYTES: Final = 12


class Archive:
    """Writes each batch of jobs as an export of one segment, by installation and day.

    The name of a segment follows from the jobs in it and their versions. So a batch that is copied again, because the
    process ended before its jobs were deleted, replaces only its own copy. Two processes can copy one batch at the same
    time: when one of them has deleted jobs of it, the segment of the other one has fewer jobs, and so another name.
    """

    def __init__(self, db: Database, folder: ExportFolder, installation: UUID, now: Callable[[], datetime]) -> None:
        self._db = db
        self._folder = folder
        self._installation = installation
        self._now = now

    async def copy(self, jobs: Sequence[RowVersion]) -> None:
        """Copy those of the jobs that exist, durably.

        Raises:
            FolderUnavailable, OSError: there may be no copy.
        """
        now = self._now()
        with new_file() as file:
            async with self._db.snapshot() as connection:
                present = await versions(connection, [job.uid for job in jobs])
                if not present:
                    return
                digest = _digest(present)
                header = HeaderLine(
                    export=UUID(bytes=digest + bytes(16 - _DIGEST_BYTES)),
                    installation=self._installation,
                    segment=1,
                    selection=ExportSelection(before=now),
                    written_at=now,
                )
                segment = SegmentFile(file, header)
                await write_jobs(segment, connection, [job.uid for job in present])
            segment.end(last=True)
            await self._folder.put(f"{self._installation}/{now:%Y-%m-%d}/{digest.hex()}{SUFFIX}", file)
        reach(FaultPoint.SEGMENT_STORED)


def _digest(jobs: Sequence[RowVersion]) -> bytes:
    text = repr([(str(uid), version) for uid, version in jobs])
    return hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]
