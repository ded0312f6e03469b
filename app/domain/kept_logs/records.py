"""What PostgreSQL knows of kept logs and of their chunks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from app.domain.kept_logs.cutting import LogChunk
from app.domain.kept_logs.keys import LogKey


class KeptLogState(StrEnum):
    """Whether more of a log is expected."""

    FOLLOWING = "following"
    """Its container runs, or the rest of its output is not written yet."""
    COMPLETE = "complete"
    """All of it is kept, except for the gaps that are recorded."""
    CUT = "cut"
    """What follows is not kept; the note of the log has the reason."""


class GapReason(StrEnum):
    """Why a part of a log was lost."""

    ROTATED = "rotated"
    """The node had deleted it before it was read."""
    POD_GONE = "pod_gone"
    """The pod was gone before the rest was read."""
    RESTARTED = "restarted"
    """The container had restarted again before its earlier run was read."""
    REDACTED = "redacted"
    """A redaction of the job has removed what was kept until then, or what was printed before it was not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLog:
    """A kept log: how much of it is kept, and the times of the first and last line of that.

    `version` increases with every write. `position` is what `RepeatFilter` needs to continue. With `passes_over`, the
    job was redacted, and what the cluster has of the log, up to its present end, must not be kept. `note` is the reason
    of a cut. `finished_at` is set once the state is final.
    """

    job_uid: UUID
    task: str
    rank: int
    attempt: int
    container: str
    run: int
    namespace: str
    state: KeptLogState
    text_bytes: int = 0
    lines: int = 0
    stored_bytes: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    position: bytes | None = None
    passes_over: bool = False
    version: int = 0
    note: str | None = None
    updated_at: datetime
    finished_at: datetime | None = None

    @property
    def key(self) -> LogKey:
        return LogKey(self.job_uid, self.task, self.rank, self.attempt, self.container, self.run)

    @property
    def is_final(self) -> bool:
        return self.state is not KeptLogState.FOLLOWING


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptChunk:
    """A part of a kept log, from the byte `start` on, with `length` bytes of text in the object `object_name`.

    `first_line` is how many lines start before it, and `lines` how many start in it. `stored_bytes` is the size of the
    object. A gap has a reason, a length of 0 and no object: what the log had at this place is lost. Its times are those
    of the lines before and after it, where they are known.
    """

    start: int
    length: int
    first_line: int
    lines: int
    first_at: datetime | None
    last_at: datetime | None
    stored_bytes: int = 0
    object_name: str | None = None
    gap: GapReason | None = None


def kept_chunk(chunk: LogChunk, object_name: str, stored_bytes: int) -> KeptChunk:
    """Return the record of a chunk that was written to an object of this size."""
    return KeptChunk(
        start=chunk.start,
        length=len(chunk.text),
        first_line=chunk.first_line,
        lines=chunk.lines,
        first_at=chunk.first_at,
        last_at=chunk.last_at,
        stored_bytes=stored_bytes,
        object_name=object_name,
    )


def gap_before(chunk: LogChunk, last_at: datetime | None) -> KeptChunk:
    """Return the record of the gap before a chunk. `last_at` is the time of the last line before the gap."""
    return KeptChunk(
        start=chunk.start,
        length=0,
        first_line=chunk.first_line,
        lines=0,
        first_at=last_at,
        last_at=chunk.first_at,
        gap=GapReason.ROTATED,
    )


def gap_at_end(log: KeptLog, chunks: Sequence[KeptChunk], reason: GapReason) -> KeptChunk:
    """Return the record of a gap at the end of a log, after further chunks."""
    last = chunks[-1] if chunks else None
    return KeptChunk(
        start=log.text_bytes if last is None else last.start + last.length,
        length=0,
        first_line=log.lines if last is None else last.first_line + last.lines,
        lines=0,
        first_at=log.last_at if last is None else last.last_at,
        last_at=None,
        gap=reason,
    )
