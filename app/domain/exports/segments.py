"""Writes and checks the lines of segments in their order, without the files that have them."""

import hashlib
from typing import Final
from uuid import UUID

import msgspec

from app.domain.errors import shorten
from app.domain.exports.lines import (
    FORMAT,
    VERSION,
    FooterLine,
    HeaderLine,
    JobCursor,
    JobLine,
    Line,
    RecordsLine,
)

_LINES: Final[msgspec.json.Decoder[Line]] = msgspec.json.Decoder(Line)
_UID: Final = msgspec.json.Decoder(UUID)


class InvalidExport(Exception):  # noqa: N818  named after what happened, as all errors of the domain
    """An export cannot be imported: it is damaged, incomplete, or of a format that this version does not know."""


class _Format(msgspec.Struct):
    """The part of a header that every version of the format has."""

    type: str
    format: str = ""
    version: int = 0


class SegmentSums:
    """Counts the lines of a segment, and computes their checksum."""

    def __init__(self) -> None:
        self.jobs = 0
        self.lines = 0
        self._digest = hashlib.sha256()

    def add(self, line: bytes) -> None:
        """Count a line, which ends with LF."""
        self.lines += 1
        self._digest.update(line)

    def footer(self, until: JobCursor | None, *, last: bool) -> FooterLine:
        return FooterLine(jobs=self.jobs, lines=self.lines, sha256=self._digest.hexdigest(), until=until, last=last)


class SegmentReader:
    """Decodes the lines of one or more segments, and checks that each segment is whole."""

    def __init__(self) -> None:
        self.number = 0  # of the last line, from 1
        self.header: HeaderLine | None = None
        self.footer: FooterLine | None = None
        self._sums = SegmentSums()
        self._open: UUID | None = None  # the job that continues on the next line

    def read(self, text: bytes) -> Line:
        """Return the next line, which ends with LF.

        Raises:
            InvalidExport: the line is damaged, or does not follow from the ones before.
        """
        self.number += 1
        if not text.endswith(b"\n"):
            raise self.fault("the file ends within this line: it is cut off")
        line = self._decode(text)
        if isinstance(line, FooterLine):
            self._end(line)
        else:
            self._follow(line)
            self._sums.add(text)
        return line

    def end(self) -> None:
        """Check that the file may end after the last line.

        Raises:
            InvalidExport: the file is cut off.
        """
        if self.header is not None or not self.number:
            self.number += 1
            raise self.fault("the file ends before the footer: it is cut off")

    def fault(self, detail: str) -> InvalidExport:
        """Return the error of the last line."""
        return InvalidExport(f"line {self.number}: {detail}")

    def _decode(self, text: bytes) -> Line:
        try:
            if self.header is None:
                self._require_format(msgspec.json.decode(text, type=_Format))
            return _LINES.decode(text)
        except (ValueError, RecursionError) as error:
            raise self.fault(f"it is no line of an export: {shorten(str(error), 200)}") from error

    def _require_format(self, found: _Format) -> None:
        if found.type != "header" or found.format != FORMAT:
            raise self.fault(f"it is no header of an export: accepted: format {FORMAT}")
        if found.version != VERSION:
            raise self.fault(f"the export has the format version {found.version}: accepted: {VERSION}")

    def _follow(self, line: Line) -> None:
        """Check that a line, which is no footer, may follow."""
        if isinstance(line, HeaderLine):
            if self.header is not None:
                raise self.fault("a header follows before the footer of the segment")
            self.header, self._sums, self._open = line, SegmentSums(), None
            return
        if isinstance(line, JobLine):
            if self._open is not None:
                raise self.fault(f"a job follows before the end of the job {self._open}")
            self._sums.jobs += 1
            uid = self._uid_of(line)
        else:
            assert isinstance(line, RecordsLine), "a footer is checked elsewhere"
            uid = line.uid
            if self._open != uid:
                raise self.fault(f"the records of the job {uid} do not follow it")
        self._open = None if line.complete else uid

    def _uid_of(self, line: JobLine) -> UUID:
        try:
            return _UID.decode(line.job["uid"])
        except (KeyError, ValueError) as error:
            raise self.fault("the job has no uid") from error

    def _end(self, line: FooterLine) -> None:
        if self._open is not None:
            raise self.fault(f"the segment ends before the end of the job {self._open}")
        expected = self._sums.footer(line.until, last=line.last)
        for field in ("jobs", "lines", "sha256"):
            present, told = getattr(expected, field), getattr(line, field)
            if present != told:
                raise self.fault(f"the segment is damaged: its {field} are {present}, and its footer says {told}")
        self.header, self.footer = None, line
