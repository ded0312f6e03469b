"""Names in a namespace: whose one is by now, more of them for a job that grows, and leftovers that are in the way."""

from collections.abc import Sequence
from typing import TypeAlias
from uuid import UUID

from app.db import codec, events
from app.db.engine import Connection, Database
from app.db.errors import DatabaseContended
from app.db.reasons import REMOVE_REQUESTED
from app.domain.errors import Conflict, FieldError
from app.domain.status.records import ACTOR_CONTROLLER

KindAndName: TypeAlias = tuple[str, str]
Name: TypeAlias = tuple[str, str, str]  # namespace, kind, name

_TAKEN_OVER = """
SELECT EXISTS (
    SELECT FROM jobs AS this
    JOIN (
        SELECT job_uid FROM names WHERE (namespace, name, kind) = ($1, $2, $3) AND NOT released
        UNION ALL
        SELECT job_uid FROM names WHERE (namespace, name, kind) = ($1, $2, $3) AND released
    ) AS n ON n.job_uid <> this.uid
    JOIN jobs AS other ON other.uid = n.job_uid AND other.created_at > this.created_at
    WHERE this.uid = $4
)
"""
_RESERVE = """
INSERT INTO names (job_uid, namespace, kind, name)
SELECT j.uid, j.namespace, w.kind, w.name
FROM jobs AS j CROSS JOIN unnest($2::text[], $3::text[]) AS w(kind, name)
WHERE j.uid = $1 ORDER BY w.name, w.kind
ON CONFLICT DO NOTHING
"""
_LOCK_ALL = """
SELECT uid FROM jobs
WHERE uid = $1 OR remove_requested_at IS NULL AND uid IN (
    SELECT n.job_uid FROM unnest($2::text[], $3::text[], $4::text[]) AS w(namespace, kind, name)
    JOIN names AS n ON (n.namespace, n.kind, n.name) = (w.namespace, w.kind, w.name) AND n.released)
ORDER BY uid FOR UPDATE
"""
_LACKING = """
SELECT w.kind, w.name, n.job_uid, j.name AS job_name
FROM unnest($2::text[], $3::text[], $4::text[]) AS w(namespace, kind, name)
LEFT JOIN names AS own ON (own.job_uid, own.kind, own.name) = ($1, w.kind, w.name) AND NOT own.released
LEFT JOIN names AS n ON (n.namespace, n.kind, n.name) = (w.namespace, w.kind, w.name) AND NOT n.released
LEFT JOIN jobs AS j ON j.uid = n.job_uid
WHERE own.job_uid IS NULL ORDER BY n.job_uid IS NULL, w.kind, w.name LIMIT 1
"""
_CLEAR_THE_WAY = """
WITH locked AS MATERIALIZED (
    SELECT uid FROM jobs
    WHERE remove_requested_at IS NULL AND uid IN (
        SELECT n.job_uid FROM unnest($1::text[], $2::text[], $3::text[]) AS w(namespace, kind, name)
        JOIN names AS n ON (n.namespace, n.kind, n.name) = (w.namespace, w.kind, w.name) AND n.released)
    ORDER BY uid FOR UPDATE
), removed AS (
    UPDATE jobs AS j
    SET remove_requested_at = clock_timestamp(), version = j.version + 1, intent_version = j.intent_version + 1,
        intent_at = clock_timestamp(), history_count = j.history_count + 1
    FROM locked WHERE j.uid = locked.uid
    RETURNING j.namespace, j.uid, j.version, j.history_count, j.phase, j.remove_requested_at
), history AS (
    INSERT INTO status_history (job_uid, seq, at, phase, reason, message, actor)
    SELECT uid, history_count, remove_requested_at, phase, $4, 'a new job uses its names', $5 FROM removed
)
SELECT namespace, uid, version FROM removed
"""


async def pod_is_taken_over(db: Database, namespace: str, name: str, uid: UUID) -> bool:
    """Whether a job newer than this one uses the pod's name, so that what bears it is not this job's any more."""
    async with db.read() as connection:
        return bool(await connection.fetchval(_TAKEN_OVER, namespace, name, "pod", uid))


async def reserve_more(connection: Connection, uid: UUID, names: Sequence[KindAndName]) -> None:
    """Take what is free of these names for a job that lives, and lock its row and those of their former users.

    Names come before rows and rows in order of uid, as everywhere, so that no two transactions wait for each other.
    """
    if names:
        await connection.execute(_RESERVE, uid, *codec.columns(names))
        namespace = await connection.fetchval("SELECT namespace FROM jobs WHERE uid = $1", uid)
        await connection.fetch(_LOCK_ALL, uid, *codec.columns([(namespace, *name) for name in names]))


async def settle_more(connection: Connection, uid: UUID, namespace: str, names: Sequence[KindAndName]) -> None:
    """See that the job has all of these names, and have what finished jobs left under them removed.

    Raises:
        Conflict: a live job uses one of them.
        DatabaseContended: one was given back just now; repeat it.
    """
    if not names:
        return
    wanted = [(namespace, *name) for name in names]
    lacking = await connection.fetchrow(_LACKING, uid, *codec.columns(wanted))
    if lacking is None:
        await clear_the_way(connection, wanted)
        return
    if lacking["job_uid"] is None:
        raise DatabaseContended("the names that this job needs change hands too fast")
    error = FieldError(
        pointer="/spec",
        code="NameTaken",
        detail=f"the live job {lacking['job_name']} ({lacking['job_uid']}) uses the {lacking['kind']} name "
        f"{lacking['name']}",
        accepted="a size without that name, or wait until that job ends",
    )
    raise Conflict("a name that this job would need is in use", code="NameTaken", errors=[error])


async def clear_the_way(connection: Connection, names: Sequence[Name]) -> None:
    """Have the objects of finished jobs removed that bear one of these names."""
    if names:
        removed = await connection.fetch(_CLEAR_THE_WAY, *codec.columns(names), REMOVE_REQUESTED, ACTOR_CONTROLLER)
        await events.announce(connection, events.REMOVED, [tuple(row) for row in removed])
