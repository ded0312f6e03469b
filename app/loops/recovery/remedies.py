"""Does what `jobgate recover --yes` has announced: decisions about recorded jobs, and the objects of unknown ones.

Each step may be repeated, and the end of an interrupted run is found by a new comparison. The caller holds the lease of
the controller, so nothing else acts on these jobs.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final
from uuid import UUID

from app.base.clock import Clock
from app.base.faultpoints import FaultPoint, reach
from app.db.jobs import controller
from app.db.jobs.controller import StoredJob
from app.db.jobs.controller_writes import JobWrite
from app.db.postgres.engine import Database
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata
from app.domain.reconcile.values import Decision
from app.domain.recovery import decisions
from app.domain.recovery.differences import Difference, JobFinding, Remedy
from app.domain.status.pods.ownership import is_owned
from app.domain.vocabulary import Reason
from app.k8s.codec import OBJECT
from app.k8s.errors import KubeConflict, KubeNotFound
from app.k8s.finalizers import delete_and_release, release
from app.k8s.resources import CONFIG_MAP, POD, WORKLOAD, KubeResource
from app.loops.jobs.unknown import unknown
from app.loops.leadership.own_cluster import OwnCluster

_JOBS_AT_ONCE: Final = 20  # their manifests are in memory together
_FINALIZERS: Final = {
    POD: labels.EVIDENCE_FINALIZER,
    WORKLOAD: labels.ADMISSION_FINALIZER,
    CONFIG_MAP: labels.EVIDENCE_FINALIZER,
}
_OF_RECORDS: Final = frozenset({Difference.ENDED, Difference.AHEAD, Difference.MISSING})


class Remedies:
    """Carries out remedies on the records and the objects of jobs."""

    def __init__(
        self,
        cluster: OwnCluster,
        db: Database,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._api, self._timeout = cluster.api, cluster.timeout
        self._db = db
        self._clock = clock

    async def carry_out(self, chosen: Sequence[tuple[JobFinding, Remedy]]) -> None:
        """Carry out the remedy of each finding.

        Raises:
            KubeError, DatabaseUnavailable, LeaseLost: find the differences again.
        """
        stored = [(finding, remedy) for finding, remedy in chosen if finding.difference in _OF_RECORDS]
        for start in range(0, len(stored), _JOBS_AT_ONCE):
            await self._decide(stored[start : start + _JOBS_AT_ONCE])
        for finding, remedy in chosen:
            if finding.difference is Difference.LOST:
                await self._give_up(finding, remedy)

    async def _decide(self, chosen: Sequence[tuple[JobFinding, Remedy]]) -> None:
        """Store the decisions about some jobs. A client may edit or cancel a job meanwhile, so it is read again."""
        left = {UUID(finding.uid): (finding, remedy) for finding, remedy in chosen}
        while left:
            jobs = await controller.load(self._db, list(left))
            writes = [self._write(job, *left[uid]) for uid, job in jobs.items() if not _has_ended(job)]
            changed = await controller.persist(self._db, self._cluster.leadership.lease, writes) if writes else []
            reach(FaultPoint.RECOVERY_STORED)
            left = {uid: left[uid] for uid in changed}

    def _write(self, job: StoredJob, finding: JobFinding, remedy: Remedy) -> JobWrite:
        return job.write(_decision(job, finding, remedy, self._clock.now()))

    async def _give_up(self, finding: JobFinding, remedy: Remedy) -> None:
        """Delete or release the objects of a lost job. The anchor comes last: it shows what is left to do.

        The janitor deletes the Workload of a deleted job when its last pod is gone: until then, it uses the quota.
        """
        await self._cluster.verify()
        anchor = await self._read(CONFIG_MAP, labels.anchor_name(finding.uid), finding.namespace)
        if anchor is None:
            return
        releases = remedy is Remedy.RELEASE
        step = self._release if releases else self._delete
        owned = [(POD, name) for name in finding.pods]
        if releases:
            owned += [(WORKLOAD, name) for name in finding.workloads]
        for resource, name in owned:
            metadata = await self._read(resource, name, finding.namespace)
            if metadata is not None and is_owned(metadata, finding.uid, {anchor.uid}):
                await step(resource, metadata)
        await step(CONFIG_MAP, anchor)

    async def _read(self, resource: KubeResource, name: str, namespace: str) -> Metadata | None:
        try:
            found = await self._api.get(resource, name, namespace, codec=OBJECT, timeout=self._timeout)
        except KubeNotFound:
            return None
        return found.metadata

    async def _delete(self, resource: KubeResource, metadata: Metadata) -> None:
        self._cluster.guard()
        await delete_and_release(self._api, resource, metadata, _FINALIZERS[resource], request_seconds=self._timeout)
        reach(FaultPoint.RECOVERY_RELEASED)

    async def _release(self, resource: KubeResource, metadata: Metadata) -> None:
        """Take away what binds the object to this installation: its finalizer and its label."""
        self._cluster.guard()
        finalizer, found = _FINALIZERS[resource], metadata
        while not await release(self._api, resource, found, finalizer, request_seconds=self._timeout):
            again = await self._read(resource, found.name, found.namespace)
            if again is None or again.uid != metadata.uid:
                return
            found = again
        # An object that was being deleted is gone with its finalizer.
        with suppress(KubeNotFound, KubeConflict):
            patch = {"metadata": {"uid": metadata.uid, "labels": {labels.INSTALLATION: None}}}
            await self._api.merge_patch(resource, found.name, found.namespace, patch=patch, timeout=self._timeout)
        reach(FaultPoint.RECOVERY_RELEASED)


def _has_ended(job: StoredJob) -> bool:
    return job.recorded.status.phase.is_terminal


def _decision(job: StoredJob, finding: JobFinding, remedy: Remedy, now: datetime) -> Decision:
    if finding.ended is not None:
        return decisions.end(job.recorded, decisions.end_in_cluster(finding.ended), finding.attempts, now)
    if remedy is Remedy.ADOPT:
        return decisions.adopt(job.recorded, finding.attempts, now)
    if remedy is Remedy.FAIL:
        return decisions.end(job.recorded, decisions.missing(), {}, now)
    return unknown(job, Reason.OBJECTS_MISSING, decisions.MISSING, now)
