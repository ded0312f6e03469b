"""Plans of jobs that are being worked on, made once a generation."""

from collections import OrderedDict
from uuid import UUID

from app.db.controller import StoredJob
from app.domain.credentials import credential_of
from app.domain.dialects.base import Site
from app.domain.dialects.registry import find
from app.domain.plan import JobIdentity, JobPlan


class PlanCache:
    """Least recently used first out, by the number of replicas that the kept plans have together."""

    def __init__(self, installation: str, key: bytes, site: Site, *, max_replicas: int = 20_000) -> None:
        self._installation = installation
        self._key = key
        self._site = site
        self._max_replicas = max_replicas
        self._held = 0
        self._plans: OrderedDict[tuple[UUID, int, bool], JobPlan] = OrderedDict()

    def plan(self, job: StoredJob) -> JobPlan:
        key = (job.uid, job.generation, job.recorded.status.resumes > 0)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._made(job, resumed=key[2])
            self._plans[key] = plan
            self._held += len(plan.replicas)
            self._shrink()
        self._plans.move_to_end(key)
        return plan

    def _made(self, job: StoredJob, *, resumed: bool) -> JobPlan:
        identity = JobIdentity(
            uid=str(job.uid),
            kind=job.kind,
            api_version=job.api_version,
            namespace=job.namespace,
            name=job.name,
            generation=job.generation,
            installation=self._installation,
            credential=credential_of(self._key, str(job.uid)),
        )
        dialect = find(job.api_version, job.kind)
        return dialect.plan(job.manifest, identity, resumed=resumed, site=self._site)

    def _shrink(self) -> None:
        while self._held > self._max_replicas and len(self._plans) > 1:
            _, dropped = self._plans.popitem(last=False)
            self._held -= len(dropped.replicas)
