"""An autoscaler on real Postgres and a cluster of one node, which is made of what a test says."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import msgspec

from app.db.installation import leases
from app.db.jobs.rows import STORED_JOBS
from app.db.objects import resources
from app.db.postgres.engine import Database
from app.domain.kinds.job_kind import Limits
from app.domain.kubernetes.objects import Node
from app.domain.planning import Planner
from app.domain.reservations.name_ranges import NameRange
from app.domain.scaling.inventory import CountedPod
from app.domain.vocabulary import JobPhase
from app.k8s.codec import ListPage
from app.k8s.resources import NODE
from app.loops.autoscaling.autoscaler import Autoscaler
from app.loops.controller_settings import AutoscalerSettings, ControllerSettings
from tests.db import factories
from tests.db.factories import NOW
from tests.support.kinds.elastic import API_VERSION, KIND, ElasticKind, elastic_manifest

ON = AutoscalerSettings(enabled=True, max_load=1.0)


@dataclass
class Cluster:
    """One node of `cpu` CPUs, and pods that ask for one each."""

    cpu: int = 8
    pods: int = 0
    error: Exception | None = None
    asked: list[str | None] = field(default_factory=list)

    async def list_all(self, resource: Any, **_: Any) -> list[Node]:
        assert resource == NODE
        if self.error:
            raise self.error
        status = {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": str(self.cpu)}}
        return [msgspec.convert({"metadata": {"name": "n1"}, "status": status}, Node)]

    async def list_page(self, _: Any, namespace: str | None, *, continue_token: str, **__: Any) -> ListPage[CountedPod]:
        """As many pages as there are pods, and an empty one."""
        self.asked.append(namespace)
        page = int(continue_token or 0)
        spec = {"nodeName": "n1", "containers": [{"resources": {"requests": {"cpu": "1"}}}]}
        items = (msgspec.convert({"spec": spec}, CountedPod),) if page < self.pods else ()
        return ListPage(items=items, resource_version="1", continue_token=str(page + 1) if items else "")


@dataclass
class Stage:
    db: Database
    lease: leases.Lease
    cluster: Cluster
    now: datetime = NOW

    def autoscaler(
        self, settings: AutoscalerSettings = ON, *namespaces: str, limits: Limits | None = None
    ) -> Autoscaler:
        async def verify() -> None:
            pass

        context: Any = SimpleNamespace(
            api=self.cluster,
            db=self.db,
            clock=SimpleNamespace(now=lambda: self.now),
            publisher=SimpleNamespace(hint=lambda: None),
            planner=Planner(installation="here", limits=limits or Limits()),
            settings=ControllerSettings(autoscaler=settings, namespaces=namespaces),
        )
        leadership: Any = SimpleNamespace(lease=self.lease)
        return Autoscaler(context, leadership, verify, kinds={(API_VERSION, KIND): ElasticKind()})

    async def job(self, name: str, phase: JobPhase = JobPhase.RUNNING, **spec: Any) -> UUID:
        manifest = elastic_manifest(name=name, **spec)
        names = (NameRange("job", name),)
        new = factories.new_job(name, kind=KIND, api_version=API_VERSION, manifest=manifest, names=names)
        await factories.submitted(self.db, new)
        await self.seen(new.uid, phase)
        return new.uid

    async def seen(self, uid: UUID, phase: JobPhase = JobPhase.RUNNING) -> None:
        """The controller knows the present manifest."""
        job = await factories.stored(self.db, uid)
        await factories.move(self.db, self.lease, uid, phase, observed_generation=job.generation)

    async def size(self, uid: UUID) -> int:
        job = await resources.get(self.db, STORED_JOBS, uid)
        assert job is not None
        size: int = job.manifest["spec"]["size"]
        return size


@asynccontextmanager
async def a_stage(database_url: str) -> AsyncIterator[Stage]:
    db = await Database.open(database_url, pool_size=4)
    lease = await leases.acquire(db, "controller", "test", ttl=600)
    assert lease is not None
    yield Stage(db=db, lease=lease, cluster=Cluster())
    await db.close()
