"""Imports jobs from segments, for reading.

    segment ─▶ check of all lines ─▶ once more from its beginning: each job in a transaction of its own

So a segment with a fault is not imported, and a job never in part. An import that was interrupted is repeated: what is
stored already is passed over.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from app.base.faultpoints import FaultPoint, reach
from app.db.exports.writing import insert_job, insert_records
from app.db.postgres.engine import Database
from app.db.postgres.errors import NotStorable
from app.domain.access.namespaces import NamespaceSet
from app.domain.exports.lines import FooterLine, HeaderLine
from app.domain.exports.segments import InvalidExport, SegmentReader
from app.exports.checks import JobCheck, JobPiece
from app.exports.folders import ExportFolder
from app.exports.segment_files import read_segments


@dataclass(slots=True, kw_only=True)
class ImportSummary:
    """How many jobs were stored, how many had been stored before, and whether that is all of them."""

    imported: int = 0
    present: int = 0
    is_complete: bool = False


class Importer:
    """Stores the jobs of a folder with segments. `now` returns the time of the import."""

    def __init__(
        self,
        db: Database,
        folder: ExportFolder,
        *,
        served: NamespaceSet,
        max_replicas: int,
        now: Callable[[], datetime],
    ) -> None:
        self._db = db
        self._folder = folder
        self._served = served
        self._max_replicas = max_replicas
        self._now = now
        self.summary = ImportSummary()

    async def run(self, report: Callable[[str], None], stop: asyncio.Event) -> None:
        """Store all jobs that are not stored yet. If `stop` is set, end after the present one.

        Raises:
            InvalidExport: a segment is damaged, or one is missing. Those before it are imported.
            FolderUnavailable, DatabaseUnavailable: the same call later continues the import.
        """
        names = await self._folder.names()
        if not names:
            raise InvalidExport(f"{self._folder.address} has no segment of an export")
        order = SegmentOrder()
        for name in names:
            async with self._folder.get(name) as file:
                try:
                    await self._import(file, order if self._folder.only is None else SegmentOrder(is_part=True), stop)
                except InvalidExport as error:
                    raise InvalidExport(f"{name}: {error}") from error
            if stop.is_set():
                return
            report(f"{name}: {self.summary.imported} jobs imported, {self.summary.present} were present")
        order.end()
        self.summary.is_complete = True

    async def _import(self, file: BinaryIO, order: "SegmentOrder", stop: asyncio.Event) -> None:
        for line in self._check_lines(file, SegmentReader()):
            if not isinstance(line, JobPiece):
                order.add(line)
            # No line waits for anything: without this, a signal would be noticed after the last one.
            await asyncio.sleep(0)
            if stop.is_set():
                return
        reader = SegmentReader()
        lines = self._check_lines(file, reader)
        for line in lines:
            if isinstance(line, JobPiece):
                try:
                    await self._store(line, lines)
                except (ValueError, NotStorable) as error:
                    raise reader.fault(str(error)) from error
                if stop.is_set():
                    return

    def _check_lines(self, file: BinaryIO, reader: SegmentReader) -> Iterator[HeaderLine | JobPiece | FooterLine]:
        """Yield the lines of a file, with those of jobs as the values to store."""
        check = JobCheck(self._served, self._max_replicas)
        for line in read_segments(file, reader):
            if isinstance(line, HeaderLine | FooterLine):
                yield line
                continue
            try:
                yield check.read(line)
            except ValueError as error:
                raise reader.fault(str(error)) from error

    async def _store(self, piece: JobPiece, following: Iterator[HeaderLine | JobPiece | FooterLine]) -> None:
        """Store a job, of which the first piece is given, unless it is stored already."""
        assert piece.job is not None, "the reader refuses records without their job"
        async with self._db.begin() as connection:
            is_new = await insert_job(connection, piece.job, self._now())
            while True:
                if is_new:
                    for table, rows in piece.records.items():
                        await insert_records(connection, table, piece.uid, rows)
                if piece.is_last:
                    break
                line = next(following)
                assert isinstance(line, JobPiece), "the reader refuses a job that does not end"
                piece = line
            reach(FaultPoint.JOB_IMPORTED)
        self.summary.imported += is_new
        self.summary.present += not is_new


class SegmentOrder:
    """Checks that the segments of an export follow one another without a gap.

    With `is_part`, the first one may be any of its export, and the last one need not be the last.
    """

    def __init__(self, *, is_part: bool = False) -> None:
        self._is_part = is_part
        self._header: HeaderLine | None = None
        self._is_open = False

    def add(self, line: HeaderLine | FooterLine) -> None:
        """Add the header or the footer of the next segment.

        Raises:
            InvalidExport: a segment before it is missing.
        """
        if isinstance(line, FooterLine):
            self._is_open = not line.last
            return
        before, self._header = self._header, line
        if before is None and self._is_part:
            return
        expected = 1 if before is None or not self._is_open else before.segment + 1
        if line.segment != expected or (self._is_open and before is not None and line.export != before.export):
            raise InvalidExport(f"the segment {expected} of the export is missing before the segment {line.segment}")

    def end(self) -> None:
        """Raise InvalidExport if segments after the last one are missing."""
        if self._is_open and self._header is not None:
            raise InvalidExport(
                f"the export is not complete: segments after {self._header.segment} are missing: repeat the command "
                "that writes it"
            )
