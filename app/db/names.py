"""Whose a name is by now."""

from uuid import UUID

from app.db.engine import Database

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


async def pod_is_taken_over(db: Database, namespace: str, name: str, uid: UUID) -> bool:
    """Whether a job newer than this one uses the pod's name, so that what bears it is not this job's any more."""
    async with db.read() as connection:
        return bool(await connection.fetchval(_TAKEN_OVER, namespace, name, "pod", uid))
