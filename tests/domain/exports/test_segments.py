"""A segment is read as it was written; one that no export has written is refused with the line that is wrong."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias
from uuid import UUID

import msgspec
import pytest

from app.domain.exports.lines import ExportSelection, FooterLine, HeaderLine, JobCursor, JobLine, Line, RecordsLine
from app.domain.exports.segments import InvalidExport, SegmentReader, SegmentSums

NOW = datetime(2026, 1, 2, tzinfo=UTC)
ONE, TWO, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
HEADER = HeaderLine(export=OTHER, installation=OTHER, segment=1, selection=ExportSelection(), written_at=NOW)

Lines: TypeAlias = list[bytes]
Change: TypeAlias = Callable[[Lines], Lines]


def job(uid: UUID, *, complete: bool = True) -> JobLine:
    return JobLine(job={"uid": msgspec.Raw(b'"%b"' % str(uid).encode())}, records={}, complete=complete)


def records(uid: UUID, *, complete: bool = True) -> RecordsLine:
    return RecordsLine(uid=uid, records={}, complete=complete)


def encode(line: Line) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def segment(*lines: Line) -> Lines:
    """Return these lines and their footer."""
    sums, written = SegmentSums(), [encode(line) for line in lines]
    for text in written:
        sums.add(text)
    sums.jobs = sum(isinstance(line, JobLine) for line in lines)
    return [*written, encode(sums.footer(JobCursor(NOW, TWO), last=True))]


def read(lines: Sequence[bytes]) -> SegmentReader:
    reader = SegmentReader()
    for line in lines:
        reader.read(line)
    reader.end()
    return reader


WHOLE = segment(HEADER, job(ONE, complete=False), records(ONE, complete=False), records(ONE), job(TWO))


def test_a_reader_reads_one_segment_after_the_other() -> None:
    reader = SegmentReader()
    assert [type(reader.read(line)) for line in WHOLE[:4]] == [HeaderLine, JobLine, RecordsLine, RecordsLine]
    assert (reader.header, reader.footer) == (HEADER, None)
    reader = read([*WHOLE, *WHOLE])
    assert (reader.number, reader.header) == (12, None)
    assert isinstance(reader.footer, FooterLine)
    assert (reader.footer.jobs, reader.footer.lines, reader.footer.until) == (2, 5, JobCursor(NOW, TWO))


def replaced(line: int, **fields: Any) -> Change:
    """Change fields of a line, whose checksum stays."""
    return lambda lines: [
        encode_object(json.loads(text) | fields) if number == line else text for number, text in enumerate(lines, 1)
    ]


def encode_object(document: Any) -> bytes:
    return json.dumps(document).encode() + b"\n"


def of(*lines: Line) -> Change:
    return lambda _: segment(*lines)


DAMAGED: dict[str, tuple[Change, str]] = {
    "empty": (lambda _: [], "line 1: the file ends before the footer"),
    "another text": (lambda _: [b"hello\n"], "line 1: it is no line of an export"),
    "another type": (replaced(1, type="head"), "line 1: it is no header of an export: accepted: format jobgate-export"),
    "another format": (replaced(1, format="tar"), "line 1: it is no header of an export: accepted: format"),
    "a newer version": (replaced(1, version=2), "line 1: the export has the format version 2: accepted: 1"),
    "an unknown field": (replaced(2, extra=1), "line 2: it is no line of an export"),
    "no header": (lambda lines: lines[1:], "line 1: it is no header"),
    "two headers": (of(HEADER, HEADER), "line 2: a header follows before the footer"),
    "no footer": (lambda lines: lines[:-1], "line 6: the file ends before the footer"),
    "half a line": (lambda lines: [*lines[:2], lines[2][:9]], "line 3: the file ends within this line"),
    "a lost job": (lambda lines: [*lines[:4], lines[5]], "line 5: the segment is damaged: its jobs are 1, and its"),
    "lost records": (lambda lines: [*lines[:2], *lines[3:]], "line 5: the segment is damaged: its lines are 4, and"),
    "a changed job": (replaced(5, records={"a": []}), "line 6: the segment is damaged: its sha256"),
    "a job that goes on": (of(HEADER, job(ONE, complete=False), job(TWO)), "line 3: a job follows before the end of"),
    "the last job goes on": (of(HEADER, job(ONE, complete=False)), "line 3: the segment ends before the end of"),
    "records of no job": (of(HEADER, job(ONE), records(ONE)), f"line 3: the records of the job {ONE} do not follow it"),
    "records of another job": (
        of(HEADER, job(ONE, complete=False), records(TWO)),
        f"line 3: the records of the job {TWO}",
    ),
    "no uid": (replaced(5, job={"uid": "x"}), "line 5: the job has no uid"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_the_line_with_a_fault_is_named(damage: str) -> None:
    change, message = DAMAGED[damage]
    with pytest.raises(InvalidExport) as refused:
        read(change(WHOLE))
    assert str(refused.value).startswith(message)
