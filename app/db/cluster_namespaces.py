"""The namespaces of the cluster, as the controller observes them. API processes refuse objects of other namespaces.

A namespace whose uid has changed was deleted and created again. Its stored objects then belong to a former namespace.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from app.db import former_namespaces
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres.engine import Connection, Database

_STORE: Final = """
INSERT INTO cluster_namespaces (names) VALUES ($1)
ON CONFLICT (singleton) DO UPDATE SET names = excluded.names
"""
_EXISTS: Final = "SELECT names ? $1 FROM cluster_namespaces"
_UIDS: Final = "SELECT uids FROM cluster_namespaces"
_STORE_UIDS: Final = """
INSERT INTO cluster_namespaces (uids) VALUES ($1) ON CONFLICT (singleton) DO UPDATE SET uids = excluded.uids
"""
_WITH_OBJECTS: Final = """
SELECT known.name FROM unnest($1::text[]) AS known(name)
WHERE EXISTS (SELECT FROM jobs WHERE namespace = known.name)
    OR EXISTS (SELECT FROM samples WHERE namespace = known.name)
"""


@dataclass(frozen=True, slots=True)
class NamespaceLife:
    """A namespace from its creation to its deletion."""

    uid: str
    created_at: datetime


async def store(db: Database, lease: Lease, names: Collection[str] | None) -> None:
    """Store the names of all namespaces, or None if they are not known.

    Raises:
        LeaseLost: another controller holds the lease.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        await connection.execute(_STORE, None if names is None else sorted(names))


async def bind(db: Database, lease: Lease, lives: Mapping[str, NamespaceLife], now: datetime) -> list[str]:
    """Bind stored objects to the uids of all namespaces. Return the names of those that were created again.

    A namespace with another uid than the last known one has been created again. Objects that were stored before its
    creation belong to the former one.

    Raises:
        LeaseLost: another controller holds the lease.
    """
    async with db.read() as connection:
        known: dict[str, str] = await connection.fetchval(_UIDS) or {}
    again = [name for name, life in lives.items() if known.get(name, life.uid) != life.uid]
    for name in again:
        while await _move(db, lease, name, known[name], lives[name], now):
            pass
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        uids = await _with_objects(connection, known, lives) | {name: life.uid for name, life in lives.items()}
        # After the last move: a move that is interrupted continues at the next call.
        if uids != known:
            await connection.execute(_STORE_UIDS, uids)
    return again


async def _move(db: Database, lease: Lease, name: str, uid: str, life: NamespaceLife, now: datetime) -> int:
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        return await former_namespaces.move(connection, name, uid, created_before=life.created_at, at=now)


async def _with_objects(
    connection: Connection, known: Mapping[str, str], lives: Mapping[str, NamespaceLife]
) -> dict[str, str]:
    """Return the uids of the deleted namespaces of which objects are stored. The others need not be known any more."""
    deleted = [name for name in known if name not in lives]
    return {row["name"]: known[row["name"]] for row in await connection.fetch(_WITH_OBJECTS, deleted)}


async def exists(db: Database, name: str) -> bool | None:
    """Return whether the cluster has the namespace, or None if this is not known."""
    async with db.read() as connection:
        found: bool | None = await connection.fetchval(_EXISTS, name)
    return found
