"""One log from three places: what is kept, the rest from the cluster, or the rest that was stored with the attempt.

    chunks of the object store ─▶ the position after them ─▶ lines of the cluster after this position
                                                          └▶ the pod is gone ─▶ further chunks, or the stored end

Bytes and lines count from the beginning of the log in all three, so they join without a seam.
"""

from array import array
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from app.db.jobs.evidence import Log
from app.domain.errors import NotFound, Unavailable
from app.domain.kept_logs.cutting import LogChunk, LogCutter
from app.domain.kept_logs.records import GapReason, KeptChunk, KeptLog, KeptLogState
from app.domain.kept_logs.repeats import ReadPosition
from app.fairness.share import next_slice
from app.services.logs.kept import KeptReader
from app.services.logs.overlap import length_of_overlap
from app.services.logs.selecting import SLICE, ChunkLines, LineSelection, LogLines

# Bytes from the cluster that become lines at once.
_RECEIVED: Final = 8 * 1024
_GAPS: Final = {
    GapReason.ROTATED: "the node had deleted a part of the log before it was read",
    GapReason.POD_GONE: "the pod was gone before a part of the log was read",
    GapReason.RESTARTED: "the container had restarted again before a part of the log was read",
    GapReason.REDACTED: "a redaction of the job has removed the log before this place",
}
_CUT: Final = "cut"


class MissingPart(NamedTuple):
    """A part of a log that is not there. `line` is the number of lines before it, and `code` a word for programs."""

    offset: int
    line: int
    code: str
    message: str

    @property
    def text(self) -> str:
        return f"[jobgate] {self.message}"


LogPart: TypeAlias = LogLines | MissingPart
OpenLive: TypeAlias = Callable[[datetime | None], AsyncGenerator[bytes, None]]
"""Opens the log in the cluster, with times, from a second on. Its end may be awaited or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestSources:
    """Where the rest of a log may be.

    Args:
        follow: opens the log in the cluster; None if its pod is gone.
        read: the same without a wait for new lines.
        stored: returns the end of the log in PostgreSQL; None if there is none.
    """

    follow: OpenLive | None
    read: OpenLive | None
    stored: Callable[[], Awaitable[Log | None]]


class _StoredRest(NamedTuple):
    part: LogLines
    follows_gap: bool


class WholeLog:
    """A kept log and its rest."""

    def __init__(self, reader: KeptReader, kept: KeptLog, sources: RestSources) -> None:
        self._reader = reader
        self._kept = kept
        self._sources = sources
        # The next byte, and the start and length of the row of the index that was read last.
        self._place = 0
        self._seen = (-1, -1)

    async def parts(self, selection: LineSelection, tail_lines: int | None) -> AsyncGenerator[LogPart, None]:
        """Yield what a selection includes, in order. With `tail_lines`, only of the last lines.

        Raises:
            Unavailable: the store or the cluster does not answer.
        """
        if tail_lines is not None:
            selection = await self._last_lines(selection, tail_lines)
        self._place = await self._reader.first_byte(self._kept, selection)
        async for part in self._read_index(selection):
            yield part
        if self._is_complete(selection):
            return
        try:
            async for part in self._read_rest(selection):
                yield part
        except NotFound:
            # The pod was released a moment ago. Its log may have been completed before.
            async for part in self._read_index(selection):
                yield part
            async for part in self._read_stored(selection):
                yield part

    def _is_complete(self, selection: LineSelection) -> bool:
        is_end = selection.end is not None and self._place >= selection.end
        return is_end or self._kept.state is KeptLogState.COMPLETE

    async def _read_index(self, selection: LineSelection) -> AsyncGenerator[LogPart, None]:
        """Yield what is kept, also what is added meanwhile."""
        version = -1
        while version != self._kept.version:
            version = self._kept.version
            async for part in self._read_kept(selection):
                yield part
            found = await self._reader.read(self._kept.key)
            # A log that was deleted meanwhile has no rest.
            self._kept = found or replace(self._kept, state=KeptLogState.COMPLETE)

    async def _read_kept(self, selection: LineSelection) -> AsyncGenerator[LogPart, None]:
        """Yield what the index has after the rows that were read, until it has no more."""
        while rows := await self._next_rows(selection):
            for row in rows:
                self._seen, self._place = (row.start, row.length), max(self._place, row.start + row.length)
                if row.gap is not None:
                    yield MissingPart(row.start, row.first_line, row.gap, _GAPS[row.gap])
                    continue
                async with aclosing(self._reader.parts(row, selection)) as parts:
                    async for part in parts:
                        yield part

    async def _next_rows(self, selection: LineSelection) -> Sequence[KeptChunk]:
        found = await self._reader.rows(self._kept.key, self._place, selection.end)
        # A gap at this place was read already.
        return [row for row in found if (row.start, row.length) > self._seen]

    async def _read_rest(self, selection: LineSelection) -> AsyncGenerator[LogPart, None]:
        """Yield what the cluster has after the kept part. Raises NotFound if it has no such log."""
        kept = self._kept
        if kept.state is KeptLogState.CUT:
            yield MissingPart(kept.text_bytes, kept.lines, _CUT, f"from here on the log is not kept: {kept.note}")
        opened = _require_pod(self._sources.follow)
        async with aclosing(live_chunks(self._cutter(), opened, is_exact=selection.is_exact)) as chunks:
            async for chunk in chunks:
                if chunk.follows_gap:
                    yield MissingPart(chunk.start, chunk.first_line, GapReason.ROTATED, _GAPS[GapReason.ROTATED])
                for part in ChunkLines(lines_of(chunk)).select(selection):
                    yield part
                if selection.end is not None and chunk.start + len(chunk.text) >= selection.end:
                    return

    async def _read_stored(self, selection: LineSelection) -> AsyncGenerator[LogPart, None]:
        """Yield what the stored end of the log has after the kept part, if nothing of that is final yet."""
        kept = self._kept
        rest = await self._stored_rest()
        if rest is None:
            if kept.state is KeptLogState.FOLLOWING:
                yield MissingPart(kept.text_bytes, kept.lines, "pending", "the rest of the log is not kept yet")
            return
        if rest.follows_gap:
            yield MissingPart(kept.text_bytes, kept.lines, GapReason.POD_GONE, _GAPS[GapReason.POD_GONE])
        for part in ChunkLines(rest.part).select(selection):
            yield part

    async def _stored_rest(self) -> "_StoredRest | None":
        """Return what the stored end of the log has after the kept part; None if nothing of that is final yet."""
        kept = self._kept
        stored = None if kept.state is KeptLogState.COMPLETE else await self._sources.stored()
        if stored is None:
            return None
        known = await self._reader.last_text(kept.key)
        is_all = len(known) == kept.text_bytes
        overlap = length_of_overlap(known, stored.tail, from_start=is_all, is_whole=not stored.truncated)
        follows_gap = stored.truncated and not overlap
        continues = bool(known) and not known.endswith(b"\n") and not follows_gap
        rest = untimed_lines(stored.tail[overlap:], kept.text_bytes, kept.lines, continues=continues)
        return _StoredRest(rest, follows_gap=follows_gap)

    async def _last_lines(self, selection: LineSelection, count: int) -> LineSelection:
        lines = self._kept.lines + await self._count_rest()
        return replace(selection, first_line=max(0, lines - count), is_exact=False)

    async def _count_rest(self) -> int:
        """Return how many lines follow the kept part in the cluster or, without the pod, in the stored end."""
        if self._kept.state is KeptLogState.COMPLETE:
            return 0
        lines = 0
        try:
            async for chunk in live_chunks(self._cutter(), _require_pod(self._sources.read), is_exact=False):
                lines += chunk.lines
        except NotFound:
            rest = await self._stored_rest()
            return 0 if rest is None else rest.part.lines
        except Unavailable:
            return lines
        return lines

    def _cutter(self) -> LogCutter:
        kept = self._kept
        return LogCutter(kept.text_bytes, kept.lines, ReadPosition.decode(kept.position))


def _require_pod(opened: OpenLive | None) -> OpenLive:
    """Return what opens the log in the cluster. Raises NotFound without it."""
    if opened is None:
        raise NotFound("the pod is gone", code="NoLog")
    return opened


async def live_chunks(cutter: LogCutter, opened: OpenLive, *, is_exact: bool) -> AsyncGenerator[LogChunk, None]:
    """Yield the lines of a log in the cluster that the cutter does not know, as they arrive.

    Unless `is_exact`, chunks end with lines, or within one that is long.
    """
    cutter.begin()
    rest = b""
    async with aclosing(opened(cutter.since)) as pieces:
        async for piece in pieces:
            for begin in range(0, len(piece), _RECEIVED):
                await next_slice()
                received = rest + piece[begin : begin + _RECEIVED]
                whole = len(received) if is_exact or len(received) > SLICE else received.rfind(b"\n") + 1
                rest = received[whole:]
                for chunk in _cut(cutter, received[:whole]):
                    yield chunk
    for chunk in _cut(cutter, rest):
        yield chunk


def lines_of(chunk: LogChunk) -> LogLines:
    """Return the lines of a chunk from the cluster."""
    return LogLines(
        start=chunk.start,
        first_line=chunk.first_line,
        text=chunk.text,
        lengths=chunk.lengths,
        times=chunk.times,
        continues=chunk.continues,
    )


def untimed_lines(text: bytes, start: int = 0, first_line: int = 0, *, continues: bool = False) -> LogLines:
    """Return the lines of a text without times."""
    *whole, last = text.split(b"\n")
    lengths = array("I", [len(line) + 1 for line in whole] + ([len(last)] if last else []))
    return LogLines(
        start=start,
        first_line=first_line,
        text=text,
        lengths=lengths,
        times=array("q", bytes(8 * len(lengths))),
        continues=continues,
    )


def _cut(cutter: LogCutter, received: bytes) -> list[LogChunk]:
    chunks = cutter.feed(received)
    last = cutter.cut()
    return chunks if last is None else [*chunks, last]
