"""The plans of the jobs that the controller works on, made once for each intent version.

A plan is as large as its manifest, whatever the number of replicas, so the bound is the size of the manifests.
"""

from typing import Final, NamedTuple
from uuid import UUID

from app.base.caches import BoundedCache
from app.db.jobs.controller import StoredJob
from app.domain.access.credentials import credential_of
from app.domain.plan import JobPlan
from app.domain.planning import Planner, stored_bytes

# Decoded, the short strings of manifests take about twelve times as much memory as their JSON: about 50 MiB.
_MAX_BYTES: Final = 4 * 1024 * 1024


class _PlanKey(NamedTuple):
    """What a plan depends on. The generation is not enough: a plan also depends on annotations of the manifest."""

    uid: UUID
    intent_version: int
    resumed: bool
    gang_apis: frozenset[str]


class PlanCache:
    """Makes the plans of jobs, each with the credential of its job, and keeps those that were used last."""

    def __init__(self, planner: Planner, key: bytes) -> None:
        self._planner = planner
        self._key = key
        self._plans: BoundedCache[_PlanKey, JobPlan] = BoundedCache(_MAX_BYTES)

    def plan(self, job: StoredJob, gang_apis: frozenset[str] = frozenset()) -> JobPlan:
        """Return the plan of a job on a cluster that serves these versions of APIs of PodGroups."""
        key = _PlanKey(job.uid, job.intent_version, job.recorded.status.resumes > 0, gang_apis)
        kept = self._plans.get(key)
        if kept is not None:
            return kept
        plan = self._planner.plan(
            self._planner.read(job.manifest, job.uid, job.generation),
            str(job.uid),
            generation=job.generation,
            resumed=key.resumed,
            credential=credential_of(self._key, str(job.uid)),
            gang_apis=gang_apis,
        )
        self._plans.put(key, plan, stored_bytes(job.manifest))
        return plan
