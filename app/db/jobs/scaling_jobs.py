"""Reads of the autoscaler: a few columns of many jobs, and manifests only on request, because they are large."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from app.db.postgres.engine import Database
from app.db.postgres.queries import in_namespaces, namespace_arguments
from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.plan import Manifest
from app.domain.scaling.candidates import NO_ROOM, TaskWaits
from app.domain.scaling.values import WaitingJob
from app.domain.vocabulary import TERMINAL_PHASES, JobPhase, PendingCode, ReplicaPhase

_TERMINAL = sorted(TERMINAL_PHASES)
_UNPLACED = [PendingCode.UNSCHEDULABLE, PendingCode.GANG_UNSCHEDULABLE]
_IS_LIVE = """
NOT j.quiet AND j.phase <> ALL($1::text[]) AND j.cancel_requested_at IS NULL AND j.remove_requested_at IS NULL
"""
_LIVE = f"""
SELECT j.uid, j.namespace, j.name, j.kind, j.api_version, j.generation, j.intent_version, j.phase,
       j.observed_generation >= j.generation AS seen,
       (SELECT max(s.requested_at) FROM scale_records AS s WHERE s.job_uid = j.uid) AS scaled_at
FROM jobs AS j
WHERE {_IS_LIVE} AND j.kind = ANY($2::text[]) AND {in_namespaces(3, "j.namespace")}
ORDER BY j.namespace, j.name
"""  # noqa: S608  constants
_MANIFESTS = "SELECT uid, intent_version, manifest FROM jobs WHERE uid = ANY($1::uuid[])"
# A pending reason lists at most 20 replicas as task[rank]. If its count is higher, the unlisted ones match too.
_WAITING = f"""
WITH stuck AS (
    SELECT j.uid, j.namespace, j.name,
           ARRAY(SELECT jsonb_array_elements_text(p -> 'replicas')
                 FROM jsonb_array_elements(j.status -> 'pending_reasons') AS p
                 WHERE p ->> 'code' = ANY($2::text[]) AND p ->> 'message' ~ $6) AS listed,
           (SELECT sum((p ->> 'count')::int)
            FROM jsonb_array_elements(j.status -> 'pending_reasons') AS p
            WHERE p ->> 'code' = ANY($2::text[]) AND p ->> 'message' ~ $6) AS many
    FROM jobs AS j
    WHERE {_IS_LIVE} AND {in_namespaces(4, "j.namespace")}
      AND j.status -> 'pending_reasons' @> ANY(
          SELECT jsonb_build_array(jsonb_build_object('code', code)) FROM unnest($2::text[]) AS code))
SELECT stuck.uid, stuck.namespace, stuck.name, r.task,
       bool_and(r.phase = $3)
       AND bool_or(stuck.many > cardinality(stuck.listed) OR format('%s[%s]', r.task, r.rank) = ANY(stuck.listed))
           AS wholly
FROM stuck JOIN replicas AS r ON r.job_uid = stuck.uid AND NOT r.leaving
GROUP BY stuck.uid, stuck.namespace, stuck.name, r.task ORDER BY stuck.namespace, stuck.name, r.task
"""  # noqa: S608  constants


class LiveRow(NamedTuple):
    """`seen`: the controller has observed this generation. `scaled_at`: the time of the last request to scale."""

    uid: UUID
    namespace: str
    name: str
    kind: str
    api_version: str
    generation: int
    intent_version: int
    phase: JobPhase
    seen: bool
    scaled_at: datetime | None


class StoredManifest(NamedTuple):
    """Every edit of the manifest, including its metadata, increases `intent_version`."""

    uid: UUID
    intent_version: int
    manifest: Manifest


async def live(db: Database, kinds: Sequence[str], served: NamespaceSet = EVERY_NAMESPACE) -> list[LiveRow]:
    """Return the live jobs of these kinds, except those that clients have cancelled or deleted."""
    async with db.read() as connection:
        rows = await connection.fetch(_LIVE, _TERMINAL, list(kinds), *namespace_arguments(served))
    return [LiveRow(**{**row, "phase": JobPhase(row["phase"])}) for row in rows]


async def manifests(db: Database, uids: Sequence[UUID]) -> list[StoredManifest]:
    async with db.read() as connection:
        return [StoredManifest(*row) for row in await connection.fetch(_MANIFESTS, list(uids))]


async def waiting(db: Database, served: NamespaceSet = EVERY_NAMESPACE) -> list[TaskWaits]:
    """Return the tasks of live jobs of all kinds that have unschedulable replicas, for which no node has room."""
    async with db.read() as connection:
        rows = await connection.fetch(
            _WAITING, _TERMINAL, _UNPLACED, ReplicaPhase.CREATING, *namespace_arguments(served), NO_ROOM
        )
    return [
        TaskWaits(
            job=WaitingJob(uid=str(row["uid"]), namespace=row["namespace"], name=row["name"]),
            task=row["task"],
            wholly=row["wholly"],
        )
        for row in rows
    ]
