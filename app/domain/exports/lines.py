"""The lines of an export: JSON objects, distinguished by their field `type`.

A job is one line. If its records have more than PIECE_BYTES, it continues on lines of the type `records`, so that
neither side ever holds all records of a large job.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

import msgspec

FORMAT: Final = "jobgate-export"
VERSION: Final = 1
"""A new table or column keeps the version, because a reader refuses what it does not know. Another meaning of a line
or field increases it.
"""
PIECE_BYTES: Final = 1024 * 1024
"""A line is complete when its records have so many bytes. The last record may exceed it."""

Row: TypeAlias = dict[str, msgspec.Raw]
"""A row by the names of its columns. The values are JSON, which nobody decodes and encodes again: numbers keep their
digits, and texts their escapes.
"""


class JobCursor(NamedTuple):
    """The cursor of a job in an export: jobs are in the order of their ends, then of their uids."""

    finished_at: datetime
    uid: UUID


class ExportSelection(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which ended jobs an export has: those that ended from `after` until before `before`. An empty list matches all.

    `before` is None only in a request: a new export then ends shortly before its beginning, and one that continues
    keeps its end.
    """

    before: datetime | None = None
    after: datetime | None = None
    namespaces: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()


class _Line(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", forbid_unknown_fields=True):
    """The base class of all lines."""


class HeaderLine(_Line, tag="header", frozen=True, kw_only=True):
    """The first line of a segment. `export` identifies the export that has the segment as its number `segment`, from 1.

    `installation` is the id of the database that the jobs were read from.
    """

    format: str = FORMAT
    version: int = VERSION
    export: UUID
    installation: UUID
    segment: int
    selection: ExportSelection
    written_at: datetime


class JobLine(_Line, tag="job", frozen=True, kw_only=True):
    """A job, and its records by table. It goes on with a line of the type `records` unless it is `complete`."""

    job: Row
    records: dict[str, list[Row]]
    complete: bool


class RecordsLine(_Line, tag="records", frozen=True, kw_only=True):
    """Further records of the job of the line before."""

    uid: UUID
    records: dict[str, list[Row]]
    complete: bool


class FooterLine(_Line, tag="footer", frozen=True, kw_only=True):
    """The last line of a segment.

    `lines` and `sha256` are those of all lines before it. `until` is the cursor of the last job of the export so far;
    `last` says that no segment follows.
    """

    jobs: int
    lines: int
    sha256: str
    until: JobCursor | None
    last: bool


Line: TypeAlias = HeaderLine | JobLine | RecordsLine | FooterLine


def job_line(job: bytes, records: Mapping[str, Sequence[bytes]], *, complete: bool) -> bytes:
    """Return the line of a job from the JSON of its rows."""
    return _line(b'"type":"job","job":%b' % job, records, complete=complete)


def records_line(uid: UUID, records: Mapping[str, Sequence[bytes]], *, complete: bool) -> bytes:
    """Return a line with further records of a job from the JSON of its rows."""
    return _line(b'"type":"records","uid":"%b"' % str(uid).encode(), records, complete=complete)


def _line(beginning: bytes, records: Mapping[str, Sequence[bytes]], *, complete: bool) -> bytes:
    tables = b",".join(b'"%b":[%b]' % (table.encode(), b",".join(rows)) for table, rows in records.items())
    line = b'{%b,"records":{%b},"complete":%b}' % (beginning, tables, b"true" if complete else b"false")
    # A document of a client is stored with its line breaks. Outside of strings, they are white space.
    return line.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"
