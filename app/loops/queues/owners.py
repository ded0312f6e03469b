"""Which Workloads are those of jobs: a client with rights on Workloads can give one the labels and name of any job.

Only the owner of a Workload proves that it is its job's, as for pods. The uids of owners are stored with the jobs, so
each Workload needs one query, which is shared by many.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, TypeAlias
from uuid import UUID

from app.db.jobs import controller
from app.db.jobs.controller import AnchoredJob
from app.db.postgres.engine import Database
from app.domain.kubernetes.queueing import Workload
from app.domain.queueing.queue_status import JobWorkload, job_of
from app.domain.status.pods.ownership import controller_of, is_owned

_AT_ONCE: Final = 500  # Workloads, after which the other tasks run; jobs in one query
_Proof: TypeAlias = tuple[str, str]
"""The uids of a Workload and of its owner."""


class QueueOwners:
    """Remembers the jobs of the Workloads that were found last."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._jobs: dict[_Proof, AnchoredJob] = {}

    async def select(self, workloads: Sequence[Workload]) -> list[JobWorkload]:
        """Return those of the Workloads that are the first ones of jobs.

        Raises:
            DatabaseUnavailable: the jobs cannot be read.
        """
        jobs: dict[_Proof, AnchoredJob] = {}
        selected: list[JobWorkload] = []
        for start in range(0, len(workloads), _AT_ONCE):
            found = [(_proof(item), uid, item) for item in workloads[start : start + _AT_ONCE] if (uid := job_of(item))]
            new = {UUID(uid) for proof, uid, _ in found if proof not in self._jobs}
            read = await controller.read_anchored(self._db, list(new)) if new else {}
            for proof, uid, item in found:
                job = self._jobs.get(proof) or read.get(UUID(uid))
                if job is not None and _is_of(job, uid, item):
                    jobs[proof] = job
                    selected.append(JobWorkload(workload=item, kind=job.kind, name=job.name))
            await asyncio.sleep(0)
        self._jobs = jobs
        return selected


def _proof(workload: Workload) -> _Proof:
    owner = controller_of(workload.metadata)
    return workload.metadata.uid, owner.uid if owner is not None else ""


def _is_of(job: AnchoredJob, uid: str, workload: Workload) -> bool:
    return workload.metadata.namespace == job.namespace and is_owned(workload.metadata, uid, job.anchors)
