"""A job's story, line by line."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from app.db.engine import Database
from app.domain.plan import Rank
from app.domain.status.records import HistoryEntry
from app.domain.vocabulary import JobPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """`seq` counts from 1 without gaps."""

    seq: int
    entry: HistoryEntry


_PAGE = """
SELECT seq, at, phase, reason, message, actor, task, rank, attempt
FROM status_history WHERE job_uid = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""


async def page(db: Database, uid: UUID, *, after_seq: int = 0, limit: int) -> list[HistoryRow]:
    """The oldest first."""
    async with db.read() as connection:
        return [_history_row(row) for row in await connection.fetch(_PAGE, uid, after_seq, limit)]


def _history_row(row: Any) -> HistoryRow:
    entry = HistoryEntry(
        at=row["at"],
        phase=JobPhase(row["phase"]),
        reason=row["reason"],
        message=row["message"],
        actor=row["actor"],
        key=None if row["task"] is None else Rank(row["task"], row["rank"]),
        attempt=row["attempt"],
    )
    return HistoryRow(seq=row["seq"], entry=entry)
