"""Moves the stored objects of a namespace that was deleted and created again to a name that no tenant can be granted.

    namespace team-a with the uid 1 ─▶ deleted ─▶ team-a with the uid 2 ─▶ objects of the first one: `team-a~1`

Access, lists, counts, streams and the uniqueness of names all depend on the namespace of an object, so this one change
concerns all of them. `~` is in no name of Kubernetes. Only callers with all namespaces see such objects.
"""

from datetime import datetime
from typing import Final

from app.db import queues
from app.db.feed import changes
from app.db.jobs import autoscaler_runs
from app.db.objects import idempotency
from app.db.postgres.engine import Connection
from app.db.reservations import room_waits
from app.db.reservations.pod_room import append
from app.db.samples import edits
from app.db.samples.rows import COLUMNS, sample_row
from app.db.usage import writes as usage_writes
from app.domain.access.actors import CONTROLLER
from app.domain.access.namespaces import former_name

REASON: Final = "the namespace was deleted and created again"

MOST_AT_ONCE: Final = 1_000
"""The objects that one transaction moves. A namespace can have so many that one statement would reach its timeout."""

_OBJECTS: Final = """
SELECT uid, created_at FROM jobs WHERE namespace = $1 AND created_at < $2
UNION ALL SELECT uid, created_at FROM samples WHERE namespace = $1 AND created_at < $2
LIMIT $3
"""
_NAMES: Final = "UPDATE names SET namespace = $2 WHERE job_uid = ANY($1::uuid[])"
# The pods of a live job are gone with the namespace. The job must not create others in the new one.
_JOBS: Final = """
UPDATE jobs
SET namespace = $2, version = version + 1,
    remove_requested_at = CASE WHEN quiet THEN remove_requested_at ELSE COALESCE(remove_requested_at, $3) END,
    cancel_requested_at = CASE WHEN finished_at IS NULL THEN COALESCE(cancel_requested_at, $3)
                               ELSE cancel_requested_at END,
    cancel_requested_by = CASE WHEN finished_at IS NULL THEN COALESCE(cancel_requested_by, $4)
                               ELSE cancel_requested_by END,
    cancel_requested_by_id = CASE WHEN finished_at IS NULL THEN COALESCE(cancel_requested_by_id, $5)
                                  ELSE cancel_requested_by_id END,
    cancel_reason = CASE WHEN finished_at IS NULL THEN COALESCE(cancel_reason, $6) ELSE cancel_reason END,
    intent_version = intent_version + (NOT quiet)::int,
    intent_at = CASE WHEN quiet THEN intent_at ELSE $3 END
WHERE uid = ANY($1::uuid[])
RETURNING uid, version, CASE WHEN finished_at IS NULL THEN planned_pods ELSE 0 END AS pods
"""
_SAMPLES: Final = f"""
UPDATE samples AS s SET namespace = $2, version = version + 1 WHERE uid = ANY($1::uuid[]) RETURNING {COLUMNS}
"""  # noqa: S608  constants
# With another epoch, no stream continues at an earlier position, and no process uses what it keeps of the feed in
# memory. Entries of the feed keep their namespace, because no index finds them by uid. A reader of an entry that is
# numbered later finds the object in another namespace, and leaves the entry out.
_NEW_EPOCH: Final = "UPDATE feed SET epoch = epoch + 1"


async def move(connection: Connection, namespace: str, uid: str, *, created_before: datetime, at: datetime) -> int:
    """Move objects of the namespace with this uid that were stored before this time, and return their number.

    Further calls move the others; 0 means that none is left. Live jobs are cancelled, and what they and sample sets
    have in the cluster is removed.
    """
    # They name jobs of the former namespace.
    await queues.forget_namespace(connection, namespace)
    objects = await connection.fetch(_OBJECTS, namespace, created_before, MOST_AT_ONCE)
    if not objects:
        return 0
    uids = [row["uid"] for row in objects]
    former = former_name(namespace, uid)
    # Keys before names and names before rows, as in every transaction. A repeated request is one of the new namespace.
    await idempotency.forget_objects(connection, uids, [row["created_at"] for row in objects])
    await connection.execute(_NAMES, uids, former)
    actor = (CONTROLLER.name, CONTROLLER.id)
    jobs = await connection.fetch(_JOBS, uids, former, at, *actor, REASON)
    samples = [sample_row(row) for row in await connection.fetch(_SAMPLES, uids, former)]
    pods = sum(row["pods"] for row in jobs)
    # They are cancelled, so they need no room.
    await room_waits.forget(connection, uids)
    await usage_writes.move(connection, namespace, former)
    await append(connection, namespace, -pods)
    await append(connection, former, pods)
    await autoscaler_runs.move(connection, uids, former)
    await connection.execute(_NEW_EPOCH)
    await changes.announce(connection, changes.REMOVED, [(former, row["uid"], row["version"]) for row in jobs])
    for row in samples:
        if row.delete_requested_at is None:
            await edits.delete(connection, row, actor=CONTROLLER, at=at, reason=REASON)
        else:
            version = (former, row.uid, row.version)
            await changes.announce(connection, changes.DELETED, [version], resource=row.of_kind.resource)
    return len(uids)
