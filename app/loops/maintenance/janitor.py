"""Deletes orphans: pods of this installation whose job Postgres does not know, so that no reconcile covers them."""

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
from app.domain.kubernetes.objects import Pod
from app.domain.status.pods.ownership import is_owned, names_anchor
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.errors import KubeConflict, KubeError, KubeNotFound
from app.k8s.finalizers import release
from app.k8s.resources import CONFIG_MAP, POD
from app.loops.jobs.mirror import Mirror, is_job_uid
from app.loops.leadership.lease import Leadership

log = structlog.get_logger(__name__)

BATCH = 500  # jobs in one query


class Janitor:
    """Deletes and releases orphans. `timeout` is seconds for each request to the cluster."""

    def __init__(
        self,
        api: KubeApi,
        db: Database,
        leadership: Leadership,
        mirror: Mirror,
        *,
        timeout: float,
        served: NamespaceSet = EVERY_NAMESPACE,
    ) -> None:
        self._api = api
        self._db = db
        self._leadership = leadership
        self._mirror = mirror
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
        # Pods are read before jobs. A job is stored before it has a pod, so the queries find every job that has one.
        pods = [pod for pod in self._mirror.pods() if pod.metadata.namespace in self._served]
        known = await self._known(
            {uid for pod in pods if is_job_uid(uid := pod.metadata.labels.get(labels.JOB_UID, ""))}
        )
        for pod in pods:
            if pod.metadata.labels.get(labels.JOB_UID) not in known:
                # The next run finds the orphan again.
                with suppress(KubeError):
                    await self._delete(pod)

    async def _known(self, uids: set[str]) -> set[str]:
        known: set[str] = set()
        ordered = sorted(uids)
        for start in range(0, len(ordered), BATCH):
            found = await controller.existing(self._db, [UUID(uid) for uid in ordered[start : start + BATCH]])
            known |= {str(uid) for uid in found}
        return known

    async def _is_ours(self, pod: Pod) -> bool:
        """Return whether the anchor of the job in the pod's label controls the pod. The label alone proves nothing.

        If the anchor is gone, the garbage collector deletes the pods that it controlled, and only jobgate's finalizer
        still holds them.
        """
        metadata = pod.metadata
        job = metadata.labels.get(labels.JOB_UID, "")
        if not names_anchor(metadata, job):
            return False
        try:
            anchor = await self._api.get(
                CONFIG_MAP, labels.anchor_name(job), metadata.namespace, codec=OBJECT, timeout=self._timeout
            )
        except KubeNotFound:
            return metadata.deletion_timestamp is not None
        return is_owned(metadata, job, {anchor.metadata.uid})

    async def _delete(self, pod: Pod) -> None:
        metadata = pod.metadata
        if not await self._is_ours(pod):
            return
        job = metadata.labels.get(labels.JOB_UID, "")
        log.warning("janitor.orphan", namespace=metadata.namespace, pod=metadata.name, job=job)
        self._leadership.guard(self._timeout)
        if metadata.deletion_timestamp is None:
            with suppress(KubeNotFound, KubeConflict):
                await self._api.delete(POD, metadata.name, metadata.namespace, uid=metadata.uid, timeout=self._timeout)
        # Without a record of the job, there is no attempt whose evidence could be stored.
        await release(self._api, POD, metadata, labels.EVIDENCE_FINALIZER, request_seconds=self._timeout)
