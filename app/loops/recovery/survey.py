"""Compares all jobs of an installation in the cluster and in the database. It changes nothing."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias
from uuid import UUID

from app.db import recovery
from app.db.postgres.engine import Database
from app.domain.access.namespaces import NamespaceSet
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import Metadata
from app.domain.recovery.differences import (
    ClusterJob,
    ClusterPod,
    Difference,
    JobFinding,
    KnownJob,
    compare,
    terminal_phase,
)
from app.domain.status.pods.observation import observe_pod
from app.domain.status.pods.ownership import is_owned, names_anchor
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.codec import POD as POD_CODEC
from app.k8s.errors import KubeNotFound
from app.k8s.resources import CONFIG_MAP, POD, STATEFUL_SET, WORKLOAD
from app.loops.maintenance.labelled import list_labelled, list_scopes

_BATCH = 500  # jobs in one query
_JobKey: TypeAlias = tuple[str, str]  # uid and namespace: another client can copy labels to another namespace


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationScope:
    """Where the objects of an installation are: in `namespaces`, or everywhere if there are none.

    `timeout` is seconds for each request to the cluster.
    """

    api: KubeApi
    installation: str
    namespaces: Sequence[str]
    served: NamespaceSet
    timeout: float


async def find_differences(scope: InstallationScope, db: Database) -> list[JobFinding]:
    """Return all differences, ordered by namespace and name.

    Raises:
        KubeError, DatabaseUnavailable: one of the two did not answer.
    """
    # The cluster is read first: a job is stored before it has objects, so those of new jobs are not lost ones.
    listed = await list_scopes(scope.api, scope.namespaces)
    cluster = await _cluster_jobs(scope, listed)
    pairs: list[tuple[ClusterJob | None, KnownJob | None]] = []
    async for jobs, known in _known_of_cluster(db, cluster.values()):
        # Objects with the uid of a job in another namespace are of a client that has copied its labels.
        pairs += [(job, known.get(job.uid)) for job in jobs if _is_at_home(job, known.get(job.uid))]
    async for known in _live_jobs(db, scope.served):
        pairs += [(None, job) for job in known.values() if (job.uid, job.namespace) not in cluster]
    found = [await _compare(scope, listed, *pair) for pair in pairs]
    return sorted(filter(None, found), key=lambda finding: (finding.namespace, finding.name, finding.uid))


def count(findings: Iterable[JobFinding]) -> Mapping[Difference, int]:
    """Return the number of jobs with each difference, 0 included."""
    counts = Counter(finding.difference for finding in findings)
    return {difference: counts[difference] for difference in Difference}


async def find_unknown_sets(scope: InstallationScope, db: Database) -> list[str]:
    """Return the StatefulSets of SampleSets that the database does not know, as namespace/name. They stay."""
    servers: dict[str, str] = {}
    selector = f"{labels.INSTALLATION}={scope.installation},{labels.SAMPLE_SET_UID}"
    for namespace in await list_scopes(scope.api, scope.namespaces):
        async for item in list_labelled(scope.api, STATEFUL_SET, namespace, selector, OBJECT):
            uid = item.metadata.labels[labels.SAMPLE_SET_UID]
            if labels.is_job_uid(uid):
                servers[uid] = f"{item.metadata.namespace}/{item.metadata.name}"
    known = await recovery.known_samples(db, [UUID(uid) for uid in servers])
    return sorted(name for uid, name in servers.items() if uid not in known)


def _is_at_home(job: ClusterJob, known: KnownJob | None) -> bool:
    return known is None or known.namespace == job.namespace


async def _compare(
    scope: InstallationScope, listed: Sequence[str | None], found: ClusterJob | None, known: KnownJob | None
) -> JobFinding | None:
    """Compare one job. Another client may have removed the labels of an anchor that was not listed, so it is read."""
    finding = compare(found, known)
    if finding is None or finding.difference is not Difference.MISSING:
        return finding
    if None not in listed and finding.namespace not in listed:
        return finding  # without the namespace, its objects are gone, and so is the right to read them
    try:
        name = labels.anchor_name(finding.uid)
        anchor = await scope.api.get(CONFIG_MAP, name, finding.namespace, codec=OBJECT, timeout=scope.timeout)
    except KubeNotFound:
        return finding
    job = _of_anchor(anchor.metadata, finding.uid)
    job.pods = found.pods if found is not None else []
    return compare(job, known)


async def _cluster_jobs(scope: InstallationScope, listed: Sequence[str | None]) -> dict[_JobKey, ClusterJob]:
    jobs: dict[_JobKey, ClusterJob] = {}
    selector = f"{labels.INSTALLATION}={scope.installation},{labels.JOB_UID}"
    for namespace in listed:
        async for item in list_labelled(scope.api, CONFIG_MAP, namespace, selector, OBJECT):
            metadata = item.metadata
            uid = metadata.labels[labels.JOB_UID]
            if metadata.name == labels.anchor_name(uid) and _may_be_ours(metadata, scope):
                jobs[uid, metadata.namespace] = _of_anchor(metadata, uid)
        async for pod in list_labelled(scope.api, POD, namespace, selector, POD_CODEC):
            if (job := _job_of(jobs, pod.metadata, scope)) is not None:
                seen = observe_pod(pod, lost_nodes=())
                job.pods.append(ClusterPod(key=seen.key, attempt=seen.attempt, name=seen.name))
        async for workload in list_labelled(scope.api, WORKLOAD, namespace, selector, OBJECT):
            if (job := _job_of(jobs, workload.metadata, scope)) is not None:
                job.workloads.append(workload.metadata.name)
    return jobs


def _may_be_ours(metadata: Metadata, scope: InstallationScope) -> bool:
    return labels.is_job_uid(metadata.labels[labels.JOB_UID]) and metadata.namespace in scope.served


def _cluster_job(metadata: Metadata, uid: str) -> ClusterJob:
    return ClusterJob(
        uid=uid,
        namespace=metadata.namespace,
        name=metadata.labels.get(labels.INSTANCE, ""),
        kind=metadata.labels.get(labels.KIND, ""),
    )


def _of_anchor(metadata: Metadata, uid: str) -> ClusterJob:
    job = _cluster_job(metadata, uid)
    job.anchor, job.ended = metadata.uid, terminal_phase(metadata.annotations.get(labels.TERMINAL_PHASE))
    return job


def _job_of(jobs: dict[_JobKey, ClusterJob], metadata: Metadata, scope: InstallationScope) -> ClusterJob | None:
    """Return the job of an object, or None if the object only has its label. A job without anchor is added."""
    uid = metadata.labels[labels.JOB_UID]
    if not names_anchor(metadata, uid) or not _may_be_ours(metadata, scope):
        return None
    job = jobs.setdefault((uid, metadata.namespace), _cluster_job(metadata, uid))
    return job if job.anchor is None or is_owned(metadata, uid, {job.anchor}) else None


async def _known_of_cluster(
    db: Database, cluster: Iterable[ClusterJob]
) -> AsyncIterator[tuple[list[ClusterJob], Mapping[str, KnownJob]]]:
    rest = iter(cluster)
    while jobs := list(islice(rest, _BATCH)):
        yield jobs, await recovery.known_jobs(db, [UUID(job.uid) for job in jobs])


async def _live_jobs(db: Database, served: NamespaceSet) -> AsyncIterator[Mapping[str, KnownJob]]:
    after: UUID | None = None
    while known := await recovery.live_jobs(db, served, after):
        yield known
        after = max(map(UUID, known))
