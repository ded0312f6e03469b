"""Announcements: the feed entries that a transaction writes about the jobs and samples that it changes.

The publisher numbers the entries after their commit, and `app.db.feed.entries` reads them.
"""

from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

from app.db.installation.timekeeping import NOW
from app.db.postgres.engine import Connection
from app.domain.kinds.base import JOBS

CREATED = "created"
EDITED = "edited"
CANCELLED = "cancelled"
REMOVED = "removed"
DELETED = "deleted"
STATUS = "status"
PURGED = "purged"

Version: TypeAlias = tuple[str, UUID, int]  # namespace, uid, version

_ANNOUNCE = f"""
INSERT INTO job_events (at, type, resource, namespace, job_uid, version)
SELECT {NOW}, $1, $2, * FROM unnest($3::text[], $4::uuid[], $5::bigint[])
"""  # noqa: S608  constants


async def announce(connection: Connection, what: str, versions: Sequence[Version], *, resource: str = JOBS) -> None:
    """Write one entry for each version. Readers see it after the commit, when the publisher has numbered it."""
    if versions:
        await connection.execute(_ANNOUNCE, what, resource, *(list(column) for column in zip(*versions, strict=True)))
