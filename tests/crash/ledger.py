"""Checks of the final state: what the stories expect, read from Postgres and from the cluster, and all invariants."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any
from uuid import UUID

import asyncpg

from tests.crash.pods import Attempt, PodWatcher
from tests.crash.stories import LAST_WORDS, Story
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.verification import assert_invariants
from tests.support.waiting import until

EVIDENCE = "jobgate.dev/evidence"
SETTLED = 240.0

# A few of them, because a busy controller has hundreds of thousands of such jobs.
_UNSETTLED = """
SELECT name, phase, reason, message FROM jobs
WHERE (intent_at IS NOT NULL OR NOT quiet) AND (name = ANY ($1) OR $1 IS NULL)
UNION ALL SELECT 'the feed', type, '', 'not numbered' FROM job_events WHERE seq IS NULL
LIMIT 100
"""


class Ledger:
    """Checks one database."""

    def __init__(self, connection: Any) -> None:
        self._db = connection

    async def settled(self, *names: str, within: float = SETTLED) -> None:
        """Wait until the controller has nothing left to do, for all jobs or for these."""
        await until(
            lambda: self._db.fetch(_UNSETTLED, names or None),
            lambda rows: not rows,
            what="the controller is done",
            within=within,
        )

    async def check(self, stories: Sequence[Story], pods: PodWatcher, api: KubeClient, namespace: str) -> None:
        """Require that each story ended as expected, with one complete job."""
        await self._check_jobs(stories)
        left = await objects_by_job(api, namespace)
        for story in stories:
            await self.check_history(story.uid)
            await self._check_attempts(story, pods)
            _check_objects(story, left.get(story.uid, []))

    async def _check_jobs(self, stories: Sequence[Story]) -> None:
        rows = await self._db.fetch(
            "SELECT name, uid::text, phase, gone_at IS NOT NULL AS gone FROM jobs ORDER BY name"
        )
        found = [(row["name"], row["uid"], row["phase"], row["gone"]) for row in rows]
        assert found == sorted((story.name, story.uid, story.phase, story.is_deleted) for story in stories)

    async def check_history(self, uid: str) -> None:
        """Require that the history has no duplicates."""
        rows = await self._db.fetch("SELECT * FROM status_history WHERE job_uid = $1 ORDER BY seq", UUID(uid))
        shown = [f"{r['seq']} {r['phase']} {r['reason']} {r['task']}-{r['rank']}/{r['attempt']}" for r in rows]
        lines = [(row["phase"], row["reason"]) for row in rows if row["task"] is None]
        assert all(one != next_ for one, next_ in pairwise(lines)), shown
        replicas = [
            (row["reason"], row["task"], row["rank"], row["attempt"]) for row in rows if row["task"] is not None
        ]
        assert len(set(replicas)) == len(replicas), shown

    async def _check_attempts(self, story: Story, pods: PodWatcher) -> None:
        uid = UUID(story.uid)
        ended = await self._db.fetch("SELECT * FROM attempts WHERE job_uid = $1 ORDER BY task, rank, attempt", uid)
        current = await self._db.fetch("SELECT * FROM replicas WHERE job_uid = $1", uid)
        if story.exact:
            await pods.until_seen(story.uid, story.attempts)
        seen = pods.attempts(story.uid)
        numbers = {(row["task"], row["rank"]): row["attempt"] for row in current}
        for key, allowed in story.attempts.items():
            expected = allowed if story.exact else min(allowed, numbers.get(key, 0))
            assert numbers.get(key, 0) == expected, (story.name, key, numbers)
            assert seen.get(key, 0) <= allowed, (story.name, key, seen)
        for row in ended:
            assert row["evidence"] in ("Captured", "Unavailable"), (story.name, dict(row))
            assert row["evidence"] == "Captured" or row["evidence_reason"], (story.name, dict(row))
            watched = pods.uids.get(Attempt(story.uid, row["task"], row["rank"], row["attempt"]), set())
            assert watched == ({row["pod_uid"]} if row["pod_uid"] else set()), (story.name, dict(row), watched)
        if story.first_exit is not None:
            await self._check_last_words(story, ended[0])

    async def _check_last_words(self, story: Story, first: Any) -> None:
        assert first["exit_code"] == story.first_exit, dict(first)
        log = await self._db.fetchval(
            "SELECT tail FROM attempt_logs WHERE job_uid = $1 AND attempt = 1", UUID(story.uid)
        )
        assert log is not None, (story.name, dict(first))
        assert LAST_WORDS.encode() in log, log


def _check_objects(story: Story, left: Sequence[Mapping[str, Any]]) -> None:
    described = [f"{item['kind']} {item['metadata']['name']}" for item in left]
    if story.is_deleted:
        assert not left, described
    pods = [item for item in left if item["kind"] == "Pod"]
    assert story.keeps_pods or not pods, (story.name, described)
    held = [pod["metadata"]["name"] for pod in pods if EVIDENCE in pod["metadata"].get("finalizers", [])]
    assert not held, held
    alive = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] not in ("Succeeded", "Failed")]
    assert not alive or story.phase == "Succeeded", alive


async def objects_by_job(api: KubeClient, namespace: str) -> dict[str, list[dict[str, Any]]]:
    """Return all objects of the namespace that have a job's label, by the uid of the job."""
    found: dict[str, list[dict[str, Any]]] = {}
    for resource, kind in (("pods", "Pod"), ("services", "Service"), ("configmaps", "ConfigMap")):
        page = (await api.get(f"/api/v1/namespaces/{namespace}/{resource}", labelSelector="jobgate.dev/job-uid")).ok()
        for item in page["items"]:
            found.setdefault(item["metadata"]["labels"]["jobgate.dev/job-uid"], []).append(item | {"kind": kind})
    return found


@asynccontextmanager
async def ledger(database_url: str, cluster: Cluster) -> AsyncIterator[Ledger]:
    """Yield the ledger of a database. Afterwards, the invariants hold there and in the cluster."""
    connection: Any = await asyncpg.connect(database_url, timeout=90)
    try:
        yield Ledger(connection)
        await assert_invariants(database_url, cluster)
    finally:
        await connection.close(timeout=60)
