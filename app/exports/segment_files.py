"""The files of segments: lines of JSON, compressed by zstd."""

from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO, Final
from uuid import UUID

import msgspec
import zstandard

from app.domain.errors import shorten
from app.domain.exports.lines import FooterLine, HeaderLine, JobCursor, Line
from app.domain.exports.segments import SegmentReader, SegmentSums

_LEVEL: Final = 3  # zstd's own default: faster than PostgreSQL returns the rows
_READ_BYTES: Final = 256 * 1024
_LONGEST_LINE: Final = 64 * 1024 * 1024  # a job has two manifests of up to 3 MiB each, and its status
_MOST_MEMORY: Final = 128 * 1024 * 1024  # of the decoder: a file can ask for any amount


class SegmentFile:
    """A segment that is being written. Its lines are in the file when it has its footer.

    `until` is the cursor of the last job of the export so far, and `size` the bytes of the lines before compression.
    `redacted_at` has the times of the last redactions that the lines of the jobs include; None for jobs without one.
    """

    def __init__(self, file: BinaryIO, header: HeaderLine) -> None:
        self._compressed = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).stream_writer(
            file, closefd=False
        )
        self._sums = SegmentSums()
        self.until: JobCursor | None = None
        self.redacted_at: dict[UUID, datetime | None] = {}
        self.size = 0
        self.write(msgspec.json.encode(header) + b"\n")

    def write(self, line: bytes, *, begins_job: bool = False) -> None:
        self._sums.add(line)
        self._sums.jobs += begins_job
        self.size += len(line)
        self._compressed.write(line)

    def end(self, *, last: bool) -> FooterLine:
        """Write the footer, and return it. `last` says that no segment follows in the export."""
        footer = self._sums.footer(self.until, last=last)
        self._compressed.write(msgspec.json.encode(footer) + b"\n")
        self._compressed.flush(zstandard.FLUSH_FRAME)
        return footer


def read_segments(file: BinaryIO, reader: SegmentReader) -> Iterator[Line]:
    """Yield the lines of the segments of a file, from its beginning. The reader has the number of the last one.

    Raises:
        InvalidExport: the file is damaged. The error names the line.
    """
    file.seek(0)
    for text in _lines(file, reader):
        yield reader.read(text)
    reader.end()


def _lines(file: BinaryIO, reader: SegmentReader) -> Iterator[bytes]:
    """Yield the lines of a compressed file, each with its LF; the last one may lack it."""
    decoder = zstandard.ZstdDecompressor(max_window_size=_MOST_MEMORY)
    rest = b""
    with decoder.stream_reader(file, read_across_frames=True, closefd=False) as text:
        while piece := _read(text, reader):
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line + b"\n" for line in lines)
            if len(rest) > _LONGEST_LINE:
                reader.number += 1
                raise reader.fault(f"it is longer than {_LONGEST_LINE} bytes")
    if rest:
        yield rest


def _read(text: BinaryIO, reader: SegmentReader) -> bytes:
    try:
        return text.read(_READ_BYTES)
    except zstandard.ZstdError as error:
        reader.number += 1
        raise reader.fault(f"the compressed data is damaged: {shorten(str(error))}") from error
