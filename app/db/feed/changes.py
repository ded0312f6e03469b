"""How a transaction says in the feed what it did to which job or sample.

`app.db.feed` numbers and reads what is said here.
"""

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

JOBS = "jobs"
"""The resource that is meant where none is named; a sample's is that of its kind."""

Version: TypeAlias = tuple[str, UUID, int]  # namespace, uid, version

_ANNOUNCE = """
INSERT INTO job_events (at, type, resource, namespace, job_uid, version)
SELECT clock_timestamp(), $1, $2, * FROM unnest($3::text[], $4::uuid[], $5::bigint[])
"""


async def announce(connection: Connection, what: str, versions: Sequence[Version], *, resource: str = JOBS) -> None:
    """Add a row each. It becomes visible, in its place, after the commit."""
    if versions:
        await connection.execute(_ANNOUNCE, what, resource, *(list(column) for column in zip(*versions, strict=True)))
