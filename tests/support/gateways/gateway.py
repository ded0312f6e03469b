"""An API process without a controller, with a real PostgreSQL and real HTTP. The test writes as the controller."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import httpx2

from app.api.http_settings import HttpSettings
from app.base.clock import SystemClock
from app.db.feed import entries
from app.db.installation import leases, tokens
from app.db.jobs import controller
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.db.postgres.timeouts import DatabaseTimeouts
from app.domain.access.credentials import credential_of
from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.cache.limits import CacheLimits
from app.domain.cache.source_limits import SourceLimits
from app.domain.kinds.job_kind import Limits
from app.domain.plan import Rank
from app.domain.planning import Planner
from app.domain.policy import PodPolicy
from app.domain.reconcile.values import Decision
from app.domain.retention import FOR_EVER, Retention
from app.domain.status.records import Attempt, HistoryEntry, JobStatus, Replica, ScaleRecord
from app.http_server import server as http_server
from app.http_server.limits import ServerLimits
from app.http_server.sockets import bind, url_of
from app.log_store import LogStore
from app.running.application import create_app
from app.services.access import Access, OpenAccess
from app.services.gateway import Services
from app.services.limits.long_request_limits import LongRequestLimits
from app.services.logs.containers import LogReader
from app.services.oidc.issuer_settings import OidcSettings
from app.services.oidc.token_access import token_access
from app.services.reading.system import Check
from app.settings.development import dev_defaults
from tests.support.gateways.bearer import free_name
from tests.support.waiting import until

NAMESPACE = "team"
# The context that httpx2 makes for each client by default reads all certificates of the system, for 12 ms.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
INSTALLATION_KEY = bytes(range(32))  # constant, so that tests can compute the tokens of jobs


@dataclass(slots=True, kw_only=True)
class Gateway:
    """A running gateway. `client` sends requests as an admin, or without a token if the gateway requires tokens.

    `namespace` is where a test submits jobs. Tests that share the gateway have one each.
    """

    db: Database
    services: Services
    client: httpx2.AsyncClient
    url: str
    namespace: str = NAMESPACE
    _lease: leases.Lease | None = None

    def path(self, *parts: str) -> str:
        """Return the path of the jobs of the namespace, or of one of them by its name, or of a part of it."""
        return jobs_path(self.namespace, *parts)

    async def token(self, role: str, *namespaces: str) -> dict[str, str]:
        """Headers of a new token."""
        now = datetime.now(UTC)  # noqa: TID251 - a test is its own clock
        name = await free_name(self.db, role)
        _, text = await tokens.create(self.db, name=name, role=role, namespaces=namespaces, now=now)
        return {"Authorization": f"Bearer {text}"}

    def job_token(self, uid: str) -> str:
        """The token in the environment of the pods of this job."""
        return credential_of(INSTALLATION_KEY, uid)

    async def submit(self, name: str = "hello", namespace: str | None = None, **spec: Any) -> dict[str, Any]:
        answer = await self.client.post(jobs_path(namespace or self.namespace), json=manifest(name, **spec))
        assert answer.status_code == 201, answer.text
        created: dict[str, Any] = answer.json()
        return created

    async def lease(self) -> leases.Lease:
        """Take the lease of the controller."""
        self._lease = self._lease or await leases.acquire(self.db, "controller", "a test", ttl=600)
        assert self._lease is not None
        return self._lease

    async def conclude(self, uid: str, status: Mapping[str, Any], **more: Any) -> None:
        """Write a decision as the controller does. `status` contains the changed fields of JobStatus."""
        job = (await controller.load(self.db, [UUID(uid)]))[UUID(uid)]
        decision = _decision(replace(job.recorded.status, **status), **more)
        pods = {replica.key: f"{job.name}-{replica.key.task}-{replica.key.rank}" for replica in decision.changed}
        assert await controller.persist(self.db, await self.lease(), [job.write(decision, pod_names=pods)]) == []


def _decision(
    status: JobStatus,
    *,
    replicas: Sequence[Replica] = (),
    ended: Sequence[tuple[Rank, Attempt]] = (),
    history: Sequence[HistoryEntry] = (),
    scaled: Sequence[ScaleRecord] = (),
) -> Decision:
    return Decision(
        status=status,
        replicas={replica.key: replica for replica in replicas},
        changed=tuple(replicas),
        ended=tuple(ended),
        history=tuple(history),
        scaled=tuple(scaled),
        actions=(),
        wake_at=None,
        again=False,
        dirty=True,
    )


def jobs_path(namespace: str = NAMESPACE, *more: str) -> str:
    return "/".join([f"/api/v1/namespaces/{namespace}/jobs", *more])


def manifest(name: str = "hello", *, replicas: int = 2, labels: Mapping[str, str] | None = None, **spec: Any) -> Any:
    """A GenericJob of one task; `spec` adds to its spec."""
    template = {"spec": {"containers": [{"name": "main", "image": "busybox", "command": ["true"]}]}}
    task = {"type": "worker", "replicas": replicas, "restartPolicy": {"policy": "Never"}, "template": template}
    metadata = {"name": name} | ({"labels": dict(labels)} if labels else {})
    return {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "GenericJob",
        "metadata": metadata,
        "spec": {"replicaSpecs": [task]} | spec,
    }


@asynccontextmanager
async def running_gateway(
    database_url: str,
    *,
    closed: bool = False,
    log_reader: LogReader | None = None,
    log_store: LogStore | None = None,
    settings: HttpSettings | None = None,
    limits: Limits | None = None,
    namespaces: NamespaceSet = EVERY_NAMESPACE,
    long_requests: LongRequestLimits | None = None,
    server_limits: ServerLimits | None = None,
    policy: PodPolicy | None = None,
    oidc: OidcSettings | None = None,
    timeouts: DatabaseTimeouts | None = None,
    keep_jobs: Retention = FOR_EVER,
    max_kept_jobs: int = 0,
) -> AsyncIterator[Gateway]:
    db = await Database.open(database_url, pool_size=8, timeouts=timeouts, max_kept_jobs=max_kept_jobs)
    clock = SystemClock()
    access: Access = OpenAccess()
    sign_in = None
    if closed:
        access, sign_in = token_access(db, clock, oidc, INSTALLATION_KEY)

    async def hint() -> None:
        await asyncio.sleep(0.02)

    async def readiness() -> Sequence[Check]:
        return [Check(name="database", ok=True)]

    services = Services(
        db=db,
        clock=clock,
        host_clock=clock,
        access=access,
        planner=Planner(installation=str(uuid4()), limits=limits or Limits(), policy=policy or PodPolicy()),
        installation_key=INSTALLATION_KEY,
        job_hint=lambda: None,
        sample_hint=lambda: None,
        feed_hint=hint,
        readiness=readiness,
        sign_in=sign_in,
        log_reader=log_reader,
        log_store=log_store,
        namespaces=namespaces,
        # As `jobgate dev`, whose examples have their data there.
        cache_limits=CacheLimits(namespace="", sources=SourceLimits(directories=dev_defaults()["file_directories"])),
        long_request_limits=long_requests or LongRequestLimits(),
        keep_jobs=keep_jobs,
    )
    listening = bind("127.0.0.1", 0)
    app = create_app(services, settings)
    config = http_server.uvicorn_config(app, graceful_seconds=2)
    server = http_server.Server(config, listening, server_limits or ServerLimits())
    url = url_of(listening)
    async with asyncio.TaskGroup() as group:
        loops = [group.create_task(services.run()), group.create_task(_publish(db))]
        serving = group.create_task(server.run_until_exit())
        try:
            async with httpx2.AsyncClient(base_url=url, timeout=60, verify=NO_CERTIFICATES) as client:
                await until(lambda: _answers(client), what="the server answers")
                yield Gateway(db=db, services=services, client=client, url=url)
        finally:
            services.close()
            server.should_exit = True
            await serving
            for loop in loops:
                loop.cancel()
    await db.close()


async def _answers(client: httpx2.AsyncClient) -> bool:
    try:
        return (await client.get("/livez")).status_code == 200
    except httpx2.TransportError:
        return False


async def _publish(db: Database) -> None:
    while True:
        with suppress(DatabaseUnavailable):  # on a machine under load for a moment; the real one repeats it, too
            await entries.publish(db)
        await asyncio.sleep(0.02)


async def until_open(gateway: Gateway, count: int) -> None:
    """Wait until this many long-running requests (streams, long polls, logs) are open."""
    long_requests = gateway.services.long_requests
    await until(lambda: long_requests.count, lambda found: found == count, what=f"{count} long-running requests")


async def until_followed(gateway: Gateway) -> None:
    """Wait until the gateway has read the feed to its end: no earlier change ends a poll that begins now."""

    async def is_followed() -> bool:
        async with gateway.db.read() as connection:
            left = await connection.fetchval("SELECT count(*) FROM job_events WHERE seq IS NULL")
            last = await connection.fetchval("SELECT last FROM feed")
        position = gateway.services.watcher.position
        return not left and position is not None and position.seq == last

    await until(is_followed)
