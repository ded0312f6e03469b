"""How a transaction says in the feed what it did to which job. `app.db.feed` numbers and reads what is said here."""

from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

from app.db.engine import Connection

CREATED = "created"
EDITED = "edited"
CANCELLED = "cancelled"
REMOVED = "removed"
DELETED = "deleted"
STATUS = "status"

JobVersion: TypeAlias = tuple[str, UUID, int]  # namespace, uid, version

_ANNOUNCE = """
INSERT INTO job_events (at, type, namespace, job_uid, version)
SELECT clock_timestamp(), $1, * FROM unnest($2::text[], $3::uuid[], $4::bigint[])
"""


async def announce(connection: Connection, what: str, versions: Sequence[JobVersion]) -> None:
    """Add a row a job. It becomes visible, in its place, after the commit."""
    if versions:
        await connection.execute(_ANNOUNCE, what, *(list(column) for column in zip(*versions, strict=True)))
