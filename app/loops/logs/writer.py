"""Writes one log: the chunk to the store, and then its row with the position after it, in one transaction.

Every error leaves the writer in an unknown state. Its follower begins again with another one, from what is stored.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import uuid4

from app.base.faultpoints import FaultPoint, reach
from app.base.offload import offload
from app.db import kept_logs
from app.db.kept_logs import LogWrite, Totals
from app.domain.kept_logs.codec import encode_chunk
from app.domain.kept_logs.cutting import LogChunk, LogCutter
from app.domain.kept_logs.keys import chunk_name
from app.domain.kept_logs.records import GapReason, KeptChunk, KeptLog, KeptLogState, gap_at_end, gap_before, kept_chunk
from app.domain.kept_logs.repeats import ReadPosition
from app.loops.logs import metrics
from app.loops.logs.context import LogContext

_SMALLEST: Final = 16 * 1024  # bytes of a chunk that is written only because the memory is full


class Overtaken(Exception):  # noqa: N818 - what another process did
    """Another process has written to the log meanwhile."""


class ChunkWriter:
    """Cuts a log into chunks and writes them, from what is kept of it on."""

    def __init__(self, context: LogContext, kept: KeptLog, totals: Totals) -> None:
        self._context = context
        self._kept = kept
        self._totals = totals
        self._cutter = LogCutter(kept.text_bytes, kept.lines, ReadPosition.decode(kept.position))
        self._has_passed = False  # whether there was text to pass over

    @property
    def is_final(self) -> bool:
        """Whether nothing more of the log is kept."""
        return self._kept.is_final

    @property
    def passes_over(self) -> bool:
        """Whether what comes is not kept, until `keep_rest`."""
        return self._kept.passes_over

    @property
    def has_text(self) -> bool:
        """Whether text waits to be written."""
        return self._cutter.size > 0

    @property
    def since(self) -> datetime | None:
        return self._cutter.since

    @property
    def patience(self) -> float:
        """The seconds after which the text that waits must be written."""
        age = self._context.unwritten.age(self)
        return math.inf if age is None else max(0.0, self._context.limits.flush_after - age)

    @property
    def is_due(self) -> bool:
        """Whether the text that waits must be written now, although it is no full chunk."""
        return self.patience == 0.0 or (self._context.unwritten.is_full and self._cutter.size >= _SMALLEST)

    def begin(self) -> None:
        """Note that the log is opened, maybe again."""
        self._cutter.begin()

    def feed(self, received: bytes) -> list[LogChunk]:
        """Return the chunks that the bytes complete."""
        chunks = self._cutter.feed(received)
        if self.passes_over:
            self._has_passed |= bool(chunks) or self._cutter.size > 0
            self._cutter.cut()
            return []
        self._context.unwritten.note(self, self._cutter.size)
        return chunks

    def close(self) -> None:
        """Forget the text that was not written."""
        self._context.unwritten.note(self, 0)

    async def keep_rest(self) -> None:
        """Keep what follows what was fed so far. A line that was fed in part is not kept."""
        gaps = [gap_at_end(self._kept, (), GapReason.REDACTED)] if self._has_passed else []
        await self._step(LogWrite(chunks=gaps, position=self._cutter.end_of_line.encode()))
        kept = self._kept
        self._cutter = LogCutter(kept.text_bytes, kept.lines, ReadPosition.decode(kept.position))

    async def flush(self) -> None:
        """Write the text that waits."""
        await self.write(self._rest())

    async def finish(self, gap: GapReason | None = None) -> None:
        """Write the text that waits, and note that the log is complete, except for a gap at its end."""
        if gap is None and self._cutter.misses_end:
            gap = GapReason.ROTATED  # the node began another file, which is empty
        await self._write(self._rest(), KeptLogState.COMPLETE, gap=gap)

    async def write(self, chunks: Sequence[LogChunk]) -> None:
        """Write chunks. If a limit is reached, the log is final afterwards."""
        if chunks:
            await self._write(chunks, KeptLogState.FOLLOWING)

    def _rest(self) -> Sequence[LogChunk]:
        chunk = self._cutter.cut()
        self._context.unwritten.note(self, 0)
        return [] if chunk is None else [chunk]

    async def _write(self, chunks: Sequence[LogChunk], state: KeptLogState, *, gap: GapReason | None = None) -> None:
        fitting, note = self._within_limits(chunks)
        async with self._context.writes:
            rows = [row for chunk in fitting for row in await self._put(chunk)]
        if note is not None:
            state = KeptLogState.CUT
        elif gap is not None:
            rows.append(gap_at_end(self._kept, rows, gap))
        reach(FaultPoint.LOG_CHUNK_PUT)
        position = fitting[-1].position.encode() if fitting else None
        await self._step(LogWrite(chunks=rows, position=position, state=state, note=note))

    async def _step(self, step: LogWrite) -> None:
        async with self._context.transactions:
            written = await kept_logs.write(self._context.db, self._kept, step, self._context.clock.now())
        reach(FaultPoint.LOG_CHUNK_INDEXED)
        if written is None:
            raise Overtaken
        self._kept, self._totals = written
        _count(step.chunks)

    async def _put(self, chunk: LogChunk) -> list[KeptChunk]:
        """Write the object of a chunk. Return its row, after that of a gap before it."""
        name = chunk_name(self._context.installation, self._kept.key, chunk.start, uuid4().hex)
        data = await offload(encode_chunk, chunk, name)
        await self._context.store.put(name, data)
        gaps = [gap_before(chunk, self._kept.last_at)] if chunk.follows_gap else []
        return [*gaps, kept_chunk(chunk, name, len(data))]

    def _within_limits(self, chunks: Sequence[LogChunk]) -> tuple[Sequence[LogChunk], str | None]:
        """Return the first chunks that the limits of the job and of its namespace allow, and why others are cut."""
        limits, text = self._context.limits, 0
        for index, chunk in enumerate(chunks):
            text += len(chunk.text)
            for name, kept, most in (
                ("job", self._totals.job, limits.job_bytes),
                ("namespace", self._totals.namespace, limits.namespace_bytes),
            ):
                if kept + text > most:
                    metrics.CUTS.labels(name).inc()
                    return chunks[:index], f"the logs of the {name} have reached the limit of {most} bytes"
        return chunks, None


def _count(rows: Sequence[KeptChunk]) -> None:
    metrics.TEXT_BYTES.inc(sum(row.length for row in rows))
    metrics.STORED_BYTES.inc(sum(row.stored_bytes for row in rows))
    for row in rows:
        if row.gap is not None:
            metrics.GAPS.labels(row.gap).inc()
