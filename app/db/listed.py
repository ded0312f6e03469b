"""What the filters of lists look at, of things that have just changed: narrow rows, without manifests."""

from collections.abc import Collection, Mapping
from typing import Final
from uuid import UUID

from app.db.engine import Database
from app.db.events import JOBS
from app.domain.listing import ListItem

_JOBS: Final = """
SELECT uid, namespace, name, kind, phase, labels, created_at, finished_at, '' AS set_name,
       deleted_at IS NOT NULL AS deleted
FROM jobs WHERE uid = ANY($1::uuid[])
"""
_SAMPLES: Final = """
SELECT uid, namespace, name, kind, phase, labels, created_at, finished_at, set_name,
       delete_requested_at IS NOT NULL AS deleted
FROM samples WHERE uid = ANY($1::uuid[])
"""


async def listed(db: Database, resource: str, uids: Collection[UUID]) -> Mapping[UUID, ListItem]:
    """Those of the things that exist, as they are now."""
    async with db.read() as connection:
        rows = await connection.fetch(_JOBS if resource == JOBS else _SAMPLES, list(uids))
    return {row["uid"]: ListItem(**row) for row in rows}
