"""A controller that is frozen longer than its lease writes nothing afterwards, and its late creates are undone."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.domain.reconcile.lifecycle import NO_POD
from bench.soak.attempts import differences, stored_rows, without_pod
from tests.crash.gateways import PATIENCE, client_of, until_held, until_ready
from tests.crash.ledger import ledger, objects_by_job
from tests.crash.pods import pod_watcher
from tests.crash.stories import FOREVER, Client, generic_job, recovers, serves, task
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.clusters.kube_proxy import kube_proxy
from tests.support.gateways.process import STEADY, gateway_process
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

# Records heartbeats of past epochs, and each write about a job with the PostgreSQL backend of its connection and the
# epoch at that time.
SPY = """
CREATE TABLE spied (id bigserial PRIMARY KEY, client int, epoch bigint);
CREATE FUNCTION spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.status_version <> OLD.status_version THEN
    INSERT INTO spied (client, epoch) SELECT pg_backend_pid(), epoch FROM leases WHERE name = 'controller';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER spy BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION spy();
CREATE TABLE belated (epoch bigint);
CREATE FUNCTION listen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO belated SELECT NEW.epoch FROM leases WHERE name = 'controller' AND epoch <> NEW.epoch;
  RETURN NEW;
END $$;
CREATE TRIGGER listen BEFORE INSERT OR UPDATE ON heartbeats FOR EACH ROW EXECUTE FUNCTION listen();
"""

# `known` counts what only a pod can show.
ATTEMPTS = """
SELECT attempt, outcome, reason, evidence, evidence_reason,
       num_nonnulls(pod_uid, node, pod_ip, created_at, started_at, finished_at, exit_code) AS known
FROM attempts
"""


async def writers(db: Any, *, before: int) -> tuple[set[int], set[int]]:
    """Return the writers before this epoch, and those from this epoch on."""
    rows = await db.fetch("SELECT DISTINCT client, epoch < $1 AS early FROM spied", before)
    return {row["client"] for row in rows if row["early"]}, {row["client"] for row in rows if not row["early"]}


async def unwanted(db: Any, api: KubeClient, namespace: str) -> Sequence[str]:
    """Return the pods that are not those of a current attempt."""
    rows = await db.fetch("SELECT job_uid::text, task, rank, attempt FROM replicas")
    wanted = {(row["job_uid"], row["task"], str(row["rank"]), str(row["attempt"])) for row in rows}
    pods = [item for items in (await objects_by_job(api, namespace)).values() for item in items]
    return [pod["metadata"]["name"] for pod in pods if pod["kind"] == "Pod" and _identity(pod) not in wanted]


def _identity(pod: dict[str, Any]) -> tuple[str, str, str, str]:
    label = pod["metadata"]["labels"]
    uid, kind = label["jobgate.dev/job-uid"], label["jobgate.dev/task"]
    return uid, kind, label["jobgate.dev/task-rank"], label["jobgate.dev/attempt"]


async def test_a_controller_thawed_after_its_lease_writes_nothing(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, database_url: str, tmp_path: Path
) -> None:
    db = await asyncpg.connect(database_url)
    config = busy_cluster.kubeconfig
    with pod_watcher(busy_cluster, crash_namespace) as pods:
        async with (
            gateway_process(database_url, config, tmp_path / "old") as old,
            gateway_process(database_url, config, tmp_path / "new", **STEADY) as new,
        ):
            await old.start()
            await db.execute(SPY)
            before = [recovers(f"before-{number}", tmp_path) for number in range(3)]
            during = [serves("during", tmp_path), recovers("during-too", tmp_path)]
            async with client_of(old, crash_api, crash_namespace) as client:
                for story in before:
                    story.uid = (await client.submit(story.manifest))["uid"]
            await until(lambda: db.fetchval("SELECT count(*) FROM spied"), within=PATIENCE, every=0.01)
            old.freeze()  # while it is working
            await new.start()
            epoch = await until_held(db, new.pid)
            async with client_of(new, crash_api, crash_namespace) as client:
                async with asyncio.TaskGroup() as group:
                    for story in before:
                        group.create_task(client.until(story.name, story.phase))
                    for story in during:
                        group.create_task(story.run(client))
                    await _stop_one(client)
                    old_writers, _ = await writers(db, before=epoch)
                    old.thaw()
                    pods_left = partial(unwanted, db, crash_api, crash_namespace)
                    await until(pods_left, lambda names: not names, within=PATIENCE)
                assert await until_held(db, new.pid) == epoch
                assert not await db.fetch("SELECT * FROM belated"), "a heartbeat of the old epoch came after takeover"
                _, new_writers = await writers(db, before=epoch)
                assert not old_writers & new_writers, "a connection of the old epoch wrote after takeover"
            async with ledger(database_url, busy_cluster) as book:
                await book.settled()
                for story in (*before, *during):
                    await book.check_history(story.uid)
                    await pods.until_seen(story.uid, story.attempts)
            assert await unwanted(db, crash_api, crash_namespace) == []
            async with client_of(old, crash_api, crash_namespace) as client:
                await until_ready(client.http)
        assert not pods.doubles()
    await db.close()


@pytest.mark.parametrize("end", ["cancel", "delete", "finish"])
async def test_a_pod_created_by_a_delayed_request_is_deleted(
    end: str, busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, database_url: str, tmp_path: Path
) -> None:
    """The create was in progress when its controller froze. The job ended under the other controller meanwhile."""
    db = await asyncpg.connect(database_url)
    async with kube_proxy(busy_cluster) as proxy:
        config = proxy.kubeconfig(tmp_path / "kubeconfig")
        async with (
            gateway_process(database_url, config, tmp_path / "old") as old,
            gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "new", **STEADY) as new,
            ledger(database_url, busy_cluster) as book,
        ):
            await old.start()
            proxy.hold("^POST .*/pods[? ]")
            async with client_of(old, crash_api, crash_namespace) as client:
                uid = await _submit_late(client, end)
            await until(lambda: proxy.held, what="a request is held", within=PATIENCE)
            old.freeze()
            await new.start()
            await until_held(db, new.pid)
            async with client_of(new, crash_api, crash_namespace) as client:
                await _come_to_its_end(client, end)
            await book.settled()
            with pod_watcher(busy_cluster, crash_namespace) as pods:
                proxy.let_go()
                await until(lambda: pods.attempts(uid), what="a pod of the job", within=PATIENCE)
                await _no_pods(crash_api, crash_namespace)
            await book.settled()
            await book.check_history(uid)
    await db.close()


async def test_an_attempt_whose_pod_was_never_created_says_so(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, database_url: str, tmp_path: Path
) -> None:
    """The controller was killed between its decision and the create. The job was deleted meanwhile."""
    db = await asyncpg.connect(database_url)
    with pod_watcher(busy_cluster, crash_namespace) as pods:
        async with (
            kube_proxy(busy_cluster) as proxy,
            gateway_process(database_url, proxy.kubeconfig(tmp_path / "kubeconfig"), tmp_path / "old") as old,
        ):
            await old.start()
            proxy.hold("^POST .*/pods[? ]")
            async with client_of(old, crash_api, crash_namespace) as client:
                job = await client.submit(generic_job("short", task("worker", FOREVER)))
                await until(lambda: proxy.held, what="a request is held", within=PATIENCE)
                await client.act("DELETE", "short")
            await old.kill()
        async with (
            gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "new", **STEADY) as new,
            ledger(database_url, busy_cluster) as book,
        ):
            await new.start()
            await book.settled()
            await book.check_history(str(job["uid"]))
        rows = [dict(row) for row in await db.fetch(ATTEMPTS)]
        stored = await stored_rows(db)
        assert not pods.uids
    assert (without_pod(stored, pods.uids), differences(stored, pods.uids)) == (1, [])
    await db.close()
    assert rows == [
        {
            "attempt": 1,
            "outcome": "Stopped",
            "reason": "Removed",
            "evidence": "Unavailable",
            "evidence_reason": NO_POD,
            "known": 0,
        }
    ]


async def _submit_late(client: Client, end: str) -> str:
    script = "exit 0" if end == "finish" else FOREVER
    job = await client.submit(generic_job("late", task("worker", script), cleanUpPolicy="All"))
    return str(job["uid"])


async def _come_to_its_end(client: Client, end: str) -> None:
    if end == "finish":
        await client.until("late", "Succeeded")
        return
    await client.until("late", "Running")
    if end == "delete":
        await client.act("DELETE", "late")
    else:
        await client.act("POST", "late", "cancel")
    await client.until("late", "Cancelled")


async def _no_pods(api: KubeClient, namespace: str) -> None:
    await api.eventually(f"/api/v1/namespaces/{namespace}/pods", lambda found: not found["items"], within=PATIENCE)


async def test_the_only_controller_continues_after_a_freeze(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, database_url: str, tmp_path: Path
) -> None:
    db = await asyncpg.connect(database_url)
    async with gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "only") as only:
        await only.start()
        epoch = await until_held(db, only.pid)
        async with client_of(only, crash_api, crash_namespace) as client:
            story = recovers("sleepy", tmp_path)
            async with asyncio.TaskGroup() as group:
                group.create_task(story.run(client))
                await has_been_submitted(client, "sleepy")
                only.freeze()
                expired = "SELECT expires_at < clock_timestamp() FROM leases"
                await until(lambda: db.fetchval(expired), what="the lease expires", within=PATIENCE)
                only.thaw()
            await until(
                lambda: db.fetchval("SELECT max(epoch) FROM leases"),
                lambda found: found > epoch,
                within=PATIENCE,
            )
    await db.close()


async def has_been_submitted(client: Client, name: str) -> None:
    await until(
        lambda: client.http.get(client.path(name)),
        lambda answer: answer.status_code == 200,
        what=f"{name} is submitted",
        within=PATIENCE,
    )


async def _stop_one(client: Client) -> None:
    """Run a job that starts and ends under the new controller while the old one is frozen."""
    await client.submit(generic_job("short", task("worker", FOREVER)))
    await client.until("short", "Running")
    await client.act("POST", "short", "cancel")
    await client.until("short", "Cancelled")


async def test_a_lease_shorter_than_two_requests_is_refused(
    busy_cluster: Cluster, database_url: str, tmp_path: Path
) -> None:
    """Such a controller would hold the lease and could never send a request."""
    async with gateway_process(
        database_url, busy_cluster.kubeconfig, tmp_path, JOBGATE_LEASE_SECONDS="3", JOBGATE_REQUEST_TIMEOUT="5"
    ) as gateway:
        gateway.launch()
        assert await gateway.ended(within=PATIENCE) == 2
        assert "JOBGATE_REQUEST_TIMEOUT (5 s) may be at most half of JOBGATE_LEASE_SECONDS" in gateway.log.read_text()
