"""Who this database is, which cluster it belongs to, and how far that cluster has seen it come.

The cluster stores the same epoch. Where it has seen a higher one than this row has, the database is older than the
cluster: restored from a backup, or another one.
"""

import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from app.db import leases
from app.db.columns import record_columns
from app.db.engine import Database
from app.db.leases import Lease
from app.models.installation import installation


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """`cluster_uid` is the uid of kube-system, None until a controller has bound the two.

    `key` is what the credentials of jobs are derived from.
    """

    id: UUID
    key: bytes = field(repr=False)
    cluster_uid: str | None
    created_at: datetime


_KEY_BYTES = 32

_CREATE = """
INSERT INTO installation (id, key, created_at) VALUES ($1, $2, $3) ON CONFLICT (singleton) DO NOTHING
"""
_COLUMNS: Final = record_columns(installation, Installation)
_READ: Final = f"SELECT {_COLUMNS} FROM installation"  # noqa: S608  constants
_BIND: Final = f"""
UPDATE installation SET cluster_uid = COALESCE(cluster_uid, $1)
RETURNING {_COLUMNS}
"""  # noqa: S608  constants


async def get_or_create(db: Database, new_id: UUID, now: datetime) -> Installation:
    """The installation of this database; `new_id` is its id if it has none yet."""
    async with db.read() as connection:
        row = await connection.fetchrow(_READ)
        if row is None:
            await connection.execute(_CREATE, new_id, secrets.token_bytes(_KEY_BYTES), now)
            row = await connection.fetchrow(_READ)
    return Installation(**row)


async def bind_cluster(db: Database, lease: Lease, cluster_uid: str) -> Installation:
    """Tie an unbound installation to this cluster. A bound one stays as it is: compare the answer.

    Raises:
        LeaseLost: the caller is not the controller any more.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        return Installation(**await connection.fetchrow(_BIND, cluster_uid))
