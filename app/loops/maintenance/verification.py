"""Compares the cluster with the database, reading only: no object without its job, and no attempt without its pod.

The checks of the database alone are in `app/db/verification`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from app.db.postgres.engine import Database
from app.db.verification import cluster_rows
from app.db.verification.check import CheckResult, Fault
from app.db.verification.cluster_rows import RecordedPod
from app.db.verification.runner import Progress
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata
from app.domain.status.pods.ownership import names_anchor
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT, Codec
from app.k8s.codec import POD as POD_CODEC
from app.k8s.errors import KubeNotFound
from app.k8s.resources import CONFIG_MAP, POD, WORKLOAD, KubeResource
from app.loops.maintenance.labelled import T, list_labelled, list_scopes

_BATCH: Final = 500

CLUSTER_CHECKS: Final[Mapping[str, tuple[str, str]]] = {
    "owners-of-pods": ("pods", "a pod of this installation belongs to a stored job whose objects are not gone"),
    "owners-of-anchors": ("anchors", "an anchor belongs to a stored job whose objects are not gone"),
    "owners-of-workloads": ("Workloads", "a Workload belongs to a stored job whose objects are not gone"),
    "pods-with-anchor": ("pods", "the anchor of a job owns its pods, so that the garbage collector finds them"),
    "pods-with-attempt": ("pods", "a pod is that of a stored attempt, or is being deleted"),
    "one-pod-in-cluster": ("pods", "an attempt has at most one pod"),
    "attempts-with-pod": ("attempts", "the finalizer keeps the pod of an attempt until its evidence is stored"),
}
"""What each check examines, and why it holds."""


@dataclass(slots=True, kw_only=True)
class _Examination:
    """One examination of the cluster: the results, and what later steps need of earlier ones."""

    results: dict[str, CheckResult] = field(
        default_factory=lambda: {
            name: CheckResult(name=name, why=why, subjects=subjects) for name, (subjects, why) in CLUSTER_CHECKS.items()
        }
    )
    anchors: set[str] = field(default_factory=set)
    pods: set[str] = field(default_factory=set)
    attempts: dict[tuple[str, ...], str] = field(default_factory=dict)

    def count(self, check: str, subject: str, fault: str | None) -> None:
        """Count a subject, and report what is wrong with it."""
        self.results[check].examined += 1
        if fault is not None:
            self.results[check].faults.append(Fault(subject=subject, found=fault))


class ClusterVerifier:
    """Checks the objects of one installation. No `namespaces` means all. `timeout` is seconds for each request."""

    def __init__(
        self, api: KubeApi, db: Database, installation: UUID, *, namespaces: Sequence[str], timeout: float
    ) -> None:
        self._api = api
        self._db = db
        self._selector = f"{labels.INSTALLATION}={installation}"
        self._namespaces = namespaces
        self._timeout = timeout

    async def verify(self, *, pause: float, progress: Progress = lambda _, __: None) -> list[CheckResult]:
        """Return what each check has found. Faults are reported if they are still there after `pause` seconds.

        Raises:
            KubeError: the cluster did not answer, or refuses the account to list pods or ConfigMaps.
        """
        found = await self._examine(progress)
        if any(result.faults for result in found.values()):
            await asyncio.sleep(pause)
            again = await self._examine(progress)
            for name, result in again.items():
                before = {fault.subject for fault in found[name].faults}
                result.faults = [fault for fault in result.faults if fault.subject in before]
            found = again
        return list(found.values())

    async def _examine(self, progress: Progress) -> dict[str, CheckResult]:
        examination = _Examination()
        # A job is stored before it has objects. So objects are read before jobs.
        async for anchors in self._batches(CONFIG_MAP, OBJECT):
            await self._check_anchors(examination, anchors)
            progress("anchors", examination.results["owners-of-anchors"].examined)
        async for pods in self._batches(POD, POD_CODEC):
            await self._check_pods(examination, pods)
            progress("pods", examination.results["owners-of-pods"].examined)
        async for workloads in self._batches(WORKLOAD, OBJECT):
            ours = [item for item in workloads if names_anchor(item, _job_of(item))]
            await self._check_owners(examination, "owners-of-workloads", ours)
        async for recorded in cluster_rows.read_running(self._db):
            fault = None if recorded.pod_uid in examination.pods else await self._missing(recorded)
            examination.count("attempts-with-pod", _name_of(recorded), fault)
        return examination.results

    async def _batches(self, resource: KubeResource, codec: Codec[T]) -> AsyncIterator[list[Metadata]]:
        """Yield what identifies the objects with the label of the installation, some at a time."""
        for namespace in await list_scopes(self._api, self._namespaces):
            batch: list[Metadata] = []
            async for item in list_labelled(self._api, resource, namespace, self._selector, codec):
                batch.append(item.metadata)
                if len(batch) == _BATCH:
                    yield batch
                    batch = []
            yield batch

    async def _check_anchors(self, examination: _Examination, found: Sequence[Metadata]) -> None:
        anchors = [item for item in found if item.name == labels.anchor_name(_job_of(item))]
        examination.anchors |= {_job_of(anchor) for anchor in anchors}
        await self._check_owners(examination, "owners-of-anchors", anchors)

    async def _check_pods(self, examination: _Examination, found: Sequence[Metadata]) -> None:
        # Any client can set the label.
        pods = [pod for pod in found if names_anchor(pod, _job_of(pod))]
        examination.pods |= {pod.uid for pod in found}
        await self._check_owners(examination, "owners-of-pods", pods)
        jobs = [UUID(_job_of(pod)) for pod in pods if labels.is_job_uid(_job_of(pod))]
        recorded = await cluster_rows.find_recorded(self._db, jobs, [pod.uid for pod in pods])
        for pod in pods:
            subject, deleting = f"{pod.namespace}/{pod.name} {pod.uid}", pod.deletion_timestamp is not None
            fine = deleting or _job_of(pod) in examination.anchors
            examination.count("pods-with-anchor", subject, None if fine else f"the job {_job_of(pod)} has no anchor")
            fine = deleting or pod.uid in recorded
            examination.count(
                "pods-with-attempt", subject, None if fine else f"no attempt of the job {_job_of(pod)} has it"
            )
            keys = (labels.JOB_UID, labels.TASK, labels.TASK_RANK, labels.ATTEMPT)
            attempt = tuple(pod.labels.get(key, "") for key in keys)
            other = None if deleting else examination.attempts.get(attempt)
            examination.count("one-pod-in-cluster", subject, other and f"{other} is of the same attempt")
            if not deleting:
                examination.attempts[attempt] = subject

    async def _check_owners(self, examination: _Examination, check: str, found: Sequence[Metadata]) -> None:
        jobs = {UUID(_job_of(item)) for item in found if labels.is_job_uid(_job_of(item))}
        known = {str(uid) for uid in await cluster_rows.find_with_objects(self._db, jobs)}
        for item in found:
            job = _job_of(item)
            fault = None if job in known else f"the database has no job {job} that has objects"
            examination.count(check, f"{item.namespace}/{item.name} {item.uid}", fault)

    async def _missing(self, recorded: RecordedPod) -> str | None:
        """Return what is wrong with a pod that was not listed: a policy may have removed its labels, or it is gone."""
        if recorded.pod_name is None:
            return f"the pod {recorded.pod_uid} has no stored name"
        try:
            found = await self._api.get(
                POD, recorded.pod_name, recorded.namespace, codec=POD_CODEC, timeout=self._timeout
            )
        except KubeNotFound:
            return f"the cluster has no pod {recorded.pod_name}"
        same = found.metadata.uid == recorded.pod_uid
        return None if same else f"the pod {recorded.pod_name} has the uid {found.metadata.uid}, not {recorded.pod_uid}"


def _job_of(metadata: Metadata) -> str:
    return metadata.labels.get(labels.JOB_UID, "")


def _name_of(recorded: RecordedPod) -> str:
    attempt = f"{recorded.task}-{recorded.rank}, attempt {recorded.attempt}"
    return f"{recorded.namespace}/{recorded.job_uid} {attempt}"
