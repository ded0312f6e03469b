"""The namespaces of the cluster, as the controller observes them. API processes refuse objects of other namespaces."""

from collections.abc import Collection
from typing import Final

from app.db import leases
from app.db.engine import Database
from app.db.leases import Lease

_STORE: Final = """
INSERT INTO cluster_namespaces (names) VALUES ($1)
ON CONFLICT (singleton) DO UPDATE SET names = excluded.names
"""
_EXISTS: Final = "SELECT names ? $1 FROM cluster_namespaces"


async def store(db: Database, lease: Lease, names: Collection[str] | None) -> None:
    """Store the names of all namespaces, or None if they are not known.

    Raises:
        LeaseLost: another controller holds the lease.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        await connection.execute(_STORE, None if names is None else sorted(names))


async def exists(db: Database, name: str) -> bool | None:
    """Return whether the cluster has the namespace, or None if this is not known."""
    async with db.read() as connection:
        found: bool | None = await connection.fetchval(_EXISTS, name)
    return found
