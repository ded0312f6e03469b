"""Exports the ended jobs of a selection, in segments.

    page of jobs ─▶ lines in a file without a name ─▶ segment in the folder, whole ─▶ next page

The footer of a segment says how far the export has come. An export that was interrupted continues behind its
last segment: it has no job twice, and leaves none out.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import BinaryIO, Final
from uuid import UUID

from msgspec.structs import replace

from app.base.faultpoints import FaultPoint, reach
from app.db.exports.reading import JobRows, count_left_out, export_lock, page, redactions
from app.db.postgres.engine import Connection, Database
from app.domain.errors import Conflict
from app.domain.exports.lines import (
    PIECE_BYTES,
    ExportSelection,
    FooterLine,
    HeaderLine,
    job_line,
    records_line,
)
from app.domain.exports.segments import InvalidExport, SegmentReader
from app.exports.folders import SUFFIX, ExportFolder, new_file
from app.exports.segment_files import SegmentFile, read_segments

JOBS_AT_ONCE: Final = 100  # jobs of one snapshot
# A job can have a hundred thousand rows. While a snapshot lasts, PostgreSQL removes no dead rows.
SNAPSHOT_BYTES: Final = 8 * 1024 * 1024
# A decision is stored within seconds of the time that it gives as the end of the job.
_STORED_WITHIN: Final = timedelta(minutes=1)
SEGMENT_BYTES: Final = 64 * 1024 * 1024  # before compression: several thousand jobs with one pod


@dataclass(slots=True, kw_only=True)
class ExportSummary:
    """What an export has: its segments, and how many jobs of this run.

    `left_out` are the ended jobs on which the controller still works, counted when the export is complete.
    """

    segments: int = 0
    added: int = 0
    left_out: int = 0
    is_complete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Progress:
    """How far an export is: the header and the footer of its last segment."""

    header: HeaderLine
    footer: FooterLine


class Exporter:
    """Writes an export of one database to a folder. `export` is its id if it is a new one."""

    def __init__(
        self, db: Database, folder: ExportFolder, installation: UUID, *, export: UUID, now: Callable[[], datetime]
    ) -> None:
        self._db = db
        self._folder = folder
        self._installation = installation
        self._export = export
        self._now = now
        self.summary = ExportSummary()

    async def run(
        self,
        selection: ExportSelection,
        report: Callable[[str], None],
        stop: asyncio.Event,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        """Write all segments that are missing. If `stop` is set, end the present one early, and write no other.

        Raises:
            Conflict: the folder has an export of another selection or database, or another process writes one.
            FolderUnavailable, DatabaseUnavailable: the same call later continues the export.
        """
        async with export_lock(self._db, self._folder.address):
            progress, done = await self._progress(selection), self.summary
            if progress is not None:
                selection, done.segments = progress.header.selection, progress.header.segment
            elif selection.before is None:
                selection = replace(selection, before=self._now() - _STORED_WITHIN)
            while progress is None or not progress.footer.last:
                if stop.is_set():
                    return
                written = await self._write_segment(selection, progress, segment_bytes, stop)
                if written is None:
                    continue
                progress = written
                done.segments, done.added = progress.header.segment, done.added + progress.footer.jobs
                report(f"segment {done.segments}: {progress.footer.jobs} jobs")
        done.left_out = await count_left_out(self._db, selection)
        done.is_complete = True

    async def _progress(self, selection: ExportSelection) -> _Progress | None:
        """Return how far the export in the folder is; None if it has no segment."""
        names = await self._folder.names()
        if not names:
            return None
        async with self._folder.get(names[-1]) as file:
            reader = SegmentReader()
            headers = [line for line in read_segments(file, reader) if isinstance(line, HeaderLine)]
        if len(headers) != 1 or reader.footer is None or segment_name(headers[0].segment) != names[-1]:
            raise InvalidExport(f"{names[-1]} is not the last segment of an export: choose an empty folder")
        self._require_same(headers[0], selection)
        return _Progress(header=headers[0], footer=reader.footer)

    def _require_same(self, header: HeaderLine, selection: ExportSelection) -> None:
        if header.installation != self._installation:
            raise Conflict(f"the folder has an export of another installation, {header.installation}")
        if header.selection != replace(selection, before=selection.before or header.selection.before):
            raise Conflict(
                "the folder has an export of another selection: repeat its options, or choose an empty folder"
            )

    async def _write_segment(
        self, selection: ExportSelection, before: _Progress | None, most_bytes: int, stop: asyncio.Event
    ) -> _Progress | None:
        """Write the next segment. Return None if it must be written again, because a job was redacted meanwhile."""
        number = 1 if before is None else before.header.segment + 1
        header = HeaderLine(
            export=self._export if before is None else before.header.export,
            installation=self._installation,
            segment=number,
            selection=selection,
            written_at=self._now(),
        )
        with new_file() as file:
            segment = SegmentFile(file, header)
            segment.until = None if before is None else before.footer.until
            # One page in any case: each segment brings the export forward.
            while not (is_last := await self._write_page(segment, selection)):
                if segment.size >= most_bytes or stop.is_set():
                    break
            footer = segment.end(last=is_last)
            reach(FaultPoint.SEGMENT_WRITTEN)
            name = segment_name(number)
            await self._folder.remove_unfinished(name, timedelta())  # with the lock, nobody writes it
            if not await put_unredacted(self._db, self._folder, name, segment, file):
                return None
        reach(FaultPoint.SEGMENT_STORED)
        return _Progress(header=header, footer=footer)

    async def _write_page(self, segment: SegmentFile, selection: ExportSelection) -> bool:
        """Write the next jobs. Return whether they were the last ones."""
        async with self._db.snapshot(by_index=True) as connection:
            found = await page(connection, selection, segment.until, JOBS_AT_ONCE)
            written = await write_jobs(segment, connection, [job.uid for job in found.jobs])
        if written < len(found.jobs):
            segment.until = found.jobs[written - 1]
            return False
        segment.until = found.until or segment.until
        return found.is_last


def segment_name(number: int) -> str:
    return f"segment-{number:08}{SUFFIX}"


async def put_unredacted(db: Database, folder: ExportFolder, name: str, segment: SegmentFile, file: BinaryIO) -> bool:
    """Put a segment, unless one of its jobs was redacted after its rows were read. Return whether the folder has it.

    A redaction while it is put removes it again.
    """
    if await _is_redacted(db, segment):
        return False
    await folder.put(name, file)
    if await _is_redacted(db, segment):
        await folder.remove(name)
        return False
    return True


async def _is_redacted(db: Database, segment: SegmentFile) -> bool:
    async with db.read() as connection:
        found = await redactions(connection, list(segment.redacted_at))
    return any(segment.redacted_at[uid] != at for uid, at in found.items())


async def write_jobs(segment: SegmentFile, connection: Connection, uids: Sequence[UUID]) -> int:
    """Write jobs with all records of them, in a transaction whose statements see the same snapshot.

    Return how many: the first ones, until SNAPSHOT_BYTES are written.
    """
    redacted_at = await redactions(connection, uids)
    rows, written, most = JobRows(connection, uids), 0, segment.size + SNAPSHOT_BYTES
    async for uid, job in rows.jobs():
        segment.redacted_at[uid] = redacted_at.get(uid)
        is_first = True
        async for records, complete in _pieces(rows.records(uid)):
            if is_first:
                segment.write(job_line(job, records, complete=complete), begins_job=True)
            else:
                segment.write(records_line(uid, records, complete=complete))
            is_first = False
        written += 1
        if segment.size >= most:
            break
    return written


async def _pieces(
    rows: AsyncIterator[tuple[str, bytes]],
) -> AsyncIterator[tuple[dict[str, list[bytes]], bool]]:
    """Divide records among lines. Each comes with whether it is the last one; there is at least one."""
    piece: dict[str, list[bytes]] = {}
    size = 0
    async for table, row in rows:
        if size >= PIECE_BYTES:
            yield piece, False
            piece, size = {}, 0
        piece.setdefault(table, []).append(row)
        size += len(row)
    yield piece, True
