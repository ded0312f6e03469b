"""The LocalQueues of Kueue, as the controller observes them. API processes read them here and not in the cluster."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres import codec
from app.db.postgres.columns import record_columns
from app.db.postgres.engine import Connection, Database
from app.db.postgres.queries import any_length
from app.domain.access.namespaces import NamespaceSet
from app.domain.queueing.queue_status import QueueStatus
from app.domain.status.observed import KueueState
from app.models.queues import kueue, queues


class QueueKey(NamedTuple):
    """Identifies a LocalQueue. Keys sort like lists of queues."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A LocalQueue. `observed_at` is the time of the last change of its status."""

    namespace: str
    name: str
    observed_at: datetime
    status: QueueStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class KueueRecord:
    """What the controller knows of Kueue. The stored queues were true at `observed_at`; None if it never listed them.

    `message` says why the state is not `listed`, or what the controller cannot read or write in spite of it.
    `most_pod_sets` is how many pod sets Kueue accepts in a Workload; None if that is not known.
    """

    state: KueueState
    message: str = ""
    observed_at: datetime | None = None
    most_pod_sets: int | None = None


_ROW: Final = record_columns(queues, QueueRow)
_KUEUE: Final = record_columns(kueue, KueueRecord)
_ALL: Final = f"SELECT {_ROW} FROM queues"  # noqa: S608  constants
_KEYS: Final = "SELECT namespace, name FROM queues"
_READ: Final = f"{_ALL} WHERE namespace = $1 AND name = ANY($2::text[])"
# A list shows the first pending jobs of each queue, so that a page of many queues stays small.
_PAGE: Final = f"""
SELECT {_ROW.without("status")}, jsonb_set(
    status, '{{jobs}}', jsonb_path_query_array(status, '$.jobs[0 to $last]', jsonb_build_object('last', $5::int))
) AS status
FROM queues
WHERE (namespace, name) > ($1, $2) AND ($3::text[] IS NULL OR namespace = ANY($3)) AND namespace <> ALL($4::text[])
ORDER BY namespace, name LIMIT $6
"""  # noqa: S608  constants
_WRITE: Final = f"""
INSERT INTO queues ({_ROW}) SELECT {_ROW} FROM {_ROW.rows("w")}
ON CONFLICT (namespace, name) DO UPDATE SET {_ROW.assignments("excluded")}
"""  # noqa: S608  constants
_DELETE: Final = f"""
DELETE FROM queues WHERE (namespace, name) IN (
    SELECT namespace, name FROM unnest({any_length("$1::text[]")}, $2::text[]) AS gone(namespace, name))
"""  # noqa: S608  constants
_DELETE_NAMESPACE: Final = "DELETE FROM queues WHERE namespace = $1"
_WRITE_KUEUE: Final = f"""
INSERT INTO kueue ({_KUEUE}) SELECT {_KUEUE} FROM {_KUEUE.rows("w")}
ON CONFLICT (singleton) DO UPDATE
SET state = excluded.state, message = excluded.message,
    observed_at = COALESCE(excluded.observed_at, kueue.observed_at),
    most_pod_sets = COALESCE(excluded.most_pod_sets, kueue.most_pod_sets)
"""  # noqa: S608  constants
_READ_KUEUE: Final = f"SELECT {_KUEUE} FROM kueue"  # noqa: S608  constants


async def write(
    db: Database, lease: Lease, known: KueueRecord, changed: Sequence[QueueRow] = (), gone: Collection[QueueKey] = ()
) -> None:
    """Store the queues that have changed, and what is known of Kueue. What is None of it stays as it was.

    Raises:
        LeaseLost: another controller holds the lease.
    """
    async with db.begin() as connection:
        await leases.fence(connection, lease)
        if gone:
            await connection.execute(_DELETE, *map(list, zip(*gone, strict=True)))
        if changed:
            await connection.execute(_WRITE, *_ROW.arguments([_ROW.values(row) for row in changed]))
        await connection.execute(_WRITE_KUEUE, *_KUEUE.arguments([_KUEUE.values(known)]))


async def forget_namespace(connection: Connection, namespace: str) -> None:
    """Delete the queues of a namespace that was deleted. The controller stores those of its successor again."""
    await connection.execute(_DELETE_NAMESPACE, namespace)


async def read_keys(db: Database) -> set[QueueKey]:
    async with db.read() as connection:
        return {QueueKey(*row) for row in await connection.fetch(_KEYS)}


async def read_all(db: Database) -> list[QueueRow]:
    async with db.read() as connection:
        return [_row(row) for row in await connection.fetch(_ALL)]


async def read(db: Database, namespace: str, names: Collection[str]) -> dict[str, QueueRow]:
    """Return those of these queues of a namespace that exist, by name."""
    async with db.read() as connection:
        return {row["name"]: _row(row) for row in await connection.fetch(_READ, namespace, list(names))}


async def page(db: Database, namespaces: NamespaceSet, after: QueueKey, *, limit: int, jobs: int) -> list[QueueRow]:
    """Return at most `limit` queues after a key, in the order of their keys, each with its first pending jobs."""
    async with db.read() as connection:
        found = await connection.fetch(_PAGE, *after, namespaces.names, namespaces.excluded, jobs - 1, limit)
    return [_row(row) for row in found]


async def read_kueue(db: Database) -> KueueRecord | None:
    """Return what the controller knows of Kueue; None if no controller has recorded it."""
    async with db.read() as connection:
        row = await connection.fetchrow(_READ_KUEUE)
    return None if row is None else codec.load(_KUEUE.read(row), KueueRecord)


def _row(row: Any) -> QueueRow:
    return codec.load(_ROW.read(row), QueueRow)
