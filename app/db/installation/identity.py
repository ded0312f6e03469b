"""The identity of this installation, and the cluster that it is bound to."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres.columns import record_columns
from app.db.postgres.engine import Database
from app.models.installation import installation


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """`cluster_uid` is the uid of the namespace kube-system, or None until a controller has bound a cluster.

    The credentials of jobs are derived from `key`. `marks` are those that this database has put on the cluster.
    """

    id: UUID
    key: bytes = field(repr=False)
    cluster_uid: str | None
    created_at: datetime
    marks: Sequence[str] = ()


# The size of a SHA-256 digest, as recommended for an HMAC key.
_KEY_BYTES = 32

# Of two processes that start at once, the first insert wins, and both read its row.
_CREATE = """
INSERT INTO installation (id, key, created_at) VALUES ($1, $2, $3) ON CONFLICT (singleton) DO NOTHING
"""
_COLUMNS: Final = record_columns(installation, Installation)
_READ: Final = f"SELECT {_COLUMNS} FROM installation"  # noqa: S608  constants
# The first cluster stays. Only an operator binds the database to another one, by setting the column to null.
_BIND: Final = f"""
UPDATE installation SET cluster_uid = COALESCE(cluster_uid, $1)
RETURNING {_COLUMNS}
"""  # noqa: S608  constants

# Sixteen are more than the terms that can be late: a record of an earlier one may still arrive at the cluster.
_ADD_MARK: Final = f"""
UPDATE installation SET marks = (
    ARRAY[$1::text]
    || CASE WHEN $2 = ANY(marks) OR (cardinality(marks) = 0 AND $2 <> '') THEN ARRAY[$2::text] END
    || array_remove(marks, $2)
)[1:16]
RETURNING {_COLUMNS}
"""  # noqa: S608  constants


async def get_or_create(db: Database, new_id: UUID, now: datetime) -> Installation:
    """Return the installation of this database. If there is none, create it with the id `new_id`."""
    async with db.read() as connection:
        row = await connection.fetchrow(_READ)
        if row is None:
            await connection.execute(_CREATE, new_id, secrets.token_bytes(_KEY_BYTES), now)
            row = await connection.fetchrow(_READ)
    return Installation(**row)


async def read(db: Database) -> Installation:
    """Return the installation of this database, which a process creates at its start."""
    async with db.read() as connection:
        return Installation(**await connection.fetchrow(_READ))


async def bind_cluster(db: Database, lease: Lease, cluster_uid: str) -> Installation:
    """Bind the installation to this cluster unless it is bound, and return it.

    The caller compares `cluster_uid`: it is that of another cluster if the installation was bound before.

    Raises:
        LeaseLost: another controller holds the lease.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        return Installation(**await connection.fetchrow(_BIND, cluster_uid))


async def add_mark(db: Database, lease: Lease, mark: str, *, recorded: str = "") -> Installation:
    """Store a mark before it is put on the cluster, and return the installation.

    The oldest marks are dropped, but not the one that is `recorded` on the cluster: any number of terms may fail before
    one of them replaces it. It is added to a database without marks, which has lost them if a migration was taken back.

    Raises:
        LeaseLost: another controller holds the lease.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        return Installation(**await connection.fetchrow(_ADD_MARK, mark, recorded))
