"""Does what `jobgate recover --yes` has announced: decisions about recorded jobs, and the objects of unknown ones.

Each step may be repeated, and the end of an interrupted run is found by a new comparison. The caller holds the lease of
the controller, so nothing else acts on these jobs.
"""

from collections.abc import Callable, Sequence
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
from app.domain.recovery.differences import UNKNOWN_JOBS, JobFinding, Remedy
from app.domain.status.pods.ownership import is_owned, names_anchor
from app.domain.vocabulary import Reason
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.errors import KubeNotFound
from app.k8s.finalizers import delete_and_release, release
from app.k8s.resources import CONFIG_MAP, POD, WORKLOAD, KubeResource
from app.loops.jobs.unknown import unknown
from app.loops.leadership.lease import Leadership
from app.loops.maintenance.labelled import labelled

_JOBS_AT_ONCE: Final = 20  # their manifests are in memory together
_FINALIZERS: Final = {
    POD: labels.EVIDENCE_FINALIZER,
    WORKLOAD: labels.ADMISSION_FINALIZER,
    CONFIG_MAP: labels.EVIDENCE_FINALIZER,
}
_WITHOUT_INSTALLATION: Final = {"metadata": {"labels": {labels.INSTALLATION: None}}}


class Remedies:
    """Carries out remedies. `timeout` is seconds for each request to the cluster."""

    def __init__(
        self, api: KubeApi, db: Database, leadership: Leadership, clock: Clock, installation: str, *, timeout: float
    ) -> None:
        self._api = api
        self._db = db
        self._leadership = leadership
        self._clock = clock
        self._installation = installation
        self._timeout = timeout

    async def carry_out(self, chosen: Sequence[tuple[JobFinding, Remedy]]) -> None:
        """Carry out the remedy of each finding.

        Raises:
            KubeError, DatabaseUnavailable, LeaseLost: find the differences again.
        """
        stored = [(finding, remedy) for finding, remedy in chosen if finding.difference not in UNKNOWN_JOBS]
        for start in range(0, len(stored), _JOBS_AT_ONCE):
            await self._decide(stored[start : start + _JOBS_AT_ONCE])
        for finding, remedy in chosen:
            if finding.difference in UNKNOWN_JOBS:
                await self._give_up(finding, remedy)

    async def _decide(self, chosen: Sequence[tuple[JobFinding, Remedy]]) -> None:
        """Store the decisions about some jobs. A client may edit or cancel a job meanwhile, so it is read again."""
        left = {UUID(finding.uid): (finding, remedy) for finding, remedy in chosen if remedy is not Remedy.START}
        while left:
            jobs = await controller.load(self._db, list(left))
            writes = [self._write(job, *left[uid]) for uid, job in jobs.items() if not _has_ended(job)]
            changed = await controller.persist(self._db, self._leadership.lease, writes) if writes else []
            reach(FaultPoint.RECOVERY_STORED)
            left = {uid: left[uid] for uid in changed}

    def _write(self, job: StoredJob, finding: JobFinding, remedy: Remedy) -> JobWrite:
        return job.write(_decision(job, finding, remedy, self._clock.now()))

    async def _give_up(self, finding: JobFinding, remedy: Remedy) -> None:
        """Delete or release the objects of an unknown job. The anchor comes last: it shows what is left to do."""
        anchor = await self._anchor(finding)
        step = self._release if remedy is Remedy.RELEASE and anchor is not None else self._delete
        selector = f"{labels.INSTALLATION}={self._installation},{labels.JOB_UID}={finding.uid}"
        owner = {anchor.uid} if anchor is not None else None
        for resource, codec in ((POD, OBJECT), (WORKLOAD, OBJECT)):
            found = [item.metadata async for item in labelled(self._api, resource, finding.namespace, selector, codec)]
            for metadata in found:
                if _is_ours(metadata, finding.uid, owner):
                    await step(resource, metadata)
        if anchor is not None:
            await step(CONFIG_MAP, anchor)

    async def _anchor(self, finding: JobFinding) -> Metadata | None:
        name = labels.anchor_name(finding.uid)
        try:
            found = await self._api.get(CONFIG_MAP, name, finding.namespace, codec=OBJECT, timeout=self._timeout)
        except KubeNotFound:
            return None
        return found.metadata

    async def _delete(self, resource: KubeResource, metadata: Metadata) -> None:
        self._leadership.guard(self._timeout)
        await delete_and_release(self._api, resource, metadata, _FINALIZERS[resource], request_seconds=self._timeout)
        reach(FaultPoint.RECOVERY_RELEASED)

    async def _release(self, resource: KubeResource, metadata: Metadata) -> None:
        """Take away what binds the object to this installation: its finalizer and its label."""
        self._leadership.guard(self._timeout)
        try:
            while not await release(
                self._api, resource, metadata, _FINALIZERS[resource], request_seconds=self._timeout
            ):
                metadata = await self._read(resource, metadata)
            await self._api.merge_patch(
                resource, metadata.name, metadata.namespace, patch=_WITHOUT_INSTALLATION, timeout=self._timeout
            )
        except KubeNotFound:
            return
        finally:
            reach(FaultPoint.RECOVERY_RELEASED)

    async def _read(self, resource: KubeResource, metadata: Metadata) -> Metadata:
        found = await self._api.get(resource, metadata.name, metadata.namespace, codec=OBJECT, timeout=self._timeout)
        return found.metadata


def _has_ended(job: StoredJob) -> bool:
    return job.recorded.status.phase.is_terminal


def _decision(job: StoredJob, finding: JobFinding, remedy: Remedy, now: datetime) -> Decision:
    make: dict[Remedy, Callable[[], Decision]] = {
        Remedy.ADOPT: lambda: decisions.adopt(job.recorded, finding.attempts, now),
        Remedy.FAIL: lambda: decisions.end(job.recorded, decisions.missing(), {}, now),
        Remedy.REQUEUE: lambda: unknown(job, Reason.OBJECTS_MISSING, decisions.MISSING, now),
    }
    if finding.ended is not None:
        return decisions.end(job.recorded, decisions.ended_in_cluster(finding.ended), finding.attempts, now)
    return make[remedy]()


def _is_ours(metadata: Metadata, uid: str, anchors: set[str] | None) -> bool:
    """Return whether the anchor of the job controls the object.

    If the anchor is gone, the garbage collector deletes what it controlled, and only the finalizer holds it.
    """
    if anchors is not None:
        return is_owned(metadata, uid, anchors)
    return names_anchor(metadata, uid) and metadata.deletion_timestamp is not None
