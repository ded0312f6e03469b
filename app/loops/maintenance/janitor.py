"""Deletes orphans: pods and Workloads of this installation whose job Postgres does not know.

No reconcile covers them.
"""

import asyncio
from contextlib import suppress
from uuid import UUID

import structlog

from app.base.cancellation import rounds
from app.db.jobs import controller
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata
from app.domain.status.pods.ownership import is_owned, names_anchor
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.errors import KubeError, KubeNotFound
from app.k8s.finalizers import delete_and_release
from app.k8s.resources import CONFIG_MAP, POD, WORKLOAD, KubeResource
from app.loops.jobs.mirror import Mirror
from app.loops.jobs.queues import QueueMirror
from app.loops.leadership.lease import Leadership

log = structlog.get_logger(__name__)

BATCH = 500  # jobs in one query
FINALIZERS = {POD: labels.EVIDENCE_FINALIZER, WORKLOAD: labels.ADMISSION_FINALIZER}


class Janitor:
    """Deletes and releases orphans. `timeout` is seconds for each request to the cluster."""

    def __init__(
        self,
        api: KubeApi,
        db: Database,
        leadership: Leadership,
        mirror: Mirror,
        queues: QueueMirror,
        *,
        timeout: float,
        served: NamespaceSet = EVERY_NAMESPACE,
    ) -> None:
        self._api = api
        self._db = db
        self._leadership = leadership
        self._mirror = mirror
        self._queues = queues
        self._timeout = timeout
        self._served = served

    async def run(self, every: float) -> None:
        """Delete orphans until cancelled, with `every` seconds between two runs."""
        for _ in rounds():
            try:
                await self.delete_orphans()
            except DatabaseUnavailable as error:
                log.warning("janitor.database_unavailable", error=str(error))
            await asyncio.sleep(every)

    async def delete_orphans(self) -> None:
        """Delete and release the orphans in served namespaces."""
        # Objects are read before jobs. A job is stored before it has objects, so the queries find every job that has
        # one.
        found = [
            *((POD, pod.metadata) for pod in self._mirror.pods()),
            *((WORKLOAD, workload.metadata) for workload in self._queues.workloads()),
        ]
        served = [(resource, metadata) for resource, metadata in found if metadata.namespace in self._served]
        known = await self._find_known({uid for _, metadata in served if labels.is_job_uid(uid := _job_of(metadata))})
        for resource, metadata in served:
            uid = _job_of(metadata)
            # The quota of an orphan is not free while a pod uses it.
            if uid in known or (resource is WORKLOAD and self._mirror.count(uid)):
                continue
            # The next run finds the orphan again.
            with suppress(KubeError):
                await self._delete(resource, metadata)

    async def _find_known(self, uids: set[str]) -> set[str]:
        known: set[str] = set()
        ordered = sorted(uids)
        for start in range(0, len(ordered), BATCH):
            found = await controller.find_existing(self._db, [UUID(uid) for uid in ordered[start : start + BATCH]])
            known |= {str(uid) for uid in found}
        return known

    async def _is_ours(self, metadata: Metadata) -> bool:
        """Return whether the anchor of the job that the label names controls the object. The label proves nothing.

        If the anchor is gone, the garbage collector deletes the objects that it controlled, and only jobgate's
        finalizer still holds them.
        """
        job = _job_of(metadata)
        if not names_anchor(metadata, job):
            return False
        try:
            anchor = await self._api.get(
                CONFIG_MAP, labels.anchor_name(job), metadata.namespace, codec=OBJECT, timeout=self._timeout
            )
        except KubeNotFound:
            return metadata.deletion_timestamp is not None
        return is_owned(metadata, job, {anchor.metadata.uid})

    async def _delete(self, resource: KubeResource, metadata: Metadata) -> None:
        if not await self._is_ours(metadata):
            return
        log.warning(
            "janitor.orphan",
            namespace=metadata.namespace,
            kind=resource.kind,
            name=metadata.name,
            job=_job_of(metadata),
        )
        self._leadership.guard(self._timeout)
        # Without a record of the job, there is no attempt whose evidence could be stored.
        finalizer = FINALIZERS[resource]
        await delete_and_release(self._api, resource, metadata, finalizer, request_seconds=self._timeout)


def _job_of(metadata: Metadata) -> str:
    return metadata.labels.get(labels.JOB_UID, "")
