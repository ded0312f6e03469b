"""Plans of jobs that are being worked on, made once an intent version.

The generation would not do: annotations are settings of the plan, and editing them makes no other generation.
A plan is as large as its manifest, whatever the number of replicas, so the bound is the size of the manifests.
"""

from collections import OrderedDict
from typing import Final
from uuid import UUID

import msgspec

from app.db.controller import StoredJob
from app.domain.credentials import credential_of
from app.domain.dialects.base import Site
from app.domain.dialects.registry import find
from app.domain.plan import JobIdentity, JobPlan

LEAST_BYTES: Final = 1024  # what a plan takes beside its manifest


class PlanCache:
    """Keeps the plans used last, as long as their manifests have no more than `max_bytes` together as JSON.

    Decoded, short strings take about twelve times as much memory as their JSON.
    """

    def __init__(self, installation: str, key: bytes, site: Site, *, max_bytes: int = 4 * 1024 * 1024) -> None:
        self._installation = installation
        self._key = key
        self._site = site
        self._max_bytes = max_bytes
        self._held = 0
        self._plans: OrderedDict[tuple[UUID, int, bool], tuple[JobPlan, int]] = OrderedDict()

    def plan(self, job: StoredJob) -> JobPlan:
        key = (job.uid, job.intent_version, job.recorded.status.resumes > 0)
        kept = self._plans.get(key)
        if kept is not None:
            self._plans.move_to_end(key)
            return kept[0]
        plan = self._made(job, resumed=key[2])
        size = LEAST_BYTES + len(msgspec.json.encode(job.manifest))
        self._plans[key] = plan, size
        self._held += size
        self._shrink()
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
        while self._held > self._max_bytes and len(self._plans) > 1:
            _, (_, size) = self._plans.popitem(last=False)
            self._held -= size
