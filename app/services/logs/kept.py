"""Kept logs: their records in PostgreSQL, and their text in the object store.

    request ─▶ rows of the index ─▶ one chunk after the other ─▶ parts of at most 64 KiB

A request holds no chunk while its client reads: chunks are in a cache of the process, and a chunk that has left it is
read again. So the memory does not depend on the number of clients.
"""

from collections.abc import AsyncGenerator
from typing import Final
from uuid import UUID

import structlog

from app.base.caches import ENTRY_BYTES, BoundedCache
from app.base.offload import offload
from app.db import kept_logs
from app.db.postgres.engine import Database
from app.domain.errors import Unavailable
from app.domain.kept_logs.codec import DamagedChunk, decode_chunk, require_chunk
from app.domain.kept_logs.cutting import time_of
from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.records import KeptChunk, KeptLog, KeptLogState
from app.domain.plan import Rank
from app.fairness.share import caller
from app.log_store import LogStore, ObjectMissing, StoreUnavailable
from app.services.limits.turns import Turns
from app.services.logs.selecting import ChunkLines, LineSelection, LogLines
from app.services.logs.times import nanoseconds

# Bytes of chunks in memory.
_CACHED_BYTES: Final = 4 * 1024 * 1024
# Chunks that are read at once. Each takes up to three times its text for a moment.
_READ_AT_ONCE: Final = 4
_MOST_WAITING: Final = 10_000  # above the limit of open logs
# Rows of the index that are read at once.
_ROWS: Final = 200
_LAST_BYTE: Final = 2**62  # more than any log has

log = structlog.get_logger(__name__)


class KeptReader:
    """Reads kept logs."""

    def __init__(self, db: Database, store: LogStore) -> None:
        self._db = db
        self._store = store
        self._chunks: BoundedCache[str, ChunkLines] = BoundedCache(_CACHED_BYTES)
        self._turns = Turns("log chunks", at_once=_READ_AT_ONCE, max_waiting=_MOST_WAITING)

    async def of_attempt(self, job_uid: UUID, replica: Rank, attempt: int, container: str) -> list[KeptLog]:
        """Return the kept logs of a container, one for each of its runs, in order."""
        found = await kept_logs.of_attempt(self._db, job_uid, replica, attempt)
        return [each for each in found if each.container == container]

    async def read(self, key: LogKey) -> KeptLog | None:
        return await kept_logs.read(self._db, key)

    async def first_byte(self, kept: KeptLog, selection: LineSelection) -> int:
        """Return where the first chunk begins that the selection can include; without one, the end of the log."""
        offset = min(selection.begin, kept.text_bytes)
        if selection.first_line:
            chunk = await kept_logs.first_with_line(self._db, kept.key, selection.first_line)
            offset = max(offset, kept.text_bytes if chunk is None else chunk.start)
        if selection.since is not None:
            chunk = await kept_logs.first_since(self._db, kept.key, time_of(selection.since))
            offset = max(offset, kept.text_bytes if chunk is None else chunk.start)
        return offset

    async def rows(self, key: LogKey, offset: int, end: int | None) -> list[KeptChunk]:
        """Return some rows of the index from a byte on, and before `end`: the next ones in order."""
        bound = _LAST_BYTE if end is None else min(end, _LAST_BYTE)
        return await kept_logs.chunks_in_bytes(self._db, key, offset, bound, limit=_ROWS) if offset < bound else []

    async def missing(self, kept: KeptLog) -> str:
        """Return in words what is missing of a log; empty if nothing is."""
        gaps = await kept_logs.count_gaps(self._db, kept.key)
        found = [f"{gaps} gap{'s' if gaps > 1 else ''}"] if gaps else []
        return ", ".join([*found, "cut"] if kept.state is KeptLogState.CUT else found)

    async def parts(self, row: KeptChunk, selection: LineSelection) -> AsyncGenerator[LogLines, None]:
        """Yield what a selection includes of a chunk, apart from its pattern.

        The chunk is fetched for each part, so that a slow client does not keep it in memory.

        Raises:
            Unavailable: the store does not answer, or the chunk is damaged.
        """
        if _can_have(row, selection):
            for begin, end in (await self._chunk(row)).spans(selection):
                yield (await self._chunk(row)).part(begin, end)

    async def last_text(self, key: LogKey) -> bytes:
        """Return the text of the last chunk of a log."""
        for row in await kept_logs.chunks_before(self._db, key, limit=2):
            if row.object_name is not None:
                return (await self._chunk(row)).chunk.text
        return b""

    async def _chunk(self, row: KeptChunk) -> ChunkLines:
        name = row.object_name
        assert name is not None
        if (cached := self._chunks.get(name)) is not None:
            return cached
        async with self._turns.turn(caller()):
            if (cached := self._chunks.get(name)) is not None:
                return cached
            try:
                text = await offload(decode_chunk, await self._store.get(name))
                require_chunk(text, row)
            except StoreUnavailable as error:
                raise Unavailable(str(error), code="LogStoreUnreachable") from error
            except (ObjectMissing, DamagedChunk) as error:
                log.error("log_store.chunk_unreadable", chunk=name, error=str(error))  # noqa: TRY400
                raise Unavailable("a part of the log cannot be read from the log store", code="LogDamaged") from error
            lines = ChunkLines(
                LogLines(
                    start=row.start,
                    first_line=row.first_line,
                    text=text.text,
                    lengths=text.lengths,
                    times=text.times,
                    continues=text.continues,
                )
            )
            self._chunks.put(name, lines, lines.size + ENTRY_BYTES)
            return lines


def _can_have(row: KeptChunk, selection: LineSelection) -> bool:
    """Return whether a chunk can have lines of the selection, as far as the index shows."""
    if row.start + row.length <= selection.begin or row.first_line + row.lines <= selection.first_line:
        return False
    # PostgreSQL stores microseconds, so the last line may be almost one later.
    first = None if row.first_at is None else nanoseconds(row.first_at)
    last = None if row.last_at is None else nanoseconds(row.last_at) + 999
    return selection.can_include(first, last)
