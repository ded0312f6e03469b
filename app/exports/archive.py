"""Copies jobs to segments before their records are deleted."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from app.base.faultpoints import FaultPoint, reach
from app.db.exports.reading import versions
from app.db.objects.resources import RowVersion
from app.db.postgres.engine import Database
from app.db.purge import Copied
from app.domain.exports.lines import ExportSelection, HeaderLine
from app.exports.exporter import JOBS_AT_ONCE, SEGMENT_BYTES, put_unredacted, write_jobs
from app.exports.folders import SUFFIX, ExportFolder, new_file
from app.exports.segment_files import SegmentFile

_DIGEST_BYTES: Final = 12
# Another process can write a segment now. It takes minutes at most.
_IN_FLIGHT: Final = timedelta(hours=1)
_ANY_DAY: Final = "????-??-??"


class Archive:
    """Writes jobs as exports of one segment each, by installation and day.

    The name of a segment follows from the jobs in it and their versions. So jobs that are copied again, because the
    process ended before they were deleted, replace only their own copy. Two processes can copy the same jobs at the
    same time: when one of them has deleted some of them, the segment of the other one has fewer jobs, and so another
    name.
    """

    def __init__(
        self,
        db: Database,
        folder: ExportFolder,
        installation: UUID,
        now: Callable[[], datetime],
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._db = db
        self._folder = folder
        self._installation = installation
        self._now = now
        self._segment_bytes = segment_bytes

    async def copy(self, jobs: Sequence[RowVersion]) -> Copied:
        """Copy those of the jobs that exist to one segment, durably: the first ones, until the segment is full.

        A job that is redacted meanwhile is copied as it is afterwards.

        Raises:
            FolderUnavailable, OSError: there may be no copy.
        """
        done: Copied | None = None
        while done is None:
            done = await self._copy(jobs)
        reach(FaultPoint.SEGMENT_STORED)
        return done

    async def _copy(self, jobs: Sequence[RowVersion]) -> Copied | None:
        """Copy the jobs. Return None if one of them was redacted meanwhile, so that there is no copy."""
        now = self._now()
        header = HeaderLine(
            export=UUID(bytes=_digest(jobs) + bytes(16 - _DIGEST_BYTES)),
            installation=self._installation,
            segment=1,
            selection=ExportSelection(before=now),
            written_at=now,
        )
        copied: list[RowVersion] = []
        with new_file() as file:
            segment = SegmentFile(file, header)
            while jobs and not (copied and segment.size >= self._segment_bytes):
                page, jobs = jobs[:JOBS_AT_ONCE], jobs[JOBS_AT_ONCE:]
                async with self._db.snapshot() as connection:
                    present = await versions(connection, [job.uid for job in page])
                    written = await write_jobs(segment, connection, [job.uid for job in present])
                copied += present[:written]
                left = {job.uid for job in present[written:]}
                jobs = [*(job for job in page if job.uid in left), *jobs]
            segment.end(last=True)
            if copied:
                await self._folder.remove_unfinished(f"{self._installation}/{_ANY_DAY}/*", _IN_FLIGHT)
                name = f"{self._installation}/{now:%Y-%m-%d}/{_digest(copied).hex()}{SUFFIX}"
                if not await put_unredacted(self._db, self._folder, name, segment, file):
                    return None
        return Copied(copied, jobs)


def _digest(jobs: Sequence[RowVersion]) -> bytes:
    text = repr([(str(uid), version) for uid, version in jobs])
    return hashlib.sha256(text.encode()).digest()[:_DIGEST_BYTES]
