"""Objects without pods, as the services use them: where they are stored, how they change, and their events."""

from typing import Final
from uuid import UUID

from app.db.engine import Database
from app.db.sample_edits import (
    NewSample,
    SampleEdit,
    edit,
    first_row,
    refuse_leaving,
    request_deletion,
    submit,
)
from app.db.sample_rows import SampleEventRow, SampleRow, stored_as

__all__ = [
    "NewSample",
    "SampleEdit",
    "SampleEventRow",
    "SampleRow",
    "edit",
    "events",
    "first_row",
    "refuse_leaving",
    "request_deletion",
    "stored_as",
    "submit",
]

_EVENTS: Final = """
SELECT seq, at, type, reason, message FROM sample_events WHERE uid = $1 AND seq > $2 ORDER BY seq LIMIT $3
"""


async def events(db: Database, uid: UUID, *, after_seq: int = 0, limit: int) -> list[SampleEventRow]:
    """The oldest first."""
    async with db.read() as connection:
        return [SampleEventRow(**row) for row in await connection.fetch(_EVENTS, uid, after_seq, limit)]
