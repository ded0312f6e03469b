"""Stories of SampleSets and SampleJobs, and the checks of their final state after crashes."""

import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import UUID

import httpx2

from app.base.faultpoints import FaultPoint as At
from tests.crash.gateways import until_held
from tests.crash.runtime_pods import BROKEN, SET_UID, RuntimeNodes
from tests.support.clusters.kube import KubeClient
from tests.support.gateways.process import insist
from tests.support.waiting import until

DEADLINE = 400.0
OF_SAMPLES = frozenset(point for point in At if point.name.startswith("SAMPLE_")) | {At.NODE_LABELLED}
ACCESS, SECRET = "AKIDCRASHTESTS", "s3cr3t/of+crash=tests"
_PATCH = {"Content-Type": "application/merge-patch+json"}
_API = "batch.paddlepaddle.org/v1alpha1"


@dataclass(slots=True, kw_only=True)
class SampleClient:
    """A client that repeats each request until it is answered."""

    http: httpx2.AsyncClient
    api: KubeClient
    namespace: str
    secret: str
    spec: Mapping[str, Any]
    """Of every set, beside what is its own."""

    def path(self, resource: str, *more: str) -> str:
        return "/".join([f"/api/v1/namespaces/{self.namespace}", resource, *more])

    async def submit(self, resource: str, manifest: dict[str, Any]) -> str:
        key = {"Idempotency-Key": secrets.token_hex(8)}
        answer = await insist(self.http, "POST", self.path(resource), json=manifest, headers=key)
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["uid"])

    async def edit(self, resource: str, name: str, **spec: Any) -> None:
        path = self.path(resource, name)
        answer = await insist(self.http, "PATCH", path, json={"spec": spec}, headers=_PATCH)
        assert answer.status_code < 300, answer.text

    async def delete(self, resource: str, name: str) -> None:
        """Delete the object, and wait until nothing is left of it."""
        path = self.path(resource, name)
        answer = await insist(self.http, "DELETE", path)
        assert answer.status_code < 300, answer.text

        async def repeated() -> int:
            answer = await insist(self.http, "DELETE", path)
            assert answer.status_code in (200, 202), answer.text
            return answer.status_code

        await until(repeated, lambda status: status == 200, what=f"{name} is gone", within=DEADLINE)

    async def until(self, resource: str, name: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async def shown() -> dict[str, Any]:
            found: dict[str, Any] = (await insist(self.http, "GET", self.path(resource, name))).json()
            return found

        return await until(shown, wanted, what=f"{name} is as wanted", within=DEADLINE)

    async def is_ready(self, name: str, servers: int) -> None:
        await self.until(
            "samplesets",
            name,
            lambda shown: (
                shown["status"]["phase"] == "Ready"
                and shown["status"]["runtime"] == {"ready": servers, "wanted": servers}
            ),
        )

    async def has_ended(self, name: str, phase: str) -> dict[str, Any]:
        return await self.until("samplejobs", name, lambda shown: shown["status"]["phase"] == phase)

    def sample_set(self, name: str, uri: str, partitions: int = 1) -> dict[str, Any]:
        spec = {
            "partitions": partitions,
            "source": {"uri": uri},
            "secretRef": {"name": self.secret},
            **self.spec,
        }
        return {"apiVersion": _API, "kind": "SampleSet", "metadata": {"name": name}, "spec": spec}

    def sample_job(self, name: str, of: str, kind: str, **spec: Any) -> dict[str, Any]:
        given = {"type": kind, "sampleSetRef": {"name": of}, **spec}
        return {"apiVersion": _API, "kind": "SampleJob", "metadata": {"name": name}, "spec": given}


@dataclass(slots=True, kw_only=True)
class SampleStory:
    """`syncs` is the number of different syncs that the servers of the set receive, including those of SampleJobs."""

    name: str
    drive: Callable[[SampleClient, "SampleStory"], Awaitable[None]]
    syncs: int
    done: Counter[str] = field(default_factory=Counter)
    """How often each job has succeeded, or failed, by its event."""
    jobs: dict[str, str] = field(default_factory=dict)
    """The SampleJobs that stay, and the phases in which they do."""
    uid: str = ""

    async def run(self, client: SampleClient) -> None:
        await self.drive(client, self)

    async def begin(self, client: SampleClient, bucket: str = "good", partitions: int = 1) -> None:
        manifest = client.sample_set(self.name, f"s3://{bucket}.example.com/train", partitions)
        self.uid = await client.submit("samplesets", manifest)


def lives(name: str) -> SampleStory:
    """The set is synced, warmed up, scaled, cleared and deleted."""

    async def drive(client: SampleClient, story: SampleStory) -> None:
        await story.begin(client)
        await client.is_ready(name, 1)
        warms = client.sample_job(f"{name}-warms", name, "warmup", terminate=True)
        await client.submit("samplejobs", warms)
        await client.has_ended(f"{name}-warms", "Succeeded")
        await client.edit("samplesets", name, partitions=2)
        await client.is_ready(name, 2)
        await client.submit("samplejobs", client.sample_job(f"{name}-clears", name, "clear"))
        await client.has_ended(f"{name}-clears", "Succeeded")
        await client.delete("samplejobs", f"{name}-clears")
        await client.delete("samplesets", name)

    done = Counter({"DoSyncJobSuccessfully": 1})
    return SampleStory(name=name, drive=drive, syncs=1, done=done, jobs={f"{name}-warms": "Succeeded"})


def mends(name: str) -> SampleStory:
    """The sync of the set fails, and succeeds from another source. So does the sync of a SampleJob."""

    async def drive(client: SampleClient, story: SampleStory) -> None:
        await story.begin(client, BROKEN)
        await client.until("samplesets", name, lambda shown: shown["status"]["phase"] == "SyncFailed")
        await client.edit("samplesets", name, source={"uri": "s3://good.example.com/train"})
        await client.is_ready(name, 1)
        ref = {"secretRef": {"name": client.secret}}
        wrong = {"source": f"s3://{BROKEN}.example.com/more", "destination": "more"}
        await client.submit(
            "samplejobs", client.sample_job(f"{name}-again", name, "sync", terminate=True, syncOptions=wrong, **ref)
        )
        await client.has_ended(f"{name}-again", "Failed")
        await client.edit("samplejobs", f"{name}-again", syncOptions={"source": "s3://good.example.com/more"})
        await client.has_ended(f"{name}-again", "Succeeded")
        await client.delete("samplesets", name)

    done = Counter({"DoSyncJobSuccessfully": 1, "ErrorDoSyncJob": 1})
    return SampleStory(name=name, drive=drive, syncs=4, done=done, jobs={f"{name}-again": "Succeeded"})


def is_dropped(name: str) -> SampleStory:
    """The set is deleted as soon as its servers are running."""

    async def drive(client: SampleClient, story: SampleStory) -> None:
        await story.begin(client, partitions=2)
        await client.until("samplesets", name, lambda shown: shown["status"]["phase"] not in ("", "Bound"))
        await client.delete("samplesets", name)

    return SampleStory(name=name, drive=drive, syncs=-1)


class SampleLedger:
    """Checks one database, the cluster, and the jobs that the servers received."""

    def __init__(self, connection: Any) -> None:
        self._db = connection

    async def end_lease(self) -> None:
        """End the lease of a killed process. Waiting for its expiry would prove nothing more."""
        await self._db.execute("UPDATE leases SET expires_at = clock_timestamp()")

    async def until_held(self, pid: int) -> int:
        """Wait until this process holds the lease, and return its epoch."""
        return await until_held(self._db, pid)

    async def settled(self) -> None:
        """Wait until the controller has reconciled all intent."""
        await until(
            lambda: self._db.fetch("SELECT name FROM samples WHERE intent_at IS NOT NULL"),
            lambda rows: not rows,
            what="no intent is left",
            within=DEADLINE,
        )

    async def check(self, stories: list[SampleStory], nodes: RuntimeNodes) -> None:
        await self._check_rows(stories)
        for story in stories:
            await self._check_events(story)
        for row in await self._db.fetch("SELECT uid FROM samples"):
            await self._check_history(row["uid"])
        await self._check_secrets()
        _check_uploads(stories, nodes)
        await check_cluster(nodes.api, nodes.namespace)

    async def _check_rows(self, stories: list[SampleStory]) -> None:
        """Require that each accepted set and job is stored once, in its final phase."""
        rows = await self._db.fetch("SELECT kind, name, phase, gone_at IS NOT NULL AS gone FROM samples")
        found = Counter((row["kind"], row["name"], "gone" if row["gone"] else row["phase"]) for row in rows)
        wanted = Counter(("SampleSet", story.name, "gone") for story in stories)
        wanted.update(("SampleJob", name, phase) for story in stories for name, phase in story.jobs.items())
        wanted.update(
            ("SampleJob", f"{story.name}-clears", "gone") for story in stories if f"{story.name}-warms" in story.jobs
        )
        assert found == wanted

    async def _check_events(self, story: SampleStory) -> None:
        rows = await self._db.fetch("SELECT * FROM sample_events WHERE uid = $1 ORDER BY seq", UUID(story.uid))
        events = [(row["seq"], row["reason"]) for row in rows]
        made = Counter(reason for _, reason in events if reason.startswith("Create"))
        assert set(made.values()) <= {1}, events
        done = Counter(reason for _, reason in events if "Do" in reason)
        assert story.syncs < 0 or done == story.done, events

    async def _check_history(self, uid: UUID) -> None:
        sample = await self._db.fetchrow("SELECT * FROM samples WHERE uid = $1", uid)
        rows = await self._db.fetch("SELECT * FROM sample_history WHERE uid = $1 ORDER BY seq", uid)
        lines = [(row["phase"], row["reason"], row["message"], row["actor"]) for row in rows]
        assert sample["gone_at"] is not None or all(one != next_ for one, next_ in pairwise(lines)), lines

    async def _check_secrets(self) -> None:
        """Require that no table contains a key of the volume."""
        for table in ("samples", "sample_history", "sample_events", "job_events", "idempotency_keys"):
            for row in await self._db.fetch(f"SELECT t::text AS text FROM {table} AS t"):
                assert ACCESS not in row["text"], row
                assert "s3cr3t" not in row["text"], row


def _check_uploads(stories: list[SampleStory], nodes: RuntimeNodes) -> None:
    twice = {upload: count for upload, count in nodes.uploads.items() if count > 1}
    assert not twice, twice
    for story in stories:
        if story.syncs >= 0:
            assert len(nodes.jobs_of(story.name, "sync")) == story.syncs, (story.name, nodes.uploads)
        if f"{story.name}-warms" in story.jobs:
            assert len(nodes.jobs_of(story.name, "warmup")) == 1, nodes.uploads
            clears = [upload for upload in nodes.uploads if (upload.set_name, upload.kind) == (story.name, "clear")]
            assert len({upload.job for upload in clears}) == 1, clears
            assert {upload.server for upload in clears} == {0, 1}, clears


async def check_cluster(api: KubeClient, namespace: str) -> None:
    """Require that the cluster has no objects of any set."""
    places = [f"/api/v1/namespaces/{namespace}/{kind}" for kind in ("pods", "services", "persistentvolumeclaims")]
    places += [f"/api/v1/namespaces/{namespace}/secrets", f"/apis/apps/v1/namespaces/{namespace}/statefulsets"]
    for place in places:
        left = (await api.get(place, labelSelector=SET_UID)).ok()["items"]
        assert not left, [item["metadata"]["name"] for item in left]
    volumes = (await api.get("/api/v1/persistentvolumes", labelSelector=f"{SET_UID}")).ok()["items"]
    assert not [v for v in volumes if v["metadata"]["labels"]["jobgate.dev/sample-set-namespace"] == namespace]
    for node in (await api.get("/api/v1/nodes", labelSelector=f"crash-nodes={namespace}")).ok()["items"]:
        assert not [key for key in node["metadata"]["labels"] if key.startswith("paddlepaddle.org/")], node
